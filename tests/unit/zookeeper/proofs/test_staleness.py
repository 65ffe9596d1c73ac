from __future__ import annotations

from dataclasses import dataclass

import pytest

from kafka_dt.zookeeper.proofs.freshness import Freshness, Moment, read_clocks

MAX_STALENESS_MS = 30_000
INTERVAL_S = 10.0


@dataclass
class Clocks:
    monotonic: float = 1_000.0
    boot: float = 5_000.0
    wall: float = 1_700_000_000.0

    def __call__(self) -> Moment:
        return (self.monotonic, self.boot, self.wall)

    def pass_s(self, seconds: float) -> None:
        self.monotonic += seconds
        self.boot += seconds
        self.wall += seconds


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


@pytest.fixture
def freshness(clocks: Clocks) -> Freshness:
    freshness = Freshness(MAX_STALENESS_MS, clocks)
    freshness.prove(clocks())
    return freshness


def test_what_was_never_proved_is_too_stale(clocks: Clocks) -> None:
    freshness = Freshness(MAX_STALENESS_MS, clocks)
    assert freshness.staleness_ms() > MAX_STALENESS_MS
    assert freshness.is_due()


def test_staleness_counts_from_when_the_proof_was_begun(clocks: Clocks, freshness: Freshness) -> None:
    begun = freshness.now()
    clocks.pass_s(40)
    freshness.prove(begun)
    assert freshness.staleness_ms() == 40_000


def test_what_is_forgotten_is_not_proved_by_a_proof_that_was_begun_before(clocks: Clocks, freshness: Freshness) -> None:
    begun = freshness.now()
    clocks.pass_s(1)
    freshness.forget()
    freshness.prove(begun)
    assert freshness.staleness_ms() > MAX_STALENESS_MS
    clocks.pass_s(1)
    freshness.prove(freshness.now())
    assert freshness.staleness_ms() == 0


@pytest.mark.parametrize("max_staleness_ms", [MAX_STALENESS_MS, 2**63 - 1])
def test_what_is_not_proved_is_too_stale_for_any_setting_and_any_clock(max_staleness_ms: int) -> None:
    """Also on a machine that has just started, without a clock that tells the year."""
    freshness = Freshness(max_staleness_ms, Clocks(monotonic=20, boot=20, wall=20))
    assert freshness.staleness_ms() > max_staleness_ms
    assert freshness.is_due()
    freshness.prove(freshness.now())
    assert freshness.staleness_ms() == 0
    freshness.forget()
    assert freshness.staleness_ms() > max_staleness_ms


@pytest.mark.parametrize("clock", ["monotonic", "boot", "wall"])
def test_the_clock_on_which_most_time_has_passed_counts(clocks: Clocks, freshness: Freshness, clock: str) -> None:
    """A machine that slept, or was held, has clocks that stood still meanwhile."""
    setattr(clocks, clock, getattr(clocks, clock) + 40)
    assert freshness.staleness_ms() == 40_000
    assert freshness.is_due()


def test_a_wall_clock_that_is_set_back_makes_nothing_fresher(clocks: Clocks, freshness: Freshness) -> None:
    clocks.pass_s(5)
    clocks.wall -= 3_600
    assert freshness.staleness_ms() == 5_000


@pytest.mark.parametrize("max_staleness_ms", [1_000, 4_000, 30_000])
def test_a_proof_is_due_at_a_third_of_what_is_allowed(clocks: Clocks, max_staleness_ms: int) -> None:
    freshness = Freshness(max_staleness_ms, clocks)
    freshness.prove(clocks())
    third_s = max_staleness_ms / 3_000
    clocks.pass_s(third_s * 0.9)
    assert not freshness.is_due()
    assert freshness.due_in_s() == pytest.approx(third_s * 0.1)
    clocks.pass_s(third_s * 0.11)
    assert freshness.is_due()
    assert freshness.due_in_s() == 0


def test_the_clocks_of_this_machine_run() -> None:
    before = read_clocks()
    assert len(before) == 3
    assert all(after >= earlier for after, earlier in zip(read_clocks()[:2], before[:2], strict=True))
