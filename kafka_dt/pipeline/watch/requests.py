"""Rules of the watch about one request or login, whose type alone is news about its principal.

- `foreign_renewal`: a principal that has a token's HMAC and is neither its owner nor a renewer, nor its requester.
- `new_describer`: a first description of tokens of others.
- `new_requester`: a token for another owner, allowed to a principal after other work.
- `new_mechanism`: a login by a new mechanism.
- `use_after_revocation`: a token that a request has ended, tried in a large network where its owner never was.

Source: kafka_dt/pipeline/report/signs
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from kafka_dt.audit import EventType
from kafka_dt.pipeline.report.deeds import TOKEN_CHANGES
from kafka_dt.pipeline.report.signs.finding import Finding, Severity
from kafka_dt.pipeline.report.signs.foreign_renewal import FOREIGN_RENEWAL, OWNER_MISMATCH
from kafka_dt.pipeline.report.signs.new_describer import NEW_DESCRIBER
from kafka_dt.pipeline.report.signs.new_mechanism import NEW_MECHANISM
from kafka_dt.pipeline.report.signs.new_requester import NEW_REQUESTER
from kafka_dt.pipeline.report.signs.use_after_revocation import STRANGE, USE_AFTER_REVOCATION
from kafka_dt.pipeline.watch.findings import finding_of, some
from kafka_dt.pipeline.watch.habits import MIGRATION

if TYPE_CHECKING:
    from datetime import datetime

    from kafka_dt.pipeline.watch.habits import Habits, Owner
    from kafka_dt.pipeline.watch.seen import Seen
    from kafka_dt.pipeline.watch.state import State

_HOUR: Final = timedelta(hours=1)
_GRANTED: Final = timedelta(days=1)
"""How long before a token an ACL for it came at most."""


def wrong_hands(row: Seen, habits: Habits, state: State) -> Finding | None:
    """Find a principal that has the HMAC of a token that is not its own and that it did not request."""
    if not row.is_refused(*TOKEN_CHANGES) or row.reason != OWNER_MISMATCH or row.token_id is None:
        return None
    if row.principal == row.requester or _works_there(row, habits, state):
        return None
    return finding_of(
        FOREIGN_RENEWAL,
        row,
        Severity.HIGH,
        {
            "what is unusual": "stranger",
            "renewed or tried by": row.principal,
            "from addresses": row.address,
            "clients": row.software,
            "refused, the HMAC was right": row.events,
        },
    )


def _works_there(row: Seen, habits: Habits, state: State) -> bool:
    """Whether the principal is where it was before, and has HMACs of others by its work: it describes or renews."""
    name = row.principal or ""
    if row.is_refused(EventType.TOKEN_RENEWED) and habits.renews_for_many(name, row.wide):
        return True
    principal = habits.principals.get(name)
    if principal is None or not principal.describes or not habits.was_in(name, row.wide):
        return False
    return not any((each.kind, each.subject) == (NEW_DESCRIBER.kind, name) for each in state.findings.values())


def described(row: Seen, habits: Habits, state: State) -> Finding | None:
    """Find a first description of tokens of others."""
    thresholds = NEW_DESCRIBER.thresholds
    if not row.is_ok(EventType.TOKENS_DESCRIBED) or not habits.knows(
        row.principal, row.first_seen - thresholds.describe_history
    ):
        return None
    assert row.principal is not None  # noqa: S101 - it is known
    principal = habits.principals[row.principal]
    if principal.describes or (
        principal.administers is not None and principal.administers + thresholds.administrates_for <= row.first_seen
    ):
        return None
    made_since = sum(row.principal in each.whose for name, each in state.homes.items() if name not in habits.tokens)
    own = habits.owned.get(row.principal, 0) + made_since
    if row.described < own + thresholds.describe_others:
        return None
    return finding_of(
        NEW_DESCRIBER,
        row,
        Severity.MEDIUM if principal.administers is None else Severity.HIGH,
        {
            "tokens in an answer": row.described,
            "its own tokens": own,
            "from addresses": row.address,
            "clients": row.software,
            "the principal is known since": _date(principal.since),
        },
    )


def requested(row: Seen, habits: Habits, state: State) -> Finding | None:
    """Find a token for another owner, by a principal that was allowed to after other work."""
    if not row.is_ok(EventType.TOKEN_CREATED) or row.principal is None or row.owner in {None, row.principal}:
        return None
    if (
        not habits.knows(row.principal, row.first_seen - NEW_REQUESTER.thresholds.other_work)
        or habits.principals[row.principal].creates_for
    ):
        return None
    grants = sorted({*habits.grants.get(row.principal, ()), *state.grants.get(row.principal, ())})
    granted = [each for each in grants if row.first_seen - _GRANTED <= each <= row.first_seen]
    # An operator that makes a scheduler allows it several owners.
    if not granted or any(abs(each - granted[-1]) <= _HOUR for each in grants if each != granted[-1]):
        return None
    return finding_of(
        NEW_REQUESTER,
        row,
        Severity.HIGH,
        {
            "what is unusual": "allowed after other work",
            "requester": row.principal,
            "allowed": f"{granted[-1]:%Y-%m-%d %H:%M:%S UTC}",
            "from addresses": row.address,
            "clients": row.software,
            "the requester is known since": _date(habits.principals[row.principal].since),
        },
    )


def new_mechanism(row: Seen, habits: Habits, _state: State) -> Finding | None:
    """Find a login by a new mechanism."""
    thresholds = NEW_MECHANISM.thresholds
    if not row.is_ok(EventType.LOGIN) or row.token_id is not None or row.mechanism is None or row.principal is None:
        return None
    principal = habits.principals.get(row.principal)
    if principal is None or row.mechanism in principal.mechanisms or not principal.mechanisms:
        return None
    if row.first_seen < min(principal.mechanisms.values()) + thresholds.mechanism_history:
        return None
    recent = row.first_seen - MIGRATION
    migrated = sum(
        each.mechanisms.get(row.mechanism, recent) > recent and len(each.mechanisms) > 1
        for each in habits.principals.values()
    )
    if migrated >= thresholds.migrated or _is_at_home(row, habits.owners.get(row.principal)):
        return None
    return finding_of(
        NEW_MECHANISM,
        row,
        Severity.MEDIUM,
        {
            "new mechanism": row.mechanism,
            "until then": some(principal.mechanisms),
            "from addresses": row.address,
            "clients": row.software,
        },
    )


def _is_at_home(row: Seen, owner: Owner | None) -> bool:
    """Whether a principal is in a large network of the company where it was before, with a library that it had."""
    return owner is not None and not row.is_foreign and row.wide in owner.networks and row.software in owner.programs


def tried_after_revocation(row: Seen, habits: Habits, state: State) -> Finding | None:
    """Find a revoked token that is tried where its owner never was."""
    if not row.is_refused(EventType.LOGIN) or row.token_id is None:
        return None
    revoked = state.revoked.get(row.token_id) or habits.revoked.get(row.token_id)
    owner = None if revoked is None else habits.owners.get(revoked.owner)
    if revoked is None or owner is None or not owner.since <= revoked.at < row.last_seen:
        return None
    is_usual = row.wide in owner.networks and not row.is_foreign
    if is_usual or habits.travels(revoked.owner):
        return None
    return finding_of(
        USE_AFTER_REVOCATION,
        replace(row, owner=revoked.owner),
        Severity.MEDIUM,
        {
            "what is unusual": STRANGE,
            "revoked": f"{revoked.at:%Y-%m-%d %H:%M:%S UTC}",
            "attempts since": row.events,
            "from addresses": row.address,
            "in network": row.wide,
            "by clients": row.software,
        },
    )


def _date(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d}"
