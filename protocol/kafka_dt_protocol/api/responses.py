"""Making answers: an entity of the version that was asked for, out of values for all versions.

Each row of the table of APIs names how the API answers with nothing but an error, in the request's own layout, as a
broker does: `refusing_with` for a plain answer, a function of its own where each part of the request is refused.

Source: KIP-482 (fields per version); org.apache.kafka.common.requests.AbstractRequest.getErrorResponse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from kio.schema.errors import ErrorCode

from kafka_dt_protocol.wire.layout import entity_layout
from kafka_dt_protocol.wire.times import NO_THROTTLE, to_duration, to_timestamp

if TYPE_CHECKING:
    from kafka_dt_protocol.api.table import Refuse

NO_TIMESTAMP: Final = to_timestamp(-1)
"""Issue, expiry and max timestamp of an answer that has none."""

_ILLEGAL_STATE: Final = "Request is not valid given the current SASL state."
_DURING_LOGIN: Final = "Unexpected Kafka request of type {} during SASL authentication."
_ANONYMOUS: Final = ("User", "ANONYMOUS")


def build(entity_type: Any, **values: Any) -> Any:
    """Make an entity of values of which its version may not have all; `throttle_time` may be left out.

    Raises:
        TypeError: a field without default is missing.
    """
    known = _field_names(entity_type)
    if "throttle_time" in known:
        values.setdefault("throttle_time", NO_THROTTLE)
    return entity_type(**{name: value for name, value in values.items() if name in known})


def element_type(entity_type: Any, field_name: str) -> Any:
    """Give the type of the elements of an entity's array field.

    Raises:
        KeyError: the entity has no such field.
    """
    return _element_types(entity_type)[field_name]


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


def refusing_with(*, in_words: bool = False, **values: Any) -> Refuse:
    """Give a refusal that has the same values whatever is refused, and `in_words` the broker's words during a login."""

    def refuse(kind: Any, _body: Any, error: ErrorCode, name: str) -> Any:
        words = {"error_message": _during_login(name, error)} if in_words else {}
        return build(kind, error_code=error, **values, **words)

    return refuse


def refuse_metadata(kind: Any, body: Any, error: ErrorCode, _name: str) -> Any:
    """Refuse every topic that was asked for."""
    topic = element_type(kind, "topics")
    topics = tuple(
        build(topic, error_code=error, name=asked.name or "", topic_id=getattr(asked, "topic_id", None), partitions=())
        for asked in body.topics or ()
    )
    return build(kind, brokers=(), topics=topics, error_code=error)


def refuse_coordinators(kind: Any, body: Any, error: ErrorCode, _name: str) -> Any:
    """Refuse every key whose coordinator was asked for."""
    return refused_coordinators(kind, body, lambda _: (error, _illegal_state(error)))


def refuse_creation(kind: Any, _body: Any, error: ErrorCode, _name: str) -> Any:
    """Refuse a token to a client that has not logged in."""
    return refused_creation(kind, error, owner=_ANONYMOUS, requester=_ANONYMOUS)


def refuse_acl_creations(kind: Any, body: Any, error: ErrorCode, name: str) -> Any:
    """Refuse every ACL that was to be created."""
    result = build(element_type(kind, "results"), error_code=error, error_message=_during_login(name, error))
    return build(kind, results=(result,) * len(body.creations))


def refuse_acl_deletions(kind: Any, body: Any, error: ErrorCode, name: str) -> Any:
    """Refuse every filter of ACLs that were to be deleted."""
    words = _during_login(name, error)
    result = build(element_type(kind, "filter_results"), error_code=error, error_message=words, matching_acls=())
    return build(kind, filter_results=(result,) * len(body.filters))


def refuse_alterations(kind: Any, body: Any, error: ErrorCode, name: str) -> Any:
    """Refuse what is asked for each user."""
    return refused_alterations(kind, body, error, _during_login(name, error))


def refused_quotas(kind: Any, body: Any, error: ErrorCode, message: str | None) -> Any:
    """Answer an AlterClientQuotas that changed nothing: the error stands beside each entity, as they were asked for."""
    entry = element_type(kind, "entries")
    entity = element_type(entry, "entity")
    return build(
        kind,
        entries=tuple(
            entry(
                error_code=error,
                error_message=message,
                entity=tuple(
                    entity(entity_type=part.entity_type, entity_name=part.entity_name) for part in asked.entity
                ),
            )
            for asked in body.entries
        ),
    )


def refuse_quotas(kind: Any, body: Any, error: ErrorCode, _name: str) -> Any:
    """Refuse the quotas of every entity."""
    return refused_quotas(kind, body, error, _illegal_state(error))


def refused_configs(kind: Any, body: Any, reason: Callable[[Any], tuple[ErrorCode, str | None]]) -> Any:
    """Answer a DescribeConfigs without a configuration.

    Args:
        kind: the response's entity type.
        body: the request's entity.
        reason: gives the error for a resource of the request, and a message or None.
    """
    result = element_type(kind, "results")

    def answer(resource: Any) -> Any:
        error, message = reason(resource)
        return build(
            result,
            error_code=error,
            error_message=message,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            configs=(),
        )

    return build(kind, results=tuple(map(answer, body.resources)))


def refuse_configs(kind: Any, body: Any, error: ErrorCode, _name: str) -> Any:
    """Refuse the configuration of every resource."""
    return refused_configs(kind, body, lambda _: (error, _illegal_state(error)))


def _illegal_state(error: ErrorCode) -> str | None:
    return _ILLEGAL_STATE if error is ErrorCode.illegal_sasl_state else None


def _during_login(name: str, error: ErrorCode) -> str | None:
    return _DURING_LOGIN.format(name) if error is ErrorCode.illegal_sasl_state else None


@cache
def _field_names(entity_type: Any) -> frozenset[str]:
    return frozenset(field.name for field in fields(entity_type))


@cache
def _element_types(entity_type: Any) -> Mapping[str, Any]:
    return {layout.name: layout.entity for layout in entity_layout(entity_type).plain if layout.entity is not None}
