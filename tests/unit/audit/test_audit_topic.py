"""How lines are divided for a topic; tests/interop/test_audit_topic.py writes to real brokers."""

from __future__ import annotations

from kafka_dt.audit.topic import BATCH_BYTES, _batches


def test_lines_are_divided_into_batches_that_are_full_or_a_single_line() -> None:
    small, large, huge = b"x" * 1000, b"y" * 100_000, b"z" * (2 * BATCH_BYTES)
    lines = [small] * 600 + [large] * 5 + [huge, small, huge]
    batches = [list(batch) for batch in _batches(lines)]
    assert [line for batch in batches for line in batch] == lines
    assert all(len(batch) == 1 or sum(map(len, batch)) <= BATCH_BYTES for batch in batches)
    assert len(batches) <= 10
