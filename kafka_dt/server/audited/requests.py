"""Audit events of requests: wrap the handlers, and write down the result of each request.

    handler = dispatcher(family, other_family, audit=AuditedRequests(recorder, AuditedTokens(cache.get, cache.by_hmac)))

Every request of an API whose `ServedApi` has a `RequestAudit` is an event. What has happened is read from the answer,
so it is what the client was told. Each ACL and each user that was changed is an event of its own; those of a request
that were refused for the same reason are one event together (`RefusedEntries`).

In strict mode (`kafka.dt.audit.mode`) a request is refused while no sink works, and an answer that tells of a success
waits until its events are durable.

Nothing is done before the handler has decided, so a client that may not do what it asks for causes no work but its own
small event. A request to renew or expire names a token by its HMAC. The handler tells which token that is as soon as it
knows (`RequestContext.on_token`), because afterwards the token may be gone.

Source: docs/audit.md; KIP-48, KIP-140, KIP-554.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Literal

from kio.schema.errors import ErrorCode

from kafka_dt.audit import EventType, Outcome
from kafka_dt.audit.durability import AuditUnavailable, Place
from kafka_dt.audit.recorder import NOBODY, Facts, Recorder
from kafka_dt.server.handlers import ClusterAnswer, Handler, RequestContext, ServedApi
from kafka_dt.tokens import DelegationToken, Keyring, Token
from kafka_dt_protocol import RemoteProtocolError

_LOG = logging.getLogger(__name__)

EVENTS_IN_A_ROW: Final = 100
"""How many events of one request are made before other connections get their turn."""

_UNAVAILABLE: Final = ErrorCode.request_timed_out
"""What a client hears whose change may have been made, but cannot be written down: the same as if a store is away."""

SHOWN: Final = 8
"""How many of the refused entries of a request an event shows."""

Told = Iterator[tuple[ErrorCode, Facts]]
"""The result of a request or a part of one: the error, `none` for success, and the facts."""


@dataclass(frozen=True, slots=True)
class AuditedTokens:
    """How the tokens that requests are about are found, in memory."""

    by_id: Callable[[str], DelegationToken | None]
    by_hmac: Callable[[bytes], DelegationToken | None]


@dataclass(frozen=True, slots=True)
class AnsweredRequest:
    """A request that was answered."""

    context: RequestContext
    body: Any
    answer: Any
    token: Token | None
    """The token that it was found to be about."""
    limit: str | None
    """The setting whose limit has refused it."""


@dataclass(frozen=True, slots=True)
class RequestAudit:
    """How the events of an API are made."""

    kind: EventType
    told: Callable[[AuditedTokens, AnsweredRequest], Told]
    """Gives the result of a request, part by part, from the answer to the client."""


class AuditedRequests:
    """Writes down what handlers do."""

    def __init__(self, recorder: Recorder, tokens: AuditedTokens) -> None:
        self._recorder = recorder
        self._tokens = tokens

    def around(self, api: ServedApi) -> Handler:
        """Give a handler that does what an API's does and writes it down, if the API has events."""
        return api.handler if api.audit is None else partial(self._serve, api.handler, api.audit)

    async def _serve(self, handler: Handler, audit: RequestAudit, context: RequestContext, body: Any) -> Any:
        found: deque[Token] = deque(maxlen=1)
        limits: deque[str] = deque(maxlen=1)
        try:
            self._recorder.require()
            answer = await handler(replace(context, on_token=found.append, on_limit=limits.append), body)
        except AuditUnavailable:
            self._record(audit.kind, context, _UNAVAILABLE, {})
            return context.refusal(body, _UNAVAILABLE)
        except RemoteProtocolError:
            self._record(audit.kind, context, ErrorCode.invalid_request, {})
            raise
        except Exception:
            self._record(audit.kind, context, ErrorCode.unknown_server_error, {})
            raise
        token, limit = found[0] if found else None, limits[0] if limits else None
        said = answer.entity if isinstance(answer, ClusterAnswer) else answer
        try:
            await self._record_all(audit, AnsweredRequest(context, body, said, token, limit))
        except AuditUnavailable:
            return context.refusal(body, _UNAVAILABLE)
        except Exception:
            _LOG.exception("The audit events of a request of API %d could not be written down", context.header.api_key)
            if self._recorder.strict:
                raise
        return answer  # in buffered mode whatever happens to its events: the request is done

    async def _record_all(self, audit: RequestAudit, request: AnsweredRequest) -> None:
        """Record each result of a request; in strict mode also wait until those of successes are durable."""
        places = []
        for number, (code, facts) in enumerate(audit.told(self._tokens, request), start=1):
            place = self._record(audit.kind, request.context, code, facts)
            if code is ErrorCode.none:
                places.append(place)
            if number % EVENTS_IN_A_ROW == 0:
                await asyncio.sleep(0)
        for place in places:
            await self._recorder.durable(place)

    def _record(self, kind: EventType, context: RequestContext, code: ErrorCode, facts: Facts) -> Place:
        origin = context.audit.origin(context.principal) if context.audit else NOBODY
        outcome = Outcome.OK
        if code is not ErrorCode.none:
            outcome = Outcome.REFUSED
            facts["reason"] = code.name.upper()  # kio has the names of Kafka in lower case
        return self._recorder.record(kind, outcome, origin, **facts)


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


@dataclass(slots=True)
class _Alike:
    """Entries that were refused for the same reason."""

    count: int = 0
    shown: list[str] = field(default_factory=list)


class RefusedEntries:
    """Gathers the refused entries of one request: one event for each reason, whatever their number.

        refused = RefusedEntries("acl")
        refused.add(ErrorCode.cluster_authorization_failed, lambda: acl_text(creation, shortened))
        refused.told()                  # the error; acl, the first one; count and entries, if there were several

    A text is made only if it is to be shown, so a request of thousands of entries costs no more than counting them.

    Args:
        fact: the field of an event that holds one of them.
    """

    def __init__(self, fact: Literal["acl", "user"]) -> None:
        self._fact: Literal["acl", "user"] = fact
        self._by_error: dict[ErrorCode, _Alike] = {}

    def add(self, error: ErrorCode, text: Callable[[], str]) -> None:
        """Count an entry; `text` gives how it is shown, already cut."""
        alike = self._by_error.setdefault(error, _Alike())
        alike.count += 1
        if len(alike.shown) < SHOWN:
            alike.shown.append(text())

    def told(self) -> Told:
        """Give each error and the facts of its event."""
        for error, alike in self._by_error.items():
            facts = Facts()
            facts[self._fact] = alike.shown[0]
            if alike.count > 1:
                facts["count"], facts["entries"] = alike.count, tuple(alike.shown)
            yield error, facts
