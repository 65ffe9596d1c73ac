"""A sign of theft: everything that the product knows of it, in one value.

    sign = Sign(
        kind="stolen_token",
        title="Used by a stranger",
        meaning="The token is used from other networks ...",
        subject_type=SubjectType.TOKEN,
        thresholds=StolenTokenThresholds(),
        rule=stolen_tokens,
        steps=(advise("Ask the owner ..."), end_token),
    )
    findings = look_for([sign], Observed(events, usage, lives, store.work))

The analysis, the page with its plot, the JSON, the Parquet output, the suggested commands, the demo and the manual all
follow from these values. To add a sign, write a module like `foreign_renewal.py` and name it in the table of
`__init__.py`.

A rule is a function of DataFrames, over aggregates that the report computes once (`Observed`). It reads `events` itself
only where the aggregates do not say enough.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import reduce
from inspect import getdoc, getmodule
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kafka_dt.pipeline.report.signs.finding import Finding, SubjectType
    from kafka_dt.pipeline.report.signs.responses import Response, Step
    from kafka_dt.pipeline.report.store import WriteAndRead

T = TypeVar("T")
"""The thresholds of a sign: a frozen dataclass whose fields `threshold` makes."""


@dataclass(frozen=True, slots=True)
class Observed:
    """What a rule looks at."""

    events: DataFrame
    """The events of the table, up to the instant of the report."""
    usage: DataFrame
    """Where each token was used, as `lives.logins_by_place` makes it."""
    lives: DataFrame
    """The life of each token, as `lives.token_lives` makes it."""
    work: WriteAndRead
    """Writes a frame that is used more than once, and gives it as it was written."""


@dataclass(frozen=True, slots=True)
class ThresholdRow:
    """One threshold, as people read it."""

    name: str
    says: str
    value: str


@dataclass(frozen=True, slots=True)
class Sign(Generic[T]):
    """One sign of theft."""

    kind: str
    """Its name in the JSON, the Parquet output and the generator's truth."""
    title: str
    """Its name on the page."""
    meaning: str
    """One sentence for the page."""
    subject_type: SubjectType
    """What its findings are about."""
    thresholds: T
    """Where its rule draws the lines; no two signs of a report have thresholds of the same name."""
    rule: Callable[[Observed, T], DataFrame]
    """Finds it: one row for each finding, as `finding.finding_rows` makes them."""
    steps: tuple[Step, ...]
    """What a responder can do, in order."""

    def findings(self, seen: Observed) -> DataFrame:
        """Look for it; the columns are the fields of `Finding`."""
        return self.rule(seen, self.thresholds).select(
            F.lit(self.kind).alias("kind"),
            "severity",
            F.lit(self.subject_type.value).alias("subject_type"),
            "subject",
            "token_id",
            "owner",
            "address",
            "first_seen",
            "last_seen",
            "events",
            "evidence",
        )

    def responses(self, finding: Finding, table: str) -> tuple[Response, ...]:
        """Say what to do about a finding of this sign, in order; `table` is the path of the events."""
        made = (step(finding, table) for step in self.steps)
        return tuple(response for response in made if response is not None)

    @property
    def threshold_rows(self) -> tuple[ThresholdRow, ...]:
        """Its thresholds with their values."""
        thresholds: Any = self.thresholds  # mypy knows no type for "an instance of a dataclass"
        return tuple(
            ThresholdRow(each.name, each.metadata["says"], str(getattr(thresholds, each.name)))
            for each in fields(thresholds)
        )

    @property
    def manual(self) -> str:
        """Its part of the manual, in Markdown: the docstring of the module that has its rule."""
        return getdoc(getmodule(self.rule)) or ""


Signs = tuple[Sign[Any], ...]
"""The signs that a report looks for."""


def threshold(default: T, says: str) -> T:
    """Declare a field of a sign's thresholds; `says` is its name on the page and in the manual."""
    return field(default=default, metadata={"says": says})


def look_for(signs: Iterable[Sign[Any]], seen: Observed) -> DataFrame:
    """Look for all of some signs, one at least; the columns are the fields of `Finding`."""
    return reduce(DataFrame.unionByName, (sign.findings(seen) for sign in signs))
