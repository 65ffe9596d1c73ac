"""The signs of theft as a table of the manual: what each finds, what it cannot see, and how good it is.

    markdown(*signs_table(results.scenarios["detection"]))

A cell of a kind of months has the precision of the sign and its recall among all visible incidents, over all months
together: `1.00 / 0.26`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from benchmarks.metrics import PRECISION, RECALL, written
from benchmarks.results import Case, ScenarioResults

if TYPE_CHECKING:
    from kafka_dt.pipeline.report.signs import Sign

_SUBJECT: Final = "sign: "


def subject_of(kind: str) -> str:
    """Give the name under which results have the figures of a sign."""
    return f"{_SUBJECT}{kind}"


def without_signs(measured: ScenarioResults) -> ScenarioResults:
    """Leave out the figures of signs."""
    return replace(measured, measurements=[each for each in measured.measurements if not _is_sign(each.subject)])


def signs_table(measured: ScenarioResults) -> tuple[Sequence[str], list[Sequence[str]]]:
    """Give the headings and a row for each sign of a report."""
    from kafka_dt.pipeline.report.signs import SIGNS  # noqa: PLC0415 - pyspark is needed for nothing else

    cases = measured.cases()
    headings = ("sign", "what it finds", "what it cannot see", *(case.label for case in cases))
    rows: list[Sequence[str]] = [
        (_link(sign), sign.finds, sign.misses, *(_figures(measured, case, sign.kind) for case in cases))
        for sign in SIGNS
    ]
    return headings, rows


def _is_sign(subject: str) -> bool:
    return subject.startswith(_SUBJECT)


def _link(sign: Sign[Any]) -> str:
    anchor = sign.title.lower().replace("'", "").replace(" ", "-")
    return f"[{sign.title}](../signs-of-theft.md#{anchor})"


def _figures(measured: ScenarioResults, case: Case, kind: str) -> str:
    """Give precision and recall; nothing if the sign had no findings there."""
    shares = (measured.by_round(case, subject_of(kind), name) for name in (PRECISION, RECALL))
    return " / ".join(written(name, share[1]) for name, share in zip((PRECISION, RECALL), shares, strict=True) if share)
