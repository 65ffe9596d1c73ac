"""The error of an unusable TLS setting."""

from __future__ import annotations


class TlsError(Exception):
    """A TLS setting that cannot be used; `key` is its Kafka name. Its text is one line without secrets."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"{key}: {reason}")
        self.key = key
        self.reason = reason
