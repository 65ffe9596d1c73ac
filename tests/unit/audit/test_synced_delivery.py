"""The way of lines to files that are synced: batches, a sink that fails, the end."""

from __future__ import annotations

import asyncio
import logging
import tempfile
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from kafka_dt.audit import EventType, Outcome, synced
from kafka_dt.audit.delivery import BATCH_BYTES, LOST, EventKind, SinkFailed
from kafka_dt.audit.durability import AuditUnavailable, Durability
from kafka_dt.audit.synced import SyncedDelivery
from kafka_dt.audit.syncing import Syncing
from tests.support.server.requests import until

CHANGE = EventKind(EventType.ACL_CREATED, Outcome.OK)
WITHIN_S = 60.0
PLENTY = 64 * 1024 * 1024


class Held:
    """Files that the test lets fail."""

    name = "the files"

    def __init__(self) -> None:
        self.batches: list[list[bytes]] = []
        self.events: list[str] = []
        self.failure: Exception | None = None
        self.due: float | None = None
        self._unconfirmed: list[bytes] = []
        self._room = False
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the sink

    def open(self) -> None:
        self.events.append("open")

    def has_room(self, _lines: Sequence[bytes]) -> bool:
        return self._room

    def make_room(self, _lines: Sequence[bytes]) -> None:
        self.events.append("make_room")
        self._room = True

    def write(self, lines: Sequence[bytes]) -> int:
        if self.failure is not None:
            raise self.failure
        self._unconfirmed = list(lines)
        return self._file.fileno()

    def confirm(self) -> None:
        self.batches.append(self._unconfirmed)

    def take_back(self) -> None:
        self.events.append("take_back")

    def tend(self) -> float | None:
        self.events.append("tend")
        return self.due

    def close(self) -> None:
        self.events.append("close")
        self._file.close()

    @property
    def lines(self) -> list[bytes]:
        return [line for batch in self.batches for line in batch]


def numbered(count: int) -> list[bytes]:
    return [b"%d\n" % number for number in range(count)]


@asynccontextmanager
async def started(sink: Held, retry_seconds: float = 0.001) -> AsyncIterator[SyncedDelivery]:
    delivery = SyncedDelivery(sink, buffer_bytes=PLENTY, retry_seconds=retry_seconds)
    delivery.start()
    yield delivery
    await delivery.close(WITHIN_S)


async def written(delivery: SyncedDelivery, number: int) -> None:
    await until(lambda: delivery.written >= number)


async def put_all(delivery: SyncedDelivery, lines: Sequence[bytes]) -> None:
    """Put lines, each in a turn of the loop of its own."""
    for line in lines:
        assert delivery.put(line, CHANGE) != LOST
        await asyncio.sleep(0)


async def test_lines_come_in_order_and_those_of_one_sync_together() -> None:
    sink = Held()
    async with started(sink) as delivery:
        await put_all(delivery, numbered(1000))
        await written(delivery, 1000)
    assert sink.lines == numbered(1000)
    assert len(sink.batches) < 1000
    assert delivery.lost == 0
    assert (sink.events[0], sink.events[-1]) == ("open", "close")


async def test_progress_is_told_on_the_loop_when_a_batch_is_durable() -> None:
    sink, told = Held(), list[int]()
    async with started(sink) as delivery:
        delivery.on_progress = lambda: told.append(len(sink.lines))
        await put_all(delivery, numbered(3))
        await written(delivery, 3)
    assert told == sorted(told)
    assert told[-1] == 3


async def test_room_is_made_once_and_the_sink_is_tended_after_it() -> None:
    sink = Held()
    async with started(sink) as delivery:
        await written(delivery, delivery.put(b"1\n", CHANGE))
        await written(delivery, delivery.put(b"2\n", CHANGE))
    assert sink.events.count("make_room") == 1
    assert "tend" in sink.events[sink.events.index("make_room") :]


async def test_a_sink_that_fails_gets_the_same_lines_again(caplog: pytest.LogCaptureFixture) -> None:
    sink = Held()
    sink.failure = SinkFailed("No space left on device")
    with caplog.at_level(logging.INFO):
        async with started(sink) as delivery:
            delivery.put(b"1\n", CHANGE)
            await until(lambda: sink.events.count("take_back") > 3)
            assert delivery.failing
            sink.failure = None
            await until(lambda: delivery.written == 1)
            assert not delivery.failing
    assert sink.lines == [b"1\n"]
    assert caplog.text.count("No space left on device") == 1
    assert "are written to the files again" in caplog.text


async def test_a_sync_that_fails_is_a_batch_that_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    sink, begin, failed = Held(), Syncing.begin, list[int]()

    def fail_once(syncing: Syncing, descriptor: int) -> None:
        if failed:
            begin(syncing, descriptor)
        else:
            failed.append(descriptor)
            asyncio.get_running_loop().call_soon(syncing._synced, SinkFailed("Input/output error"))

    monkeypatch.setattr(Syncing, "begin", fail_once)
    async with started(sink) as delivery:
        await put_all(delivery, numbered(5))
        await until(lambda: delivery.written == 5)
    assert sink.lines == numbered(5)
    assert sink.events.count("take_back") == 1


