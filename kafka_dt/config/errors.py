"""The error of an unusable configuration."""

from __future__ import annotations


class ConfigError(Exception):
    """A setting that cannot be used.

    `key` is the setting as the user wrote it; the message is one line that names it and says what would do.
    A secret value is never part of the message.
    """

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"{key}: {reason}")
        self.key = key
        self.reason = reason
