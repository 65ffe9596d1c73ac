"""CreateDelegationToken v0-3, RenewDelegationToken v0-2, ExpireDelegationToken v0-2, DescribeDelegationToken v0-3.

v1 has the layout of v0; create and renew are flexible from v2 on; v3 of create names the owner, v3 of create and
describe shows the requester (KIP-373).

What a broker does oddly: a refused create still carries owner and requester; an owner without a name is the requester,
whatever its type; a lifetime that does not fit is cut, not refused.

Source: KIP-48, KIP-373; kafka.server.KafkaApis (handleCreateTokenRequest and its neighbours).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from kio.schema.errors import ErrorCode

from kafka_dt.audit import EventType
from kafka_dt.audit.encoding import LONGEST_CLAIM, LONGEST_LIST, shortened
from kafka_dt.audit.recorder import Facts
from kafka_dt.config import SecurityProtocol
from kafka_dt.identity.acls.authorizer import Authorizer
from kafka_dt.identity.acls.store import AclStoreUnavailable
from kafka_dt.log import event
from kafka_dt.server.audited.requests import AnsweredRequest, AuditedTokens, RequestAudit, Told, token_facts
from kafka_dt.server.errors import error_code
from kafka_dt.server.handlers import RequestContext, ServedApi
from kafka_dt.server.handlers.described import DescribedTokens, token_details
from kafka_dt.tokens import (
    ANONYMOUS,
    DelegationToken,
    LongWork,
    Principal,
    StoreUnavailable,
    TokenAuthorizationFailed,
    TokenError,
    TokenLimitExceeded,
    TokenManager,
    TokenRequestNotAllowed,
    TooManyCreates,
    is_long,
)
from kafka_dt_protocol import NO_TIMESTAMP, ApiKey, build, element_type, refused_creation
from kafka_dt_protocol.wire.times import from_duration, from_timestamp, to_timestamp

_LOG = logging.getLogger(__name__)

MAX_THROTTLE_MS: Final = 1_000
"""The longest time for which a client is asked to wait when it has created too many tokens. A client that obeys sends
no renewals in this time either, so it is short."""


class TokenHandlers:
    """Answers the four token APIs."""

    def __init__(
        self, tokens: TokenManager, authorizer: Authorizer, described: DescribedTokens, clock: Callable[[], float]
    ) -> None:
        self._tokens = tokens
        self._authorizer = authorizer
        self._described = described
        self._long_work = LongWork(clock)

    def served(self) -> tuple[ServedApi, ...]:
        """Give what serves each API."""
        created = RequestAudit(EventType.TOKEN_CREATED, _created)
        renewed = RequestAudit(EventType.TOKEN_RENEWED, _moved)
        expired = RequestAudit(EventType.TOKEN_EXPIRED, _moved)
        described = RequestAudit(EventType.TOKENS_DESCRIBED, _described)
        return (
            ServedApi(ApiKey.CREATE_DELEGATION_TOKEN, self.create, created),
            ServedApi(ApiKey.RENEW_DELEGATION_TOKEN, self.renew, renewed),
            ServedApi(ApiKey.EXPIRE_DELEGATION_TOKEN, self.expire, expired),
            ServedApi(ApiKey.DESCRIBE_DELEGATION_TOKEN, self.describe, described),
        )

    async def create(self, context: RequestContext, body: Any) -> Any:
        """Answer a CreateDelegationToken."""
        kind = context.response_type
        owner = _owner(context, body)
        try:
            created = await self._create(context, owner, body)
        except TokenError as error:
            if isinstance(error, TokenLimitExceeded | TooManyCreates):
                user = context.principal.name
                about = event("token-create", failed=True, host=context.client_host, user=user, reason=str(error))
                _LOG.warning("Refused to create a token: %s", error, extra=about)
                context.on_limit(error.setting)
            return refused_creation(
                kind,
                error_code(error),
                owner=(owner.type, owner.name),
                requester=(context.principal.type, context.principal.name),
                throttle_ms=min(error.retry_after_ms, MAX_THROTTLE_MS) if isinstance(error, TooManyCreates) else 0,
            )
        return build(
            kind,
            error_code=ErrorCode.none,
            issue_timestamp=to_timestamp(created.token.issue_timestamp_ms),
            expiry_timestamp=to_timestamp(created.token.expiry_timestamp_ms),
            max_timestamp=to_timestamp(created.token.max_timestamp_ms),
            **token_details(created),
        )

    async def renew(self, context: RequestContext, body: Any) -> Any:
        """Answer a RenewDelegationToken."""
        kind = context.response_type
        try:
            _require_allowed(context)
            expiry_ms = await self._tokens.renew(
                context.principal,
                body.hmac,
                from_duration(body.renew_period),
                on_token=context.on_token,
                own=context.own,
            )
        except TokenError as error:
            return build(kind, error_code=error_code(error), expiry_timestamp=NO_TIMESTAMP)
        return build(kind, error_code=ErrorCode.none, expiry_timestamp=to_timestamp(expiry_ms))

    async def expire(self, context: RequestContext, body: Any) -> Any:
        """Answer an ExpireDelegationToken."""
        kind = context.response_type
        try:
            _require_allowed(context)
            expiry_ms = await self._tokens.expire(
                context.principal,
                body.hmac,
                from_duration(body.expiry_time_period),
                by_super_user=self._authorizer.may_revoke_any(context.caller),
                on_token=context.on_token,
                own=context.own,
            )
        except TokenError as error:
            return build(kind, error_code=error_code(error), expiry_timestamp=NO_TIMESTAMP)
        return build(kind, error_code=ErrorCode.none, expiry_timestamp=to_timestamp(expiry_ms))

    async def describe(self, context: RequestContext, body: Any) -> Any:
        """Answer a DescribeDelegationToken; an owner that is named twice counts once."""
        kind = context.response_type
        owners = None if body.owners is None else tuple(dict.fromkeys(map(_principal, body.owners)))
        try:
            _require_allowed(context)
            if owners != ():
                await self._tokens.catch_up_if_possible()
            size = self._tokens.work_of_describe(owners)
            if is_long(size):
                context.end_with_client()
            async with self._long_work.share(size, str(context.principal)) as turns:
                visible = self._authorizer.visible_to(context.caller)
                found = self._tokens.describe(context.principal, owners, visible, turns)
                tokens = await self._described.entries(element_type(kind, "tokens"), found)
        except TokenError as error:
            return build(kind, error_code=error_code(error), tokens=())
        return build(kind, error_code=ErrorCode.none, tokens=tokens)

    async def _create(self, context: RequestContext, owner: Principal, body: Any) -> DelegationToken:
        _require_allowed(context)
        if context.own is None and not await self._may_create_for(context, owner):
            raise TokenAuthorizationFailed(context.principal, owner)
        renewers = [_principal(renewer) for renewer in body.renewers]
        lifetime_ms = from_duration(body.max_lifetime)
        return await self._tokens.create(owner, context.principal, renewers, lifetime_ms, own=context.own)

    async def _may_create_for(self, context: RequestContext, owner: Principal) -> bool:
        try:
            return await self._authorizer.may_create_for(context.caller, owner)
        except AclStoreUnavailable as error:
            raise StoreUnavailable(error.reason) from error


def _require_allowed(context: RequestContext) -> None:
    """Refuse a client that logged in with a token, and a client that has not logged in.

    Raises:
        TokenRequestNotAllowed: always for these.
    """
    if context.token_login:
        raise TokenRequestNotAllowed("this connection logged in by token")
    if context.security_protocol is SecurityProtocol.PLAINTEXT:
        raise TokenRequestNotAllowed("the listener has no authentication")
    if context.security_protocol is SecurityProtocol.SSL and context.principal == ANONYMOUS:
        raise TokenRequestNotAllowed("the client has shown no certificate")


def _owner(context: RequestContext, body: Any) -> Principal:
    name = getattr(body, "owner_principal_name", None)
    return Principal(body.owner_principal_type or "", name) if name else context.principal


def _principal(entity: Any) -> Principal:
    return Principal(entity.principal_type, entity.principal_name)


def _created(tokens: AuditedTokens, request: AnsweredRequest) -> Told:
    answer = request.answer
    held = tokens.by_id(answer.token_id) if answer.error_code is ErrorCode.none else None
    if held is not None:
        yield ErrorCode.none, token_facts(held.token)
        return
    facts = Facts(
        owner=f"{answer.principal_type}:{answer.principal_name}",
        requester=str(request.context.principal),
        renewers=tuple(
            f"{shortened(each.principal_type, LONGEST_CLAIM)}:{shortened(each.principal_name, LONGEST_CLAIM)}"
            for each in request.body.renewers[:LONGEST_LIST]
        ),
    )
    if request.limit is not None:
        facts["limit"] = request.limit
    if len(request.body.renewers) > LONGEST_LIST:
        facts["count"] = len(request.body.renewers)
    if answer.error_code is ErrorCode.none:  # gone again already
        facts["token_id"] = answer.token_id
    yield answer.error_code, facts


def _moved(tokens: AuditedTokens, request: AnsweredRequest) -> Told:
    answer, token = request.answer, request.token
    if token is None and (known := tokens.by_hmac(request.body.hmac)):
        token = known.token  # the handler did not come so far as to look for it
    facts = Facts() if token is None else token_facts(token)
    if answer.error_code is ErrorCode.none:
        facts["expiry_time"] = from_timestamp(answer.expiry_timestamp)
    yield answer.error_code, facts


def _described(_: AuditedTokens, request: AnsweredRequest) -> Told:
    answer = request.answer
    yield answer.error_code, Facts(count=len(answer.tokens)) if answer.error_code is ErrorCode.none else Facts()
