"""The handlers: one file for each family of APIs, and the context that a request brings with it.

A handler takes a `RequestContext` and the request's entity, and gives the response's entity in the request's version.
`dispatcher` joins the families; the registry of `protocol` says which APIs there are.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kafka_dt.config import Endpoint, SecurityProtocol
from kafka_dt.identity.acls.authorizer import Caller
from kafka_dt.server.audited.connection import ConnectionAudit
from kafka_dt.tokens import Principal, Token
from kafka_dt_protocol import ApiKey, RequestHeader


def _forget(_: Token | str) -> None:
    """Hear of a token or a limit where nothing is written down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """What is known of a request beside its body."""

    header: RequestHeader
    principal: Principal
    client_host: str
    """The client's address, as ACLs have it."""
    token_login: bool
    """Whether the connection logged in by token."""
    security_protocol: SecurityProtocol
    endpoint: Endpoint
    """Where this client reaches this node."""
    audit: ConnectionAudit | None = None
    """What audit events say of the connection; None where nothing is written down."""
    on_token: Callable[[Token], None] = _forget
    """Hears which token the request names by its HMAC, as it was before it is changed."""
    on_limit: Callable[[str], None] = _forget
    """Hears which setting has the limit that refuses the request."""
    end_with_client: Callable[[], None] = lambda: None
    """Says that the request changes nothing and takes long, so that it is called off when its client goes."""

    @property
    def caller(self) -> Caller:
        """Who asks, for the authorizer."""
        return Caller(self.principal, self.client_host)


Handler = Callable[[RequestContext, Any], Awaitable[Any]]


def dispatcher(*families: Mapping[ApiKey, Handler]) -> Handler:
    """Join families of handlers into one handler for all their APIs."""
    handlers = {key: handler for family in families for key, handler in family.items()}

    async def dispatch(context: RequestContext, body: Any) -> Any:
        return await handlers[ApiKey(context.header.api_key)](context, body)

    return dispatch
