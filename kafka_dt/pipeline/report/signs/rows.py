"""The shape that all signs of theft share, so that they are one table: `finding(...)` makes its columns.

    return finding(rows, kind=..., severity=..., ..., evidence=[("new addresses", F.col("addresses")), ...])

Source: kafka_dt/pipeline/findings.py
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.findings import Evidence, Finding, IncidentKind, Severity, SubjectType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame, Row

SHOWN: Final = 20
"""How many addresses, networks or clients of a finding are kept as evidence."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_URGENCY: Final = (Severity.HIGH, Severity.MEDIUM, Severity.LOW)


def finding(
    rows: DataFrame,
    *,
    kind: IncidentKind,
    severity: Column,
    subject_type: SubjectType,
    subject: Column,
    evidence: Sequence[tuple[str, Column]],
) -> DataFrame:
    """Make findings of rows that have `token_id`, `owner`, `address`, `first_seen`, `last_seen` and `events`.

    Args:
        rows: one for each finding.
        kind: of all of them.
        severity: of each.
        subject_type: what `subject` is.
        subject: what each is about.
        evidence: label and text of what speaks for it; where the text is null it is left out.
    """
    pieces = [F.struct(F.lit(label).alias("label"), text.cast("string").alias("text")) for label, text in evidence]
    return rows.select(
        F.lit(kind.value).alias("kind"),
        severity.alias("severity"),
        F.lit(subject_type.value).alias("subject_type"),
        subject.alias("subject"),
        "token_id",
        "owner",
        "address",
        "first_seen",
        "last_seen",
        F.col("events").cast("long").alias("events"),
        F.filter(F.array(*pieces), lambda piece: piece["text"].isNotNull()).alias("evidence"),
    )


def most_urgent_first(findings: DataFrame, limit: int) -> DataFrame:
    """Give the first findings, the most severe and then the newest first."""
    urgency = F.array_position(F.array(*(F.lit(severity.value) for severity in _URGENCY)), F.col("severity"))
    return findings.orderBy(urgency, F.desc("last_seen"), "kind", "subject").limit(limit)


def collected(findings: DataFrame) -> tuple[Finding, ...]:
    """Bring findings to the driver; `findings` has been limited."""
    millis = [F.unix_millis(name).alias(name) for name in ("first_seen", "last_seen")]
    kept = [name for name in findings.columns if name not in {"first_seen", "last_seen"}]
    return tuple(_finding(row) for row in findings.select(*kept, *millis).collect())


def counts(findings: DataFrame) -> dict[tuple[IncidentKind, Severity], int]:
    """Count findings by kind and severity."""
    rows = findings.groupBy("kind", "severity").agg(F.count("*")).collect()
    return {(IncidentKind(kind), Severity(severity)): count for kind, severity, count in rows}


def _finding(row: Row) -> Finding:
    return Finding(
        kind=IncidentKind(row["kind"]),
        severity=Severity(row["severity"]),
        subject_type=SubjectType(row["subject_type"]),
        subject=row["subject"],
        token_id=row["token_id"],
        owner=row["owner"],
        address=row["address"],
        first_seen=_EPOCH + timedelta(milliseconds=row["first_seen"]),
        last_seen=_EPOCH + timedelta(milliseconds=row["last_seen"]),
        events=row["events"],
        evidence=tuple(Evidence(piece["label"], piece["text"]) for piece in row["evidence"]),
    )
