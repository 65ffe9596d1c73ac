"""A sign of theft that only tests have: an address that logs in very often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.signs import Sign, SubjectType
from kafka_dt.pipeline.report.signs.finding import finding_rows, high_if
from kafka_dt.pipeline.report.signs.responses import advise, follow_address
from kafka_dt.pipeline.report.signs.sign import threshold

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.signs import Observed


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The lines of a sign that is only here."""

    most_logins: int = threshold(1000, "Logins of an address that are too many")


def busy_addresses(seen: Observed, thresholds: Thresholds) -> DataFrame:
    """Find addresses with too many logins of one client."""
    rows = seen.usage.where(F.col("logins") > thresholds.most_logins).withColumnsRenamed(
        {"who": "owner", "logins": "events"}
    )
    evidence = [("client", F.col("client")), ("not known", F.lit(None))]
    return finding_rows(rows, subject="address", severity=high_if(F.col("events") > 10**6), evidence=evidence)


BUSY = Sign(
    kind="busy_address",
    title="Logging in too often",
    meaning="An address logs in more often than any job does.",
    subject_type=SubjectType.ADDRESS,
    thresholds=Thresholds(),
    rule=busy_addresses,
    steps=(advise("Look at its jobs."), follow_address),
)
