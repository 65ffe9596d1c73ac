"""What happens in a cluster besides its jobs: administrators' work, and what goes wrong without an attack.

`User:kafka-ui` describes all tokens every hour. The accounts that could renew tokens and do not (`owners.py`) log in
and describe them now and then, so that they are no strangers to the cluster only because they never renew. A scanner of
the security team sends nonsense to every port once a week.

Logins fail because an id was pasted badly, a password was changed elsewhere, a listener does not have the mechanism, or
a restarted container has last week's token. Some clients fail hundreds of times.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kafka_dt.audit import EventType, Outcome, RefusalReason
from kafka_dt.pipeline.generator import clients
from kafka_dt.pipeline.generator.clients import SILENT, Software
from kafka_dt.pipeline.generator.drafts import Desk, Draft, Keys, refused, token_login, unknown_id, user_login
from kafka_dt.pipeline.generator.lives import Account, TokenSession, token_id
from kafka_dt.pipeline.generator.owners import KERBEROS, Owner, Work
from kafka_dt.pipeline.generator.scenario import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kafka_dt.pipeline.generator.clients import Place
    from kafka_dt.pipeline.generator.lives import TokenLife
    from kafka_dt.pipeline.generator.recording import Day
    from kafka_dt.pipeline.generator.workloads import Workloads

_TYPO: Final = 0.02
_TYPO_OF_A_PERSON: Final = 0.06
_WRONG_PASSWORD: Final = 0.015
_WRONG_MECHANISM: Final = 0.006
_WRONG_NAME: Final = 0.006
_OLD_TOKEN: Final = 0.01
_PART: Final = 0.15
"""The largest share of a day's events that one process with repeated failures may have."""
_JAVA: Final = Software("apache-kafka-java", "3.9.0")
_KAFKA_UI: Final = Account("User:kafka-ui", "SCRAM-SHA-512", clients.ADMINISTRATION.host(1), _JAVA, "kafka-ui-admin")
_TERRAFORM: Final = Account("User:terraform", "SCRAM-SHA-512", clients.ADMINISTRATION.host(2), _JAVA, "terraform")
_SCANNER: Final = Account("User:scan", "PLAIN", clients.SCANNER, SILENT, "")
_SCANNED_ON: Final = 2
"""A day of the week."""


def mishaps(day: Day, owner: Owner, workloads: Workloads, desk: Desk) -> Iterator[Draft]:
    """Make what goes wrong for an owner on a day."""
    chance = desk.chance
    place = owner.home[0].any_host(chance)
    most = max(5, int(_PART * workloads.events(owner, day.number)))
    if chance.random() < (_TYPO_OF_A_PERSON if owner.work is Work.NOTEBOOK else _TYPO):
        yield from _typos(day, owner, place, desk)
    if chance.random() < _WRONG_PASSWORD:
        yield from _fails_and_fails(day, replace(owner.account, place=place, mechanism=owner.mechanism), most, desk)
    if chance.random() < _WRONG_MECHANISM:
        who = replace(owner.account, place=place, mechanism=chance.choice(("PLAIN", "OAUTHBEARER")))
        yield from _some(day, who, RefusalReason.UNSUPPORTED_MECHANISM, desk)
    if chance.random() < _WRONG_NAME:
        who = replace(owner.account, place=place, mechanism=owner.mechanism, principal=f"{owner.principal[:-1]}")
        yield from _some(day, who, RefusalReason.UNKNOWN_USER, desk)
    if owner.work is not Work.NOTEBOOK and chance.random() < _OLD_TOKEN:
        aged = [
            life
            for life in workloads.lives(owner, day.number - 3)
            if life.removed_ms is not None and life.removed_ms < day.begin_ms and life.sessions
        ]
        if aged:
            yield from _old_token(day, owner, chance.choice(aged), most, desk)


def _typos(day: Day, owner: Owner, place: Place, desk: Desk) -> Iterator[Draft]:
    chance = desk.chance
    at_ms = _working_hours(day, desk)
    for _ in range(chance.choice((1, 1, 2))):
        login = unknown_id(place, owner.versions.at(at_ms), owner.mechanism, token_id(chance))
        for _ in range(chance.choice((1, 2, 3))):
            at_ms += chance.randrange(SECOND_MS, 40 * SECOND_MS)
            yield desk.login(at_ms, login)


def _fails_and_fails(day: Day, who: Account, most: int, desk: Desk) -> Iterator[Draft]:
    """Start a process with a wrong password again and again, until its team looks."""
    login = user_login(who, RefusalReason.WRONG_CREDENTIALS)
    at_ms = day.begin_ms + desk.chance.randrange(20 * HOUR_MS)
    for _ in range(desk.chance.randrange(min(10, most), most + 1)):
        at_ms += desk.chance.randrange(10 * SECOND_MS, MINUTE_MS)
        if at_ms < day.end_ms:
            yield desk.login(at_ms, login)


def _some(day: Day, who: Account, reason: RefusalReason, desk: Desk) -> Iterator[Draft]:
    login = user_login(who, reason)
    at_ms = _working_hours(day, desk)
    for _ in range(desk.chance.randrange(2, 9)):
        at_ms += desk.chance.randrange(5 * SECOND_MS, 5 * MINUTE_MS)
        yield desk.login(at_ms, login)


def _old_token(day: Day, owner: Owner, life: TokenLife, most: int, desk: Desk) -> Iterator[Draft]:
    """Start a container whose token has ended by its age days ago: one id, many times."""
    chance = desk.chance
    at_ms = day.begin_ms + chance.randrange(DAY_MS // 2)
    place, last = owner.home[0].any_host(chance), life.sessions[-1]
    session = TokenSession(place, last.client_id, owner.versions.at(at_ms), at_ms, at_ms + HOUR_MS, last.port)
    login = refused(token_login(owner, life, session), RefusalReason.UNKNOWN_TOKEN)
    for _ in range(chance.randrange(min(5, most), min(most, 200) + 1)):
        at_ms += chance.randrange(10 * SECOND_MS, 30 * SECOND_MS)
        yield desk.login(at_ms, login)


def _working_hours(day: Day, desk: Desk) -> int:
    return day.begin_ms + 8 * HOUR_MS + desk.chance.randrange(9 * HOUR_MS)


def administration(day: Day, owners: Sequence[Owner], desk: Desk) -> Iterator[Draft]:
    """Make a day's work of the accounts without tokens."""
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
