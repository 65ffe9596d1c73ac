"""A token that may still live has one finding: what further signs say of it is evidence of the gravest.

A use that looks strange often looks so in several respects: in its zone, its library and its client. These are one
thing to look at, and one token to end. They are also no independent reasons for doubt, so they do not add up to a
graver case.

Signs about tokens that have ended, and about principals and addresses, keep a finding each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.signs.finding import Severity
from kafka_dt.pipeline.report.signs.sign import end_token

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from kafka_dt.pipeline.report.signs import Signs


def told_once(findings: DataFrame, signs: Signs) -> DataFrame:
    """Join the findings about a token that may still live; the gravest one stays, of equals that of the first sign."""
    ending = [sign for sign in signs if end_token in sign.steps]
    of_living = F.col("kind").isin([sign.kind for sign in ending]) & F.col("token_id").isNotNull()
    of_token = Window.partitionBy("token_id")
    gravest_first = of_token.orderBy(_place(list(Severity), "severity"), _place([sign.kind for sign in ending], "kind"))
    fact = F.col("evidence").getItem(0)
    titles = F.create_map(*(F.lit(text) for sign in ending for text in (sign.kind, sign.title)))
    said = F.concat(titles[F.col("kind")], F.lit(": "), fact["label"], F.lit(" "), fact["text"])
    all_said = F.collect_list("said").over(
        gravest_first.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    )
    joined = (
        findings.where(of_living)
        .withColumn("said", said)
        .withColumns(
            {
                "all_said": all_said,
                "place": F.row_number().over(gravest_first),
                **{name: how(name).over(of_token) for name, how in _SPANS.items()},
            }
        )
        .where(F.col("place") == 1)
    )
    further = F.array_join(F.filter("all_said", lambda _, number: number > 0), "; ")
    also = F.struct(F.lit("also").alias("label"), further.alias("text"))
    evidence = F.when(F.size("all_said") > 1, F.concat("evidence", F.array(also))).otherwise(F.col("evidence"))
    once = joined.withColumn("evidence", evidence).select(findings.columns)
    return findings.where(~of_living).unionByName(once)


_SPANS = {"first_seen": F.min, "last_seen": F.max, "events": F.max}
"""What a finding says of all uses."""


def _place(order: Sequence[str], name: str) -> Column:
    return F.array_position(F.array(*(F.lit(str(each)) for each in order)), F.col(name))
