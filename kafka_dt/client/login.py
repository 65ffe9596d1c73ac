"""The SASL login of a client, also for the second time on one connection, over whatever carries its requests.

Source: KIP-43 (SaslHandshake), KIP-152 (SaslAuthenticate), KIP-368 (re-authentication), KIP-48 (`tokenauth`);
org.apache.kafka.common.security.authenticator.SaslClientAuthenticator.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from typing import Any, Final, Protocol

from kio.schema.errors import ErrorCode

from kafka_dt.client.config import Credentials
from kafka_dt.client.errors import LoginFailed, MechanismNotEnabled
from kafka_dt_protocol.api.registry import ApiKey
from kafka_dt_protocol.errors import LocalProtocolError
from kafka_dt_protocol.sasl import PLAIN, SaslError, ScramClient, ScramMechanism, derive_keys, plain_message
from kafka_dt_protocol.sasl.scram_client import DeriveKeys
from kafka_dt_protocol.wire.times import from_duration

_NONCE_BYTES: Final = 24
_SOONEST_LOGIN_S: Final = 1.1
"""Servers refuse a second login within a second of the last."""


class Channel(Protocol):
    """What carries requests to a server and brings their answers: a Connection, or another part's connection."""

    @property
    def server(self) -> str:
        """Its name, for errors."""
        ...

    def version(self, api: ApiKey) -> int:
        """Return the version of an API that both sides know; raises UnsupportedByServer."""
        ...

    async def request(self, api: ApiKey, **values: Any) -> Any:
        """Send a request and return the answer's entity."""
        ...


async def log_in(
    connection: Channel,
    credentials: Credentials,
    random_bytes: Callable[[int], bytes],
    derive: DeriveKeys = derive_keys,
) -> int:
    """Log in, or log in again on a connection whose session ends.

    random_bytes: unguessable bytes, for SCRAM
    derive: what makes SCRAM's keys of a password, called in a thread; one that remembers them saves the hashing
    Returns the session's lifetime in milliseconds, 0 for one without end.
    Raises LoginFailed, ConnectionLost or UnsupportedByServer; after each the connection is of no more use.
    """
    await handshake(connection, credentials.mechanism)
    try:
        if credentials.mechanism == PLAIN:
            message = plain_message(credentials.username, credentials.password)
            answer = await _authenticate(connection, credentials.mechanism, message)
        else:
            answer = await _scram(connection, credentials, random_bytes, derive)
    except (SaslError, LocalProtocolError) as error:
        raise LoginFailed(connection.server, credentials.mechanism, str(error)) from error
    return session_lifetime_ms(answer)


def session_lifetime_ms(answer: Any) -> int:
    """Return the session's lifetime of an answer to SaslAuthenticate, 0 for one without end."""
    # Version 0 has no lifetime.
    return max(0, from_duration(answer.session_lifetime)) if hasattr(answer, "session_lifetime") else 0


def login_due_s(lifetime_ms: int, jitter: float) -> float:
    """Return after how many seconds to log in again; infinite for a session without end.

    lifetime_ms: as `log_in` returned it
    jitter: a number from 0 up to 1
    """
    # As Java's clients: between 85 and 95 % of the session.
    return max((0.85 + 0.1 * jitter) * lifetime_ms / 1000, _SOONEST_LOGIN_S) if lifetime_ms else float("inf")


async def handshake(connection: Channel, mechanism: str) -> None:
    """Choose the mechanism of a login, whose messages SaslAuthenticate is to carry.

    Raises MechanismNotEnabled, LoginFailed, UnsupportedByServer, and what Channel.request raises.
    """
    # Without SaslAuthenticate a handshake of version 1 would leave both sides speechless: find out before.
    connection.version(ApiKey.SASL_AUTHENTICATE)
    answer = await connection.request(ApiKey.SASL_HANDSHAKE, mechanism=mechanism)
    if answer.error_code is ErrorCode.unsupported_sasl_mechanism:
        raise MechanismNotEnabled(connection.server, mechanism, answer.mechanisms)
    if answer.error_code is not ErrorCode.none:
        reason = "the handshake was refused"
        raise LoginFailed(connection.server, mechanism, f"{reason} ({answer.error_code.name})", answer.error_code)


async def _scram(
    connection: Channel, credentials: Credentials, random_bytes: Callable[[int], bytes], derive: DeriveKeys
) -> Any:
    mechanism = ScramMechanism(credentials.mechanism)
    nonce = base64.urlsafe_b64encode(random_bytes(_NONCE_BYTES)).decode("ascii")
    client = ScramClient(
        mechanism, credentials.username, credentials.password, nonce, token=credentials.token_auth, derive=derive
    )
    server_first = await _authenticate(connection, mechanism, client.first())
    # Thousands of rounds of hashing: other tasks go on meanwhile.
    client_final = await asyncio.to_thread(client.challenge, server_first.auth_bytes)
    answer = await _authenticate(connection, mechanism, client_final)
    client.verify(answer.auth_bytes)
    return answer


async def _authenticate(connection: Channel, mechanism: str, message: bytes) -> Any:
    answer = await connection.request(ApiKey.SASL_AUTHENTICATE, auth_bytes=message)
    if answer.error_code is not ErrorCode.none:
        reason = answer.error_message or answer.error_code.name
        raise LoginFailed(connection.server, mechanism, reason, answer.error_code)
    return answer
