"""The owners of tokens: services that run batches, streams and servers, and people with notebooks.

`population` gives every owner of a scenario with where it works, what it runs, how much of all it does, and which
accounts ask for its tokens and renew them. Most of what makes one owner unlike another is decided here:

- batches and servers often get tokens from another account, a scheduler or a build system, for the owner (KIP-373);
- a list of renewers may have a spare one: an account that could renew, and never does;
- some owners change the renewer, from some day's tokens on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from kafka_dt.pipeline.generator import clients
from kafka_dt.pipeline.generator.clients import Subnet
from kafka_dt.pipeline.generator.lives import Account

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

    from kafka_dt.pipeline.generator.clients import Versions
    from kafka_dt.pipeline.generator.scenario import Scenario

KERBEROS: Final = "GSSAPI"
_TEAMS: Final = (
    *("orders", "billing", "search", "ads", "fraud", "stock", "pricing", "logistics", "crm", "growth"),
    *("risk", "ml", "media", "support", "identity", "payments", "catalog", "recommender", "telemetry", "maps"),
)
_PEOPLE: Final = (
    *("ana", "ben", "carla", "deniz", "emil", "fatima", "george", "hana", "ivan", "jun"),
    *("kim", "lena", "marc", "nadia", "omar", "petra", "quentin", "rosa", "sami", "tove"),
)
_BACKUPS: Final = ("oncall", "oozie", "dataops")
"""Accounts that may renew and do not."""


class Work(StrEnum):
    """What an owner does."""

    BATCH = "batch"
    STREAMING = "streaming"
    SERVICE = "service"
    NOTEBOOK = "notebook"


LOGINS_SHARE: Final[Mapping[Work, float]] = {
    Work.BATCH: 0.45,
    Work.STREAMING: 0.33,
    Work.SERVICE: 0.17,
    Work.NOTEBOOK: 0.05,
}
"""Whose part of all events is how large."""
_OWNERS_SHARE: Final = ((Work.BATCH, 0.30), (Work.STREAMING, 0.22), (Work.SERVICE, 0.25), (Work.NOTEBOOK, 0.23))


@dataclass(frozen=True, slots=True)
class Owner:
    """One owner of tokens."""

    number: int
    principal: str
    """`User:etl-orders`."""
    work: Work
    share: float
    """How much it does, beside the others with the same work."""
    home: tuple[Subnet, ...]
    """Where its processes are."""
    versions: Versions
    mechanism: str
    """By which it logs in with tokens."""
    account: Account
    """Itself, when it logs in without one."""
    requester: Account
    """Asks for its tokens."""
    renewing: Account
    """Renews them."""
    renewing_later: Account
    """Renews those that are made after the change."""
    change_ms: int
    spare: Account | None
    """May renew them, too."""

    @property
    def name(self) -> str:
        """What it is called, without a type."""
        return self.principal.partition(":")[2]

    def renewer(self, issued_ms: int) -> Account:
        """Give the renewer of a token."""
        return self.renewing if issued_ms < self.change_ms else self.renewing_later

    def renewers(self, issued_ms: int) -> tuple[str, ...]:
        """List the principals that may renew a token beside the owner."""
        everybody = (self.renewer(issued_ms), *((self.spare,) if self.spare else ()))
        return tuple(each.principal for each in everybody if each.principal != self.principal)


def population(scenario: Scenario) -> list[Owner]:
    """Give all owners, those with the same work beside each other."""
    works = [work for work, share in _OWNERS_SHARE for _ in range(math.ceil(share * scenario.owners))]
    numbers = {work: 0 for work, _ in _OWNERS_SHARE}
    found = []
    for number, work in enumerate(works[: scenario.owners]):
        found.append(_owner(scenario, number, work, numbers[work]))
        numbers[work] += 1
    return found


def _owner(scenario: Scenario, number: int, work: Work, number_of_work: int) -> Owner:
    chance = scenario.chance("owner", number)
    principal = f"User:{_name(work, number_of_work)}"
    home = _home(work, number_of_work, chance)
    versions = (clients.python if work in {Work.SERVICE, Work.NOTEBOOK} else clients.java)(chance, scenario)
    account = Account(
        principal,
        "SCRAM-SHA-512" if work is Work.NOTEBOOK and chance.random() < 0.5 else KERBEROS,  # noqa: PLR2004
        (home[0] if work is Work.NOTEBOOK else clients.EDGE).any_host(chance),
        clients.java(chance, scenario).before,
        "adminclient-1",
    )
    requester = _requester(work, account, chance)
    renewing, later = _renewers(work, home, account, chance)
    changes = later is not renewing and chance.random() < 0.4  # noqa: PLR2004 - two in five
    return Owner(
        number=number,
        principal=principal,
        work=work,
        share=chance.lognormvariate(0, 0.6),
        home=home,
        versions=versions,
        mechanism=chance.choice(("SCRAM-SHA-256", "SCRAM-SHA-256", "SCRAM-SHA-512")),
        account=account,
        requester=requester,
        renewing=renewing,
        renewing_later=later,
        change_ms=scenario.begin_ms(chance.randrange(2, max(3, scenario.days))) if changes else scenario.end_ms,
        spare=_spare(chance) if chance.random() < 0.5 else None,  # noqa: PLR2004 - one in two
    )


def _name(work: Work, number: int) -> str:
    if work is Work.NOTEBOOK:
        again = number // len(_PEOPLE)
        return f"{_PEOPLE[number % len(_PEOPLE)]}.{'abcdefghijklmnopqrstuvwxyz'[again % 26]}{again // 26 or ''}"
    again = number // len(_TEAMS)
    prefix = {Work.BATCH: "etl", Work.STREAMING: "flink", Work.SERVICE: "svc"}[work]
    return f"{prefix}-{_TEAMS[number % len(_TEAMS)]}{again + 1 if again else ''}"


def _home(work: Work, number: int, chance: random.Random) -> tuple[Subnet, ...]:
    match work:
        case Work.BATCH if number % 3 == 0:
            return clients.YARN
        case Work.BATCH:
            # Two zones, or one.
            return tuple(clients.pods(42 + 2 * zone, number) for zone in range(chance.choice((1, 1, 2))))
        case Work.STREAMING:
            return (clients.pods(48, number),)
        case Work.SERVICE:
            return (clients.pods(52, number),)
        case Work.NOTEBOOK:
            return (clients.NOTEBOOKS, chance.choice(clients.OFFICE), chance.choice(clients.VPN))


def _requester(work: Work, account: Account, chance: random.Random) -> Account:
    if work is Work.BATCH and chance.random() < 0.5:  # noqa: PLR2004 - one in two
        name = chance.choice(("airflow", "airflow", "livy"))
        return Account(f"User:{name}", KERBEROS, clients.SCHEDULERS.host(len(name)), account.software, "adminclient-1")
    if work is Work.SERVICE and chance.random() < 0.7:  # noqa: PLR2004 - most
        return Account("User:deployer", "SCRAM-SHA-512", clients.SCHEDULERS.host(40), account.software, "kafka-dt")
    return account


def _renewers(work: Work, home: tuple[Subnet, ...], account: Account, chance: random.Random) -> tuple[Account, Account]:
    """Draw the renewer, and the one after a change."""
    if work is Work.NOTEBOOK:
        return account, account
    names = {
        Work.BATCH: ("yarn", "yarn2") if home == clients.YARN else ("spark-operator", "token-keeper"),
        Work.STREAMING: ("flink-operator", "token-keeper"),
        Work.SERVICE: ("token-renewer", "token-keeper"),
    }
    first, second = names[work]
    if work is Work.STREAMING and chance.random() < 0.5:  # noqa: PLR2004 - one in two renews its own
        return account, account
    made = [
        Account(f"User:{name}", KERBEROS, clients.RENEWERS.host(3 * len(name)), account.software, f"{name}-1")
        for name in (first, second)
    ]
    return made[0], made[1]


def _spare(chance: random.Random) -> Account:
    name = chance.choice(_BACKUPS)
    place = clients.ADMINISTRATION.host(7 * len(name))
    return Account(f"User:{name}", KERBEROS, place, clients.Software("apache-kafka-java", "3.7.1"), "adminclient-1")
