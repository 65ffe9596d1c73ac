"""Cases of a report: its findings with the words of their signs, and how many principals share an address.

    cases = report_cases(findings, signs, usage, "/data/audit")

Source: kafka_dt/pipeline/cases/forming.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.cases import Sighting, form_cases
from kafka_dt.pipeline.report.signs.sign import end_token

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.cases import Case
    from kafka_dt.pipeline.report.signs import Finding, Signs


def report_cases(findings: Sequence[Finding], signs: Signs, usage: DataFrame, table: str) -> tuple[Case, ...]:
    """Form the cases of a report.

    Args:
        findings: those on the driver.
        signs: that found them.
        usage: where tokens and principals were used, as `lives.logins_by_place` makes it.
        table: the path of the events, for the commands that are suggested.
    """
    return form_cases(sightings(findings, signs, table), _principals_at(usage, findings))


def sightings(findings: Iterable[Finding], signs: Signs, table: str) -> list[Sighting]:
    """Add to findings what their signs say about them."""
    known = {sign.kind: sign for sign in signs}
    return [
        Sighting(
            each,
            known[each.kind].title,
            known[each.kind].meaning,
            tuple(response.as_document() for response in known[each.kind].responses(each, table)),
            ends_token=end_token in known[each.kind].steps,
        )
        for each in findings
    ]


def _principals_at(usage: DataFrame, findings: Iterable[Finding]) -> dict[str, int]:
    """Count the principals that log in from each address of the findings."""
    addresses = sorted({each.address for each in findings if each.address})
    if not addresses:
        return {}
    there = usage.where(F.col("address").isin(addresses)).groupBy("address").agg(F.count_distinct("who"))
    return dict(there.collect())
