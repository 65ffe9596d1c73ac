"""A summary counts everything and stays small."""

from __future__ import annotations

from kafka_dt.bulk.decisions import MAX_REASONS, NAMES_A_REASON, OTHER_REASONS, Result, Summary, ZnodeResult


def failed(token_id: str, reason: str) -> Result:
    return Result(token_id, ZnodeResult.FAILED, reason)


def test_every_outcome_is_counted() -> None:
    summary = Summary()
    summary.add([Result("a", ZnodeResult.CHANGED), Result("b", ZnodeResult.UNCHANGED), Result("c", ZnodeResult.GONE)])
    summary.add([Result("d", ZnodeResult.CHANGED), failed("e", "no JSON")])
    assert summary.counts == {
        ZnodeResult.CHANGED: 2,
        ZnodeResult.UNCHANGED: 1,
        ZnodeResult.GONE: 1,
        ZnodeResult.FAILED: 1,
    }
    assert (summary.total, summary.failed) == (5, 1)


def test_each_reason_is_counted_with_its_first_names() -> None:
    summary = Summary()
    summary.add([failed(f"token-{number}", "no JSON") for number in range(100)])
    assert summary.failures["no JSON"].count == 100
    assert summary.failures["no JSON"].token_ids == [f"token-{number}" for number in range(NAMES_A_REASON)]


def test_reasons_that_never_repeat_do_not_fill_the_memory() -> None:
    summary = Summary()
    summary.add([failed("t", f"reason {number}") for number in range(1_000)])
    assert len(summary.failures) == MAX_REASONS + 1
    assert summary.failures[OTHER_REASONS].count == 1_000 - MAX_REASONS
    assert summary.failed == 1_000


def summaries_of(reasons: int) -> tuple[Summary, Summary]:
    """One summary of five hundred failures, and one that was merged of parts."""
    results = [failed(f"token-{number}", f"reason {number % reasons}") for number in range(500)]
    results += [Result(f"done-{number}", ZnodeResult.CHANGED) for number in range(7)]
    whole, merged = Summary(), Summary()
    whole.add(results)
    for begin in range(0, len(results), 100):
        part = Summary()
        part.add(results[begin : begin + 100])
        merged.merge(part)
    return whole, merged


def test_merged_summaries_are_as_one() -> None:
    whole, merged = summaries_of(reasons=40)
    assert merged == whole


def test_merged_summaries_stay_small() -> None:
    whole, merged = summaries_of(reasons=90)
    assert merged.counts == whole.counts
    assert len(merged.failures) == MAX_REASONS + 1
    assert sum(each.count for each in merged.failures.values()) == 500
    assert max(len(each.token_ids) for each in merged.failures.values()) == NAMES_A_REASON
