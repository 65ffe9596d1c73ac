"""How much of a queue each kind of event may fill, so that a flood of one cannot displace another.

A client without any rights can cause as many refused events as it likes, and one with a login as many logins. What a
successful change did must not be lost for that. So the events of each budget fill at most their share of the queue;
successful changes may fill all of it, and find a quarter of it free whatever the others do.

Source: docs/audit.md, "What can be lost".
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from kafka_dt.audit.event import AuditEvent, EventType, Outcome


class Budget(Enum):
    """Events that share a part of the queue; the value is the part, of 1."""

    CHANGES = 1.0
    """Successful changes: of tokens, ACLs, users and keys."""
    ACCESS = 0.5
    """Successful logins, and tokens that were described."""
    REFUSED = 0.25
    """Refused requests and failed logins."""


class EventKind(NamedTuple):
    """What losses are counted by."""

    type: EventType
    outcome: Outcome

    def __str__(self) -> str:
        return f"{self.type} {self.outcome}"

    @classmethod
    def of(cls, event: AuditEvent) -> EventKind:
        """Give the kind of an event."""
        return cls(event.type, event.outcome)

    @property
    def budget(self) -> Budget:
        """The part of the queue that it may fill."""
        return _BUDGETS[self]


def _budget(kind: EventKind) -> Budget:
    if kind.outcome is Outcome.REFUSED:
        return Budget.REFUSED
    return Budget.ACCESS if kind.type in {EventType.LOGIN, EventType.TOKENS_DESCRIBED} else Budget.CHANGES


KINDS: Final = tuple(EventKind(type_, outcome) for type_ in EventType for outcome in Outcome)
_BUDGETS: Final = {kind: _budget(kind) for kind in KINDS}


class Room:
    """Counts the bytes that wait in a queue, for each budget.

    One thread enters and another one leaves; each counts in numbers of its own, so there is no lock.

    Args:
        limit_bytes: how much may wait in all.
    """

    __slots__ = ("_entered", "_left", "_limit_bytes")

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._entered = dict.fromkeys(Budget, 0)
        self._left = dict.fromkeys(Budget, 0)

    @property
    def waiting_bytes(self) -> int:
        """How much waits."""
        return sum(self._entered.values()) - sum(self._left.values())

    def enter(self, budget: Budget, size: int) -> bool:
        """Take bytes in; False if there is no room for them. A budget of which nothing waits has room for one line."""
        own = self._entered[budget] - self._left[budget]
        if self.waiting_bytes + size > self._limit_bytes or (own and own + size > budget.value * self._limit_bytes):
            return False
        self._entered[budget] += size
        return True

    def leave(self, budget: Budget, size: int) -> None:
        """Let bytes out."""
        self._left[budget] += size
