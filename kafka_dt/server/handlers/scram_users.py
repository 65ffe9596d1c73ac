"""DescribeUserScramCredentials v0, AlterUserScramCredentials v0: `kafka-configs.sh --entity-type users`.

Describe needs DESCRIBE, alter ALTER on the Cluster. Who logged in by token may not alter: a stolen token could make
itself a password that outlives it. KIP-554 wants that; brokers in ZooKeeper mode do not check it.

What is asked holds salted passwords, so no body is ever logged; a line of the log names the caller and the users.

Source: KIP-554; kafka.server.KafkaApis (handleDescribeUserScramCredentialsRequest,
handleAlterUserScramCredentialsRequest).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from kio.schema.errors import ErrorCode

from kafka_dt.audit import EventType
from kafka_dt.audit.encoding import shortened
from kafka_dt.audit.recorder import Facts
from kafka_dt.identity.acls.authorizer import Authorizer
from kafka_dt.identity.acls.binding import AclOperation
from kafka_dt.identity.credentials.scram_changes import (
    AlterResult,
    Deletion,
    ScramUserError,
    ScramUserManager,
    Upsertion,
)
from kafka_dt.server.audited.requests import AnsweredRequest, AuditedTokens, RefusedEntries, RequestAudit, Told
from kafka_dt.server.errors import error_code
from kafka_dt.server.handlers import RequestContext, ServedApi
from kafka_dt.tokens import StoreUnavailable
from kafka_dt_protocol import ApiKey, build, element_type, refused_alterations
from kafka_dt_protocol.sasl import ScramMechanism

_LOG = logging.getLogger(__name__)

MECHANISMS: Final[Mapping[int, ScramMechanism]] = MappingProxyType(
    {1: ScramMechanism.SHA_256, 2: ScramMechanism.SHA_512}
)
"""The numbers of KIP-554."""
_NUMBERS: Final = {mechanism: number for number, mechanism in MECHANISMS.items()}
_NOT_SO_MADE: Final = "Credentials cannot be altered over a connection that logged in by token"


class ScramUserHandlers:
    """Answers the two APIs about SCRAM users."""

    def __init__(self, users: ScramUserManager, authorizer: Authorizer) -> None:
        self._users = users
        self._authorizer = authorizer

    def served(self) -> tuple[ServedApi, ...]:
        """Give what serves each API."""
        altered = RequestAudit(EventType.SCRAM_USER_CHANGED, _alterations_told)
        return (
            ServedApi(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, self.describe),
            ServedApi(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, self.alter, altered),
        )

    async def describe(self, context: RequestContext, body: Any) -> Any:
        """Answer a DescribeUserScramCredentials."""
        kind = context.response_type
        if not self._authorizer.allows_cluster(context.caller, AclOperation.DESCRIBE):
            return build(kind, error_code=ErrorCode.cluster_authorization_failed, error_message=None, results=())
        try:
            described = await self._users.describe([user.name for user in body.users or ()])
        except StoreUnavailable as error:
            return build(kind, error_code=error_code(error), error_message=str(error), results=())
        result = element_type(kind, "results")
        results = tuple(_described(result, user, found) for user, found in described.items())
        return build(kind, error_code=ErrorCode.none, error_message=None, results=results)

    async def alter(self, context: RequestContext, body: Any) -> Any:
        """Answer an AlterUserScramCredentials."""
        kind = context.response_type
        if context.token_login:
            return refused_alterations(kind, body, ErrorCode.delegation_token_request_not_allowed, _NOT_SO_MADE)
        if not self._authorizer.allows_cluster(context.caller, AclOperation.ALTER):
            return refused_alterations(kind, body, ErrorCode.cluster_authorization_failed, None)
        outcomes = await self._users.alter(
            [Deletion(each.name, MECHANISMS.get(each.mechanism)) for each in body.deletions],
            [_upsertion(each) for each in body.upsertions],
        )
        for user, outcome in outcomes.items():
            _LOG.info("%s %s SCRAM credentials of %r", context.principal, _verb(outcome), user)
        result = element_type(kind, "results")
        return build(kind, results=tuple(_altered(result, user, outcome) for user, outcome in outcomes.items()))


def _upsertion(entity: Any) -> Upsertion:
    return Upsertion(
        user=entity.name,
        mechanism=MECHANISMS.get(entity.mechanism),
        iterations=entity.iterations,
        salt=entity.salt,
        salted_password=entity.salted_password,
    )


def _verb(outcome: AlterResult) -> str:
    return "altered the" if outcome is None else f"could not alter ({outcome}) the"


def _altered(result: Any, user: str, outcome: AlterResult) -> Any:
    if outcome is None:
        return result(user=user, error_code=ErrorCode.none, error_message=None)
    return result(user=user, error_code=error_code(outcome), error_message=str(outcome))


def _described(result: Any, user: str, found: Any) -> Any:
    if isinstance(found, ScramUserError):
        return result(user=user, error_code=error_code(found), error_message=str(found), credential_infos=())
    info = element_type(result, "credential_infos")
    infos = tuple(
        info(mechanism=_NUMBERS[mechanism], iterations=found[mechanism].iterations)
        for mechanism in MECHANISMS.values()
        if mechanism in found
    )
    return result(user=user, error_code=ErrorCode.none, error_message=None, credential_infos=infos)


def _alterations_told(_: AuditedTokens, request: AnsweredRequest) -> Told:
    refused = RefusedEntries("user")
    for result in request.answer.results:
        if result.error_code is ErrorCode.none:
            yield ErrorCode.none, Facts(user=result.user)
        else:
            refused.add(result.error_code, partial(shortened, result.user))
    yield from refused.told()
