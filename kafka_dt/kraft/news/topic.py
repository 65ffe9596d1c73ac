"""The requests about the topic of news, which has one partition.

All raise RequestRefused for an error that answers them, and what Connection.request raises.

Source: KIP-4 (CreateTopics), KIP-98 (Produce), KIP-74 and KIP-392 (Fetch), KIP-430 (authorized operations), KIP-226
(DescribeConfigs).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from kio.schema.errors import ErrorCode

from kafka_dt.client import Address, RequestRefused
from kafka_dt.client.errors import UnexpectedAnswer
from kafka_dt_protocol.api.registry import ASKED, ApiKey, AskedApi
from kafka_dt_protocol.api.responses import element_type
from kafka_dt_protocol.wire.times import to_duration

if TYPE_CHECKING:
    from enum import IntEnum

    from kafka_dt.client.connection import Connection

PARTITION: Final = 0
"""The only one."""
FETCH_BYTES: Final = 16 * 1024
"""How much one answer has, and the longest batch that the topic takes: reading it takes some milliseconds."""
_LATEST: Final = -1
_CLIENT: Final = -1
"""The id of a replica that is none."""
_ALL_IN_SYNC: Final = -1
_TOPIC_RESOURCE: Final = 2


@dataclass(frozen=True, slots=True)
class TopicState:
    """What a broker says of the topic."""

    topic_id: UUID | None
    leader: Address | None
    """Of the partition; None while there is none."""
    replicas: tuple[Address | None, ...]
    """The brokers that have it; None for one that is not there."""
    partitions: int
    brokers: int
    """How many there are in the cluster."""
    operations: int
    """What the asking user may do with it: a bit for each AclOperation."""


async def describe(connection: Connection, name: str) -> TopicState:
    """Return what the broker knows of the topic."""
    asked = _element(connection, ApiKey.METADATA, "topics")
    answer = await connection.request(
        ApiKey.METADATA,
        topics=(asked(name=name, topic_id=None),),
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
    )
    (topic,) = answer.topics
    _raise_if(topic.error_code, f"look for topic {name}")
    addresses = {broker.node_id: Address(broker.host, broker.port) for broker in answer.brokers}
    first = next((each for each in topic.partitions if each.partition_index == PARTITION), None)
    return TopicState(
        topic_id=topic.topic_id,
        leader=None if first is None else addresses.get(first.leader_id),
        replicas=() if first is None else tuple(map(addresses.get, sorted(first.replica_nodes))),
        partitions=len(topic.partitions),
        brokers=len(addresses),
        operations=topic.topic_authorized_operations,
    )


async def count_brokers(connection: Connection) -> int:
    """Return how many brokers the cluster has."""
    answer = await connection.request(
        ApiKey.METADATA, topics=(), allow_auto_topic_creation=False, include_topic_authorized_operations=False
    )
    return len(answer.brokers)


async def end_offset(connection: Connection, name: str) -> int:
    """Return the offset of the next record; the broker must lead the partition, or have led it."""
    topic = _element(connection, AskedApi.LIST_OFFSETS, "topics")
    partition = element_type(topic, "partitions")(partition_index=PARTITION, timestamp=_LATEST)
    answer = await connection.request(
        AskedApi.LIST_OFFSETS,
        replica_id=_CLIENT,
        isolation_level=0,
        topics=(topic(name=name, partitions=(partition,)),),
    )
    found = _only(connection, [each for told in answer.topics for each in told.partitions])
    _raise_if(found.error_code, f"find the end of topic {name}")
    offset: int = found.offset
    return offset


async def fetch(connection: Connection, name: str, offset: int, max_wait_ms: int) -> bytes:
    """Return the record batches from an offset on; the broker, which has the partition, waits for the first."""
    topic = _element(connection, AskedApi.FETCH, "topics")
    partition = element_type(topic, "partitions")(
        partition=PARTITION, fetch_offset=offset, partition_max_bytes=FETCH_BYTES
    )
    answer = await connection.request(
        AskedApi.FETCH,
        max_wait=to_duration(max_wait_ms),
        min_bytes=1,
        max_bytes=FETCH_BYTES,
        topics=(topic(topic=name, partitions=(partition,)),),
        forgotten_topics_data=(),
    )
    action = f"read topic {name}"
    _raise_if(answer.error_code, action)
    found = _only(connection, [each for told in answer.responses for each in told.partitions])
    _raise_if(found.error_code, action)
    return found.records or b""


async def produce(connection: Connection, name: str, records: bytes, timeout_ms: int) -> None:
    """Write a record batch, and return when every replica in sync has it; the broker must lead the partition."""
    topic = _element(connection, AskedApi.PRODUCE, "topic_data")
    partition = element_type(topic, "partition_data")(index=PARTITION, records=records)
    answer = await connection.request(
        AskedApi.PRODUCE,
        acks=_ALL_IN_SYNC,
        timeout=to_duration(timeout_ms),
        topic_data=(topic(name=name, partition_data=(partition,)),),
    )
    found = _only(connection, [each for told in answer.responses for each in told.partition_responses])
    _raise_if(found.error_code, f"write to topic {name}")


async def create(
    connection: Connection, name: str, *, replicas: int, settings: Mapping[str, str], timeout_ms: int
) -> None:
    """Create the topic."""
    topic = _element(connection, AskedApi.CREATE_TOPICS, "topics")
    config = element_type(topic, "configs")
    configs = tuple(config(name=key, value=value) for key, value in settings.items())
    wanted = topic(name=name, num_partitions=1, replication_factor=replicas, assignments=(), configs=configs)
    answer = await connection.request(AskedApi.CREATE_TOPICS, topics=(wanted,), timeout=to_duration(timeout_ms))
    made = _only(connection, answer.topics)
    _raise_if(made.error_code, f"create topic {name}", made.error_message)


async def settings_of(connection: Connection, name: str) -> Mapping[str, str | None]:
    """Return the settings of the topic, with the defaults of the cluster."""
    resource = _element(connection, ApiKey.DESCRIBE_CONFIGS, "resources")
    asked = resource(resource_type=_TOPIC_RESOURCE, resource_name=name, configuration_keys=None)
    answer = await connection.request(
        ApiKey.DESCRIBE_CONFIGS, resources=(asked,), include_synonyms=False, include_documentation=False
    )
    found = _only(connection, answer.results)
    _raise_if(found.error_code, f"read the settings of topic {name}", found.error_message)
    return {each.name: each.value for each in found.configs}


def _element(connection: Connection, api: IntEnum, field: str) -> Any:
    return element_type(ASKED[api].request[connection.version(api)], field)


def _only(connection: Connection, found: Any) -> Any:
    if len(found) != 1:
        raise UnexpectedAnswer(connection.server, "it does not answer about the topic that was asked for")
    return found[0]


def _raise_if(code: ErrorCode, action: str, said: str | None = None) -> None:
    """Raise the error that answers a request; said: the server's own words, where the answer has some."""
    if code is not ErrorCode.none:
        raise RequestRefused(code, action, said)
