"""Which tokens are meant: by owner, by renewer, by when they were issued. It needs nothing of the server.

Source: docs/command-line.md#kafka-dt-token-expire-all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TokenFilter:
    """What a token must be like; each condition that is given must hold."""

    owners: frozenset[str] = frozenset()
    """One of these owns it (`User:alice`); empty = anybody."""
    renewers: frozenset[str] = frozenset()
    """One of these is a renewer of it; empty = anybody or nobody."""
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
