"""The rule of the watch about changes of users and rights that are none of an administrator's own.

`strange_administration` has two cases here. A principal changes SCRAM users or ACLs in a large network where it has not
been for a day, and where neither another administrator is nor colleagues are, which are others that are where the
principal is usually. Or an ACL gives rights to everybody (`User:*`). The severity is high if a change is both.

Limits: the watch cannot see who follows, so it finds the first change of a department that moves to another network;
the report leaves it out. A principal that is often where no other one is travels, and is left out.

Source: kafka_dt/pipeline/report/signs
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from kafka_dt.audit import EventType
from kafka_dt.pipeline.report.deeds import ADMINISTRATION
from kafka_dt.pipeline.report.signs.finding import Finding, Severity
from kafka_dt.pipeline.report.signs.strange_administration import (
    EVERYBODY,
    NEW_PLACE,
    STRANGE_ADMINISTRATION,
    TO_EVERYBODY,
)
from kafka_dt.pipeline.watch.findings import finding_of

if TYPE_CHECKING:
    from kafka_dt.pipeline.watch.habits import Habits
    from kafka_dt.pipeline.watch.seen import Seen
    from kafka_dt.pipeline.watch.state import State

_TO_EVERYBODY: Final = re.compile(TO_EVERYBODY)


def strange_change(row: Seen, habits: Habits, _state: State) -> Finding | None:
    """Find a change of users or rights that only a stranger would make."""
    if not any(map(row.is_ok, ADMINISTRATION)) or row.principal is None:
        return None
    cases = []
    if _in_new_place(row, row.principal, habits):
        cases.append(NEW_PLACE)
    if _for_everybody(row, habits):
        cases.append(EVERYBODY)
    if not cases:
        return None
    return finding_of(
        STRANGE_ADMINISTRATION,
        row,
        Severity.HIGH if len(cases) > 1 else Severity.MEDIUM,
        {
            "what is unusual": ", ".join(cases),
            "changed": row.acl or row.user,
            "from addresses": row.address,
            "in network": row.wide,
            "clients": row.software,
        },
    )


def _in_new_place(row: Seen, name: str, habits: Habits) -> bool:
    owner = habits.owners.get(name)
    if owner is None or row.first_seen < owner.since + STRANGE_ADMINISTRATION.thresholds.admin_known_for:
        return False
    if name in habits.neighbours.get(row.wide, ()) or habits.travels(name):
        return False
    others = [(each, habits.owners.get(each)) for each in habits.others_in(row.wide, name)]
    administrators = [each for each, _ in others if habits.administers(each)]
    colleagues = [each for each, other in others if other and (other.networks & owner.networks) - {row.wide}]
    return not administrators and len(colleagues) < STRANGE_ADMINISTRATION.thresholds.admin_colleagues


def _for_everybody(row: Seen, habits: Habits) -> bool:
    settled = row.first_seen >= habits.since + STRANGE_ADMINISTRATION.thresholds.admin_settled
    return settled and row.is_ok(EventType.ACL_CREATED) and bool(_TO_EVERYBODY.search(row.acl or ""))
