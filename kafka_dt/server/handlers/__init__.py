"""The handlers: one file for each family of APIs, and the context that a request brings with it.

A handler takes a `RequestContext` and the request's entity, and gives the response's entity in the request's version.
Each family gives a `ServedApi` for each of its APIs; `dispatcher` joins them. What an API is on the wire is declared in
`protocol/kafka_dt_protocol/api/registry.py`. Read `cluster.py` first: its APIs need nothing but the request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kio.schema.errors import ErrorCode

from kafka_dt.config import Endpoint, SecurityProtocol
from kafka_dt.identity.acls.authorizer import Caller
from kafka_dt.server.audited.connection import ConnectionAudit
from kafka_dt.tokens import OwnConnection, Principal, Token
from kafka_dt_protocol import APIS, ApiTable, RequestHeader

if TYPE_CHECKING:
    from kafka_dt.server.audited.requests import AuditedRequests, RequestAudit


AskCluster = Callable[[], Awaitable[bytes]]
"""Gives the content of the cluster's answer; raises EOFError if the connection to it ends before."""


def _forget(_: Token | str) -> None:
    """Hear of a token or a limit where nothing is written down."""


@dataclass(frozen=True, slots=True)
class ClusterAnswer:
    """What a handler gives for a request that the cluster behind a gateway has answered."""

    entity: Any
    """The answer, for audit events; without `content` an answer of the gateway's own, which the client does not get."""
    content: bytes | None = field(default=None, repr=False)
    """Of the answer's frame, for the client; None if no answer came that can be read, which closes the connection."""


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
    own: OwnConnection | None = None
    """The client's own connection to the cluster that keeps the tokens; None where the client has none."""
    ask_cluster: AskCluster | None = None
    """Sends the request as it came to the cluster behind the gateway; None where the node decides itself."""
    audit: ConnectionAudit | None = None
    """What audit events say of the connection; None where nothing is written down."""
    on_token: Callable[[Token], None] = _forget
    """Hears which token the request names by its HMAC, as it was before it is changed."""
    on_limit: Callable[[str], None] = _forget
    """Hears which setting has the limit that refuses the request."""
    end_with_client: Callable[[], None] = lambda: None
    """Says that the request changes nothing and takes long, so that it is called off when its client goes."""

    apis: ApiTable = APIS
    """The APIs of the node."""

    @property
    def response_type(self) -> Any:
        """The entity type of the answer."""
        return self.apis.response_type(self.header)

    def refusal(self, body: Any, error: ErrorCode) -> Any:
        """Make an answer that says nothing but an error."""
        return self.apis.refusal(self.header, body, error)

    @property
    def caller(self) -> Caller:
        """Who asks, for the authorizer."""
        return Caller(self.principal, self.client_host)


Handler = Callable[[RequestContext, Any], Awaitable[Any]]
"""Answers a request: gives the response's entity or a `ClusterAnswer`."""


@dataclass(frozen=True, slots=True)
class ServedApi:
    """What a node does with the requests of an API that no login is made of."""

    key: int
    handler: Handler
    audit: RequestAudit | None = None
    """What the audit says of a request; None for requests that are no events."""


def dispatcher(*families: Iterable[ServedApi], audit: AuditedRequests | None = None) -> Handler:
    """Join families of APIs into one handler for all of them."""
    served = [api for family in families for api in family]
    handlers = {api.key: audit.around(api) if audit else api.handler for api in served}

    def dispatch(context: RequestContext, body: Any) -> Awaitable[Any]:
        return handlers[context.header.api_key](context, body)

    return dispatch
