"""Metadata v0-13, DescribeCluster v0-2, FindCoordinator v0-6: a cluster of one node that has no topics.

Clients ask these before anything else. This node is every client's only broker and controller, under the address by
which the client came. A topic that is asked for does not exist; consumer groups and transactions are not here, and
FindCoordinator says so with an error that clients do not retry.

Source: KIP-4, KIP-700, KIP-919 (endpoint type); Kafka's KafkaApis.handleTopicMetadataRequest, handleDescribeCluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kio.schema.errors import ErrorCode

from kafka_dt.server.handlers import Handler, RequestContext
from protocol import ApiKey, build, element_type, refusal, refused_coordinators, response_type

BROKER_ENDPOINTS: Final = 1
"""KIP-919: the endpoint type that asks for brokers rather than controllers."""

TOPIC_ID_VERSION: Final = 12
"""The first version of Metadata that takes topic ids; 10 and 11 have the field and refuse its use."""

_NO_COORDINATORS: Final = "kafka-dt has no coordinators"
"""Short: it stands in the answer once for each key."""


class ClusterHandlers:
    """Answers what clients ask about the cluster.

    Args:
        broker_id: the id of this node.
        cluster_id: as in ZooKeeper's `/cluster/id`.
    """

    def __init__(self, broker_id: int, cluster_id: str) -> None:
        self._broker_id = broker_id
        self._cluster_id = cluster_id

    def handlers(self) -> Mapping[ApiKey, Handler]:
        """Give the handler of each API."""
        return {
            ApiKey.METADATA: self.metadata,
            ApiKey.DESCRIBE_CLUSTER: self.describe_cluster,
            ApiKey.FIND_COORDINATOR: self.find_coordinator,
        }

    async def metadata(self, context: RequestContext, body: Any) -> Any:
        """Answer a Metadata."""
        if context.header.api_version < TOPIC_ID_VERSION and any(map(_is_by_id, body.topics or ())):
            return refusal(context.header, body, ErrorCode.invalid_request)
        kind = response_type(context.header)
        broker = build(
            element_type(kind, "brokers"),
            node_id=self._broker_id,
            host=context.endpoint.host,
            port=context.endpoint.port,
            rack=None,
        )
        topic = element_type(kind, "topics")
        return build(
            kind,
            brokers=(broker,),
            cluster_id=self._cluster_id,
            controller_id=self._broker_id,
            topics=tuple(_missing(topic, asked) for asked in body.topics or ()),
            error_code=ErrorCode.none,
        )

    async def describe_cluster(self, context: RequestContext, body: Any) -> Any:
        """Answer a DescribeCluster."""
        kind = response_type(context.header)
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
        )

    async def find_coordinator(self, context: RequestContext, body: Any) -> Any:
        """Answer a FindCoordinator: there is none."""
        return refused_coordinators(response_type(context.header), body, ErrorCode.invalid_request, _NO_COORDINATORS)


def _is_by_id(asked: Any) -> bool:
    return asked.name is None or getattr(asked, "topic_id", None) is not None


def _missing(topic: type[Any], asked: Any) -> Any:
    """Answer for a topic that is asked for by name, or by id where the version allows it."""
    by_id = asked.name is None
    return build(
        topic,
        error_code=ErrorCode.unknown_topic_id if by_id else ErrorCode.unknown_topic_or_partition,
        name=asked.name,
        topic_id=getattr(asked, "topic_id", None),
        is_internal=False,
        partitions=(),
    )
