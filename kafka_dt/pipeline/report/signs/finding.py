"""What a sign of theft finds: a row of Spark, and the value that it becomes on the driver.

Findings are few by construction: one for each token, address or principal, not one for each event.

A client may choose some of the text in a finding (an id that does not exist, a client id, a user name), so an attacker
may. Escape it for wherever you print it.

Source: KIP-48, "Security Considerations"
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.expressions import each_row_of, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from pyspark.sql import Column, DataFrame

SHOWN: Final = 20
"""How many addresses, networks or clients of a finding are kept as evidence."""


class Severity(StrEnum):
    """How soon an operator should look; the most urgent comes first."""

    HIGH = "high"
    """A stranger most likely has a token that works: act now."""
    MEDIUM = "medium"
    """The token does not work any more, or never did: look today."""
    LOW = "low"
    """It could be an accident: look when there is time."""


class SubjectType(StrEnum):
    """What a finding is about."""

    TOKEN = "token"  # noqa: S105 - the name of a type
    ADDRESS = "address"
    PRINCIPAL = "principal"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One fact that supports a finding."""

    label: str
    """Its name: "unusual addresses"."""
    text: str
    """Its value, as text."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One sign of theft."""

    kind: str
    """The `kind` of the sign that found it."""
    severity: Severity
    subject_type: SubjectType
    subject: str
    """A token id, an address, or a principal."""
    token_id: str | None
    """The token, where one is concerned."""
    owner: str | None
    """Its owner: `User:alice`; of a finding about a principal, that principal."""
    address: str | None
    """Where it came from; of several addresses the busiest one."""
    first_seen: datetime
    """The first event that does not fit, in UTC."""
    last_seen: datetime
    """The last one."""
    events: int
    """How many there are."""
    evidence: tuple[Evidence, ...]
    """The facts that support it, the most important first."""

    def as_document(self) -> dict[str, object]:
        """Give it as JSON's types; instants are ISO 8601 in UTC."""
        return {**asdict(self), "first_seen": self.first_seen.isoformat(), "last_seen": self.last_seen.isoformat()}


def finding_rows(
    rows: DataFrame, *, subject: str, severity: Column, evidence: Sequence[tuple[str, Column]]
) -> DataFrame:
    """Make the rows that a rule returns.

    Args:
        rows: one for each finding, with `token_id`, `owner`, `address`, `first_seen`, `last_seen` and `events`.
        subject: the column with the token id, address or principal that each is about.
        severity: as `high_if` makes it.
        evidence: label and text of each fact; a fact whose text is null is left out.
    """
    pieces = [F.struct(F.lit(label).alias("label"), text.cast("string").alias("text")) for label, text in evidence]
    return rows.select(
        severity.alias("severity"),
        F.col(subject).alias("subject"),
        "token_id",
        "owner",
        "address",
        "first_seen",
        "last_seen",
        F.col("events").cast("long").alias("events"),
        F.filter(F.array(*pieces), lambda piece: piece["text"].isNotNull()).alias("evidence"),
    )


def high_if(condition: Column) -> Column:
    """Give the severity `high` where a condition holds, else `medium`."""
    return F.when(condition, F.lit(Severity.HIGH.value)).otherwise(F.lit(Severity.MEDIUM.value))


def most_urgent_first(findings: DataFrame) -> DataFrame:
    """Sort findings, the most severe and then the newest first."""
    urgency = F.array_position(F.array(*(F.lit(severity.value) for severity in Severity)), F.col("severity"))
    return findings.orderBy(urgency, F.desc("last_seen"), "kind", "subject")


def collected(findings: DataFrame) -> tuple[Finding, ...]:
    """Bring findings to the driver; the caller has limited their number."""
    return tuple(map(_finding, rows_of(findings)))


def each_of(findings: DataFrame) -> Iterator[Finding]:
    """Bring findings to the driver, a part of them at a time."""
    return map(_finding, each_row_of(findings))


def _finding(row: Mapping[str, Any]) -> Finding:
    return Finding(
        **{
            **row,
            "severity": Severity(row["severity"]),
            "subject_type": SubjectType(row["subject_type"]),
            "evidence": tuple(Evidence(**piece) for piece in row["evidence"]),
        }
    )


def counts(findings: DataFrame) -> dict[tuple[str, Severity], int]:
    """Count findings by kind and severity."""
    rows = findings.groupBy("kind", "severity").agg(F.count("*")).collect()
    return {(kind, Severity(severity)): count for kind, severity, count in rows}
