"""How lines are divided for a topic; tests/interop/test_audit_topic.py writes to real brokers."""

from __future__ import annotations

import asyncio
import errno
import os
from contextlib import closing

import aiokafka
import pytest

from kafka_dt.audit.delivery import SinkFailed
from kafka_dt.audit.topic import BATCH_BYTES, EventTopic, _batches, _built

TOO_MANY_FILES = os.strerror(errno.EMFILE)


def test_lines_are_divided_into_batches_that_are_full_or_a_single_line() -> None:
    small, large, huge = b"x" * 1000, b"y" * 100_000, b"z" * (2 * BATCH_BYTES)
    lines = [small] * 600 + [large] * 5 + [huge, small, huge]
    batches = [list(batch) for batch in _batches(lines)]
    assert [line for batch in batches for line in batch] == lines
    assert all(len(batch) == 1 or sum(map(len, batch)) <= BATCH_BYTES for batch in batches)
    assert len(batches) <= 10


async def test_a_producer_takes_every_batch_whatever_its_arguments_are() -> None:
    lines = [b"x" * 1000 + b"\n"] * 600 + [b"y" * (2 * BATCH_BYTES) + b"\n"]
    producer = aiokafka.AIOKafkaProducer(**EventTopic("audit", 1.0, {"bootstrap_servers": "127.0.0.1:1"}).arguments)
    try:
        built = [_built(producer, batch) for batch in _batches(lines)]
    finally:
        await producer.stop()
    assert sum(batch.record_count() for batch in built) == len(lines)


def no_file_left() -> asyncio.AbstractEventLoop:
    raise OSError(errno.EMFILE, TOO_MANY_FILES)


def test_a_topic_that_begins_when_no_file_can_be_opened_is_written_to_later() -> None:
    with closing(EventTopic("audit", 1.0, {"bootstrap_servers": "127.0.0.1:1"})) as topic:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(asyncio, "new_event_loop", no_file_left)
            topic.open()
            with pytest.raises(SinkFailed, match=TOO_MANY_FILES):
                topic.write([b"{}\n"])
        with pytest.raises(SinkFailed, match="Unable to bootstrap"):
            topic.write([b"{}\n"])
