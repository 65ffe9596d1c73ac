"""A sign of theft: its rule, its thresholds, its words, and the commands for a responder, in one value.

The analysis, the page with its plot, the JSON, the Parquet output, the demo and the manual all follow from these
values. To add a sign, write a module like `foreign_renewal.py` and name it in the table of `__init__.py`. A rule is a
function of DataFrames, over aggregates that the report computes once (`Observed`); it reads `events` itself only where
the aggregates do not say enough.

Values in commands come from events, and some of these a client chose freely. So every value is quoted for a shell, no
value can be taken for an option, and a value with characters that do not print is in no command at all. Placeholders
are the files that an operator has: admin.properties of a super user, server.properties of a node.

Source: docs/how-to/operate.md, "Revoke"
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, fields, replace
from functools import reduce
from inspect import getdoc, getmodule
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.habits import Habits
from kafka_dt.pipeline.report.lives import clients_by_zone
from kafka_dt.pipeline.report.operators_tokens import operators_tokens, without_first_day
from kafka_dt.pipeline.report.peers import deployments, homes_of, peers
from kafka_dt.pipeline.report.signs.finding import Finding
from kafka_dt.pipeline.report.visits import without_visits
from kafka_dt.pipeline.report.workdays import people, workdays
from kafka_dt.pipeline.shell import word

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafka_dt.pipeline.report.signs.finding import SubjectType
    from kafka_dt.pipeline.report.store import WriteAndRead
    from kafka_dt.pipeline.report.zones import Zones

_AT_A_TIME: Final = 4
"""Signs that are looked for at the same time."""
T = TypeVar("T")
"""The thresholds of a sign: a frozen dataclass whose fields `threshold` makes."""


@dataclass(frozen=True, slots=True)
class Observed:
    """What a rule looks at."""

    events: DataFrame
    """The events of the table, up to the instant of the report."""
    usage: DataFrame
    """Where each token was used, as `lives.logins_by_place` makes it, in `zones`; without visits of operators."""
    clients: DataFrame
    """In which zones each principal was, and with which clients, as `lives.clients_by_zone` makes it."""
    arrivals: DataFrame
    """When each owner came to a zone, and who else, as `peers.peers` makes it."""
    network_arrivals: DataFrame
    """When each owner came to a large network, and who else, as `peers.peers` makes it."""
    homes: DataFrame
    """Where each owner is at home, as `peers.homes_of` makes it."""
    deployments: DataFrame
    """When an owner began on many machines somewhere else, as `peers.deployments` makes it."""
    habits: Habits
    """What many of the company do."""
    lives: DataFrame
    """The life of each token, as `lives.token_lives` makes it."""
    workdays: DataFrame
    """Which principals work by day, people and programs, as `workdays.workdays` makes it."""
    people: DataFrame
    """Which of them are people, as `workdays.people` makes it."""
    operators_tokens: DataFrame
    """Tokens that operators at work made for others, as `operators_tokens.operators_tokens` gives them."""
    deeds: DataFrame
    """What each principal did and was refused, as `deeds.deeds_by_day` makes it."""
    zones: Zones
    """Gives the zones of other addresses: of refused logins, of renewals."""
    work: WriteAndRead
    """Writes a frame that is used more than once, and gives it as it was written."""

    @classmethod
    def of(
        cls,
        events: DataFrame,
        usage: DataFrame,
        lives: DataFrame,
        *,
        deeds: DataFrame,
        zones: Zones,
        work: WriteAndRead,
    ) -> Observed:
        """Compute the rest, which signs share; visits of operators, and what they do with tokens, are not in it."""
        usage = without_visits(usage, work)
        days = work("workdays", workdays(usage, deeds))
        by_hand = work("operators_tokens", operators_tokens(deeds, days))
        usage = without_first_day(usage, by_hand, work)
        clients = work("clients", clients_by_zone(usage))
        return cls(
            events=events,
            usage=usage,
            clients=clients,
            arrivals=work("arrivals", peers(clients, "zone")),
            network_arrivals=work("network_arrivals", peers(clients, "wide")),
            homes=work("homes", homes_of(usage)),
            deployments=work("deployments", deployments(usage, clients, days)),
            habits=Habits.learned(usage, days, work),
            lives=lives,
            workdays=days,
            people=work("people", people(usage, days)),
            operators_tokens=by_hand,
            deeds=deeds,
            zones=zones,
            work=work,
        )


@dataclass(frozen=True, slots=True)
class Response:
    """One step."""

    why: str
    command: str = ""
    """For a POSIX shell; empty where there is nothing to run."""

    def as_document(self) -> dict[str, str]:
        """Give it as JSON's types."""
        return {"why": self.why, **({"command": self.command} if self.command else {})}


Step = Callable[[Finding, str], Response | None]
"""Makes a step for a finding and the table that it is from; None where the finding lacks what the step needs."""


@dataclass(frozen=True, slots=True)
class ThresholdRow:
    """One threshold, as people read it."""

    name: str
    says: str
    value: str


