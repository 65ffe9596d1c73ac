"""A token as commands show it: the names of its fields in JSON, and its cells for people.

    write_json(asdict(ListedToken.of(token)))

The names are those of audit events where these have the field.

Source: KIP-48 (DescribeDelegationToken).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from kafka_dt.cli.output import printable
from kafka_dt.cli.tables import iso_utc

if TYPE_CHECKING:
    from kafka_dt.client import DelegationToken
    from kafka_dt.tokens import Token


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedToken:
    """A token without its secret; the fields are those of the JSON."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp: int
    expiry_timestamp: int
    max_timestamp: int

    @classmethod
    def of(cls, token: DelegationToken | Token) -> Self:
        """Take what is shown of a token."""
        return cls(
            token_id=token.token_id,
            owner=str(token.owner),
            requester=str(token.requester),
            renewers=tuple(map(str, token.renewers)),
            issue_timestamp=token.issue_timestamp_ms,
            expiry_timestamp=token.expiry_timestamp_ms,
            max_timestamp=token.max_timestamp_ms,
        )

    @property
    def cells(self) -> dict[str, str]:
        """What people read of it, by the name of the column."""
        return {
            "TOKENID": printable(self.token_id),
            "OWNER": printable(self.owner),
            "REQUESTER": printable(self.requester),
            "RENEWERS": printable(", ".join(self.renewers)) or "-",
            "ISSUED": iso_utc(self.issue_timestamp),
            "EXPIRES": iso_utc(self.expiry_timestamp),
            "MAX": iso_utc(self.max_timestamp),
        }
