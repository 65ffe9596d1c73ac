"""The client for delegation tokens: KIP-48's four requests, over every listener that takes them.

    async with TokenClient.from_config({"bootstrap.servers": "broker:9092", ...}) as client:
        token = await client.create(renewers=["User:scheduler"])
        await client.renew(token.hmac)

It speaks to kafka-dt and to Kafka's own brokers alike. The first bootstrap server that answers is used, a lost
connection is made again by the next call, and a session with a lifetime is renewed before it ends. Calls of several
tasks are sent one after the other. Limits: one event loop; as many answers at a time as one connection gives.

Source: KIP-48, KIP-373; org.apache.kafka.clients.admin.Admin, methods ...DelegationToken.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Self

from kio.schema.errors import ErrorCode

from kafka_dt.client.config import ClientConfig
from kafka_dt.client.connection import Connection
from kafka_dt.client.errors import ConnectionLost, NoServerReached, UnsupportedByServer, refused
from kafka_dt.client.login import log_in
from kafka_dt.client.renewal import Renewal
from kafka_dt.client.tokens import DelegationToken, split_principal
from protocol.registry import APIS, ApiKey
from protocol.responses import element_type
from protocol.times import from_timestamp, to_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import TracebackType

    from kafka_dt.client.renewal import OnEnd, OnRenewed

_ACTIONS: Final = {
    ApiKey.CREATE_DELEGATION_TOKEN: "create",
    ApiKey.RENEW_DELEGATION_TOKEN: "renew",
    ApiKey.EXPIRE_DELEGATION_TOKEN: "expire",
    ApiKey.DESCRIBE_DELEGATION_TOKEN: "describe",
}
_OWNER_VERSION: Final = 3
"""The version of CreateDelegationToken from which on an owner can be named (KIP-373)."""

_SOONEST_LOGIN_S: Final = 1.1
"""Servers refuse a second login within a second of the last."""


class TokenClient:
    """An async context manager with a method for each request about tokens.

    config: where the servers are and who logs in; `from_config` makes it of Kafka's properties
    monotonic: seconds of a clock that never goes back
    random_bytes: unguessable bytes, for SCRAM
    jitter: a number from 0 up to 1, new each time, so that many clients do not act at the same moment
    """

    def __init__(
        self,
        config: ClientConfig,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        random_bytes: Callable[[int], bytes] = os.urandom,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._config = config
        self._monotonic = monotonic
        self._random_bytes = random_bytes
        self._jitter = jitter
        self._connection: Connection | None = None
        self._login_due = float("inf")
        self._turn = asyncio.Lock()

    @classmethod
    def from_config(cls, properties: Mapping[str, str]) -> Self:
        """Make a client of Kafka's client properties (see kafka_dt.client.config).

        Raises ClientConfigError.
        """
        return cls(ClientConfig.from_properties(properties))

    async def __aenter__(self) -> Self:
        """Connect and log in.

        Raises NoServerReached or LoginFailed.
        """
        async with self._turn:
            await self._ready()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End the connection; a later call would make a new one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def create(
        self, owner: str | None = None, renewers: Iterable[str] = (), max_lifetime_ms: int = -1
    ) -> DelegationToken:
        """Create a token.

        owner: a principal such as `User:alice`; None means the caller. Another needs CREATE_TOKENS on that user
        renewers: principals of users who may renew and expire the token besides its owner
        max_lifetime_ms: milliseconds, 0 or less = the server's maximum
        Returns the token with its HMAC.
        Raises TokenRequestNotAllowed, TokenAuthorizationFailed, InvalidPrincipalType, TokensDisabled,
        UnsupportedByServer (an owner, and a server older than Kafka 3.3), InvalidArgument, ConnectionFailed. After
        a ConnectionLost the token may exist: `describe` tells.
        """
        owner_parts = split_principal(owner) if owner is not None else (None, None)
        renewer_parts = [split_principal(renewer) for renewer in renewers]

        def values(connection: Connection) -> Mapping[str, Any]:
            version = connection.version(ApiKey.CREATE_DELEGATION_TOKEN)
            if owner is not None and version < _OWNER_VERSION:
                raise UnsupportedByServer(connection.server, "tokens for another owner (Kafka 3.3 does)")
            return {
                "owner_principal_type": owner_parts[0],
                "owner_principal_name": owner_parts[1],
                "renewers": _principals(ApiKey.CREATE_DELEGATION_TOKEN, version, "renewers", renewer_parts),
                "max_lifetime": to_duration(max_lifetime_ms),
            }

        answer = await self._call(ApiKey.CREATE_DELEGATION_TOKEN, values, repeatable=False)
        return _created(answer, tuple(f"{kind}:{name}" for kind, name in renewer_parts))

    async def renew(self, hmac: bytes, period_ms: int = -1) -> int:
        """Move a token's expiry.

        hmac: raw bytes, as in DelegationToken.hmac
        period_ms: milliseconds from now, never beyond the maximum lifetime; below 0 = the server's default
        Returns the new expiry in milliseconds since 1970.
        Raises TokenNotFound, TokenOwnerMismatch, TokenExpired, TokenRequestNotAllowed, TokensDisabled,
        ConnectionFailed.
        """
        values = {"hmac": hmac, "renew_period": to_duration(period_ms)}
        answer = await self._call(ApiKey.RENEW_DELEGATION_TOKEN, lambda _: values, repeatable=True)
        return from_timestamp(answer.expiry_timestamp)

    async def expire(self, hmac: bytes, period_ms: int = -1) -> int:
        """End a token, now or soon.

        hmac: raw bytes, as in DelegationToken.hmac
        period_ms: milliseconds from now until it ends; below 0 = it is deleted at once
        Returns its expiry in milliseconds since 1970.
        Raises as `renew`; after a ConnectionLost the token may be gone already.
        """
        values = {"hmac": hmac, "expiry_time_period": to_duration(period_ms)}
        answer = await self._call(ApiKey.EXPIRE_DELEGATION_TOKEN, lambda _: values, repeatable=False)
        return from_timestamp(answer.expiry_timestamp)

    async def describe(self, owners: Iterable[str] | None = None) -> list[DelegationToken]:
        """Return the tokens that the caller may see, with their HMACs.

        owners: principals whose tokens are wanted, owned or renewable by them; None = all, empty = none
        Raises TokenRequestNotAllowed, TokensDisabled, InvalidArgument, ConnectionFailed.
        """
        parts = None if owners is None else [split_principal(owner) for owner in owners]

        def values(connection: Connection) -> Mapping[str, Any]:
            api = ApiKey.DESCRIBE_DELEGATION_TOKEN
            return {"owners": None if parts is None else _principals(api, connection.version(api), "owners", parts)}

        answer = await self._call(ApiKey.DESCRIBE_DELEGATION_TOKEN, values, repeatable=True)
        return [_described(token) for token in answer.tokens]

    def keep_renewed(
        self, token: DelegationToken, *, on_renewed: OnRenewed | None = None, on_end: OnEnd | None = None
    ) -> Renewal:
        """Return an async context manager that renews a token in the background while its block runs.

        on_renewed: called with the token, its new expiry in it, after each renewal
        on_end: called once with a RenewalEnd when there will be no further one
        See kafka_dt.client.renewal for when it renews and when it stops.
        """
        return Renewal(token, self.renew, on_renewed=on_renewed, on_end=on_end, jitter=self._jitter)

    async def _call(self, api: ApiKey, values: Callable[[Connection], Mapping[str, Any]], *, repeatable: bool) -> Any:
        async with self._turn:
            used_before = self._connection
            connection = await self._ready()
            try:
                answer = await connection.request(api, **values(connection))
            except ConnectionLost:
                # A connection that has been idle is often found dead only now; a fresh one is broken for a reason.
                if not repeatable or connection is not used_before:
                    raise
                connection = await self._ready()
                answer = await connection.request(api, **values(connection))
        if answer.error_code is not ErrorCode.none:
            raise refused(answer.error_code, _ACTIONS[api])
        return answer

    async def _ready(self) -> Connection:
        connection = self._connection
        if connection is not None and connection.usable:
            if self._monotonic() < self._login_due:
                return connection
            # A connection that breaks on the way is made anew below.
            with suppress(ConnectionLost):
                await self._log_in(connection)
                return connection
        if connection is not None:
            connection.abort()
        self._connection = None
        self._connection = await self._connect()
        return self._connection

    async def _connect(self) -> Connection:
        config = self._config
        reasons = []
        for address in config.bootstrap_servers:
            try:
                connection = await Connection.open(
                    address,
                    ssl_context=config.ssl_context if config.security_protocol.uses_tls else None,
                    client_id=config.client_id,
                    setup_timeout_ms=config.setup_timeout_ms,
                    request_timeout_ms=config.request_timeout_ms,
                )
                await self._log_in(connection)
            except ConnectionLost as error:
                reasons.append((error.server, error.reason))
            else:
                return connection
        raise NoServerReached(reasons)

    async def _log_in(self, connection: Connection) -> None:
        credentials = self._config.credentials
        if not self._config.security_protocol.uses_sasl or credentials is None:
            return
        asked = self._monotonic()
        try:
            lifetime_ms = await log_in(connection, credentials, self._random_bytes)
        except BaseException:
            connection.abort()
            raise
        # As Java's clients: between 85 and 95 % of the session.
        share = 0.85 + 0.1 * self._jitter()
        due_s = max(share * lifetime_ms / 1000, _SOONEST_LOGIN_S) if lifetime_ms else float("inf")
        self._login_due = asked + due_s


def _principals(api: ApiKey, version: int, field: str, parts: Iterable[tuple[str, str]]) -> tuple[Any, ...]:
    request_type: Any = APIS[api].request[version]
    element = element_type(request_type, field)
    return tuple(element(principal_type=kind, principal_name=name) for kind, name in parts)


def _created(answer: Any, renewers: tuple[str, ...]) -> DelegationToken:
    return DelegationToken(
        token_id=answer.token_id,
        owner=f"{answer.principal_type}:{answer.principal_name}",
        requester=_requester(answer),
        renewers=renewers,
        issue_timestamp_ms=from_timestamp(answer.issue_timestamp),
        expiry_timestamp_ms=from_timestamp(answer.expiry_timestamp),
        max_timestamp_ms=from_timestamp(answer.max_timestamp),
        hmac=answer.hmac,
    )


def _described(token: Any) -> DelegationToken:
    return DelegationToken(
        token_id=token.token_id,
        owner=f"{token.principal_type}:{token.principal_name}",
        requester=_requester(token),
        renewers=tuple(f"{renewer.principal_type}:{renewer.principal_name}" for renewer in token.renewers),
        issue_timestamp_ms=token.issue_timestamp,
        expiry_timestamp_ms=token.expiry_timestamp,
        max_timestamp_ms=token.max_timestamp,
        hmac=token.hmac,
    )


def _requester(answer: Any) -> str:
    """Version 3 tells who asked; before it owner and requester were one (KIP-373)."""
    if not hasattr(answer, "token_requester_principal_name"):
        return f"{answer.principal_type}:{answer.principal_name}"
    return f"{answer.token_requester_principal_type}:{answer.token_requester_principal_name}"
