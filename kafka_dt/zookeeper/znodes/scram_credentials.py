"""A SCRAM credential as text: `salt=...,stored_key=...,server_key=...,iterations=...`, the first three in base64.

Source: org.apache.kafka.common.security.scram.internals.ScramCredentialUtils.
"""

from __future__ import annotations

import base64
import binascii

from kafka_dt.zookeeper.errors import InvalidZnode
from kafka_dt_protocol.sasl.scram import ScramCredential


def credential_to_text(credential: ScramCredential) -> str:
    """Write a credential."""
    parts = {
        "salt": _base64(credential.salt),
        "stored_key": _base64(credential.stored_key),
        "server_key": _base64(credential.server_key),
        "iterations": str(credential.iterations),
    }
    return ",".join(f"{name}={value}" for name, value in parts.items())


def credential_from_text(text: str) -> ScramCredential:
    """Read a credential; its parts may come in any order.

    Raises:
        InvalidZnode: parts are missing, unknown or not readable.
    """
    parts = dict(_credential_part(part) for part in text.rstrip(",").split(","))
    if parts.keys() != {"salt", "stored_key", "server_key", "iterations"}:
        raise InvalidZnode("a SCRAM credential has other parts than salt, stored_key, server_key and iterations")
    try:
        credential = ScramCredential(
            salt=_unbase64(parts["salt"]),
            stored_key=_unbase64(parts["stored_key"]),
            server_key=_unbase64(parts["server_key"]),
            iterations=int(parts["iterations"]),
        )
    except (binascii.Error, ValueError):
        raise InvalidZnode("a SCRAM credential has a part that is not readable") from None
    if credential.iterations < 1:
        raise InvalidZnode("a SCRAM credential has no iterations")
    return credential


def _credential_part(part: str) -> tuple[str, str]:
    name, equals, value = part.partition("=")
    if not name or not equals:
        raise InvalidZnode("a SCRAM credential is not of the form name=value,...")
    return name, value


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _unbase64(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
