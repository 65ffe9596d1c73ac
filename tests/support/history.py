"""What clients asked for tokens while nodes and ZooKeeper failed, and what must hold of the answers.

    history = History()
    history.add(Operation(Kind.CREATE, "node 1", token_id, began_ms, ended_ms, Outcome.DONE))
    for violation in violations(history.operations, revocation_bound_ms=6_000):
        print(violation)

All times are milliseconds of one clock, the recording process's monotonic one. An operation takes effect at one instant
between its beginning and its end. One whose outcome is not known may take effect at any instant after its beginning, or
never. So a violation is certain: no order of the instants explains the answers.

Limits: a token's expiry is not judged, so tokens must outlive the run. Renewals change no answer and are not recorded.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto


class Kind(Enum):
    """What was asked."""

    CREATE = auto()
    EXPIRE = auto()
    """Now: the token is deleted."""
    DESCRIBE = auto()
    """Every token."""
    LOGIN = auto()
    """With the token."""


class Outcome(Enum):
    """How it was answered."""

    DONE = auto()
    REFUSED = auto()
    """The node says that it did nothing and that the client should not try again: the token is not there."""
    UNKNOWN = auto()
    """An error that clients try again, or no answer."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One request and its answer."""

    kind: Kind
    node: str
    token_id: str
    """Empty for DESCRIBE, and for a CREATE without an answer."""
    began_ms: float
    ended_ms: float
    outcome: Outcome
    seen: frozenset[str] = frozenset()
    """The ids that a DESCRIBE has shown."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One answer that cannot be."""

    what: str
    token_id: str
    operation: Operation
    late_ms: float
    """How long after the answer that it contradicts it began."""

    def __str__(self) -> str:
        asked = self.operation
        return f"{self.what}: {self.token_id} at {asked.node}, {asked.kind.name}, {self.late_ms:.0f} ms after the fact"


@dataclass(slots=True)
class _Life:
    """When a token was surely there, and when it was surely gone."""

    created_ms: float = math.inf
    """The first answer that proves it."""
    threatened_ms: float = math.inf
    """The beginning of the first request that may have ended it."""
    ended_ms: float = math.inf
    """The first answer that proves that it has ended."""

    def surely_alive(self, operation: Operation) -> bool:
        """Say whether the token was there from the operation's beginning to its end."""
        return self.created_ms <= operation.began_ms and operation.ended_ms <= self.threatened_ms


@dataclass(slots=True)
class History:
    """Operations in the order in which they ended."""

    operations: list[Operation] = field(default_factory=list)

    def add(self, operation: Operation) -> None:
        """Record an operation that has ended."""
        self.operations.append(operation)

    def __str__(self) -> str:
        counted = Counter(f"{each.kind.name.lower()} {each.outcome.name.lower()}" for each in self.operations)
        return ", ".join(f"{count} {name}" for name, count in sorted(counted.items()))


def violations(operations: Iterable[Operation], *, revocation_bound_ms: float) -> Iterator[Violation]:
    """Give every answer that contradicts another one.

    Args:
        operations: of all clients, in any order.
        revocation_bound_ms: until when after its end a token may log in, at a node that is cut off.
    """
    operations = list(operations)
    lives = _lives(operations)
    for each in operations:
        life = lives.get(each.token_id, _Life())
        match each.kind:
            case Kind.DESCRIBE if each.outcome is Outcome.DONE:
                yield from _judge_listing(each, lives)
            case Kind.LOGIN:
                yield from _judge_login(each, life, revocation_bound_ms)
            case Kind.EXPIRE if each.outcome is Outcome.REFUSED and life.surely_alive(each):
                yield Violation("a live token is not found", each.token_id, each, each.began_ms - life.created_ms)


def _lives(operations: Iterable[Operation]) -> dict[str, _Life]:
    lives: dict[str, _Life] = defaultdict(_Life)
    for each in operations:
        match each.kind:
            case Kind.CREATE if each.outcome is Outcome.DONE:
                life = lives[each.token_id]
                life.created_ms = min(life.created_ms, each.ended_ms)
            case Kind.EXPIRE if each.outcome is not Outcome.REFUSED:
                life = lives[each.token_id]
                life.threatened_ms = min(life.threatened_ms, each.began_ms)
                if each.outcome is Outcome.DONE:
                    life.ended_ms = min(life.ended_ms, each.ended_ms)
    return dict(lives)


def _judge_listing(listing: Operation, lives: dict[str, _Life]) -> Iterator[Violation]:
    for token_id, life in lives.items():
        if token_id in listing.seen:
            if listing.began_ms > life.ended_ms:
                yield Violation("a deleted token is listed", token_id, listing, listing.began_ms - life.ended_ms)
        elif life.surely_alive(listing):
            yield Violation("a live token is not listed", token_id, listing, listing.began_ms - life.created_ms)


def _judge_login(login: Operation, life: _Life, revocation_bound_ms: float) -> Iterator[Violation]:
    late_ms = login.began_ms - life.ended_ms
    if login.outcome is Outcome.DONE and late_ms > revocation_bound_ms:
        yield Violation("a deleted token logs in", login.token_id, login, late_ms)
    elif login.outcome is Outcome.REFUSED and life.surely_alive(login):
        yield Violation("a live token is refused", login.token_id, login, login.began_ms - life.created_ms)
