"""How long the answers to failed logins are held back, on a clock that the test moves."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from kafka_dt.server.listeners.rates import ADDRESSES, FREE, LONGEST_S, FailedLogins


@dataclass
class Clock:
    now_s: float = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_failures_of_an_address_are_answered_later_and_later_and_those_of_others_as_ever() -> None:
    failed = FailedLogins(100, Clock())
    assert [failed.delay_s("192.0.2.1") for _ in range(FREE)] == [0.1] * FREE
    assert [failed.delay_s("192.0.2.1") for _ in range(3)] == pytest.approx([1, 2, 3])
    assert max(failed.delay_s("192.0.2.1") for _ in range(1000)) == LONGEST_S
    assert failed.delay_s("192.0.2.2") == 0.1


def test_an_address_that_stops_failing_is_as_any_other_after_a_while() -> None:
    clock = Clock()
    failed = FailedLogins(100, clock)
    for _ in range(10_000):
        failed.delay_s("192.0.2.1")
    clock.now_s += FREE + LONGEST_S
    assert failed.delay_s("192.0.2.1") == 0.1


def test_a_node_that_holds_nothing_back_does_not_begin_to() -> None:
    failed = FailedLogins(0, Clock())
    assert {failed.delay_s("192.0.2.1") for _ in range(1000)} == {0}


def test_the_table_of_addresses_is_bounded_and_forgets_the_oldest() -> None:
    failed = FailedLogins(100, Clock())
    for _ in range(FREE):
        failed.delay_s("first")
    assert failed.delay_s("first") == pytest.approx(1)
    for number in range(ADDRESSES):
        failed.delay_s(str(number))
    assert len(failed) == ADDRESSES
    assert failed.delay_s("first") == 0.1


@pytest.mark.parametrize(("took_s", "left_s"), [(0, 0.1), (0.002, 0.098), (0.099, 0.001), (0.12, 0.08), (0.28, 0.02)])
def test_an_answer_leaves_a_whole_number_of_delays_after_its_message(took_s: float, left_s: float) -> None:
    failed = FailedLogins(100, Clock())
    assert failed.delay_s("192.0.2.1", took_s) == pytest.approx(left_s)
    assert failed.undecided_s(took_s) == pytest.approx(left_s)
    for _ in range(FREE):
        failed.delay_s("192.0.2.1")
    assert failed.delay_s("192.0.2.1", took_s) == pytest.approx(2 - took_s)


def test_logins_that_cannot_be_decided_count_for_nothing() -> None:
    failed = FailedLogins(100, Clock())
    assert {failed.undecided_s(0) for _ in range(1000)} == {0.1}
    assert failed.delay_s("192.0.2.1") == 0.1
    assert FailedLogins(0, Clock()).undecided_s(3) == 0
