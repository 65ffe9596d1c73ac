"""The SASL login of a client, also for the second time on one connection, over whatever carries its requests.

Source: KIP-43 (SaslHandshake), KIP-152 (SaslAuthenticate), KIP-368 (re-authentication), KIP-48 (`tokenauth`);
RFC 2831, RFC 4752, RFC 7628;
org.apache.kafka.common.security.authenticator.SaslClientAuthenticator.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from typing import Any, Final, Protocol

from kio.schema.errors import ErrorCode

from kafka_dt.client.bearer import BearerLogin
from kafka_dt.client.config import Credentials, Login
from kafka_dt.client.errors import LoginFailed, MechanismNotEnabled
from kafka_dt.client.kerberos import KerberosLogin
from kafka_dt.extras import installed_by
from kafka_dt_protocol.api.registry import ApiKey
from kafka_dt_protocol.errors import LocalProtocolError
from kafka_dt_protocol.sasl import (
    ABORT,
    DIGEST_MD5,
    GSSAPI,
    OAUTHBEARER,
    PLAIN,
    DigestClient,
    SaslError,
    ScramClient,
    ScramMechanism,
    bearer_message,
    derive_keys,
    plain_message,
)
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
    login: Login,
    random_bytes: Callable[[int], bytes],
    derive: DeriveKeys = derive_keys,
) -> int:
    """Log in, or log in again on a connection whose session ends.

    random_bytes: unguessable bytes, for SCRAM and DIGEST-MD5
    derive: what makes SCRAM's keys of a password, called in a thread; one that remembers them saves the hashing
    Returns the session's lifetime in milliseconds, 0 for one without end.
    Raises LoginFailed, BearerTokenMissing, ConnectionLost or UnsupportedByServer; after each the connection is of no
    more use.
    """
    await handshake(connection, login.mechanism)
    try:
        match login:
            case KerberosLogin():
                answer = await _gssapi(connection, login)
            case BearerLogin():
                answer = await _bearer(connection, login)
            case Credentials(mechanism=mechanism) if mechanism == PLAIN:
                message = plain_message(login.username, login.password)
                answer = await _authenticate(connection, mechanism, message)
            case Credentials(mechanism=mechanism) if mechanism == DIGEST_MD5:
                answer = await _digest(connection, login, random_bytes)
            case _:
                answer = await _scram(connection, login, random_bytes, derive)
    except (SaslError, LocalProtocolError) as error:
        raise LoginFailed(connection.server, login.mechanism, str(error)) from error
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


async def _digest(connection: Channel, credentials: Credentials, random_bytes: Callable[[int], bytes]) -> Any:
    cnonce = base64.urlsafe_b64encode(random_bytes(_NONCE_BYTES)).decode("ascii")
    client = DigestClient(credentials.username, credentials.password, cnonce, _host(connection))
    challenge = await _authenticate(connection, DIGEST_MD5, b"")
    answer = await _authenticate(connection, DIGEST_MD5, client.respond(challenge.auth_bytes))
    client.verify(answer.auth_bytes)
    return answer


async def _bearer(connection: Channel, login: BearerLogin) -> Any:
    # A file or an issuer: other tasks go on meanwhile.
    token = await asyncio.to_thread(login.token)
    answer = await _authenticate(connection, OAUTHBEARER, bearer_message(token, login.extensions))
    if answer.auth_bytes:  # the refusal in JSON; the error comes after our answer to it
        answer = await _authenticate(connection, OAUTHBEARER, ABORT)
    return answer


async def _gssapi(connection: Channel, login: KerberosLogin) -> Any:
    try:
        from kafka_dt.client.gss import Initiator  # noqa: PLC0415 - an extra
    except ImportError as error:
        reason = f"it needs the extra kerberos ({installed_by('kerberos')})"
        raise LoginFailed(connection.server, GSSAPI, reason) from error
    # Each step may read files and ask the KDC.
    initiator = await asyncio.to_thread(Initiator, login, _host(connection))
    message = await asyncio.to_thread(initiator.step, b"")
    while not initiator.established:
        answer = await _authenticate(connection, GSSAPI, message)
        message = await asyncio.to_thread(initiator.step, answer.auth_bytes)
    offer = await _authenticate(connection, GSSAPI, message)
    return await _authenticate(connection, GSSAPI, initiator.choose(offer.auth_bytes))


def _host(connection: Channel) -> str:
    """Return the host of `host:port`."""
    return connection.server.rpartition(":")[0].strip("[]")


async def _authenticate(connection: Channel, mechanism: str, message: bytes) -> Any:
    answer = await connection.request(ApiKey.SASL_AUTHENTICATE, auth_bytes=message)
    if answer.error_code is not ErrorCode.none:
        reason = answer.error_message or answer.error_code.name
        raise LoginFailed(connection.server, mechanism, reason, answer.error_code)
    return answer
