"""Rules of the watch about counts: what one principal or address does again and again on a day (UTC).

- `refused_changes`: refusals of tokens of several owners, or of several things that a login by token may not do.
- `ended_for_many`: ends of tokens of many owners.
- `unknown_id_burst`: unknown token ids of one address, in an hour or a day.
- `sprayed_passwords`: wrong passwords of many principals, from one address that never logged in.
- `guessed_password`, `guessed_hmac`: wrong passwords of one principal, or wrong HMACs of one token, from large networks
  where its owner never was and no other principal is.
- `tokens_together`: tokens of several owners in an hour, from one address of a private network that never logged in,
  with one program.

Source: kafka_dt/pipeline/report/signs
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from kafka_dt.audit import EventType, RefusalReason
from kafka_dt.pipeline.report.deeds import TOKEN_CHANGES
from kafka_dt.pipeline.report.expressions import UNKNOWN
from kafka_dt.pipeline.report.signs.ended_for_many import ENDED_FOR_MANY
from kafka_dt.pipeline.report.signs.finding import Finding, Severity
from kafka_dt.pipeline.report.signs.guessed_hmac import GUESSED_HMAC
from kafka_dt.pipeline.report.signs.guessed_password import GUESSED_PASSWORD
from kafka_dt.pipeline.report.signs.refused_changes import NO_LOGIN, NOT_ALLOWED, REFUSED_CHANGES
from kafka_dt.pipeline.report.signs.sprayed_passwords import SPRAYED_PASSWORDS
from kafka_dt.pipeline.report.signs.tokens_together import TOKENS_TOGETHER
from kafka_dt.pipeline.report.signs.unknown_id_burst import UNKNOWN_ID_BURST
from kafka_dt.pipeline.watch.findings import finding_of_count, some

if TYPE_CHECKING:
    from kafka_dt.pipeline.report.signs.sign import Sign
    from kafka_dt.pipeline.watch.habits import Habits
    from kafka_dt.pipeline.watch.seen import Seen
    from kafka_dt.pipeline.watch.state import State

_LONGEST_PROGRAM: Final = 80
"""Characters of the hour and the program that are counted in; a client chooses its name."""
_OWNERS: Final = ""
"""The group of owners; states of older versions call it so."""
_KINDS: Final = "kinds"
"""The group of what came with a token, by its type."""
_DAY: Final = "day"
"""The group of ids that are counted in a day; those of an hour are counted in its two digits."""
_TOKEN_LIFETIME: Final = timedelta(days=7)
"""So long after a change of keys a token may have another HMAC than its owner (`delegation.token.max.lifetime.ms`, by
default)."""


def refused_changes(row: Seen, habits: Habits, state: State) -> Finding | None:
    """Find a principal that is refused tokens of several owners, or several things with a token."""
    if row.principal is None:
        return None
    if _is_refused_by_token(row, row.principal, habits):
        tally = state.tally(REFUSED_CHANGES.kind, row.principal, row)
        tally.add(row, row.type, (_KINDS,))
    elif _is_refused_for_another(row, row.principal, habits):
        tally = state.tally(REFUSED_CHANGES.kind, row.principal, row)
        tally.add(row, row.owner or "", (_OWNERS,))
    else:
        return None
    thresholds = REFUSED_CHANGES.thresholds
    kinds, owners = tally.different.get(_KINDS, 0), tally.different.get(_OWNERS, 0)
    several = owners >= thresholds.refused_owners
    if not several and kinds < thresholds.refused_by_token:
        return None
    known = habits.knows(row.principal, row.first_seen - thresholds.refused_history)
    severity = Severity.HIGH if several and known else Severity.MEDIUM
    facts = {"different owners": owners, "different things with a token": kinds}
    return finding_of_count(REFUSED_CHANGES, row.principal, tally, severity, facts)


def ended_for_many(row: Seen, habits: Habits, state: State) -> Finding | None:
    """Find a principal that ends tokens of many owners."""
    thresholds = ENDED_FOR_MANY.thresholds
    if not row.is_ok(EventType.TOKEN_EXPIRED) or row.principal is None or row.owner is None:
        return None
    if row.principal in {row.owner, row.requester}:
        return None
    tally = state.tally(ENDED_FOR_MANY.kind, row.principal, row)
    tally.add(row, row.owner)
    before = habits.principals.get(row.principal)
    usual = before.ended if before is not None else 0
    if tally.most < max(thresholds.ended_owners, usual * thresholds.ended_factor):
        return None
    rotated = max(habits.rotated, state.rotated) > row.first_seen - thresholds.rotation
    if rotated or row.first_seen < habits.since + thresholds.ending_history:
        return None
    owners = some(tally.examples, tally.most)
    facts = {"of different owners": tally.most, "the most on a day before": usual, "owners": owners}
    return finding_of_count(ENDED_FOR_MANY, row.principal, tally, Severity.MEDIUM, facts)


def unknown_ids(row: Seen, habits: Habits, state: State) -> Finding | None:
    """Find an address that tries unknown token ids."""
    thresholds = UNKNOWN_ID_BURST.thresholds
    if not row.is_refused(EventType.LOGIN) or row.reason != RefusalReason.UNKNOWN_TOKEN or row.token_id is None:
        return None
    if row.token_id in habits.tokens or row.token_id in state.homes:
        return None
    tally = state.tally(UNKNOWN_ID_BURST.kind, row.address, row)
    tally.add(row, row.token_id, (_DAY, f"{row.first_seen:%H}"))
    in_a_day = tally.different.get(_DAY, 0)
    most = max((number for group, number in tally.different.items() if group != _DAY), default=0)
    usual = habits.guesses.get(row.address, 0) * thresholds.guess_factor
    if most < max(thresholds.guessed_in_an_hour, usual) and in_a_day < max(thresholds.guessed_in_a_day, usual):
        return None
    facts = {
        "different ids": f"{most} in an hour, {in_a_day} in a day",
        "usual there": habits.guesses.get(row.address, 0),
        "ids, for example": some(tally.examples, in_a_day),
    }
    return finding_of_count(UNKNOWN_ID_BURST, row.address, tally, Severity.MEDIUM, facts)


def sprayed_passwords(row: Seen, habits: Habits, state: State) -> Finding | None:
    """Find an address that tries passwords of many principals."""
    thresholds = SPRAYED_PASSWORDS.thresholds
    if not row.is_refused(EventType.LOGIN) or row.reason != RefusalReason.WRONG_CREDENTIALS:
        return None
    if row.principal is None or row.token_id is not None or row.address in habits.addresses:
        return None
    tally = state.tally(SPRAYED_PASSWORDS.kind, row.address, row)
    tally.add(row, row.principal, seldom=thresholds.spray_repeats)
    if tally.few < thresholds.sprayed:
        return None
    facts = {"principals": tally.few, "tried": some(tally.examples, tally.most)}
    return finding_of_count(SPRAYED_PASSWORDS, row.address, tally, Severity.MEDIUM, facts)


def guessed_password(row: Seen, habits: Habits, state: State) -> Finding | None:
    """Find a principal whose password is guessed."""
    if row.token_id is not None or row.principal is None:
        return None
    thresholds = GUESSED_PASSWORD.thresholds
    if not _is_guess(row, row.principal, habits, thresholds.password_history):
        return None
    return _guessed(GUESSED_PASSWORD, row, row.principal, thresholds.wrong_passwords, state)


def guessed_hmac(row: Seen, habits: Habits, state: State) -> Finding | None:
    """Find a token whose HMAC is guessed."""
    if row.token_id is None or row.owner is None:
        return None
    thresholds = GUESSED_HMAC.thresholds
    was_changed = max(habits.rotated, state.rotated) > row.first_seen - _TOKEN_LIFETIME
    if was_changed or not _is_guess(row, row.owner, habits, thresholds.hmac_history):
        return None
    return _guessed(GUESSED_HMAC, row, row.token_id, thresholds.wrong_hmacs, state)


def tokens_together(row: Seen, habits: Habits, state: State) -> Finding | None:
    """Find a machine to which tokens of several owners come together."""
    thresholds = TOKENS_TOGETHER.thresholds
    if not row.is_ok(EventType.LOGIN) or row.token_id is None or row.owner is None:
        return None
    known = habits.owners.get(row.owner)
    if known is None or known.since + thresholds.together_history > row.first_seen:
        return None
    # Many machines may share an address of the Internet, and a row of several machines names one of them.
    if row.is_public or row.is_nat or row.machines > 1 or row.address == UNKNOWN:
        return None
    # What it learns again has the address, too: a count that has begun goes on.
    if row.address in habits.addresses and not state.has_tally(TOKENS_TOGETHER.kind, row.address, row):
        return None
    tally = state.tally(TOKENS_TOGETHER.kind, row.address, row)
    tally.add(row, row.owner, (f"{row.first_seen:%H} {row.software} {row.client}"[:_LONGEST_PROGRAM],))
    if tally.most < thresholds.came_together:
        return None
    facts = {"owners that came together": tally.most, "owners": some(tally.examples, tally.most)}
    return finding_of_count(TOKENS_TOGETHER, row.address, tally, Severity.HIGH, facts)


def _is_refused_by_token(row: Seen, principal: str, habits: Habits) -> bool:
    """Whether a principal is refused what needs a login without a token, and is not refused so day after day."""
    asked = row.is_refused(*TOKEN_CHANGES, EventType.TOKENS_DESCRIBED) and row.reason == NO_LOGIN
    return asked and habits.refused_by_token.get(principal, 0) <= REFUSED_CHANGES.thresholds.refused_token_days


def _is_refused_for_another(row: Seen, principal: str, habits: Habits) -> bool:
    """Whether a principal is refused a token of another owner, and does not renew those of many there."""
    if not row.is_refused(*TOKEN_CHANGES) or row.reason not in NOT_ALLOWED or row.owner in {None, principal}:
        return False
    return not (row.is_refused(EventType.TOKEN_RENEWED) and habits.renews_for_many(principal, row.wide))


def _is_guess(row: Seen, owner: str, habits: Habits, history: timedelta) -> bool:
    """Whether a secret is wrong where neither its owner, known for some time, nor another principal logs in."""
    if not row.is_refused(EventType.LOGIN) or row.reason != RefusalReason.WRONG_CREDENTIALS:
        return False
    known = habits.owners.get(owner)
    if known is None or known.since + history >= row.first_seen or row.wide in known.networks:
        return False
    return not habits.others_in(row.wide, owner)


def _guessed(sign: Sign[Any], row: Seen, subject: str, many: int, state: State) -> Finding | None:
    """Count a wrong secret; gives a finding if there are `many`."""
    tally = state.tally(sign.kind, subject, row)
    tally.add(row, row.wide)
    if tally.events < many:
        return None
    networks = some(tally.examples, tally.most)
    return finding_of_count(sign, subject, tally, Severity.MEDIUM, {"in networks": networks}, owner=row.owner)
