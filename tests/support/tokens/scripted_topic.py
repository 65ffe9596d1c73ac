"""A topic with one partition at a scripted server: its records, its settings, and the errors that a test wants.

topic = ScriptedTopic(server, "news")
topic.errors[AskedApi.PRODUCE] = [ErrorCode.not_enough_replicas]     # the next answers
topic.append(content)                                                # a record batch of another writer
"""

from __future__ import annotations

import asyncio
import struct
from contextlib import suppress
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any
from uuid import UUID, uuid4

from kio.schema.errors import ErrorCode

from kafka_dt_protocol.api.registry import ASKED, ApiKey, AskedApi
from kafka_dt_protocol.api.responses import element_type
from kafka_dt_protocol.wire.headers import RequestHeader
from kafka_dt_protocol.wire.times import from_duration
from tests.support.protocol.scripted_server import ScriptedServer

ALL_OPERATIONS = -1
_OFFSET = struct.Struct(">q")
_LAST_OFFSET_DELTA = struct.Struct(">i")
_LAST_OFFSET_DELTA_AT = 23


@dataclass
class ScriptedTopic:
    """What the server says of it."""

    server: ScriptedServer
    name: str
    exists: bool = True
    has_leader: bool = True
    partitions: int = 1
    replicas: int = 1
    brokers: int = 1
    operations: int = ALL_OPERATIONS
    settings: dict[str, str] = field(
        default_factory=lambda: {
            "compression.type": "producer",
            "max.message.bytes": "1048588",
            "retention.ms": "604800000",
            "min.insync.replicas": "1",
        }
    )
    errors: dict[IntEnum, list[ErrorCode]] = field(default_factory=dict)
    """By API: those of the next answers; when they are used up, all is well."""
    topic_id: UUID = field(default_factory=uuid4)
    end_offset: int = 0
    made: list[Any] = field(default_factory=list)
    """The topics that were asked for."""
    _batches: list[tuple[int, bytes]] = field(default_factory=list)
    """Each with the offset of its last record."""
    _written: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        server = self.server
        server.versions |= {
            api: (ASKED[api].min_version, ASKED[api].max_version)
            for api in (AskedApi.PRODUCE, AskedApi.FETCH, AskedApi.LIST_OFFSETS, AskedApi.CREATE_TOPICS)
        }
        server.scripts |= {
            ApiKey.METADATA: self._metadata,
            ApiKey.DESCRIBE_CONFIGS: self._configs,
            AskedApi.PRODUCE: self._produce,
            AskedApi.FETCH: self._fetch,
            AskedApi.LIST_OFFSETS: self._offsets,
            AskedApi.CREATE_TOPICS: self._create,
        }

    def append(self, content: bytes) -> None:
        """Write a record batch."""
        (delta,) = _LAST_OFFSET_DELTA.unpack_from(content, _LAST_OFFSET_DELTA_AT)
        batch = _OFFSET.pack(self.end_offset) + content[_OFFSET.size :]
        self.end_offset += delta + 1
        self._batches.append((self.end_offset - 1, batch))
        self._written.set()

    def make_again(self) -> None:
        """Delete it and make it again."""
        self.topic_id = uuid4()
        self.end_offset = 0
        self._batches.clear()

    def _error(self, api: IntEnum) -> ErrorCode:
        left = self.errors.get(api)
        return left.pop(0) if left else ErrorCode.none

    def _metadata(self, header: RequestHeader, request: Any) -> dict[str, Any]:
        response: Any = ASKED[ApiKey.METADATA].response[header.api_version]
        host, port = self.server.address.split(":")
        broker = element_type(response, "brokers")
        brokers = tuple(broker(node_id=each, host=host, port=int(port)) for each in range(1, self.brokers + 1))
        topic = element_type(response, "topics")
        partition = element_type(topic, "partitions")
        error = self._error(ApiKey.METADATA)
        if error is ErrorCode.none and not self.exists:
            error = ErrorCode.unknown_topic_or_partition
        partitions = tuple(
            partition(
                error_code=ErrorCode.none,
                partition_index=index,
                leader_id=1 if self.has_leader else -1,
                replica_nodes=tuple(range(1, self.replicas + 1)),
            )
            for index in range(0 if error else self.partitions)
        )
        told = topic(
            error_code=error,
            name=self.name,
            topic_id=self.topic_id,
            partitions=partitions,
            topic_authorized_operations=self.operations,
        )
        return {"brokers": brokers, "topics": (told,) if request.topics else (), "error_code": ErrorCode.none}

    def _configs(self, header: RequestHeader, _: Any) -> dict[str, Any]:
        result = element_type(ASKED[ApiKey.DESCRIBE_CONFIGS].response[header.api_version], "results")
        config = element_type(result, "configs")
        configs = tuple(
            config(name=name, value=value, read_only=False, is_sensitive=False, synonyms=(), documentation=None)
            for name, value in self.settings.items()
        )
        error = self._error(ApiKey.DESCRIBE_CONFIGS)
        found = result(
            error_code=error,
            error_message=None,
            resource_type=2,
            resource_name=self.name,
            configs=() if error else configs,
        )
        return {"results": (found,)}

    def _offsets(self, header: RequestHeader, _: Any) -> dict[str, Any]:
        topic = element_type(ASKED[AskedApi.LIST_OFFSETS].response[header.api_version], "topics")
        partition = element_type(topic, "partitions")(
            partition_index=0, error_code=self._error(AskedApi.LIST_OFFSETS), offset=self.end_offset
        )
        return {"topics": (topic(name=self.name, partitions=(partition,)),)}

    def _produce(self, header: RequestHeader, request: Any) -> dict[str, Any]:
        ((asked,),) = (each.partition_data for each in request.topic_data)
        error = self._error(AskedApi.PRODUCE)
        if error is ErrorCode.none:
            self.append(asked.records)
        topic = element_type(ASKED[AskedApi.PRODUCE].response[header.api_version], "responses")
        partition = element_type(topic, "partition_responses")(
            index=0, error_code=error, base_offset=self.end_offset, record_errors=()
        )
        return {"responses": (topic(name=self.name, partition_responses=(partition,)),)}

    async def _fetch(self, header: RequestHeader, request: Any) -> dict[str, Any]:
        ((asked,),) = (each.partitions for each in request.topics)
        error = self._error(AskedApi.FETCH)
        if error is ErrorCode.none and asked.fetch_offset > self.end_offset:
            error = ErrorCode.offset_out_of_range
        if error is ErrorCode.none and asked.fetch_offset == self.end_offset:
            self._written.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._written.wait(), from_duration(request.max_wait) / 1000)
        records = self._records(asked.fetch_offset, asked.partition_max_bytes)
        topic = element_type(ASKED[AskedApi.FETCH].response[header.api_version], "responses")
        partition = element_type(topic, "partitions")(
            partition_index=0,
            error_code=error,
            high_watermark=self.end_offset,
            aborted_transactions=(),
            records=b"" if error else records,
        )
        return {"error_code": ErrorCode.none, "responses": (topic(topic=self.name, partitions=(partition,)),)}

    def _records(self, offset: int, max_bytes: int) -> bytes:
        """As a broker: the first batch whole, and then as much as there is room for."""
        batches = [batch for last_offset, batch in self._batches if last_offset >= offset]
        first = batches[0] if batches else b""
        return b"".join(batches)[: max(len(first), max_bytes)]

    def _create(self, header: RequestHeader, request: Any) -> dict[str, Any]:
        (asked,) = request.topics
        error = self._error(AskedApi.CREATE_TOPICS)
        if error is ErrorCode.none and self.exists:
            error = ErrorCode.topic_already_exists
        if error is ErrorCode.none:
            self.made.append(asked)
            self.exists = True
            self.replicas = asked.replication_factor
            self.settings |= {each.name: each.value for each in asked.configs}
        topic = element_type(ASKED[AskedApi.CREATE_TOPICS].response[header.api_version], "topics")
        made = topic(name=asked.name, topic_id=self.topic_id, error_code=error, error_message=None, configs=())
        return {"topics": (made,)}
