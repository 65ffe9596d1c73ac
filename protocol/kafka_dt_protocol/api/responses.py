"""Making answers: an entity of the version that was asked for, out of values for all versions.

`build` takes the values of every version's fields and leaves out those that the version at hand has not; `refusal`
answers any request with nothing but an error, in the request's own layout, as a broker does.

Source: KIP-482 (fields per version); Kafka's AbstractRequest.getErrorResponse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from typing import Any, Final

from kio.schema.errors import ErrorCode

from kafka_dt_protocol.api.registry import APIS, ApiKey, api_versions_response
from kafka_dt_protocol.wire.headers import RequestHeader
from kafka_dt_protocol.wire.layout import entity_layout
from kafka_dt_protocol.wire.times import NO_THROTTLE, to_duration, to_timestamp

NO_TIMESTAMP: Final = to_timestamp(-1)
"""Issue, expiry and max timestamp of an answer that has none."""

_ALREADY_LOGGED_IN: Final = "SaslAuthenticate request received after successful authentication"
_ILLEGAL_STATE: Final = "Request is not valid given the current SASL state."
_DURING_LOGIN: Final = "Unexpected Kafka request of type {} during SASL authentication."
_ANONYMOUS: Final = ("User", "ANONYMOUS")


def build(entity_type: Any, **values: Any) -> Any:
    """Make an entity of values of which its version may not have all.

    Args:
        entity_type: an entity of kio.
        values: the fields of any version by name; `throttle_time` may be left out.

    Raises:
        TypeError: a field without default is missing.
    """
    known = _field_names(entity_type)
    if "throttle_time" in known:
        values.setdefault("throttle_time", NO_THROTTLE)
    return entity_type(**{name: value for name, value in values.items() if name in known})


def response_type(header: RequestHeader) -> Any:
    """Give the entity type that answers a request."""
    return APIS[header.api_key].response[header.api_version]


def element_type(entity_type: Any, field_name: str) -> Any:
    """Give the type of the elements of an entity's array field.

    Raises:
        KeyError: the entity has no such field.
    """
    return _element_types(entity_type)[field_name]


def refusal(header: RequestHeader, body: Any, error: ErrorCode) -> Any:
    """Answer a request with an error and nothing else.

    Args:
        header: of the request; says API and version.
        body: the request's entity; None for an ApiVersions of unknown version, whose header says version 0.
        error: what is wrong.

    Returns:
        The response entity with the values that a broker fills in beside the error.
    """
    return _REFUSALS[ApiKey(header.api_key)](response_type(header), body, error)


def refused_creation(
    kind: Any, error: ErrorCode, *, owner: tuple[str, str], requester: tuple[str, str], throttle_ms: int = 0
) -> Any:
    """Answer a create that made no token.

    Args:
        kind: the response's entity type.
        error: why not.
        owner: type and name of the principal that would have owned the token.
        requester: type and name of the principal that asked.
        throttle_ms: for how long the client is asked to leave the server alone, in milliseconds.
    """
    return build(
        kind,
        error_code=error,
        throttle_time=to_duration(throttle_ms),
        principal_type=owner[0],
        principal_name=owner[1],
        token_requester_principal_type=requester[0],
        token_requester_principal_name=requester[1],
        issue_timestamp=NO_TIMESTAMP,
        expiry_timestamp=NO_TIMESTAMP,
        max_timestamp=NO_TIMESTAMP,
        token_id="",
        hmac=b"",
    )


def refused_coordinators(kind: Any, body: Any, reason: Callable[[str], tuple[ErrorCode, str | None]]) -> Any:
    """Answer a FindCoordinator without a coordinator, for each key where the version asks for several.

    Args:
        kind: the response's entity type.
        body: the request's entity.
        reason: gives the error for a key, and a message or None.
    """
    if "coordinators" not in _field_names(kind):
        return _nowhere(kind, reason(body.key))
    coordinator = element_type(kind, "coordinators")
    keys = body.coordinator_keys
    return build(kind, coordinators=tuple(_nowhere(coordinator, reason(key), key=key) for key in keys))


def _nowhere(kind: Any, reason: tuple[ErrorCode, str | None], **values: Any) -> Any:
    return build(kind, error_code=reason[0], error_message=reason[1], node_id=-1, host="", port=-1, **values)


def refused_alterations(kind: Any, body: Any, error: ErrorCode, message: str | None) -> Any:
    """Answer an AlterUserScramCredentials that changed nothing: the error stands beside each user, in their order."""
    result = element_type(kind, "results")
    users = sorted({each.name for each in (*body.deletions, *body.upsertions)})
    return build(kind, results=tuple(result(user=user, error_code=error, error_message=message) for user in users))


def _refused_metadata(kind: Any, body: Any, error: ErrorCode) -> Any:
    topic = element_type(kind, "topics")
    topics = tuple(
        build(topic, error_code=error, name=asked.name or "", topic_id=getattr(asked, "topic_id", None), partitions=())
        for asked in body.topics or ()
    )
    return build(kind, brokers=(), topics=topics, error_code=error)


def _refused_versions(kind: Any, _body: Any, error: ErrorCode) -> Any:
    if error is ErrorCode.unsupported_version:
        return api_versions_response(0, error)
    return build(kind, error_code=error, api_keys=())


def _in_wrong_state(error: ErrorCode, message: str) -> str | None:
    """Give the words that a broker has for this error alone."""
    return message if error is ErrorCode.illegal_sasl_state else None


def _during_login(key: ApiKey, error: ErrorCode) -> str | None:
    return _in_wrong_state(error, _DURING_LOGIN.format(key.name))


def _refused_creations(kind: Any, body: Any, error: ErrorCode) -> Any:
    """Refuse every ACL that was to be created."""
    message = _during_login(ApiKey.CREATE_ACLS, error)
    result = build(element_type(kind, "results"), error_code=error, error_message=message)
    return build(kind, results=(result,) * len(body.creations))


def _refused_deletions(kind: Any, body: Any, error: ErrorCode) -> Any:
    """Refuse every filter of ACLs that were to be deleted."""
    message = _during_login(ApiKey.DELETE_ACLS, error)
    result = build(element_type(kind, "filter_results"), error_code=error, error_message=message, matching_acls=())
    return build(kind, filter_results=(result,) * len(body.filters))


def _refused_alterations(kind: Any, body: Any, error: ErrorCode) -> Any:
    """Refuse what is asked for each user."""
    message = _during_login(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, error)
    return refused_alterations(kind, body, error, message)


def _refused_change(kind: Any, _body: Any, error: ErrorCode) -> Any:
    return build(kind, error_code=error, expiry_timestamp=to_timestamp(0))


@cache
def _field_names(entity_type: Any) -> frozenset[str]:
    return frozenset(field.name for field in fields(entity_type))


@cache
def _element_types(entity_type: Any) -> Mapping[str, Any]:
    return {layout.name: layout.entity for layout in entity_layout(entity_type).plain if layout.entity is not None}


_REFUSALS: Final[Mapping[ApiKey, Callable[[Any, Any, ErrorCode], Any]]] = {
    ApiKey.METADATA: _refused_metadata,
    ApiKey.FIND_COORDINATOR: lambda kind, body, error: refused_coordinators(
        kind, body, lambda _: (error, _in_wrong_state(error, _ILLEGAL_STATE))
    ),
    ApiKey.SASL_HANDSHAKE: lambda kind, _, error: build(kind, error_code=error, mechanisms=()),
    ApiKey.API_VERSIONS: _refused_versions,
    ApiKey.DESCRIBE_ACLS: lambda kind, _, error: build(
        kind, error_code=error, error_message=_during_login(ApiKey.DESCRIBE_ACLS, error), resources=()
    ),
    ApiKey.CREATE_ACLS: _refused_creations,
    ApiKey.DELETE_ACLS: _refused_deletions,
    ApiKey.SASL_AUTHENTICATE: lambda kind, _, error: build(
        kind, error_code=error, error_message=_ALREADY_LOGGED_IN, auth_bytes=b""
    ),
    ApiKey.CREATE_DELEGATION_TOKEN: lambda kind, _, error: refused_creation(
        kind, error, owner=_ANONYMOUS, requester=_ANONYMOUS
    ),
    ApiKey.RENEW_DELEGATION_TOKEN: _refused_change,
    ApiKey.EXPIRE_DELEGATION_TOKEN: _refused_change,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: lambda kind, _, error: build(kind, error_code=error, tokens=()),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: lambda kind, _, error: build(
        kind,
        error_code=error,
        error_message=_during_login(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, error),
        results=(),
    ),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _refused_alterations,
    ApiKey.DESCRIBE_CLUSTER: lambda kind, _, error: build(
        kind, error_code=error, error_message=_during_login(ApiKey.DESCRIBE_CLUSTER, error), cluster_id="", brokers=()
    ),
}
"""How each API says an error and nothing else; a test checks that no API of the registry is missing."""
