"""What those do who look after the cluster: describe tokens, change ACLs, users and keys, look for open doors.

`User:kafka-ui` describes all tokens every hour. The accounts that could renew tokens and do not (`owners.py`) log in
and describe them now and then, so that nobody is a stranger to the cluster only because he never renews. A scanner of
the security team sends nonsense to every port once a week.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kafka_dt.audit import EventType, Outcome, RefusalReason
from kafka_dt.pipeline.generator import network
from kafka_dt.pipeline.generator.drafts import Desk, Draft, Keys, user_login
from kafka_dt.pipeline.generator.lives import Account
from kafka_dt.pipeline.generator.owners import KERBEROS
from kafka_dt.pipeline.generator.scenario import HOUR_MS, MINUTE_MS, SECOND_MS
from kafka_dt.pipeline.generator.software import SILENT, Software

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kafka_dt.pipeline.generator.owners import Owner
    from kafka_dt.pipeline.generator.recording import Day

_JAVA: Final = Software("apache-kafka-java", "3.9.0")
_KAFKA_UI: Final = Account("User:kafka-ui", "SCRAM-SHA-512", network.ADMINISTRATION.host(1), _JAVA, "kafka-ui-admin")
_TERRAFORM: Final = Account("User:terraform", "SCRAM-SHA-512", network.ADMINISTRATION.host(2), _JAVA, "terraform")
_SCANNER: Final = Account("User:scan", "PLAIN", network.SCANNER, SILENT, "")
_SCANNED_ON: Final = 2
"""A day of the week."""


def administration(day: Day, owners: Sequence[Owner], desk: Desk) -> Iterator[Draft]:
    """Make a day's work of everybody who has no tokens."""
    chance = desk.chance
    tokens = max(1, 2 * day.scenario.tokens_a_day)
    for hour in range(24):
        at_ms = day.begin_ms + hour * HOUR_MS + chance.randrange(MINUTE_MS)
        yield from _describes(_KAFKA_UI, at_ms, chance.randrange(tokens // 2, tokens + 1), desk)
    if day.number % 7 == _SCANNED_ON:
        yield from _scan(day, desk)
    if not day.scenario.is_working_day(day.number):
        return
    for spare in dict.fromkeys(each.spare for each in owners if each.spare):
        for _ in range(chance.choice((0, 0, 1, 2, 3))):
            yield from _describes(spare, _office_hours(day, desk), chance.randrange(1, tokens + 1), desk)
    if chance.random() < 0.4:  # noqa: PLR2004 - two days in five
        yield from _changes_of_acls(day, owners, desk)
    if chance.random() < 0.15:  # noqa: PLR2004 - some days
        facts = {"type": EventType.SCRAM_USER_CHANGED, "user": chance.choice(owners).name}
        yield from desk.acts(_TERRAFORM, _office_hours(day, desk), facts)


def keys_changed(day: Day, desk: Desk) -> Iterator[Draft]:
    """Have the nodes see, in this worker of each, that there is another secret key."""
    keys = Keys.of(day.scenario)
    if day.has(keys.change_ms):
        facts = {"type": EventType.KEYS_CHANGED, "outcome": Outcome.OK, "keys": (keys.second, keys.first)}
        for node in range(desk.nodes):
            yield Draft(keys.change_ms + desk.chance.randrange(20 * SECOND_MS), node, facts)


def _describes(who: Account, at_ms: int, count: int, desk: Desk) -> Iterator[Draft]:
    return desk.acts(who, at_ms, {"type": EventType.TOKENS_DESCRIBED, "count": count})


def _changes_of_acls(day: Day, owners: Sequence[Owner], desk: Desk) -> Iterator[Draft]:
    chance = desk.chance
    at_ms = _office_hours(day, desk)
    for _ in range(chance.randrange(1, 12)):
        owner = chance.choice(owners)
        kind = chance.choice((EventType.ACL_CREATED, EventType.ACL_CREATED, EventType.ACL_DELETED))
        operation = chance.choice(("Read", "Write", "Describe"))
        acl = f"ALLOW {operation} of LITERAL Topic:'{owner.name}-events' to {owner.principal} from *"
        at_ms += chance.randrange(200, 3 * SECOND_MS)
        yield from desk.acts(_TERRAFORM, at_ms, {"type": kind, "acl": acl})


def _scan(day: Day, desk: Desk) -> Iterator[Draft]:
    chance = desk.chance
    at_ms = day.begin_ms + 3 * HOUR_MS
    for _ in range(chance.randrange(20, 45)):
        at_ms += chance.randrange(SECOND_MS, 20 * SECOND_MS)
        mechanism = chance.choice(("PLAIN", "SCRAM-SHA-256", KERBEROS, "ANONYMOUS"))
        offered = mechanism.startswith("SCRAM")
        reason = RefusalReason.BROKEN_EXCHANGE if offered else RefusalReason.UNSUPPORTED_MECHANISM
        yield desk.login(at_ms, user_login(replace(_SCANNER, mechanism=mechanism), reason))


def _office_hours(day: Day, desk: Desk) -> int:
    return day.begin_ms + 7 * HOUR_MS + desk.chance.randrange(10 * HOUR_MS)
