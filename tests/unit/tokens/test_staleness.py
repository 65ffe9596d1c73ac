from __future__ import annotations

from dataclasses import dataclass

import pytest

from kafka_dt.tokens.staleness import Moment, Staleness, read_clocks

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
def staleness(clocks: Clocks) -> Staleness:
    staleness = Staleness(MAX_STALENESS_MS, clocks)
    staleness.proved(clocks())
    return staleness


def test_what_was_never_proved_is_too_stale(clocks: Clocks) -> None:
    staleness = Staleness(MAX_STALENESS_MS, clocks)
    assert staleness.ms() > MAX_STALENESS_MS
    assert staleness.is_proof_due()


def test_staleness_counts_from_when_the_proof_was_begun(clocks: Clocks, staleness: Staleness) -> None:
    begun = staleness.now()
    clocks.pass_s(40)
    staleness.proved(begun)
    assert staleness.ms() == 40_000


def test_what_is_forgotten_is_not_proved_by_a_proof_that_was_begun_before(clocks: Clocks, staleness: Staleness) -> None:
    begun = staleness.now()
    clocks.pass_s(1)
    staleness.forget_proofs()
    staleness.proved(begun)
    assert staleness.ms() > MAX_STALENESS_MS
    clocks.pass_s(1)
    staleness.proved(staleness.now())
    assert staleness.ms() == 0


@pytest.mark.parametrize("max_staleness_ms", [MAX_STALENESS_MS, 2**63 - 1])
def test_what_is_not_proved_is_too_stale_for_any_setting_and_any_clock(max_staleness_ms: int) -> None:
    """Also on a machine that has just started, without a clock that tells the year."""
    staleness = Staleness(max_staleness_ms, Clocks(monotonic=20, boot=20, wall=20))
    assert staleness.ms() > max_staleness_ms
    assert staleness.is_proof_due()
    staleness.proved(staleness.now())
    assert staleness.ms() == 0
    staleness.forget_proofs()
    assert staleness.ms() > max_staleness_ms


@pytest.mark.parametrize("clock", ["monotonic", "boot", "wall"])
def test_the_clock_on_which_most_time_has_passed_counts(clocks: Clocks, staleness: Staleness, clock: str) -> None:
    """A machine that slept, or was held, has clocks that stood still meanwhile."""
    setattr(clocks, clock, getattr(clocks, clock) + 40)
    assert staleness.ms() == 40_000
    assert staleness.is_proof_due()


def test_a_wall_clock_that_is_set_back_makes_nothing_fresher(clocks: Clocks, staleness: Staleness) -> None:
    clocks.pass_s(5)
    clocks.wall -= 3_600
    assert staleness.ms() == 5_000


@pytest.mark.parametrize("max_staleness_ms", [1_000, 4_000, 30_000])
def test_a_proof_is_due_at_a_third_of_what_is_allowed(clocks: Clocks, max_staleness_ms: int) -> None:
    staleness = Staleness(max_staleness_ms, clocks)
    staleness.proved(clocks())
    third_s = max_staleness_ms / 3_000
    clocks.pass_s(third_s * 0.9)
    assert not staleness.is_proof_due()
    assert staleness.proof_due_in_s() == pytest.approx(third_s * 0.1)
    clocks.pass_s(third_s * 0.11)
    assert staleness.is_proof_due()
    assert staleness.proof_due_in_s() == 0


def test_the_clocks_of_this_machine_run() -> None:
    before = read_clocks()
    assert len(before) == 3
    assert all(after >= earlier for after, earlier in zip(read_clocks()[:2], before[:2], strict=True))
