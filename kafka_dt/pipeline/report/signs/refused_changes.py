"""A principal is refused tokens of others: it tries to create, renew or end them without the right to.

A program works on the tokens of its owner, so a missing right shows for one owner. A principal that is refused for
several owners (`refused_owners`) tries what it can get. The severity is high for a principal that had worked here for
`refused_history`; a principal that is new may be a scheduler whose ACLs are still missing.

A refused renewal or end of a token also says that the client has the token's HMAC; *Renewed by a stranger* reports it
token by token.

Not seen: a principal that tries the tokens of one owner only, and a client that describes tokens it may not see,
because the node answers it with an empty list.
"""

# The work is on refused requests about tokens, and there are few of them.

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType, Outcome
from kafka_dt.pipeline.report.deeds import known_since
from kafka_dt.pipeline.report.expressions import as_text, distinct, first_and_last, of_type, some, with_most
from kafka_dt.pipeline.report.signs.finding import SHOWN, SubjectType, finding_rows, high_if
from kafka_dt.pipeline.report.signs.sign import Sign, advise, follow_address, follow_principal, threshold

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed

NOT_ALLOWED: Final = ("DELEGATION_TOKEN_OWNER_MISMATCH", "DELEGATION_TOKEN_AUTHORIZATION_FAILED")


@dataclass(frozen=True, slots=True)
class RefusedChangesThresholds:
    """When refusals are no mistake."""

    refused_owners: int = threshold(2, "Owners whose tokens a principal is refused")
    """A program without its right is refused for the owner that it works for."""
    refused_history: timedelta = threshold(timedelta(days=1), "... by a principal that is known for")
    """A new program has got its rights after its first day."""


def refused_changes(seen: Observed, thresholds: RefusedChangesThresholds) -> DataFrame:
    """Find principals that are refused tokens of several owners; one finding a principal."""
    asked = of_type(EventType.TOKEN_CREATED, EventType.TOKEN_RENEWED, EventType.TOKEN_EXPIRED)
    refused = asked & (F.col("outcome") == Outcome.REFUSED.value) & F.col("reason").isin(*NOT_ALLOWED)
    rows = (
        seen.deeds.where(refused & (F.col("owner") != F.col("principal")))
        .groupBy("principal")
        .agg(
            *first_and_last(),
            F.sum("deeds").alias("events"),
            F.count_distinct("owner").alias("owners"),
            F.slice(distinct("owner"), 1, SHOWN).alias("some_owners"),
            F.slice(distinct("type"), 1, SHOWN).alias("types"),
            F.slice(distinct("address"), 1, SHOWN).alias("addresses"),
            F.slice(distinct("software"), 1, SHOWN).alias("clients"),
            with_most("address", "deeds").alias("address"),
        )
        .where(F.col("owners") >= thresholds.refused_owners)
        .join(known_since(seen.deeds, seen.clients), "principal", "left")
        .withColumns({"token_id": F.lit(None).cast("string"), "owner": F.col("principal")})
    )
    known = F.col("known_since") + F.lit(thresholds.refused_history) < F.col("first_seen")
    return finding_rows(
        rows,
        subject="principal",
        severity=high_if(F.coalesce(known, F.lit(False))),
        evidence=[
            ("tried", some(F.col("types"))),
            ("refused", F.col("events")),
            ("different owners", F.col("owners")),
            ("tokens of", some(F.col("some_owners"))),
            ("from addresses", some(F.col("addresses"))),
            ("clients", some(F.col("clients"))),
            ("the principal is known since", as_text(F.col("known_since"))),
        ],
    )


REFUSED_CHANGES: Final = Sign(
    kind="refused_changes",
    title="Refused tokens of others",
    meaning="A principal tries to create, renew or end tokens of several other owners, and may not.",
    finds="a principal that tries to create, renew or end tokens of several owners",
    misses="tries with one owner's tokens only",
    subject_type=SubjectType.PRINCIPAL,
    thresholds=RefusedChangesThresholds(),
    rule=refused_changes,
    steps=(
        advise("Ask the principal's team what it tried. If it was not the team, change the password or the keytab."),
        follow_principal,
        follow_address,
    ),
)
