"""Audit events of requests: stands in front of the handlers, and writes down what became of each request.

    handler = AuditedRequests(handler, recorder, AuditedTokens(cache.get, cache.by_hmac, tokens.catch_up))

`record_removed` and `record_keys` write down what a node does by itself.

Of the APIs in `_APIS` every request is an event, or one for each ACL and user in it; the others pass. What has happened
is read from the answer, so it is what the client was told.

A request to renew or expire names a token by its HMAC. Which token that is has to be known before the request is
served, because afterwards the token may be gone. The HMAC goes no further.

Source: docs/audit.md; KIP-48, KIP-140, KIP-554.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from kio.schema.errors import ErrorCode

from kafka_dt.audit import EventType, Outcome
from kafka_dt.audit.recorder import NOBODY, Facts, Recorder
from kafka_dt.server.audited_acls import acl_text, filter_text
from kafka_dt.server.handlers import Handler, RequestContext
from kafka_dt.tokens import DelegationToken, Keyring, StoreUnavailable, Token
from protocol import ApiKey, RemoteProtocolError
from protocol.times import from_timestamp

_LOG = logging.getLogger(__name__)

_Told = Iterator[tuple[ErrorCode, Facts]]
"""What became of a request or a part of one: the error, `none` for success, and the facts."""


@dataclass(frozen=True, slots=True)
class AuditedTokens:
    """How the tokens that requests are about are found."""

    by_id: Callable[[str], DelegationToken | None]
    by_hmac: Callable[[bytes], DelegationToken | None]
    catch_up: Callable[[], Awaitable[None]]
    """Hears of every change made anywhere; raises StoreUnavailable."""

    async def named_by(self, hmac: bytes) -> Token | None:
        """Give the token with an HMAC, one that was made on another node a moment ago too."""
        found = self.by_hmac(hmac)
        if found is None:
            with suppress(StoreUnavailable):
                await self.catch_up()
                found = self.by_hmac(hmac)
        return None if found is None else found.token


@dataclass(frozen=True, slots=True)
class _Api:
    """How the events of an API are made."""

    kind: EventType
    told: Callable[[AuditedTokens, RequestContext, Any, Any, Token | None], _Told]
    """Given how tokens are found, the context, the request, its answer and the token that it names by an HMAC."""
    names_token: bool = False
    """Whether the request names a token by its HMAC."""


class AuditedRequests:
    """A handler of all APIs that writes down what another one does.

    Args:
        handler: serves the requests.
        recorder: makes the events.
        tokens: how the tokens that requests are about are found.
    """

    def __init__(self, handler: Handler, recorder: Recorder, tokens: AuditedTokens) -> None:
        self._handler = handler
        self._recorder = recorder
        self._tokens = tokens

    async def __call__(self, context: RequestContext, body: Any) -> Any:
        """Serve a request."""
        api = _APIS.get(context.header.api_key)
        if api is None:
            return await self._handler(context, body)
        token = await self._tokens.named_by(body.hmac) if api.names_token else None
        try:
            answer = await self._handler(context, body)
        except RemoteProtocolError:
            self._record(api.kind, context, ErrorCode.invalid_request, {})
            raise
        except Exception:
            self._record(api.kind, context, ErrorCode.unknown_server_error, {})
            raise
        try:
            for code, facts in api.told(self._tokens, context, body, answer, token):
                self._record(api.kind, context, code, facts)
        except Exception:  # noqa: BLE001 - what was done is done, and the client has to hear of it
            _LOG.exception("What became of a request of API %d could not be written down", context.header.api_key)
        return answer

    def _record(self, kind: EventType, context: RequestContext, code: ErrorCode, facts: Facts) -> None:
        origin = context.audit.origin(context.principal) if context.audit else NOBODY
        outcome = Outcome.OK
        if code is not ErrorCode.none:
            outcome = Outcome.REFUSED
            facts["reason"] = code.name.upper()  # kio has the names of Kafka in lower case
        self._recorder.record(kind, outcome, origin, **facts)


def record_removed(recorder: Recorder, token: Token) -> None:
    """Write down that a token was removed by age."""
    recorder.record(EventType.TOKEN_REMOVED, Outcome.OK, **token_facts(token))


def record_keys(recorder: Recorder, keyring: Keyring) -> None:
    """Write down that a worker's ring of secret keys has changed."""
    recorder.record(EventType.KEYS_CHANGED, Outcome.OK, keys=tuple(key.id for key in keyring.keys))


