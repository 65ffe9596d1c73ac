"""Audit events of requests: stands in front of the handlers, and writes down what became of each request.

    handler = AuditedRequests(handler, recorder, AuditedTokens(cache.get, cache.by_hmac))

`record_removed` and `record_keys` write down what a node does by itself.

Of the APIs in `_APIS` every request is an event; the others pass. What has happened is read from the answer, so it is
what the client was told. Each ACL and each user that was changed is an event of its own. Those of a request that were
refused for the same reason are one event together, with their number and the first few.

Nothing is done before the handler has decided: a client that may not do what it asks for causes no work but its own
small event. A request to renew or expire names a token by its HMAC. Which token that is the handler tells as soon as it
knows (`RequestContext.on_token`), because afterwards the token may be gone. The HMAC goes no further.

Source: docs/audit.md; KIP-48, KIP-140, KIP-554.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from kio.schema.errors import ErrorCode

from kafka_dt.audit import EventType, Outcome
from kafka_dt.audit.encoding import LONGEST_CLAIM, LONGEST_LIST, shortened
from kafka_dt.audit.recorder import NOBODY, Facts, Recorder
from kafka_dt.server.audited.acls import acl_text, filter_text
from kafka_dt.server.audited.refused_entries import RefusedEntries
from kafka_dt.server.handlers import Handler, RequestContext
from kafka_dt.tokens import DelegationToken, Keyring, Token
from kafka_dt_protocol import ApiKey, RemoteProtocolError
from kafka_dt_protocol.wire.times import from_timestamp

_LOG = logging.getLogger(__name__)

EVENTS_IN_A_ROW: Final = 100
"""How many events of one request are made before other connections get their turn."""

_Told = Iterator[tuple[ErrorCode, Facts]]
"""What became of a request or a part of one: the error, `none` for success, and the facts."""


@dataclass(frozen=True, slots=True)
class AuditedTokens:
    """How the tokens that requests are about are found, in memory."""

    by_id: Callable[[str], DelegationToken | None]
    by_hmac: Callable[[bytes], DelegationToken | None]


@dataclass(frozen=True, slots=True)
class _Served:
    """A request that was answered, the token that it was found to be about, and the limit that has refused it."""

    context: RequestContext
    body: Any
    answer: Any
    token: Token | None
    limit: str | None


@dataclass(frozen=True, slots=True)
class _Api:
    """How the events of an API are made."""

    kind: EventType
    told: Callable[[AuditedTokens, _Served], _Told]


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
        found: deque[Token] = deque(maxlen=1)
        limits: deque[str] = deque(maxlen=1)
        try:
            answer = await self._handler(replace(context, on_token=found.append, on_limit=limits.append), body)
        except RemoteProtocolError:
            self._record(api.kind, context, ErrorCode.invalid_request, {})
            raise
        except Exception:
            self._record(api.kind, context, ErrorCode.unknown_server_error, {})
            raise
        served = _Served(context, body, answer, found[0] if found else None, limits[0] if limits else None)
        try:
            await self._record_all(api, served)
        except Exception:  # noqa: BLE001 - what was done is done, and the client has to hear of it
            _LOG.exception("What became of a request of API %d could not be written down", context.header.api_key)
        return answer

    async def _record_all(self, api: _Api, served: _Served) -> None:
        for number, (code, facts) in enumerate(api.told(self._tokens, served), start=1):
            self._record(api.kind, served.context, code, facts)
            if number % EVENTS_IN_A_ROW == 0:
                await asyncio.sleep(0)

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


def _created(tokens: AuditedTokens, served: _Served) -> _Told:
    answer = served.answer
    held = tokens.by_id(answer.token_id) if answer.error_code is ErrorCode.none else None
    if held is not None:
        yield ErrorCode.none, token_facts(held.token)
        return
    facts = Facts(
        owner=f"{answer.principal_type}:{answer.principal_name}",
        requester=str(served.context.principal),
        renewers=tuple(
            f"{shortened(each.principal_type, LONGEST_CLAIM)}:{shortened(each.principal_name, LONGEST_CLAIM)}"
            for each in served.body.renewers[:LONGEST_LIST]
        ),
    )
    if served.limit is not None:
        facts["limit"] = served.limit
    if len(served.body.renewers) > LONGEST_LIST:
        facts["count"] = len(served.body.renewers)
    if answer.error_code is ErrorCode.none:  # gone again already
        facts["token_id"] = answer.token_id
    yield answer.error_code, facts


def _changed(tokens: AuditedTokens, served: _Served) -> _Told:
    answer, token = served.answer, served.token
    if token is None and (known := tokens.by_hmac(served.body.hmac)):
        token = known.token  # the handler did not come so far as to look for it
    facts = Facts() if token is None else token_facts(token)
    if answer.error_code is ErrorCode.none:
        facts["expiry_time"] = from_timestamp(answer.expiry_timestamp)
    yield answer.error_code, facts


def _described(_: AuditedTokens, served: _Served) -> _Told:
    answer = served.answer
    yield answer.error_code, Facts(count=len(answer.tokens)) if answer.error_code is ErrorCode.none else Facts()


def _acls_created(_: AuditedTokens, served: _Served) -> _Told:
    refused = RefusedEntries("acl")
    for creation, result in zip(served.body.creations, served.answer.results, strict=True):
        if result.error_code is ErrorCode.none:
            yield ErrorCode.none, Facts(acl=acl_text(creation))
        else:
            refused.add(result.error_code, partial(acl_text, creation, shortened))
    yield from refused.told()


def _acls_deleted(_: AuditedTokens, served: _Served) -> _Told:
    refused = RefusedEntries("acl")
    for asked, result in zip(served.body.filters, served.answer.filter_results, strict=True):
        if result.error_code is not ErrorCode.none:
            refused.add(result.error_code, partial(filter_text, asked, shortened))
        for deleted in result.matching_acls:
            if deleted.error_code is ErrorCode.none:
                yield ErrorCode.none, Facts(acl=acl_text(deleted))
            else:
                refused.add(deleted.error_code, partial(acl_text, deleted, shortened))
    yield from refused.told()


def _users_changed(_: AuditedTokens, served: _Served) -> _Told:
    refused = RefusedEntries("user")
    for result in served.answer.results:
        if result.error_code is ErrorCode.none:
            yield ErrorCode.none, Facts(user=result.user)
        else:
            refused.add(result.error_code, partial(shortened, result.user))
    yield from refused.told()


_APIS: Final = {
    int(ApiKey.CREATE_DELEGATION_TOKEN): _Api(EventType.TOKEN_CREATED, _created),
    int(ApiKey.RENEW_DELEGATION_TOKEN): _Api(EventType.TOKEN_RENEWED, _changed),
    int(ApiKey.EXPIRE_DELEGATION_TOKEN): _Api(EventType.TOKEN_EXPIRED, _changed),
    int(ApiKey.DESCRIBE_DELEGATION_TOKEN): _Api(EventType.TOKENS_DESCRIBED, _described),
    int(ApiKey.CREATE_ACLS): _Api(EventType.ACL_CREATED, _acls_created),
    int(ApiKey.DELETE_ACLS): _Api(EventType.ACL_DELETED, _acls_deleted),
    int(ApiKey.ALTER_USER_SCRAM_CREDENTIALS): _Api(EventType.SCRAM_USER_CHANGED, _users_changed),
}
"""The APIs whose requests are written down."""
