"""Producers that stay while nodes are stopped and started: one connection each, with all nodes in its list.

    producers = Producers(addresses, credentials, topic, count=1_000)
    async with producers.running():
        ...                             # nodes come and go
        await producers.all_go_on()
    producers.acknowledged, producers.refused, producers.longest_pause_s

A producer sends a record of its own a second, waits for its acknowledgement by all replicas, and then sends the next.
If the connection ends before, it connects to the next address of its list and sends the record again. So a record may
be there twice, and one that was acknowledged must be there.

Limits: all partitions are led by the broker that the addresses stand for.
Source: org.apache.kafka.clients.producer.KafkaProducer (reconnect.backoff.ms, retries); KIP-98 (batches of records).
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import Any, Final

from aiokafka.record.default_records import DefaultRecordBatchBuilder
from kio.index import load_request_schema, load_response_schema

from kafka_dt.client import Address, ClientConfig, ConnectionFailed, Credentials, LoginFailed
from kafka_dt.client.connection import Connection
from kafka_dt.client.login import log_in
from kafka_dt.security_protocol import SecurityProtocol
from kafka_dt_protocol import FrameSplitter, frame
from kafka_dt_protocol.api.responses import build, element_type
from kafka_dt_protocol.sasl import derive_keys
from kafka_dt_protocol.wire.decoding import decode
from kafka_dt_protocol.wire.encoding import encode
from tests.support.protocol.raw import ms

PRODUCE: Final = 0
VERSION: Final = 9
PERIOD_S: Final = 1.0
FIRST_BACKOFF_S: Final = 0.05
LONGEST_BACKOFF_S: Final = 1.0
ANSWER_TIMEOUT_S: Final = 20.0
GO_ON_WITHIN_S: Final = 60.0
_MAX_ANSWER_BYTES: Final = 1 << 20


class _Link(asyncio.Protocol):
    """A connection that has logged in: a request out, its answer in."""

    def __init__(self) -> None:
        self._frames = FrameSplitter(_MAX_ANSWER_BYTES)
        self._answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.transport: asyncio.Transport

    def data_received(self, data: bytes) -> None:
        self._frames.receive_data(data)
        content = self._frames.next_frame()
        if content is not None and not self._answer.done():  # else the producer has ended or given up
            self._answer.set_result(content)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._answer.done():
            self._answer.set_exception(exc or EOFError())
            self._answer.exception()  # a connection that carried no request at its end misses nothing

    async def exchange(self, content: bytes) -> bytes:
        """Send a request and return the content of its answer; raises OSError or EOFError if none comes."""
        if self._answer.done():
            self._answer.result()  # raises
        self.transport.write(frame(content))
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            answer = await self._answer
        self._answer = asyncio.get_running_loop().create_future()
        return answer


class Producers:
    """Producers of one topic.

    Args:
        addresses: of the broker that leads the partitions, at each of the nodes.
        credentials: of all producers.
        topic: where the records go.
        count: how many producers there are.
        partitions: how many partitions the topic has.
    """

    def __init__(
        self, addresses: Sequence[str], credentials: Credentials, topic: str, *, count: int, partitions: int
    ) -> None:
        self.acknowledged: set[str] = set()
        """The values of the records that were acknowledged."""
        self.refused: list[str] = []
        """Logins that were refused."""
        self.failures: list[str] = []
        """Records that a broker refused."""
        self.longest_pause_s = 0.0
        """The longest time in which a producer wanted to send a record and had no acknowledgement of it."""
        self.logins = 0
        self._addresses = [Address(host, int(port)) for host, _, port in (each.rpartition(":") for each in addresses)]
        self._credentials = credentials
        self._topic = topic
        self._count = count
        self._partitions = partitions
        self._derive = lru_cache(derive_keys)
        self._random = random.Random(count).random  # noqa: S311 - no secret
        self._last = [0.0] * count  # when each had its last acknowledgement, by the loop's clock

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Let them produce during a block; it begins when each has been acknowledged a record."""
        tasks = [asyncio.create_task(self._run(number)) for number in range(self._count)]
        try:
            await self.all_go_on()
            yield
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        unforeseen = [each for each in ended if not isinstance(each, asyncio.CancelledError)]
        assert unforeseen == []

    async def all_go_on(self) -> None:
        """Wait until each of them has had a further acknowledgement."""
        now = asyncio.get_running_loop().time()
        async with asyncio.timeout(GO_ON_WITHIN_S):
            while min(self._last) < now:  # noqa: ASYNC110 - a thousand of them would set events all the time
                await asyncio.sleep(PERIOD_S / 10)

    async def _run(self, number: int) -> None:
        loop = asyncio.get_running_loop()
        turn = number
        backoff_s = FIRST_BACKOFF_S
        link: _Link | None = None
        await asyncio.sleep(self._random() * PERIOD_S)
        for record in itertools.count():
            begun = loop.time()
            value = f"{number}-{record}"
            while value not in self.acknowledged:
                try:
                    link = link or await self._connect(number, self._addresses[turn % len(self._addresses)])
                    await self._send(link, number % self._partitions, value)
                except (OSError, EOFError, ConnectionFailed):
                    if link is not None:
                        link.transport.abort()
                        link = None
                    turn += 1
                    await asyncio.sleep(backoff_s * (0.8 + 0.4 * self._random()))
                    backoff_s = min(2 * backoff_s, LONGEST_BACKOFF_S)
            backoff_s = FIRST_BACKOFF_S
            self._last[number] = loop.time()
            self.longest_pause_s = max(self.longest_pause_s, loop.time() - begun)
            await asyncio.sleep(max(0.0, begun + PERIOD_S - loop.time()))

    async def _connect(self, number: int, address: Address) -> _Link:
        config = ClientConfig(
            bootstrap_servers=(address,),
            security_protocol=SecurityProtocol.SASL_PLAINTEXT,
            credentials=self._credentials,
            client_id=f"producer-{number}",
        )
        connection = await Connection.open(address, config)
        try:
            await log_in(connection, self._credentials, os.urandom, self._derive)
        except LoginFailed as refusal:
            connection.abort()
            self.refused.append(str(refusal))
            raise ConnectionFailed(str(refusal)) from refusal
        except BaseException:
            connection.abort()
            raise
        self.logins += 1
        link = _Link()
        link.transport, _ = connection.hand_over(link)
        return link

    async def _send(self, link: _Link, partition: int, value: str) -> None:
        content = await link.exchange(_produce(self._topic, partition, value))
        response: Any = load_response_schema(PRODUCE, VERSION)
        _, offset = decode(response.__header_schema__, content)
        answer, _ = decode(response, content, offset)
        ((told,),) = (each.partition_responses for each in answer.responses)
        if told.error_code.value:
            self.failures.append(f"{value}: {told.error_code.name}")
        else:
            self.acknowledged.add(value)


def _produce(topic: str, partition: int, value: str) -> bytes:
    request: Any = load_request_schema(PRODUCE, VERSION)
    of_topic = element_type(request, "topic_data")
    of_partition = element_type(of_topic, "partition_data")
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 14,
    )
    builder.append(0, timestamp=None, key=None, value=value.encode(), headers=[])
    data = of_partition(index=partition, records=bytes(builder.build()))
    entity = build(
        request,
        transactional_id=None,
        acks=-1,
        timeout=ms(10_000),
        topic_data=(of_topic(name=topic, partition_data=(data,)),),
    )
    header = request.__header_schema__(
        request_api_key=PRODUCE, request_api_version=VERSION, correlation_id=1, client_id="producer"
    )
    return encode(header) + encode(entity)
