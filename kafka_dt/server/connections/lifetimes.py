"""How long the connections of a listener may live: without a login, without a request, and at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from kafka_dt.config import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetimes:
    """The times of the connections of one listener, in seconds."""

    login_s: float
    """`kafka.dt.login.timeout.ms`."""
    max_idle_s: float | None = None
    """`connections.max.idle.ms`; None for never."""
    max_age_s: float | None = None
    """`kafka.dt.connections.max.age.ms`; None for never."""

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Take the times that the settings say."""
        return cls(
            login_s=settings.login_timeout_ms / 1000,
            max_idle_s=_seconds(settings.connections_max_idle_ms),
            max_age_s=_seconds(settings.connections_max_age_ms),
        )


def _seconds(ms: int) -> float | None:
    return None if ms < 0 else ms / 1000
