"""The judge of fault runs: what it finds, and that it finds nothing in a history that one order explains."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chaos.history import Bounds, Kind, Operation, Outcome, violations

BOUNDS = Bounds(listing_ms=0, login_ms=1_000)
CUT_OFF = Bounds(listing_ms=500, login_ms=1_000)


def operation(
    kind: Kind,
    began_ms: float,
    ended_ms: float,
    outcome: Outcome = Outcome.DONE,
    *,
    token_id: str = "a",
    seen: tuple[str, ...] = (),
) -> Operation:
    return Operation(
        kind, "node", "" if kind is Kind.DESCRIBE else token_id, began_ms, ended_ms, outcome, frozenset(seen)
    )


CREATED = operation(Kind.CREATE, 0, 10)
DELETED = operation(Kind.EXPIRE, 100, 110)


def found(*operations: Operation, bounds: Bounds = BOUNDS) -> list[str]:
    return [each.what for each in violations([CREATED, *operations], lambda _: bounds)]


@pytest.mark.parametrize(
    ("what", "operations"),
    [
        ("a live token is not listed", [operation(Kind.DESCRIBE, 20, 30)]),
        ("a live token is not listed", [operation(Kind.DESCRIBE, 20, 30), DELETED]),
        ("a deleted token is listed", [DELETED, operation(Kind.DESCRIBE, 120, 130, seen=("a",))]),
        ("a deleted token logs in", [DELETED, operation(Kind.LOGIN, 1_111, 1_120)]),
        ("a live token is refused", [operation(Kind.LOGIN, 20, 30, Outcome.REFUSED), DELETED]),
        ("a live token is not found", [operation(Kind.EXPIRE, 20, 30, Outcome.REFUSED)]),
        ("a live token is not found", [operation(Kind.EXPIRE, 20, 30, Outcome.REFUSED), DELETED]),
        ("a live token is not found", [operation(Kind.RENEW, 20, 30, Outcome.REFUSED), DELETED]),
    ],
)
def test_an_answer_that_no_order_explains_is_found(what: str, operations: list[Operation]) -> None:
    assert found(*operations) == [what]


@pytest.mark.parametrize(
    "operations",
    [
        [operation(Kind.DESCRIBE, 5, 30)],
        [operation(Kind.DESCRIBE, 90, 101), DELETED],
        [DELETED, operation(Kind.DESCRIBE, 105, 130, seen=("a",))],
        [DELETED, operation(Kind.LOGIN, 1_110, 5_000)],
        [DELETED, operation(Kind.LOGIN, 120, 130, Outcome.REFUSED)],
        [operation(Kind.EXPIRE, 100, 110, Outcome.UNKNOWN), operation(Kind.DESCRIBE, 5_000, 5_001, seen=("a",))],
        [operation(Kind.EXPIRE, 100, 110, Outcome.UNKNOWN), operation(Kind.DESCRIBE, 5_000, 5_001)],
        [operation(Kind.EXPIRE, 100, 110, Outcome.UNKNOWN), operation(Kind.EXPIRE, 200, 210, Outcome.REFUSED)],
        [operation(Kind.DESCRIBE, 20, 30, Outcome.UNKNOWN), operation(Kind.LOGIN, 20, 30, Outcome.UNKNOWN)],
        [operation(Kind.LOGIN, 20, 30, Outcome.REFUSED, token_id="another")],
    ],
)
def test_an_answer_that_an_order_explains_is_none(operations: list[Operation]) -> None:
    assert found(*operations) == []


@pytest.mark.timeout(60)
def test_a_long_history_is_judged_without_comparing_every_listing_with_every_token() -> None:
    count = 20_000
    operations = []
    for number in range(count):
        began_ms, token_id = number * 10.0, f"token {number}"
        operations += [
            operation(Kind.CREATE, began_ms, began_ms + 1, token_id=token_id),
            operation(Kind.DESCRIBE, began_ms + 2, began_ms + 3, seen=(token_id,)),
            operation(Kind.EXPIRE, began_ms + 4, began_ms + 5, token_id=token_id),
        ]
    assert list(violations(operations, lambda _: BOUNDS)) == []


def test_a_node_that_is_cut_off_may_list_what_was_there_a_while_ago_and_no_longer() -> None:
    early, late = (operation(Kind.DESCRIBE, began_ms, began_ms + 5) for began_ms in (509, 510))
    assert found(early, bounds=CUT_OFF) == []
    assert found(late, bounds=CUT_OFF) == ["a live token is not listed"]
    early, late = (operation(Kind.DESCRIBE, began_ms, began_ms + 5, seen=("a",)) for began_ms in (610, 611))
    assert found(DELETED, early, bounds=CUT_OFF) == []
    assert found(DELETED, late, bounds=CUT_OFF) == ["a deleted token is listed"]


@given(st.data())
def test_a_history_that_was_made_in_some_order_has_no_violation(data: st.DataObject) -> None:
    live: set[str] = set()
    operations = []
    for instant in range(10, 130, 10):
        kind = data.draw(st.sampled_from(Kind))
        name = data.draw(st.sampled_from("abc")) if kind is not Kind.CREATE else f"t{instant}"
        if kind is not Kind.CREATE and live:
            name = data.draw(st.sampled_from(sorted(live | {name})))
        before, after = (data.draw(st.integers(0, 100)) for _ in range(2))
        there = name in live
        match kind:
            case Kind.CREATE:
                live.add(name)
            case Kind.EXPIRE:
                live.discard(name)
        done = kind in {Kind.CREATE, Kind.DESCRIBE} or there
        outcome = data.draw(st.sampled_from((Outcome.DONE if done else Outcome.REFUSED, Outcome.UNKNOWN)))
        operations.append(
            operation(kind, instant - before, instant + after, outcome, token_id=name, seen=tuple(sorted(live)))
        )
    assert list(violations(operations, lambda _: Bounds(0, 0))) == []
