"""How long a session lasts, and how often its client may log in again (KIP-368).

Source: KIP-368; org.apache.kafka.common.network.KafkaChannel, `connections.max.reauth.ms`.
"""

from __future__ import annotations

from typing import Final

REAUTHENTICATION_INTERVAL_MS: Final = 1_000
"""A session logs in again at most this often (KafkaChannel.MIN_REAUTH_INTERVAL_ONE_SECOND_NANOS)."""


class SessionLifetime:
    """The lifetime of the session that the last login began; instants are milliseconds since the epoch."""

    __slots__ = ("_granted_end_ms", "_last_login_ms", "end_ms")

    def __init__(self) -> None:
        self.end_ms: int | None = None
        """When the session ends; None if it has no end."""
        self._granted_end_ms: int | None = None
        self._last_login_ms: int | None = None

    def begin(self, lifetime_ms: int | None, now_ms: int) -> None:
        """Begin a session.

        Args:
            lifetime_ms: after how many milliseconds it ends; None for never.
            now_ms: when it begins.
        """
        self._granted_end_ms = self.end_ms = None if lifetime_ms is None else now_ms + lifetime_ms

    def cut(self, when_ms: int) -> None:
        """End a session that has an end at an earlier instant; the last call counts."""
        if self._granted_end_ms is not None:
            self.end_ms = min(self._granted_end_ms, when_ms)

    def ended(self, now_ms: int) -> bool:
        """Say whether the session has an end and is past it."""
        return self.end_ms is not None and now_ms > self.end_ms

    def may_log_in_again(self, now_ms: int) -> bool:
        """Say whether the client may log in again: the session has an end, and the last time was long enough ago."""
        if self.end_ms is None:
            return False
        return self._last_login_ms is None or now_ms - self._last_login_ms >= REAUTHENTICATION_INTERVAL_MS

    def log_in_again(self, now_ms: int) -> None:
        """Note that the client begins to log in again."""
        self._last_login_ms = now_ms