@dataclass(frozen=True, slots=True)
class Sign(Generic[T]):
    """One sign of theft."""

    kind: str
    """Its name in the JSON, the Parquet output and the generator's truth."""
    title: str
    """Its name on the page."""
    meaning: str
    """One sentence for the page."""
    finds: str
    """What it finds, for the manual's table of signs."""
    misses: str
    """What it cannot see, for the same table."""
    subject_type: SubjectType
    """What its findings are about."""
    thresholds: T
    """Where its rule draws the lines; no two signs of a report have thresholds of the same name."""
    rule: Callable[[Observed, T], DataFrame]
    """Finds it: one row for each finding, as `finding.finding_rows` makes them."""
    steps: tuple[Step, ...]
    """What a responder can do, in order."""
    about_use: bool = False
    """Whether its findings are about where, when and with what a token is made or used; see `report/told_once.py`."""

    def findings(self, seen: Observed) -> DataFrame:
        """Look for it; the columns are the fields of `Finding`."""
        return self.rule(seen, self.thresholds).select(
            F.lit(self.kind).alias("kind"),
            "severity",
            F.lit(self.subject_type.value).alias("subject_type"),
            "subject",
            "token_id",
            "owner",
            "address",
            "first_seen",
            "last_seen",
            "events",
            "evidence",
        )

    def responses(self, finding: Finding, table: str) -> tuple[Response, ...]:
        """Say what to do about a finding of this sign, in order; `table` is the path of the events."""
        made = (step(finding, table) for step in self.steps)
        return tuple(response for response in made if response is not None)

    @property
    def threshold_rows(self) -> tuple[ThresholdRow, ...]:
        """Its thresholds with their values."""
        thresholds: Any = self.thresholds  # mypy knows no type for "an instance of a dataclass"
        return tuple(
            ThresholdRow(each.name, each.metadata["says"], str(getattr(thresholds, each.name)))
            for each in fields(thresholds)
        )

    @property
    def manual(self) -> str:
        """Its part of the manual, in Markdown: the docstring of the module that has its rule."""
        return getdoc(getmodule(self.rule)) or ""


Signs = tuple[Sign[Any], ...]
"""The signs that a report looks for."""


def threshold(default: T, says: str) -> T:
    """Declare a field of a sign's thresholds; `says` is its name on the page and in the manual."""
    return field(default=default, metadata={"says": says})


def look_for(signs: Iterable[Sign[Any]], seen: Observed) -> DataFrame:
    """Look for all of some signs, one at least; the columns are the fields of `Finding`.

    The findings of each sign are written by themselves: on a cluster Spark plans the rest of a query anew after each of
    its steps, and one query of all signs has hundreds. `_AT_A_TIME` signs are looked for at a time, because one core
    plans a query and the aggregates are small, so that a query by itself leaves the other cores idle. What a sign
    writes is in a folder of its own. Where a sign fails, signs that have not begun by then are left out.
    """

    def write(sign: Sign[Any]) -> DataFrame:
        own = replace(seen, work=lambda name, frame: seen.work(f"{sign.kind}/{name}", frame))
        return own.work("findings", sign.findings(own))

    threads = ThreadPoolExecutor(_AT_A_TIME)
    try:
        written = [threads.submit(write, sign) for sign in signs]
        ended, _ = wait(written, return_when=FIRST_EXCEPTION)
        for each in ended:
            each.result()
        return reduce(DataFrame.unionByName, (each.result() for each in written))
    finally:
        threads.shutdown(cancel_futures=True)


def advise(why: str) -> Step:
    """Make a step that is advice, without a command."""
    return lambda _finding, _table: Response(why)


def end_token(finding: Finding, _table: str) -> Response | None:
    """End the token."""
    token_id = word(finding.token_id)
    if token_id is None:
        return None
    return Response(
        "End the token; its connections are closed at once:",
        f"kafka-dt token revoke --command-config admin.properties -- {token_id}",
    )


def end_all_of_owner(finding: Finding, _table: str) -> Response | None:
    """End all tokens of the owner."""
    owner = word(finding.owner)
    if owner is None:
        return None
    return Response(
        "If more than one token of this owner is concerned, see what would end, then again without --dry-run:",
        f"kafka-dt token revoke --config server.properties --owner={owner} --dry-run",
    )


def follow_address(finding: Finding, table: str) -> Response | None:
    """Report the blast radius of the address."""
    return _blast_radius("See what else can be reached from that address:", "address", finding.address, table)


def follow_owner(finding: Finding, table: str) -> Response | None:
    """Report the blast radius of the owner."""
    return _blast_radius("See what else the owner has:", "owner", finding.owner, table)


def follow_principal(finding: Finding, table: str) -> Response | None:
    """Report the blast radius of the principal that a finding is about."""
    return _blast_radius("See what else that principal can reach:", "owner", finding.owner, table)


def _blast_radius(why: str, option: str, start: str | None, table: str) -> Response | None:
    value, path = word(start), word(table)
    if value is None or path is None:
        return None
    return Response(why, f"kafka-dt pipeline report --table={path} --to=blast-radius --{option}={value}")
