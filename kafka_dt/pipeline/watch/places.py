"""Rules of the watch about where and with what program a principal logs in, with a token or without.

- `stolen_token`: a token that was used elsewhere before, in a large network where its owner never was and no other
  principal is, by a library or a kind of client id that is new to its owner; and any token in a foreign network that is
  new to its owner.
- `strange_login`: a password, keytab or certificate in a large network where its principal never was and no other one
  is, by a library and a kind of client id that are both new to the principal.

A principal that is often where no other one is travels, and is left out.

Source: kafka_dt/pipeline/report/signs
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_dt.audit import EventType
from kafka_dt.pipeline.report.signs.finding import Finding, Severity
from kafka_dt.pipeline.report.signs.stolen_token import STOLEN_TOKEN
from kafka_dt.pipeline.report.signs.strange_login import STRANGE_LOGIN
from kafka_dt.pipeline.report.signs.token_histories import FOREIGN
from kafka_dt.pipeline.report.strangers import ALONE
from kafka_dt.pipeline.watch.findings import finding_of, some
from kafka_dt.pipeline.watch.habits import CLIENTS, NETWORKS, PROGRAMS

if TYPE_CHECKING:
    from kafka_dt.pipeline.watch.habits import Habits, Owner
    from kafka_dt.pipeline.watch.seen import Seen
    from kafka_dt.pipeline.watch.state import State

_NEW: Final = {PROGRAMS: "library", CLIENTS: "client id"}


def strange_use(row: Seen, habits: Habits, state: State) -> Finding | None:
    """Find a token in a strange place."""
    if not row.is_ok(EventType.LOGIN) or row.token_id is None or row.owner is None:
        return None
    owner = habits.owners.get(row.owner)
    if owner is None or row.wide in owner.networks:
        return None
    known = row.first_seen >= owner.since + STOLEN_TOKEN.thresholds.known_for
    was_elsewhere = _home(row.token_id, habits, state) not in {"", row.wide}
    if row.is_foreign:
        case = FOREIGN
    elif known and was_elsewhere and _new_names(row, owner) and _is_alone(row.wide, row.owner, habits):
        case = ALONE
    else:
        return None
    return finding_of(
        STOLEN_TOKEN, row, Severity.HIGH, {"what is unusual": case, **_facts(row, row.owner, owner, habits)}
    )


def strange_login(row: Seen, habits: Habits, _state: State) -> Finding | None:
    """Find a login without a token in a strange place."""
    if not row.is_ok(EventType.LOGIN) or row.token_id is not None or row.principal is None:
        return None
    owner, principal = habits.owners.get(row.principal), habits.principals.get(row.principal)
    if owner is None or principal is None or not principal.mechanisms or row.wide in owner.networks:
        return None
    # A job that moves with a new program gets a new token there; its password stays the same.
    is_new = len(_new_names(row, owner)) == len(_NEW)
    known = row.first_seen >= min(principal.mechanisms.values()) + STRANGE_LOGIN.thresholds.login_known_for
    if not known or not is_new or not _is_alone(row.wide, row.principal, habits):
        return None
    return finding_of(
        STRANGE_LOGIN, row, Severity.HIGH, {"what is unusual": ALONE, **_facts(row, row.principal, owner, habits)}
    )


def strange_things(row: Seen, habits: Habits) -> dict[str, str]:
    """Tell what about the login of a finding is strange to its owner, by the fields of its habits."""
    return {NETWORKS: row.wide, **_new_names(row, habits.owners[row.owner or row.principal or ""])}


def _facts(row: Seen, name: str, owner: Owner, habits: Habits) -> dict[str, object]:
    others = len(habits.others_in(row.wide, name))
    new = _new_names(row, owner)
    return {
        "unusual addresses": row.address,
        "in network": row.wide,
        "counted": f"{others} other principals are there; the owner was in {len(owner.networks)} other networks since "
        f"{owner.since:%Y-%m-%d}",
        "new to the owner": " and ".join(_NEW[what] for what in new),
        "unusual clients": f"{row.software} as {row.client}",
        "usual clients": some(owner.programs),
    }


def _new_names(row: Seen, owner: Owner) -> dict[str, str]:
    """Give the library and the kind of client id that are new to an owner, by the fields of its habits."""
    names = {PROGRAMS: row.software, CLIENTS: row.client}
    return {what: name for what, name in names.items() if name not in getattr(owner, what)}


def _is_alone(network: str, name: str, habits: Habits) -> bool:
    """Whether no other principal is in a network, and the owner does not travel."""
    return not habits.travels(name) and not habits.others_in(network, name)


def _home(token_id: str, habits: Habits, state: State) -> str:
    home = state.homes.get(token_id)
    return habits.tokens.get(token_id) or (home.network if home is not None else "")
