"""A principal ends the tokens of many owners that are not its own.

An owner ends its tokens, and a scheduler those that it asked for. An operator ends one now and then. A principal that
ends tokens of `ended_owners` owners in a day, and of `ended_factor` times more owners than on any day before, stops the
work of all of them.

It is quiet for some hours before and after a change of the secret keys (`rotation`): an operator who rotates the key
ends the tokens that the old one made. It is quiet, too, in the first days of a company in the table
(`ending_history`): nothing is known of what is usual.

Not seen: tokens ended by commands that work on ZooKeeper (`kafka-dt token revoke --config`), which name no principal; a
thief that ends few tokens a day, or ends them around a rotation; and tokens that a scheduler ends, which it asked
for.
"""

# The work is on ends of tokens by others than owner and requester; each window is over one principal's days.

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType
from kafka_dt.pipeline.report.expressions import distinct, first_and_last, ok, some, with_most
from kafka_dt.pipeline.report.signs.finding import SHOWN, Severity, SubjectType, finding_rows
from kafka_dt.pipeline.report.signs.sign import Sign, advise, follow_address, follow_principal, threshold

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed


@dataclass(frozen=True, slots=True)
class EndedForManyThresholds:
    """How many owners are no tidying up."""

    ended_owners: int = threshold(5, "Owners whose tokens one principal ends in a day")
    """An operator who tidies up looks at each owner."""
    ended_factor: float = threshold(2.0, "... and times its largest day before")
    """An operator who tidies up every week has such days."""
    rotation: timedelta = threshold(timedelta(hours=10), "Time around a change of keys in which tokens are ended")
    """An operator does all of a rotation on a working day."""
    ending_history: timedelta = threshold(timedelta(days=3), "Days that show what is usual")
    """Operators tidy up on some working days."""


def ended_for_many(seen: Observed, thresholds: EndedForManyThresholds) -> DataFrame:
    """Find principals that end tokens of many owners in a day; one finding for each principal and day."""
    by_other = (F.col("principal") != F.col("owner")) & (F.col("principal") != F.col("requester"))
    ends = _without_rotations(seen.deeds.where(ok(EventType.TOKEN_EXPIRED) & by_other), seen.deeds, thresholds)
    days = ends.groupBy("principal", "date").agg(
        *first_and_last(),
        F.sum("deeds").alias("events"),
        F.count_distinct("owner").alias("owners"),
        F.slice(distinct("owner"), 1, SHOWN).alias("some_owners"),
        F.slice(distinct("address"), 1, SHOWN).alias("addresses"),
        F.slice(distinct("software"), 1, SHOWN).alias("clients"),
        with_most("address", "last_seen").alias("address"),
    )
    before = Window.partitionBy("principal").orderBy("date").rowsBetween(Window.unboundedPreceding, -1)
    usual = F.coalesce(F.max("owners").over(before), F.lit(0))
    many = (F.col("owners") >= thresholds.ended_owners) & (F.col("owners") >= F.col("usual") * thresholds.ended_factor)
    began = seen.deeds.agg((F.min("first_seen") + F.lit(thresholds.ending_history)).alias("settled"))
    found = days.withColumn("usual", usual).where(many)
    return _findings(found.crossJoin(F.broadcast(began)).where(F.col("settled") < F.col("first_seen")))


def _without_rotations(ends: DataFrame, deeds: DataFrame, thresholds: EndedForManyThresholds) -> DataFrame:
    """Leave out the tokens that were ended around a change of keys."""
    around = F.lit(thresholds.rotation)
    rotations = deeds.where(ok(EventType.KEYS_CHANGED)).select(
        (F.col("first_seen") - around).alias("rotation_begin"), (F.col("last_seen") + around).alias("rotation_end")
    )
    planned = F.col("first_seen").between(F.col("rotation_begin"), F.col("rotation_end"))
    return ends.join(F.broadcast(rotations), planned, "left_anti")


def _findings(days: DataFrame) -> DataFrame:
    rows = days.withColumns({"token_id": F.lit(None).cast("string"), "owner": F.col("principal")})
    return finding_rows(
        rows,
        subject="principal",
        severity=F.lit(Severity.MEDIUM.value),
        evidence=[
            ("tokens ended", F.col("events")),
            ("of different owners", F.col("owners")),
            ("the most on a day before", F.col("usual")),
            ("owners", some(F.col("some_owners"))),
            ("from addresses", some(F.col("addresses"))),
            ("clients", some(F.col("clients"))),
        ],
    )


ENDED_FOR_MANY: Final = Sign(
    kind="ended_for_many",
    title="Ending the tokens of many owners",
    meaning="A principal ends tokens of many owners, and neither owns them nor asked for them.",
    finds="a principal that ends tokens of many owners, with no change of keys around it",
    misses="ends on ZooKeeper, which name no principal",
    subject_type=SubjectType.PRINCIPAL,
    thresholds=EndedForManyThresholds(),
    rule=ended_for_many,
    steps=(
        advise("Ask the operator whose name it is whether this was planned. If not, change that password at once."),
        follow_principal,
        follow_address,
    ),
)
