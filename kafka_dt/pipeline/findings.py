"""What the analyses call a sign of theft: its kinds, how bad it is, whom it is about, and what speaks for it.

A finding is one row of the DataFrames that `kafka_dt.pipeline.report.signs` makes, and a value here once it was
collected. Findings are few by construction: one for each token or address, not one for each event.

Everything in a finding that came from a client (an id that does not exist, a client id, a user name) may have been
chosen by an attacker. It is text and nothing else: whoever prints it escapes it for where it goes.

Nothing here needs Spark.

Source: KIP-48, "Security Considerations"
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


class IncidentKind(StrEnum):
    """What may have happened."""

    STOLEN_TOKEN = "stolen_token"  # noqa: S105 - the name of an incident
    """One token is used from more addresses or by more clients than its history says."""
    USE_AFTER_REVOCATION = "use_after_revocation"
    """Somebody goes on trying a token that was ended by a request."""
    UNKNOWN_ID_BURST = "unknown_id_burst"
    """An address tries many token ids that nobody made."""
    FOREIGN_RENEWAL = "foreign_renewal"
    """A token is renewed by somebody who never did, while somebody else does."""


class Severity(StrEnum):
    """How soon somebody should look."""

    HIGH = "high"
    """Somebody else most likely has a token that works: now."""
    MEDIUM = "medium"
    """It does not work any more, or did not work: today."""
    LOW = "low"
    """Could be an accident: when there is time."""


class SubjectType(StrEnum):
    """What a finding is about."""

    TOKEN = "token"  # noqa: S105 - the name of a type
    ADDRESS = "address"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One thing that speaks for a finding."""

    label: str
    """What it is: "new address"."""
    text: str
    """Its value, as text."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One sign of theft."""

    kind: IncidentKind
    severity: Severity
    subject_type: SubjectType
    subject: str
    """A token id, or an address."""
    token_id: str | None
    """The token, where one is concerned."""
    owner: str | None
    """Its owner: `User:alice`."""
    address: str | None
    """Where it came from; of several the busiest one."""
    first_seen: datetime
    """The first event that does not fit, in UTC."""
    last_seen: datetime
    """The last one."""
    events: int
    """How many there are."""
    evidence: tuple[Evidence, ...]
    """What speaks for it, the most important first."""

    def as_document(self) -> dict[str, object]:
        """Give it as JSON's types; instants are ISO 8601 in UTC."""
        return {**asdict(self), "first_seen": self.first_seen.isoformat(), "last_seen": self.last_seen.isoformat()}
