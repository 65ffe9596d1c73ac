"""The client for delegation tokens: KIP-48's four requests, over every listener that takes them.

    async with TokenClient.from_config({"bootstrap.servers": "broker:9092", ...}) as client:
        token = await client.create(renewers=["User:scheduler"])
        await client.renew(token.hmac)

It speaks to kafka-dt and to Kafka's own brokers. `session_client.py` says how it connects.

Source: KIP-48, KIP-373; org.apache.kafka.clients.admin.Admin, methods ...DelegationToken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kio.schema.errors import ErrorCode

from kafka_dt.client.connection import Connection
from kafka_dt.client.errors import UnsupportedByServer, refused
from kafka_dt.client.renewal import OnEnd, OnRenewed, Renewal
from kafka_dt.client.session_client import SessionClient, Values
from kafka_dt.client.tokens import DelegationToken, raw_hmac, split_principal, split_principals
from kafka_dt_protocol.api.registry import APIS, ApiKey
from kafka_dt_protocol.api.responses import element_type
from kafka_dt_protocol.wire.times import from_timestamp, to_duration

_ACTIONS: Final = {
    ApiKey.CREATE_DELEGATION_TOKEN: "create",
    ApiKey.RENEW_DELEGATION_TOKEN: "renew",
    ApiKey.EXPIRE_DELEGATION_TOKEN: "expire",
    ApiKey.DESCRIBE_DELEGATION_TOKEN: "describe",
}
OWNER_VERSION: Final = 3
"""The version of CreateDelegationToken from which on an owner can be named (KIP-373)."""


class TokenClient(SessionClient):
    """An async context manager with a method for each request about tokens; see `SessionClient` for its arguments."""

    async def create(
        self, owner: str | None = None, renewers: Iterable[str] = (), max_lifetime_ms: int = -1
    ) -> DelegationToken:
        """Create a token.

        owner: a principal such as `User:alice`; None means the caller. Another needs CREATE_TOKENS on that user
        renewers: principals of users who may renew and expire the token besides its owner
        max_lifetime_ms: milliseconds, 0 or less = the server's maximum
        Returns the token with its HMAC.
        Raises TokenRequestNotAllowed, TokenAuthorizationFailed, InvalidPrincipalType, TokensDisabled,
        TokenLimitExceeded, TooManyCreates, UnsupportedByServer (an owner, and a server older than Kafka 3.3),
        InvalidArgument, ConnectionFailed. After a ConnectionLost the token may exist: `describe` tells.
        """
        owner_parts = split_principal(owner) if owner is not None else (None, None)
        renewer_parts = split_principals("renewers", renewers)

        def values(connection: Connection) -> Mapping[str, Any]:
            version = connection.version(ApiKey.CREATE_DELEGATION_TOKEN)
            if owner is not None and version < OWNER_VERSION:
                raise UnsupportedByServer(connection.server, "tokens for another owner (Kafka 3.3 does)")
            return {
                "owner_principal_type": owner_parts[0],
                "owner_principal_name": owner_parts[1],
                "renewers": _principals(ApiKey.CREATE_DELEGATION_TOKEN, version, "renewers", renewer_parts),
                "max_lifetime": to_duration(max_lifetime_ms),
            }

        answer = await self._ask(ApiKey.CREATE_DELEGATION_TOKEN, values, repeatable=False)
        instants = (answer.issue_timestamp, answer.expiry_timestamp, answer.max_timestamp)
        # The answer does not repeat the renewers.
        return _token(answer, (f"{kind}:{name}" for kind, name in renewer_parts), map(from_timestamp, instants))

    async def renew(self, hmac: bytes, period_ms: int = -1) -> int:
        """Move a token's expiry, also nearer.

        hmac: raw bytes, as in DelegationToken.hmac
        period_ms: milliseconds from now, never beyond the maximum lifetime; below 0 = the server's default
        Returns the new expiry in milliseconds since 1970.
        Raises TokenNotFound, TokenOwnerMismatch, TokenExpired, TokenRequestNotAllowed, TokensDisabled,
        InvalidArgument, ConnectionFailed.
        """
        values = {"hmac": raw_hmac(hmac), "renew_period": to_duration(period_ms)}
        answer = await self._ask(ApiKey.RENEW_DELEGATION_TOKEN, lambda _: values, repeatable=True)
        return from_timestamp(answer.expiry_timestamp)

    async def expire(self, hmac: bytes, period_ms: int = -1) -> int:
        """End a token, now or soon.

        hmac: raw bytes, as in DelegationToken.hmac
        period_ms: milliseconds from now until it ends; below 0 = it is deleted at once, also an expired one
        Returns its expiry in milliseconds since 1970.
        Raises as `renew`; after a ConnectionLost the token may be gone already.
        """
        values = {"hmac": raw_hmac(hmac), "expiry_time_period": to_duration(period_ms)}
        answer = await self._ask(ApiKey.EXPIRE_DELEGATION_TOKEN, lambda _: values, repeatable=False)
        return from_timestamp(answer.expiry_timestamp)

    async def describe(self, owners: Iterable[str] | None = None) -> list[DelegationToken]:
        """Return the tokens that the caller may see, with their HMACs.

        owners: principals whose tokens are wanted, owned or renewable by them; None = all, empty = none
        Raises TokenRequestNotAllowed, TokensDisabled, InvalidArgument, ConnectionFailed.
        """
        parts = None if owners is None else split_principals("owners", owners)

        def values(connection: Connection) -> Mapping[str, Any]:
            api = ApiKey.DESCRIBE_DELEGATION_TOKEN
            return {"owners": None if parts is None else _principals(api, connection.version(api), "owners", parts)}

        answer = await self._ask(ApiKey.DESCRIBE_DELEGATION_TOKEN, values, repeatable=True)
        return [
            _token(
                token,
                (f"{renewer.principal_type}:{renewer.principal_name}" for renewer in token.renewers),
                (token.issue_timestamp, token.expiry_timestamp, token.max_timestamp),
            )
            for token in answer.tokens
        ]

    def keep_renewed(
        self, token: DelegationToken, *, on_renewed: OnRenewed | None = None, on_end: OnEnd | None = None
    ) -> Renewal:
        """Return an async context manager that renews a token in the background while its block runs.

        on_renewed: called with the token, its new expiry in it, after each renewal
        on_end: called once with a RenewalEnd when there will be no further one
        See kafka_dt.client.renewal for when it renews and when it stops.
        """
        return Renewal(token, self.renew, on_renewed=on_renewed, on_end=on_end, jitter=self._jitter)

    async def _ask(self, api: ApiKey, values: Values, *, repeatable: bool) -> Any:
        answer = await self._call(api, values, repeatable=repeatable)
        if answer.error_code is not ErrorCode.none:
            raise refused(answer.error_code, _ACTIONS[api])
        return answer


def _principals(api: ApiKey, version: int, field: str, parts: Iterable[tuple[str, str]]) -> tuple[Any, ...]:
    """Return principals, as (type, name), in the form of an array field of a request."""
    request_type: Any = APIS[api].request[version]
    element = element_type(request_type, field)
    return tuple(element(principal_type=kind, principal_name=name) for kind, name in parts)


def _token(answer: Any, renewers: Iterable[str], timestamps_ms: Iterable[int]) -> DelegationToken:
    """Return the token of an answer; timestamps_ms: of its issue, expiry and maximum."""
    owner = f"{answer.principal_type}:{answer.principal_name}"
    requester = owner  # before version 3 owner and requester were one (KIP-373)
    if hasattr(answer, "token_requester_principal_name"):
        requester = f"{answer.token_requester_principal_type}:{answer.token_requester_principal_name}"
    issue_timestamp_ms, expiry_timestamp_ms, max_timestamp_ms = timestamps_ms
    return DelegationToken(
        token_id=answer.token_id,
        owner=owner,
        requester=requester,
        renewers=tuple(renewers),
        issue_timestamp_ms=issue_timestamp_ms,
        expiry_timestamp_ms=expiry_timestamp_ms,
        max_timestamp_ms=max_timestamp_ms,
        hmac=answer.hmac,
    )
