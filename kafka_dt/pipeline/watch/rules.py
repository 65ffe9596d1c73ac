"""The rules of the watch: what a few rows of events mean, given what is usual.

    findings = judge(seen_rows(events, networks), habits, state)

Each rule looks for a sign of the report, by the sign's thresholds, and knows only what came before. What needs the
hours or days after an event is left to the report. Rules about places are in `places.py`, those about changes of users
and rights in `administration.py`, those about one other request in `requests.py`, those about counts in `counts.py`.

Source: kafka_dt/pipeline/report/signs
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_dt.audit import EventType
from kafka_dt.pipeline.cases import finding_id
from kafka_dt.pipeline.watch import administration, counts, places, requests
from kafka_dt.pipeline.watch.habits import ALLOWS, Revoked
from kafka_dt.pipeline.watch.state import Home

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kafka_dt.pipeline.report.signs.finding import Finding
    from kafka_dt.pipeline.watch.habits import Habits
    from kafka_dt.pipeline.watch.seen import Seen
    from kafka_dt.pipeline.watch.state import State

    Rule = Callable[[Seen, Habits, State], Finding | None]

PLACES: Final[tuple[Rule, ...]] = (places.strange_use, places.strange_login)
RULES: Final[tuple[Rule, ...]] = (
    *PLACES,
    administration.strange_change,
    requests.tried_after_revocation,
    requests.wrong_hands,
    requests.described,
    requests.requested,
    requests.new_mechanism,
    counts.refused_changes,
    counts.ended_for_many,
    counts.unknown_ids,
    counts.sprayed_passwords,
    counts.guessed_password,
    counts.guessed_hmac,
    counts.tokens_together,
)


def judge(
    rows: Iterable[Seen], habits: Habits, state: State, is_shown: Callable[[Finding], bool] = lambda _finding: True
) -> list[Finding]:
    """Look at the rows of a batch, in the order of time; gives the findings that say something new.

    Args:
        rows: of the batch.
        habits: what is usual; what findings of `state` are about is left out of it.
        state: is changed.
        is_shown: whether a finding is not suppressed; what a suppressed one is about may become usual.
    """
    usual = habits.without(state.strange)
    found: dict[tuple[str, str], Finding] = {}
    for row in rows:
        _remember(row, state)
        for rule in RULES:
            finding = rule(row, usual, state)
            if finding is None:
                continue
            if state.put(finding):
                found[finding.kind, finding.subject] = finding
            if rule in PLACES and is_shown(state.findings[finding_id(finding)]):
                # It is in the table, and must not become usual.
                about = row.owner or row.principal or ""
                state.strange |= {
                    (about, what, name): row.last_seen for what, name in places.strange_things(row, usual).items()
                }
    return list(found.values())


def _remember(row: Seen, state: State) -> None:
    """Keep what later rows are judged by."""
    state.judged = max(state.judged, row.last_seen)
    if row.is_ok(EventType.KEYS_CHANGED):
        state.rotated = max(state.rotated, row.last_seen)
    if row.is_ok(EventType.ACL_CREATED) and (allowed := ALLOWS.fullmatch(row.acl or "")):
        state.grants.setdefault(allowed[4], []).append(row.first_seen)
    if row.token_id is not None and row.outcome == "ok":
        home = state.homes.get(row.token_id, Home("", row.last_seen))
        first = row.wide if row.is_ok(EventType.LOGIN) else ""
        whose = home.whose | {row.owner, row.requester}
        state.homes[row.token_id] = Home(home.network or first, row.last_seen, whose)
        if row.is_ok(EventType.TOKEN_EXPIRED) and row.owner is not None:
            state.revoked[row.token_id] = Revoked(row.owner, max(row.expiry or row.last_seen, row.last_seen))
        elif row.is_ok(EventType.TOKEN_RENEWED):
            state.revoked.pop(row.token_id, None)
