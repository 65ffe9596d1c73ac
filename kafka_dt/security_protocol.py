"""Kafka's security protocols: whether a connection is encrypted, and whether clients log in on it by SASL.

Source: org.apache.kafka.common.security.auth.SecurityProtocol.
"""

from __future__ import annotations

from enum import StrEnum


class SecurityProtocol(StrEnum):
    """How a client and a server talk: with TLS or without, with SASL or without."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def uses_sasl(self) -> bool:
        """Whether clients log in by SASL."""
        return self in {SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL}

    @property
    def uses_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self in {SecurityProtocol.SSL, SecurityProtocol.SASL_SSL}
