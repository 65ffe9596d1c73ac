"""Select tokens by owner, by renewer, by the time of issue. This module imports nothing of the server.

Source: docs/command-line.md#kafka-dt-token-expire-all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TokenFilter:
    """Conditions of a token; each condition that is given must hold."""

    owners: frozenset[str] = frozenset()
    """One of these owns it (`User:alice`); empty = any owner."""
    renewers: frozenset[str] = frozenset()
    """One of these is a renewer of it; empty = any renewers, or none."""
    issued_before_ms: int | None = None
    """It was issued before this instant, in milliseconds since 1970; None = at any time."""

    @property
    def selects_all(self) -> bool:
        """Whether no token is left out."""
        return not (self.owners or self.renewers) and self.issued_before_ms is None

    def selects(self, owner: str, renewers: Iterable[str], issue_timestamp_ms: int) -> bool:
        """Say whether a token is meant; principals are texts such as `User:alice`."""
        if self.owners and owner not in self.owners:
            return False
        if self.renewers and self.renewers.isdisjoint(renewers):
            return False
        return self.issued_before_ms is None or issue_timestamp_ms < self.issued_before_ms
