from __future__ import annotations

from benchmarks.detection.by_sign import signs_table, subject_of, without_signs
from benchmarks.results import Case, Measurement, ScenarioResults

COMPANY, SWAPPED = Case("a company"), Case("a company, owners swapped")
MEASURED = ScenarioResults(
    {},
    [
        Measurement(COMPANY, "all incidents", 1, {"precision": 0.5, "recall": 0.5}),
        Measurement(COMPANY, subject_of("stolen_token"), 1, {"precision": 0.95, "recall": 0.26}),
        Measurement(SWAPPED, subject_of("off_schedule"), 1, {"precision": 0.0, "recall": 0.0}),
    ],
)


def test_each_sign_has_its_precision_and_recall_for_each_kind_of_months() -> None:
    headings, rows = signs_table(MEASURED)
    assert list(headings[3:]) == ["a company", "a company, owners swapped"]
    figures = {tuple(row[3:]): row[0] for row in rows if any(row[3:])}
    assert figures == {
        ("0.950 / 0.260", ""): "[Used by a stranger](../signs-of-theft.md#used-by-a-stranger)",
        ("", "0 / 0"): "[Used outside the hours of its job](../signs-of-theft.md#used-outside-the-hours-of-its-job)",
    }


def test_the_figures_of_signs_are_left_out_of_the_others() -> None:
    assert [each.subject for each in without_signs(MEASURED).measurements] == ["all incidents"]
