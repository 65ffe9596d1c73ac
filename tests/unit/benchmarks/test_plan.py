from __future__ import annotations

from benchmarks.plan import QUICK, Plan
from benchmarks.targets import TARGETS


def test_a_short_run_has_the_numbers_of_connections_that_targets_are_about() -> None:
    wanted = {target.case.connections for target in TARGETS} - {0}
    assert wanted <= set(QUICK.connections)
    assert wanted <= set(Plan().connections)
