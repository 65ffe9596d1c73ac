"""The committed costs of the worst requests: docs/security.md says that each is bounded and linear."""

from __future__ import annotations

import pytest

from benchmarks.request_shapes import SHAPES
from benchmarks.results import REFERENCE, Measurement, Results

MEASURED = Results.load(REFERENCE).scenarios["worst-requests"].measurements
MOST_GROWTH = 1.5
"""Of the CPU time of a byte when requests get ten times as large: 1 is linear, 10 would be quadratic."""
MOST = {"memory_byte": 100, "log_byte": 20, "audit_byte": 40}
"""Bytes for each byte of a request."""


@pytest.mark.parametrize("row", MEASURED, ids=lambda row: f"{row.case.operation}, {row.subject}")
def test_every_row_is_bounded_and_linear(row: Measurement) -> None:
    assert row.values.get("cpu_growth", 0) < MOST_GROWTH
    assert {name for name, most in MOST.items() if row.values.get(name, 0) > most} == set()


def test_every_shape_was_measured() -> None:
    measured = {(row.case.operation, row.subject) for row in MEASURED}
    assert measured == {(shape.name, shape.caller.value) for shape in SHAPES}
