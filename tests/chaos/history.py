"""What clients asked for tokens while nodes and ZooKeeper failed, and what must hold of the answers.

    history = History()
    history.add(Operation(Kind.CREATE, "node 1", token_id, began_ms, ended_ms, Outcome.DONE))
    for violation in violations(history.operations, lambda operation: Bounds(listing_ms=0, login_ms=1_000)):
        print(violation)

All times are milliseconds of one clock, the recording process's monotonic one. An operation takes effect at one instant
between its beginning and its end. One whose outcome is not known may take effect at any instant after its beginning, or
never. So a violation is certain: no order of the instants explains the answers.

Limits: a token's expiry is not judged, so tokens must outlive the run. Of a renewal only a refusal is judged.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto


class Kind(Enum):
    """What was asked."""

    CREATE = auto()
    RENEW = auto()
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
class Bounds:
    """How old may be what a node answers from, in milliseconds."""

    listing_ms: float
    """0 where a listing has what any node acknowledged before."""
    login_ms: float
    """For how long after its end a token may still log in."""


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

    def since(self, instant_ms: float) -> Iterator[Operation]:
        """Give the operations that began at an instant or later, the last one first."""
        for each in reversed(self.operations):
            if each.ended_ms < instant_ms:
                return
            if each.began_ms >= instant_ms:
                yield each

    def __str__(self) -> str:
        counted = Counter(f"{each.kind.name.lower()} {each.outcome.name.lower()}" for each in self.operations)
        return ", ".join(f"{count} {name}" for name, count in sorted(counted.items()))


def violations(operations: Iterable[Operation], bounds_of: Callable[[Operation], Bounds]) -> Iterator[Violation]:
    """Give every answer that contradicts another one.

    Args:
        operations: of all clients, in any order.
        bounds_of: says what holds for an operation; at a node that is cut off, other bounds do.
    """
    operations = list(operations)
    lives = _lives(operations)
    listings = [each for each in operations if each.kind is Kind.DESCRIBE and each.outcome is Outcome.DONE]
    yield from _judge_listings(listings, lives, bounds_of)
    for each in operations:
        life = lives.get(each.token_id, _Life())
        match each.kind:
            case Kind.LOGIN:
                yield from _judge_login(each, life, bounds_of(each).login_ms)
            case Kind.EXPIRE | Kind.RENEW if each.outcome is Outcome.REFUSED and life.surely_alive(each):
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


def _judge_listings(
    listings: Iterable[Operation], lives: dict[str, _Life], bounds_of: Callable[[Operation], Bounds]
) -> Iterator[Violation]:
    """Judge listings in the order in which they began, each beside the tokens that may have been there then."""
    waiting = deque(sorted(lives.items(), key=lambda item: item[1].created_ms))
    there: dict[str, _Life] = {}
    for listing in sorted(listings, key=lambda listing: listing.began_ms):
        while waiting and waiting[0][1].created_ms <= listing.began_ms:
            token_id, life = waiting.popleft()
            there[token_id] = life
        there = {token_id: life for token_id, life in there.items() if life.threatened_ms >= listing.began_ms}
        yield from _judge_listing(listing, there, lives, bounds_of(listing).listing_ms)


def _judge_listing(
    listing: Operation, there: dict[str, _Life], lives: dict[str, _Life], bound_ms: float
) -> Iterator[Violation]:
    for token_id in listing.seen & lives.keys():
        late_ms = listing.began_ms - lives[token_id].ended_ms
        if late_ms > bound_ms:
            yield Violation("a deleted token is listed", token_id, listing, late_ms)
    for token_id, life in there.items():
        late_ms = listing.began_ms - life.created_ms
        if token_id not in listing.seen and life.surely_alive(listing) and late_ms >= bound_ms:
            yield Violation("a live token is not listed", token_id, listing, late_ms)


def _judge_login(login: Operation, life: _Life, bound_ms: float) -> Iterator[Violation]:
    late_ms = login.began_ms - life.ended_ms
    if login.outcome is Outcome.DONE and late_ms > bound_ms:
        yield Violation("a deleted token logs in", login.token_id, login, late_ms)
    elif login.outcome is Outcome.REFUSED and life.surely_alive(login):
        yield Violation("a live token is refused", login.token_id, login, login.began_ms - life.created_ms)
