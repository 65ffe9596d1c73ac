"""Metadata v0-13, DescribeCluster v0-2, FindCoordinator v0-6: a cluster of one node that has no topics.

Clients ask these before anything else. This node is every client's only broker and controller, under the address by
which the client came. A topic that is asked for does not exist; consumer groups and transactions are not here, and
FindCoordinator says so with an error that clients do not retry.

A caller that may not DESCRIBE a topic, group or transactional id gets the error that a broker returns. The answer lists
what the caller may do to the cluster and to topics if the request asks for it (KIP-430).

Source: KIP-4, KIP-430, KIP-700, KIP-919 (endpoint type); kafka.server.KafkaApis (handleTopicMetadataRequest,
getCoordinator), kafka.server.AuthHelper.computeDescribeClusterResponse.
"""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from kio.schema.errors import ErrorCode

from kafka_dt.identity.acls.authorizer import Authorizer
from kafka_dt.identity.acls.binding import CLUSTER_NAME, AclOperation, ResourceType
from kafka_dt.server.handlers import RequestContext, ServedApi
from kafka_dt_protocol import ApiKey, build, element_type, refused_coordinators

BROKER_ENDPOINTS: Final = 1
"""KIP-919: the endpoint type that asks for brokers rather than controllers."""

TOPIC_ID_VERSION: Final = 12
"""The first version of Metadata that takes topic ids; 10 and 11 have the field and refuse its use."""

_NO_COORDINATORS: Final = "kafka-dt has no coordinators"
"""Short: it stands in the answer once for each key."""

_NOT_ASKED_FOR: Final = -(2**31)
"""Authorized operations of an answer that has none (KIP-430)."""

_GROUP: Final = 0
_COORDINATED: Final = {
    _GROUP: (ResourceType.GROUP, ErrorCode.group_authorization_failed),
    1: (ResourceType.TRANSACTIONAL_ID, ErrorCode.transactional_id_authorization_failed),
}
"""What must be describable to ask for its coordinator, by the type of the key; and the error if it is not."""


class ClusterHandlers:
    """Answers what clients ask about the cluster."""

    def __init__(self, broker_id: int, cluster_id: str, authorizer: Authorizer) -> None:
        self._broker_id = broker_id
        self._cluster_id = cluster_id
        self._authorizer = authorizer

    def served(self) -> tuple[ServedApi, ...]:
        """Give what serves each API."""
        return (
            ServedApi(ApiKey.METADATA, self.metadata),
            ServedApi(ApiKey.DESCRIBE_CLUSTER, self.describe_cluster),
            ServedApi(ApiKey.FIND_COORDINATOR, self.find_coordinator),
        )

    async def metadata(self, context: RequestContext, body: Any) -> Any:
        """Answer a Metadata."""
        if context.header.api_version < TOPIC_ID_VERSION and any(map(_is_by_id, body.topics or ())):
            return context.refusal(body, ErrorCode.invalid_request)
        kind = context.response_type
        broker = build(
            element_type(kind, "brokers"),
            node_id=self._broker_id,
            host=context.endpoint.host,
            port=context.endpoint.port,
            rack=None,
        )
        return build(
            kind,
            brokers=(broker,),
            cluster_id=self._cluster_id,
            controller_id=self._broker_id,
            topics=self._topics(context, element_type(kind, "topics"), body),
            cluster_authorized_operations=self._cluster_operations(context, body),
            error_code=ErrorCode.none,
        )

    async def describe_cluster(self, context: RequestContext, body: Any) -> Any:
        """Answer a DescribeCluster."""
        kind = context.response_type
        endpoint_type = getattr(body, "endpoint_type", BROKER_ENDPOINTS)
        if endpoint_type != BROKER_ENDPOINTS:
            return build(
                kind,
                error_code=ErrorCode.mismatched_endpoint_type,
                error_message="This is not a controller; ask for endpoint type 1 (brokers)",
                endpoint_type=BROKER_ENDPOINTS,
                cluster_id="",
                brokers=(),
            )
        broker = build(
            element_type(kind, "brokers"),
            broker_id=self._broker_id,
            host=context.endpoint.host,
            port=context.endpoint.port,
            rack=None,
            is_fenced=False,
        )
        return build(
            kind,
            error_code=ErrorCode.none,
            error_message=None,
            endpoint_type=BROKER_ENDPOINTS,
            cluster_id=self._cluster_id,
            controller_id=self._broker_id,
            brokers=(broker,),
            cluster_authorized_operations=self._cluster_operations(context, body),
        )

    async def find_coordinator(self, context: RequestContext, body: Any) -> Any:
        """Answer a FindCoordinator: there is none."""
        resource_type, error = _COORDINATED.get(getattr(body, "key_type", _GROUP), (None, ErrorCode.none))
        may_describe = resource_type and self._authorizer.check(context.caller, AclOperation.DESCRIBE, resource_type)

        def reason(key: str) -> tuple[ErrorCode, str | None]:
            if may_describe and not may_describe(key):
                return error, None
            return ErrorCode.invalid_request, _NO_COORDINATORS

        return refused_coordinators(context.response_type, body, reason)

    def _topics(self, context: RequestContext, topic: Any, body: Any) -> tuple[Any, ...]:
        """Answer for the topics that are asked for by name, or by id where the version allows it."""
        may_describe = self._authorizer.check(context.caller, AclOperation.DESCRIBE, ResourceType.TOPIC)
        told = getattr(body, "include_topic_authorized_operations", False)

        def answer(asked: Any) -> Any:
            topic_id = getattr(asked, "topic_id", None)
            if asked.name is None:
                return _missing(topic, ErrorCode.unknown_topic_id, None, topic_id)
            if not may_describe(asked.name):
                return _missing(topic, ErrorCode.topic_authorization_failed, asked.name, None)
            operations = self._topic_operations(context, asked.name) if told else _NOT_ASKED_FOR
            return _missing(topic, ErrorCode.unknown_topic_or_partition, asked.name, topic_id, operations)

        return tuple(answer(asked) for asked in body.topics or ())

    def _topic_operations(self, context: RequestContext, name: str) -> int:
        return self._authorizer.authorized_operations(context.caller, ResourceType.TOPIC, name)

    def _cluster_operations(self, context: RequestContext, body: Any) -> int:
        """Give what the caller may do to the cluster, if it asks; nothing, if it may not even ask."""
        if not getattr(body, "include_cluster_authorized_operations", False):
            return _NOT_ASKED_FOR
        if not self._authorizer.allows_cluster(context.caller, AclOperation.DESCRIBE):
            return 0
        return self._authorizer.authorized_operations(context.caller, ResourceType.CLUSTER, CLUSTER_NAME)


def _is_by_id(asked: Any) -> bool:
    return asked.name is None or getattr(asked, "topic_id", None) is not None


def _missing(
    topic: Any, error: ErrorCode, name: str | None, topic_id: UUID | None, operations: int = _NOT_ASKED_FOR
) -> Any:
    return build(
        topic,
        error_code=error,
        name=name,
        topic_id=topic_id,
        is_internal=False,
        partitions=(),
        topic_authorized_operations=operations,
    )
