"""What one worker tells reaches the others, also after the topic was away; and no flood and no fault stops a worker."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt.kraft.news import exchange, member, reading, records
from kafka_dt.kraft.news.exchange import NewsExchange
from kafka_dt.kraft.news.message import Revocation
from kafka_dt.kraft.news.records import Found, batch
from kafka_dt.metrics import Counts
from kafka_dt_protocol.api.registry import ApiKey, AskedApi
from tests.support.processes.waiting import on_this_machine
from tests.support.tokens.scripted_topic import ScriptedTopic
from tests.support.tokens.store_contract import new_token
from tests.unit.kraft.news.conftest import NAME, connecting_to

WITHIN_S = 60.0
HMAC = bytes(64)
KEEP_S = 60.0


@dataclass
class Ear:
    """What a worker has heard."""

    messages: list[Revocation] = field(default_factory=list)
    gaps: int = 0
    """How often it was told that it may have missed something."""

    def heard(self, message: Revocation) -> None:
        self.messages.append(message)

    def missed(self) -> None:
        self.gaps += 1


@dataclass
class Worker:
    news: NewsExchange
    ear: Ear
    counts: Counts

    def tell(self) -> Revocation:
        """Tell of a token."""
        token_id = new_token().token_id
        self.news.tell(token_id, HMAC, None)
        return Revocation.of(token_id, HMAC, None)

    def count(self, event: str) -> int:
        counter = self.counts.revocation_news
        return int(counter._cells[counter._at[event,]])


@asynccontextmanager
async def worker(topic: ScriptedTopic, keep_s: float = KEEP_S) -> AsyncIterator[Worker]:
    """A worker that has found the end of the topic."""
    ear, counts = Ear(), Counts.alone()
    news = NewsExchange(
        NAME,
        connecting_to(topic),
        ear,
        counts=counts,
        keep_s=keep_s,
        now_ms=lambda: int(time.time() * 1000),
        monotonic=time.monotonic,
    )
    news.start()
    news.start()
    try:
        yield Worker(news, ear, counts)
    finally:
        await news.close()


@pytest.fixture
async def workers(topic: ScriptedTopic) -> AsyncIterator[Sequence[Worker]]:
    async with worker(topic) as one, worker(topic) as other:
        await eventually(lambda: one.ear.gaps == other.ear.gaps == 1)
        yield one, other


async def eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(on_this_machine(WITHIN_S)):
        while not condition():  # noqa: ASYNC110 - a condition about a server has no event
            await asyncio.sleep(0.005)


async def test_what_a_worker_tells_reaches_all_once(workers: Sequence[Worker]) -> None:
    told = [workers[number % 2].tell() for number in range(200)]
    for each in workers:
        await eventually(lambda each=each: len(each.ear.messages) == 200)  # type: ignore[misc]
        assert set(each.ear.messages) == set(told)
        assert each.count("heard") == 200
        assert each.count("told") == 100
        assert each.news.silence_s() < WITHIN_S


async def test_a_worker_begins_at_the_end_of_the_topic(topic: ScriptedTopic) -> None:
    topic.append(batch([Revocation.of(new_token().token_id, HMAC, None)], 0))
    async with worker(topic) as late:
        await eventually(lambda: late.ear.gaps == 1)
        told = late.tell()
        await eventually(lambda: late.ear.messages == [told])


@pytest.mark.parametrize(
    "error",
    [ErrorCode.not_leader_or_follower, ErrorCode.not_enough_replicas, ErrorCode.topic_authorization_failed],
)
async def test_a_message_that_could_not_be_written_is_written_later(
    topic: ScriptedTopic, workers: Sequence[Worker], error: ErrorCode
) -> None:
    topic.errors[AskedApi.PRODUCE] = [error, error]
    told = [workers[0].tell() for _ in range(3)]
    await eventually(lambda: workers[1].ear.messages == told)
    assert workers[0].count("told") == 3


async def test_a_worker_that_loses_its_connection_goes_on_where_it_was(
    topic: ScriptedTopic, workers: Sequence[Worker]
) -> None:
    first = workers[0].tell()
    await eventually(lambda: workers[1].ear.messages == [first])
    topic.server.drop_connections()
    missed = Revocation.of(new_token().token_id, HMAC, None)
    topic.append(batch([missed], 0))
    await eventually(lambda: workers[1].ear.messages == [first, missed])
    assert workers[1].ear.gaps == 1


async def test_messages_that_are_too_old_are_dropped(topic: ScriptedTopic) -> None:
    async with worker(topic, keep_s=0.3) as sender:
        topic.errors[AskedApi.PRODUCE] = [ErrorCode.not_enough_replicas] * 3
        sender.tell()
        await eventually(lambda: sender.count("dropped") == 1)
        assert sender.count("told") == 0
        assert topic.end_offset == 0


async def test_no_more_messages_wait_than_there_is_room_for(
    topic: ScriptedTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "MOST_WAITING", 2)
    topic.errors[ApiKey.METADATA] = [ErrorCode.unknown_topic_or_partition] * 1_000
    async with worker(topic) as sender:
        for _ in range(5):
            sender.tell()
        assert sender.count("dropped") == 3
        monkeypatch.setattr(exchange, "LAST_WORDS_S", 0.01)


async def test_records_that_are_gone_are_said_to_be_missed(topic: ScriptedTopic, workers: Sequence[Worker]) -> None:
    first = workers[0].tell()
    await eventually(lambda: workers[1].ear.messages == [first])
    topic.errors[AskedApi.FETCH] = [ErrorCode.offset_out_of_range] * 2
    topic.server.drop_connections()
    await eventually(lambda: all(each.ear.gaps == 2 for each in workers))
    told = workers[0].tell()
    await eventually(lambda: workers[1].ear.messages == [first, told])


async def test_a_topic_that_was_made_again_is_followed_from_its_end(
    topic: ScriptedTopic, workers: Sequence[Worker]
) -> None:
    first = workers[0].tell()
    await eventually(lambda: workers[1].ear.messages == [first])
    topic.make_again()
    topic.append(batch([Revocation.of(new_token().token_id, HMAC, None)] * 4, 0))
    topic.server.drop_connections()
    await eventually(lambda: all(each.ear.gaps == 2 for each in workers))
    told = workers[0].tell()
    await eventually(lambda: workers[1].ear.messages == [first, told])


async def test_what_is_no_message_is_counted(topic: ScriptedTopic, workers: Sequence[Worker]) -> None:
    compressed = bytearray(batch([Revocation.of(new_token().token_id, HMAC, None)], 0))
    compressed[22] |= 1
    topic.append(bytes(compressed))
    told = workers[0].tell()
    await eventually(lambda: workers[1].ear.messages == [told])
    assert workers[1].count("unreadable") == 1


async def test_records_that_make_a_reader_fail_are_not_met_again(
    workers: Sequence[Worker], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(member, "LONGEST_PAUSE_S", 0.1)
    failures = iter((True, True))

    def read(content: bytes, offset: int) -> Found:
        if content and next(failures, False):
            raise RuntimeError("unforeseen")
        return records.read(content, offset)

    monkeypatch.setattr(reading, "read", read)
    workers[0].tell()
    await eventually(lambda: all(each.ear.gaps == 2 for each in workers))
    told = workers[0].tell()
    await eventually(lambda: all(each.ear.messages == [told] for each in workers))
    assert "unforeseen" in caplog.text


async def test_a_worker_that_ends_writes_what_it_has_told(topic: ScriptedTopic) -> None:
    async with worker(topic) as sender:
        for _ in range(100):
            sender.tell()
    assert topic.end_offset == 100


async def test_a_topic_that_is_missing_is_logged_once_and_used_when_it_is_there(
    topic: ScriptedTopic, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(member, "PATIENCE_S", 0.2)
    topic.exists = False
    async with worker(topic) as one:
        one.tell()
        await eventually(lambda: caplog.text.count("and tries again") == 2)
        assert one.news.silence_s() == float("inf")
        topic.exists = True
        await eventually(lambda: one.count("told") == 1 and one.ear.gaps == 1)
        for words in ("tell other nodes of revocations", "hear of revocations by other nodes"):
            await eventually(lambda words=words: f"The worker can {words}" in caplog.text)  # type: ignore[misc]
            assert f"The worker cannot {words}" in caplog.text
    assert caplog.text.count("and tries again") == 2


async def test_a_topic_without_a_leader_is_tried_again(topic: ScriptedTopic) -> None:
    topic.has_leader = False
    async with worker(topic) as one:
        one.tell()
        await asyncio.sleep(0.2)
        topic.has_leader = True
        await eventually(lambda: one.count("told") == 1)


async def test_between_two_answers_of_a_flood_there_is_a_pause(topic: ScriptedTopic, workers: Sequence[Worker]) -> None:
    batches = 6
    begun = time.monotonic()
    for _ in range(batches):
        topic.append(batch([Revocation.of(new_token().token_id, HMAC, None)] * 60, 0))
    await eventually(lambda: len(workers[0].ear.messages) == 60 * batches)
    assert time.monotonic() - begun >= (batches - 1) * reading.PAUSE_S, "an answer has one of these batches"
