"""The sink of a Kafka topic: a producer of aiokafka on an event loop of its own, in the thread that calls it.

Each line is a record without a key; batches go to the partitions in turn. A batch that was not acknowledged is sent
again, so a line can be there twice: its `id` tells.

aiokafka is an extra (`audit-kafka`) and is imported only here, when there is a topic. Its loop runs while lines are
sent and rests between, so that an idle node does nothing; a connection that the brokers have closed meanwhile is made
anew. After a failure nothing of the producer is used again.

Source: aiokafka's AIOKafkaProducer; KIP-98 (record batches).
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import Any, Final

from kafka_dt.audit.delivery import SinkFailed

_LOG = logging.getLogger(__name__)

TOPIC_MODULE: Final = "aiokafka"
"""What is imported for a topic."""
BATCH_BYTES: Final = 256 * 1024
"""The records of a batch, well below what brokers take (`message.max.bytes`)."""
STOP_SECONDS: Final = 2.0
"""How long a producer that has failed, or is not needed any more, may take to end."""
_RECORD_BYTES: Final = 32
"""What a record takes beside its line, at most."""


class AiokafkaMissing(Exception):
    """The package aiokafka, which is an extra, is not installed."""


class EventTopic:
    """A `Sink` that writes to a topic.

    Args:
        topic: its name.
        timeout_seconds: how long brokers may take for an answer.
        arguments: of aiokafka's producer: the brokers, the login with its password, `acks` and so on. How large a batch
            is, is not among them: the lines are divided here.
        ssl_context: gives the TLS context of each new producer, in the place of that in the arguments; it may block.

    Raises:
        AiokafkaMissing: the extra is not installed.
    """

    def __init__(
        self,
        topic: str,
        timeout_seconds: float,
        arguments: Mapping[str, Any],
        ssl_context: Callable[[], ssl.SSLContext] | None = None,
    ) -> None:
        _aiokafka()
        self._topic = topic
        self._timeout_seconds = timeout_seconds
        self.arguments = {**arguments, "max_batch_size": BATCH_BYTES}
        self._ssl_context = ssl_context
        self._loop: asyncio.AbstractEventLoop | None = None
        self._producer: Any = None
        self._turn = count()

    @property
    def name(self) -> str:
        """The sink's name in the log."""
        return f"topic {self._topic}"

    def open(self) -> None:
        """Let aiokafka log nothing: its words about every attempt to connect are for its developers.

        What fails is said by us, once.
        """
        logging.getLogger("aiokafka").setLevel(logging.CRITICAL)

    def write(self, lines: Sequence[bytes]) -> None:
        """Send lines and wait until they are acknowledged."""
        if self._loop is None:
            self._loop = _new_loop()
        self._loop.run_until_complete(self._send(lines))

    def tend(self) -> float | None:
        """Do nothing; nothing is due without lines."""
        return None

    def close(self) -> None:
        """End the producer and its loop."""
        if self._loop is not None:
            self._loop.run_until_complete(self._stop())
            self._loop.close()

    async def _send(self, lines: Sequence[bytes]) -> None:
        written = 0
        try:
            async with asyncio.timeout(self._timeout_seconds):
                producer = await self._started()
            # It ends by itself, and then it says why.
            async with asyncio.timeout(self._timeout_seconds + STOP_SECONDS):
                partitions = sorted(await producer.partitions_for(self._topic))
            for batch in _batches(lines):
                async with asyncio.timeout(self._timeout_seconds):
                    partition = partitions[next(self._turn) % len(partitions)]
                    delivered = await producer.send_batch(_built(producer, batch), self._topic, partition=partition)
                    await delivered
                written += len(batch)
        except TimeoutError:
            await self._stop()
            raise SinkFailed(f"no answer within {self._timeout_seconds:g} s", written) from None
        except _aiokafka().errors.UnknownTopicOrPartitionError as error:
            await self._stop()
            raise SinkFailed("there is no such topic, or its user may not see it", written) from error
        except (_aiokafka().errors.KafkaError, OSError) as error:
            await self._stop()
            raise SinkFailed(_words(error), written) from error

    async def _started(self) -> Any:
        if self._producer is None:
            renewed = {} if self._ssl_context is None else {"ssl_context": self._ssl_context()}
            self._producer = _aiokafka().AIOKafkaProducer(**self.arguments | renewed)
            await self._producer.start()
        return self._producer

    async def _stop(self) -> None:
        """Stop the producer, and leave no task of it behind; its result does not matter."""
        producer, self._producer = self._producer, None
        if producer is None:
            return
        # The second is for a producer that waits for brokers in vain: it stops only when they have answered.
        for stop in (producer.stop, producer.client.close):
            with suppress(TimeoutError, _aiokafka().errors.KafkaError, OSError):
                async with asyncio.timeout(STOP_SECONDS):
                    await stop()
                    break
        left = asyncio.all_tasks() - {asyncio.current_task()}  # this loop has no other user
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=STOP_SECONDS)


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        loop = asyncio.new_event_loop()
    except OSError as error:  # a process has a limit of open files
        raise SinkFailed(error.strerror or type(error).__name__) from error
    loop.set_exception_handler(_leave_behind)
    return loop


def _leave_behind(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log the futures that a failed producer has left, for which no task waits."""
    _LOG.debug("%s", context.get("message"), exc_info=context.get("exception"))


def _batches(lines: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """Divide lines so that each part is a batch, or a single line."""
    begin = size = 0
    for number, line in enumerate(lines):
        if begin < number and size + len(line) + _RECORD_BYTES > BATCH_BYTES:
            yield lines[begin:number]
            begin, size = number, 0
        size += len(line) + _RECORD_BYTES
    yield lines[begin:]


def _built(producer: Any, lines: Sequence[bytes]) -> Any:
    batch = producer.create_batch()
    for line in lines:
        if batch.append(key=None, value=line[:-1], timestamp=None) is None:
            raise AssertionError("a batch took less than its size")
    batch.close()
    return batch


def _words(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _aiokafka() -> Any:
    try:
        return importlib.import_module(TOPIC_MODULE)
    except ImportError:
        raise AiokafkaMissing from None
