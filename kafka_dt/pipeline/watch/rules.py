"""The rules of the watch: what a few rows of events mean, given what is usual.

    findings = judge(seen_rows(events, networks), habits, state)

Each rule looks for a sign of the report, by the sign's thresholds, and knows only what came before. What needs the
hours or days after an event is left to the report:

- `stolen_token`: a token that was used elsewhere before, in a large network where its owner never was and no other
  principal is, by a library or a kind of client id that is new to its owner; and any token in a foreign network that is
  new to its owner.
- `foreign_renewal`: a principal that has a token's HMAC and is neither its owner nor a renewer, nor its requester.
- `refused_changes`: refusals of tokens of several owners in a day.
- `new_describer`: a first description of tokens of others.
- `new_requester`: a token for another owner, allowed to a principal after other work.
- `new_mechanism`: a login by a new mechanism.
- `ended_for_many`: ends of tokens of many owners in a day.
- `unknown_id_burst`: unknown token ids of one address, in an hour or a day.
- `sprayed_passwords`: wrong passwords of many principals in a day, from one address that never logged in.

Source: kafka_dt/pipeline/report/signs
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from kafka_dt.audit import EventType, RefusalReason
from kafka_dt.pipeline.cases import finding_id
from kafka_dt.pipeline.report.signs.ended_for_many import ENDED_FOR_MANY
from kafka_dt.pipeline.report.signs.finding import SHOWN, Evidence, Finding, Severity
from kafka_dt.pipeline.report.signs.foreign_renewal import FOREIGN_RENEWAL, OWNER_MISMATCH
from kafka_dt.pipeline.report.signs.new_describer import NEW_DESCRIBER
from kafka_dt.pipeline.report.signs.new_mechanism import NEW_MECHANISM
from kafka_dt.pipeline.report.signs.new_requester import NEW_REQUESTER
from kafka_dt.pipeline.report.signs.refused_changes import NOT_ALLOWED, REFUSED_CHANGES
from kafka_dt.pipeline.report.signs.sprayed_passwords import SPRAYED_PASSWORDS
from kafka_dt.pipeline.report.signs.stolen_token import FOREIGN, STOLEN_TOKEN
from kafka_dt.pipeline.report.signs.unknown_id_burst import UNKNOWN_ID_BURST
from kafka_dt.pipeline.report.strangers import ALONE
from kafka_dt.pipeline.watch.habits import ALLOWS, CLIENTS, MIGRATION, NETWORKS, PROGRAMS
from kafka_dt.pipeline.watch.state import Home

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import datetime

    from kafka_dt.pipeline.report.signs.sign import Sign
    from kafka_dt.pipeline.watch.habits import Habits, Owner
    from kafka_dt.pipeline.watch.seen import Seen
    from kafka_dt.pipeline.watch.state import State, Tally

    Rule = Callable[[Seen, Habits, State], Finding | None]

HOUR: Final = timedelta(hours=1)
_NEW: Final = {PROGRAMS: "library", CLIENTS: "client id"}
_DAY: Final = "day"
"""The group of ids that are counted in a day; those of an hour are counted in its two digits."""
_GRANTED: Final = timedelta(days=1)
"""How long before a token an ACL for it came at most."""
_TOKEN_CHANGES: Final = (EventType.TOKEN_CREATED, EventType.TOKEN_RENEWED, EventType.TOKEN_EXPIRED)


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
            if rule is _strange_use and is_shown(state.findings[finding_id(finding)]):
                _mark(row, usual, state)
    return list(found.values())


def _remember(row: Seen, state: State) -> None:
    """Keep what later rows are judged by."""
    state.judged = max(state.judged, row.last_seen)
    if row.is_ok(EventType.KEYS_CHANGED):
        state.rotated = max(state.rotated, row.last_seen)
    if row.is_ok(EventType.ACL_CREATED) and (allowed := ALLOWS.fullmatch(row.acl or "")):
        state.grants.setdefault(allowed[1], []).append(row.first_seen)
    if row.token_id is not None and row.outcome == "ok":
        home = state.homes.get(row.token_id)
        first = row.wide if row.is_ok(EventType.LOGIN) else ""
        state.homes[row.token_id] = Home((home and home.network) or first, row.last_seen)


def _strange_use(row: Seen, habits: Habits, state: State) -> Finding | None:
    """Find a token in a strange place."""
    if not row.is_ok(EventType.LOGIN) or row.token_id is None or row.owner is None:
        return None
    owner = habits.owners.get(row.owner)
    if owner is None or row.wide in owner.networks:
        return None
    known = row.first_seen >= owner.since + STOLEN_TOKEN.thresholds.known_for
    others = habits.neighbours.get(row.wide, frozenset()) - {row.owner}
    was_elsewhere = _home(row.token_id, habits, state) not in {"", row.wide}
    new = _new_names(row, owner)
    if row.is_foreign:
        case = FOREIGN
    elif known and not others and was_elsewhere and new and not _travels(row.owner, habits):
        case = ALONE
    else:
        return None
    return _finding(
        STOLEN_TOKEN,
        row,
        Severity.HIGH,
        {
            "what is unusual": case,
            "unusual addresses": row.address,
            "in network": row.wide,
            "counted": f"{len(others)} other principals are there; the owner was in "
            f"{len(owner.networks)} other networks since {owner.since:%Y-%m-%d}",
            "new to the owner": " and ".join(_NEW[what] for what in new),
            "unusual clients": f"{row.software} as {row.client}",
            "usual clients": _some(owner.programs),
        },
    )


def _new_names(row: Seen, owner: Owner) -> dict[str, str]:
    """Give the library and the kind of client id that are new to an owner, by the fields of its habits."""
    names = {PROGRAMS: row.software, CLIENTS: row.client}
    return {what: name for what, name in names.items() if name not in getattr(owner, what)}


def _mark(row: Seen, habits: Habits, state: State) -> None:
    """Keep what is strange about a use from becoming usual."""
    assert row.owner is not None  # noqa: S101 - the use is that of an owner
    for what, name in {NETWORKS: row.wide, **_new_names(row, habits.owners[row.owner])}.items():
        state.strange[row.owner, what, name] = row.last_seen


def _travels(name: str, habits: Habits) -> bool:
    """Whether an owner is often where no other principal is."""
    lonely = (network for network in habits.owners[name].networks if not habits.neighbours.get(network, set()) - {name})
    return next(lonely, None) is not None and len(habits.owners[name].networks) > 1


def _home(token_id: str, habits: Habits, state: State) -> str:
    home = state.homes.get(token_id)
    return habits.tokens.get(token_id) or (home.network if home is not None else "")


def _wrong_hands(row: Seen, _habits: Habits, _state: State) -> Finding | None:
    """Find a principal that has the HMAC of a token that is not its own and that it did not request."""
    if not row.is_refused(*_TOKEN_CHANGES) or row.reason != OWNER_MISMATCH or row.token_id is None:
        return None
    if row.principal == row.requester:
        return None
    return _finding(
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


def _refused(row: Seen, habits: Habits, state: State) -> Finding | None:
    """Find a principal that is refused tokens of several owners."""
    if not row.is_refused(*_TOKEN_CHANGES) or row.reason not in NOT_ALLOWED:
        return None
    if row.principal is None or row.owner is None or row.principal == row.owner:
        return None
    tally = state.tally(REFUSED_CHANGES.kind, row.principal, row)
    tally.add(row, row.owner)
    if tally.most < REFUSED_CHANGES.thresholds.refused_owners:
        return None
    known = _known(row, habits, REFUSED_CHANGES.thresholds.refused_history)
    severity = Severity.HIGH if known else Severity.MEDIUM
    return _counted(REFUSED_CHANGES, row.principal, tally, severity, {"different owners": tally.most})


def _described(row: Seen, habits: Habits, _state: State) -> Finding | None:
    """Find a first description of tokens of others."""
    if not row.is_ok(EventType.TOKENS_DESCRIBED) or not _known(row, habits, NEW_DESCRIBER.thresholds.describe_history):
        return None
    assert row.principal is not None  # noqa: S101 - it is known
    principal, own = habits.principals[row.principal], habits.owned.get(row.principal, 0)
    if principal.describes or principal.administers or row.described <= own:
        return None
    return _finding(
        NEW_DESCRIBER,
        row,
        Severity.HIGH,
        {
            "tokens in an answer": row.described,
            "its own tokens": own,
            "from addresses": row.address,
            "clients": row.software,
            "the principal is known since": _day(principal.since),
        },
    )


def _requested(row: Seen, habits: Habits, state: State) -> Finding | None:
    """Find a token for another owner, by a principal that was allowed to after other work."""
    if not row.is_ok(EventType.TOKEN_CREATED) or row.principal is None or row.owner in {None, row.principal}:
        return None
    if not _known(row, habits, NEW_REQUESTER.thresholds.other_work) or habits.principals[row.principal].creates_for:
        return None
    grants = sorted({*habits.grants.get(row.principal, ()), *state.grants.get(row.principal, ())})
    granted = [each for each in grants if row.first_seen - _GRANTED <= each <= row.first_seen]
    # An operator that makes a scheduler allows it several owners.
    if not granted or any(abs(each - granted[-1]) <= HOUR for each in grants if each != granted[-1]):
        return None
    return _finding(
        NEW_REQUESTER,
        row,
        Severity.HIGH,
        {
            "what is unusual": "allowed after other work",
            "requester": row.principal,
            "allowed": f"{granted[-1]:%Y-%m-%d %H:%M:%S UTC}",
            "from addresses": row.address,
            "clients": row.software,
            "the requester is known since": _day(habits.principals[row.principal].since),
        },
    )


def _mechanism(row: Seen, habits: Habits, _state: State) -> Finding | None:
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
    if migrated >= thresholds.migrated:
        return None
    return _finding(
        NEW_MECHANISM,
        row,
        Severity.MEDIUM,
        {
            "new mechanism": row.mechanism,
            "until then": _some(principal.mechanisms),
            "from addresses": row.address,
            "clients": row.software,
        },
    )


def _ended(row: Seen, habits: Habits, state: State) -> Finding | None:
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
    owners = _some(tally.examples, tally.most)
    facts = {"of different owners": tally.most, "the most on a day before": usual, "owners": owners}
    return _counted(ENDED_FOR_MANY, row.principal, tally, Severity.MEDIUM, facts)


def _guessed(row: Seen, habits: Habits, state: State) -> Finding | None:
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
        "ids, for example": _some(tally.examples, in_a_day),
    }
    return _counted(UNKNOWN_ID_BURST, row.address, tally, Severity.MEDIUM, facts)


def _sprayed(row: Seen, habits: Habits, state: State) -> Finding | None:
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
    facts = {"principals": tally.few, "tried": _some(tally.examples, tally.most)}
    return _counted(SPRAYED_PASSWORDS, row.address, tally, Severity.MEDIUM, facts)


RULES: Final[tuple[Rule, ...]] = (
    _strange_use,
    _wrong_hands,
    _refused,
    _described,
    _requested,
    _mechanism,
    _ended,
    _guessed,
    _sprayed,
)


def _known(row: Seen, habits: Habits, history: timedelta) -> bool:
    """Whether its principal has worked here for some time."""
    principal = habits.principals.get(row.principal or "")
    return principal is not None and principal.since + history < row.first_seen


def _finding(sign: Sign[Any], row: Seen, severity: Severity, facts: Mapping[str, object]) -> Finding:
    """Make a finding of a row, about its token or else its principal."""
    about_token = sign.subject_type == "token"
    return Finding(
        kind=sign.kind,
        severity=severity,
        subject_type=sign.subject_type,
        subject=str(row.token_id if about_token else row.principal),
        token_id=row.token_id if about_token else None,
        owner=row.owner if about_token else row.principal,
        address=row.address,
        first_seen=row.first_seen,
        last_seen=row.last_seen,
        events=row.events,
        evidence=tuple(_evidence(facts)),
    )


def _counted(sign: Sign[Any], subject: str, tally: Tally, severity: Severity, facts: Mapping[str, object]) -> Finding:
    """Make a finding of a count, about its principal or its address."""
    about_principal = sign.subject_type == "principal"
    more = {"from addresses": _some(tally.addresses), "clients": _some(tally.programs)}
    return Finding(
        kind=sign.kind,
        severity=severity,
        subject_type=sign.subject_type,
        subject=subject,
        token_id=None,
        owner=subject if about_principal else None,
        address=max(tally.addresses, key=lambda name: (tally.addresses[name], name)),
        first_seen=tally.first_seen,
        last_seen=tally.last_seen,
        events=tally.events,
        evidence=tuple(_evidence({**facts, "events": tally.events, **more})),
    )


def _evidence(facts: Mapping[str, object]) -> Iterator[Evidence]:
    for label, fact in facts.items():
        if fact is not None and fact != "":
            yield Evidence(label, str(fact))


def _some(names: Iterable[str], number: int = 0) -> str:
    """Show names; `number` says how many there are if not all of them are given."""
    shown = sorted(names)
    more = max(len(shown), number) - len(shown[:SHOWN])
    return ", ".join(shown[:SHOWN]) + (f" and {more} more" if more else "")


def _day(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d}"
