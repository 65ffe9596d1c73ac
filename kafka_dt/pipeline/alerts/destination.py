"""What a destination of alerts is, and how it fails."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final, Protocol

from kafka_dt.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_dt.pipeline.alerts.alert import Alert

TIMEOUT_S: Final = 10.0
"""How long a destination may take for an answer."""
_KEY_LENGTH: Final = 16


class AlertError(PipelineError):
    """A destination cannot be used as it is given."""


class NotDelivered(Exception):
    """A destination has not taken alerts.

    Args:
        reason: one line, without secrets.
        again: whether it may take them later.
        after_s: how long it wants to be left alone, if it says so.
    """

    def __init__(self, reason: str, *, again: bool = True, after_s: float = 0.0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.again = again
        self.after_s = after_s


class Destination(Protocol):
    """Takes alerts."""

    @property
    def name(self) -> str:
        """What people call it, without secrets."""

    @property
    def key(self) -> str:
        """What tells it from others in the memory of what was told."""

    @property
    def digest(self) -> bool:
        """Whether it takes all alerts as one message."""

    def send(self, alerts: Sequence[Alert]) -> None:
        """Send alerts: all, or one if it is no digest; when it returns, they are delivered.

        Raises:
            NotDelivered: it did not take them, or it is not known whether it did.
        """


def key_of(kind: str, target: str) -> str:
    """Make the key of a destination; the target may be a secret, so it is not readable in it."""
    return f"{kind}:{hashlib.sha256(target.encode()).hexdigest()[:_KEY_LENGTH]}"