@pytest.mark.parametrize("step", ["open", "has_room", "make_room", "write", "confirm", "tend"])
async def test_an_unexpected_error_ends_nothing_and_loses_no_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, step: str
) -> None:
    def fail(*_lines: Sequence[bytes]) -> None:
        monkeypatch.delattr(sink, step)
        raise ZeroDivisionError

    sink = Held()
    monkeypatch.setattr(sink, step, fail)
    async with started(sink) as delivery:
        await put_all(delivery, numbered(5))
        await written(delivery, 5)
    assert sink.lines == numbered(5)
    assert "because of an unexpected error" in caplog.text


async def test_the_end_gives_up_on_a_sink_that_fails_and_counts_what_is_lost() -> None:
    sink = Held()
    sink.failure = SinkFailed("full")
    async with started(sink, retry_seconds=3_600) as delivery:
        for line in numbered(5):
            delivery.put(line, CHANGE)
        await until(lambda: delivery.failing)
    assert delivery.lost == 5
    assert delivery.lost_by_kind() == {CHANGE: 5}


async def test_the_end_waits_for_a_sink_that_hangs_no_longer_than_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Syncing, "begin", lambda _syncing, _descriptor: None)
    sink = Held()
    delivery = SyncedDelivery(sink, buffer_bytes=PLENTY)
    delivery.start()
    delivery.put(b"1\n", CHANGE)
    await until(lambda: "make_room" in sink.events)
    delivery.put(b"2\n", CHANGE)
    await delivery.close(0.01)
    assert "lost: up to 2" in caplog.text
    assert delivery.lost_by_kind() == {CHANGE: 2}
    sink.close()


async def test_who_waits_for_a_sync_that_hangs_is_refused_until_it_ends(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    hanging, begin = list[tuple[Syncing, int]](), Syncing.begin
    monkeypatch.setattr(synced, "PATIENCE_SECONDS", 0.02)
    monkeypatch.setattr(Syncing, "begin", lambda *of: hanging.append(of))
    sink = Held()
    async with started(sink) as delivery:
        durability = Durability([delivery])
        durability.start()
        with pytest.raises(AuditUnavailable):
            await durability.of((delivery.put(b"1\n", CHANGE),))
        assert not durability.possible
        assert "has not answered for 0.02 s" in caplog.text
        await until(lambda: bool(hanging))
        monkeypatch.setattr(Syncing, "begin", begin)
        begin(*hanging[0])
        await until(lambda: durability.possible)
        await durability.of((delivery.put(b"2\n", CHANGE),))
    assert sink.lines == numbered(3)[1:], "also the event of the one that was refused"


async def test_who_waits_for_a_folder_that_hangs_is_refused_until_it_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    sink, back = Held(), threading.Event()
    make_room = sink.make_room
    monkeypatch.setattr(synced, "PATIENCE_SECONDS", 0.02)
    monkeypatch.setattr(sink, "make_room", lambda lines: (back.wait(), make_room(lines)))
    async with started(sink) as delivery:
        durability = Durability([delivery])
        durability.start()
        with pytest.raises(AuditUnavailable):
            await durability.of((delivery.put(b"1\n", CHANGE),))
        assert not durability.possible
        back.set()
        await until(lambda: durability.possible)
    assert sink.lines == [b"1\n"]


async def test_a_sink_that_goes_on_is_waited_for_however_long_many_lines_take(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    begin = Syncing.begin

    def late(syncing: Syncing, descriptor: int) -> None:
        asyncio.get_running_loop().call_later(0.02, begin, syncing, descriptor)

    monkeypatch.setattr(synced, "PATIENCE_SECONDS", 0.2)
    monkeypatch.setattr(Syncing, "begin", late)
    async with started(Held()) as delivery:
        for line in numbered(30):
            await asyncio.sleep(0.02)
            delivery.put(line, CHANGE)
        await written(delivery, 30)
    assert not caplog.text


async def test_a_process_can_end_while_a_folder_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    sink, threads, back = Held(), list[threading.Thread](), threading.Event()

    def hang(_lines: Sequence[bytes]) -> None:
        threads.append(threading.current_thread())
        back.wait()

    monkeypatch.setattr(sink, "make_room", hang)
    delivery = SyncedDelivery(sink, buffer_bytes=PLENTY)
    delivery.start()
    delivery.put(b"1\n", CHANGE)
    await until(lambda: len(threads) == 1)
    await delivery.close(0.01)
    (thread,) = threads
    assert thread.daemon, "Python waits for other threads at the end of a process"
    back.set()
    thread.join()
    sink.close()


async def test_the_end_delivers_what_waits_in_several_batches_and_ends(caplog: pytest.LogCaptureFixture) -> None:
    sink = Held()
    lines = [b"x" * BATCH_BYTES + b"%d\n" % number for number in range(3)]
    async with started(sink) as delivery:
        await written(delivery, delivery.put(b"1\n", CHANGE))
        for line in lines:
            delivery.put(line, CHANGE)
    assert sink.batches == [[b"1\n"], *([line] for line in lines)]
    assert sink.events[-1] == "close"
    assert "in time" not in caplog.text


async def test_what_never_started_ends_at_once() -> None:
    sink = Held()
    await SyncedDelivery(sink, buffer_bytes=PLENTY).close(WITHIN_S)
    assert sink.events == []
    sink.close()


async def test_a_sink_is_tended_when_it_says_so() -> None:
    sink = Held()
    sink.due = 0.001
    async with started(sink):
        await until(lambda: sink.events.count("tend") > 3)
