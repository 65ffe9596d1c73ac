"""Tokens and principals between the client's own values and the entities of each API version.

Source: KIP-48, KIP-373 (version 3: owner and requester).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka_dt.client.tokens import DelegationToken
from kafka_dt_protocol.api.registry import APIS, ApiKey
from kafka_dt_protocol.api.responses import element_type
from kafka_dt_protocol.wire.times import from_timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable


def principals(api: ApiKey, version: int, field: str, parts: Iterable[tuple[str, str]]) -> tuple[Any, ...]:
    """Return principals, as (type, name), in the form of an array field of a request."""
    request_type: Any = APIS[api].request[version]
    element = element_type(request_type, field)
    return tuple(element(principal_type=kind, principal_name=name) for kind, name in parts)


def created(answer: Any, renewers: tuple[str, ...]) -> DelegationToken:
    """Return the token of an answer to a create, which does not repeat the renewers."""
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


def described(token: Any) -> DelegationToken:
    """Return a token of an answer to a describe."""
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