def token_facts(token: Token) -> Facts:
    """Say everything about a token that an event has a field for."""
    return Facts(
        token_id=token.token_id,
        owner=str(token.owner),
        requester=str(token.requester),
        renewers=tuple(map(str, token.renewers)),
        issue_time=token.issue_timestamp_ms,
        expiry_time=token.expiry_timestamp_ms,
        max_time=token.max_timestamp_ms,
        key_id=token.key_id,
    )


def _created(tokens: AuditedTokens, context: RequestContext, body: Any, answer: Any, _: Token | None) -> _Told:
    held = tokens.by_id(answer.token_id) if answer.error_code is ErrorCode.none else None
    if held is not None:
        yield ErrorCode.none, token_facts(held.token)
        return
    facts = Facts(
        owner=f"{answer.principal_type}:{answer.principal_name}",
        requester=str(context.principal),
        renewers=tuple(f"{renewer.principal_type}:{renewer.principal_name}" for renewer in body.renewers),
    )
    if answer.error_code is ErrorCode.none:  # gone again already
        facts["token_id"] = answer.token_id
    yield answer.error_code, facts


def _changed(_: AuditedTokens, _context: RequestContext, _body: Any, answer: Any, token: Token | None) -> _Told:
    facts = Facts() if token is None else token_facts(token)
    if answer.error_code is ErrorCode.none:
        facts["expiry_time"] = from_timestamp(answer.expiry_timestamp)
    yield answer.error_code, facts


def _described(_: AuditedTokens, _context: RequestContext, _body: Any, answer: Any, _token: Token | None) -> _Told:
    yield answer.error_code, Facts(count=len(answer.tokens)) if answer.error_code is ErrorCode.none else Facts()


def _acls_created(_: AuditedTokens, _context: RequestContext, body: Any, answer: Any, _token: Token | None) -> _Told:
    for creation, result in zip(body.creations, answer.results, strict=True):
        yield result.error_code, Facts(acl=acl_text(creation))


def _acls_deleted(_: AuditedTokens, _context: RequestContext, body: Any, answer: Any, _token: Token | None) -> _Told:
    for asked, result in zip(body.filters, answer.filter_results, strict=True):
        if result.error_code is not ErrorCode.none:
            yield result.error_code, Facts(acl=filter_text(asked))
        for deleted in result.matching_acls:
            yield deleted.error_code, Facts(acl=acl_text(deleted))


def _users_changed(_: AuditedTokens, _context: RequestContext, _body: Any, answer: Any, _token: Token | None) -> _Told:
    for result in answer.results:
        yield result.error_code, Facts(user=result.user)


_APIS: Final = {
    int(ApiKey.CREATE_DELEGATION_TOKEN): _Api(EventType.TOKEN_CREATED, _created),
    int(ApiKey.RENEW_DELEGATION_TOKEN): _Api(EventType.TOKEN_RENEWED, _changed, names_token=True),
    int(ApiKey.EXPIRE_DELEGATION_TOKEN): _Api(EventType.TOKEN_EXPIRED, _changed, names_token=True),
    int(ApiKey.DESCRIBE_DELEGATION_TOKEN): _Api(EventType.TOKENS_DESCRIBED, _described),
    int(ApiKey.CREATE_ACLS): _Api(EventType.ACL_CREATED, _acls_created),
    int(ApiKey.DELETE_ACLS): _Api(EventType.ACL_DELETED, _acls_deleted),
    int(ApiKey.ALTER_USER_SCRAM_CREDENTIALS): _Api(EventType.SCRAM_USER_CHANGED, _users_changed),
}
"""The APIs whose requests are written down."""
