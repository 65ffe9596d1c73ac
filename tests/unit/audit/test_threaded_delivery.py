"""The way of lines to a sink, with real threads: order, batches, a sink that fails, and the count of what is lost."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

import pytest

from kafka_dt.audit import EventType, Outcome
from kafka_dt.audit.delivery import BATCH_BYTES, KINDS, Budget, EventKind, SinkFailed
from kafka_dt.audit.threaded import ThreadedDelivery
from tests.support.processes.waiting import eventually

CHANGE = EventKind(EventType.ACL_CREATED, Outcome.OK)
LOGIN = EventKind(EventType.LOGIN, Outcome.OK)
FAILED_LOGIN = EventKind(EventType.LOGIN, Outcome.REFUSED)
REFUSED_CHANGE = EventKind(EventType.ACL_CREATED, Outcome.REFUSED)
WITHIN_S = 60.0
PLENTY = 64 * 1024 * 1024


class Held:
    """A sink that the test lets fail, wait, or go on."""

    name = "the sink"

    def __init__(self) -> None:
        self.batches: list[list[bytes]] = []
        self.failure: Exception | None = None
        self.gate = threading.Event()
        self.gate.set()
        self.waiting = threading.Event()
        self.opened = self.closed = False
        self.tended = 0
        self.due: float | None = None

    @property
    def lines(self) -> list[bytes]:
        return [line for batch in self.batches for line in batch]

    def open(self) -> None:
        self.opened = True

    def write(self, lines: Sequence[bytes]) -> None:
        self.waiting.set()
        self.gate.wait(WITHIN_S)
        if self.failure is not None:
            if isinstance(self.failure, SinkFailed):
                self.batches.append(list(lines[: self.failure.written]))
            raise self.failure
        self.batches.append(list(lines))

    def tend(self) -> float | None:
        self.tended += 1
        return self.due

    def close(self) -> None:
        self.closed = True


def started(sink: Held, buffer_bytes: int = PLENTY) -> ThreadedDelivery:
    delivery = ThreadedDelivery(sink, buffer_bytes=buffer_bytes, linger_seconds=0.001, retry_seconds=0.001)
    delivery.start()
    return delivery


def numbered(count: int) -> list[bytes]:
    return [b"%d\n" % number for number in range(count)]


def test_lines_come_in_order_and_together() -> None:
    sink = Held()
    delivery = started(sink)
    for line in numbered(1000):
        delivery.put(line, CHANGE)
    delivery.join(WITHIN_S)
    assert sink.lines == numbered(1000)
    assert len(sink.batches) < 1000
    assert (sink.opened, sink.closed, delivery.lost) == (True, True, 0)


def test_lines_that_are_put_before_the_start_are_delivered() -> None:
    sink = Held()
    delivery = ThreadedDelivery(sink, buffer_bytes=PLENTY)
    delivery.put(b"early\n", CHANGE)
    delivery.start()
    delivery.join(WITHIN_S)
    assert sink.lines == [b"early\n"]


def test_the_first_line_after_a_pause_is_written_at_once_and_the_lines_after_it_are_gathered() -> None:
    sink = Held()
    delivery = ThreadedDelivery(sink, buffer_bytes=PLENTY, linger_seconds=3_600)
    delivery.start()
    delivery.put(b"first\n", CHANGE)
    eventually(lambda: sink.batches == [[b"first\n"]], WITHIN_S)
    for line in numbered(100):
        delivery.put(line, CHANGE)
    delivery.join(WITHIN_S)
    assert sink.batches == [[b"first\n"], numbered(100)]


def test_a_batch_has_a_bound() -> None:
    sink = Held()
    delivery = started(sink)
    line = b"x" * (BATCH_BYTES // 4) + b"\n"
    for _ in range(20):
        delivery.put(line, CHANGE)
    delivery.join(WITHIN_S)
    assert sink.lines == [line] * 20
    assert max(map(len, sink.batches)) <= 4


def test_what_has_no_room_is_counted_and_the_rest_arrives() -> None:
    sink = Held()
    sink.gate.clear()
    delivery = started(sink, buffer_bytes=100)
    for line in (b"0123456789" for _ in range(25)):
        delivery.put(line, CHANGE)
    assert delivery.lost == 15
    sink.gate.set()
    eventually(lambda: len(sink.lines) == 10, WITHIN_S)
    delivery.put(b"0123456789", CHANGE)
    delivery.join(WITHIN_S)
    assert len(sink.lines) == 11
    assert delivery.lost == 15


def test_putting_waits_for_nobody() -> None:
    sink = Held()
    sink.gate.clear()
    delivery = started(sink)
    delivery.put(b"first\n", CHANGE)
    assert sink.waiting.wait(WITHIN_S)
    for line in numbered(10_000):
        delivery.put(line, CHANGE)  # would hang here
    sink.gate.set()
    delivery.join(WITHIN_S)
    assert len(sink.lines) == 10_001


def test_a_sink_that_fails_gets_the_same_lines_again_in_order(caplog: pytest.LogCaptureFixture) -> None:
    sink = Held()
    sink.failure = SinkFailed("the disk is full")
    delivery = started(sink)
    with caplog.at_level(logging.INFO):
        for line in numbered(100):
            delivery.put(line, CHANGE)
        eventually(lambda: len(sink.batches) > 3, WITHIN_S)
        sink.failure = None
        eventually(lambda: len(sink.lines) == 100, WITHIN_S)
        delivery.join(WITHIN_S)
    assert sink.lines == numbered(100)
    assert delivery.lost == 0
    assert caplog.text.count("the disk is full") == 1
    assert caplog.text.count("written to the sink again") == 1


def test_lines_that_are_safe_although_the_batch_failed_are_not_sent_again() -> None:
    sink = Held()
    sink.failure = SinkFailed("no answer", written=3)
    delivery = ThreadedDelivery(sink, buffer_bytes=PLENTY, linger_seconds=0.001, retry_seconds=0.001)
    for line in numbered(10):
        delivery.put(line, CHANGE)
    delivery.start()
    delivery.join(WITHIN_S)
    # One attempt: it was closing by then, or three lines went with each.
    assert sink.lines == numbered(10)[: len(sink.lines)]
    assert delivery.lost == 10 - len(sink.lines)


def test_what_nobody_foresaw_does_not_end_the_thread(caplog: pytest.LogCaptureFixture) -> None:
    sink = Held()
    sink.failure = ZeroDivisionError("the detail")
    delivery = started(sink)
    delivery.put(b"line\n", CHANGE)
    eventually(lambda: "because of an unexpected error" in caplog.text, WITHIN_S)
    sink.failure = None
    eventually(lambda: sink.lines == [b"line\n"], WITHIN_S)
    delivery.join(WITHIN_S)
    assert delivery.lost == 0


def test_the_end_does_not_wait_for_a_sink_that_fails_and_counts_what_is_lost(caplog: pytest.LogCaptureFixture) -> None:
    sink = Held()
    sink.failure = SinkFailed("the broker is down")
    delivery = started(sink)
    for line in numbered(50):
        delivery.put(line, CHANGE)
    delivery.join(WITHIN_S)
    assert delivery.lost == 50
    assert sink.closed
    assert "are lost: 50 so far" in caplog.text


def test_the_end_does_not_wait_for_a_sink_that_hangs(caplog: pytest.LogCaptureFixture) -> None:
    sink = Held()
    sink.gate.clear()
    delivery = started(sink)
    delivery.put(b"line\n", CHANGE)
    assert sink.waiting.wait(WITHIN_S)
    delivery.put(b"behind it\n", CHANGE)
    delivery.join(0.05)
    assert "did not take the last audit events in time; lost: up to 2" in caplog.text
    assert delivery.lost_by_kind() == {CHANGE: 2}
    sink.gate.set()


def test_loss_is_told_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    now = [1000.0]
    sink = Held()
    sink.name = "the full disk"
    sink.failure = SinkFailed("full")
    delivery = ThreadedDelivery(
        sink, buffer_bytes=4, monotonic=lambda: now[0], linger_seconds=0.001, retry_seconds=0.001
    )
    delivery.start()
    for line in numbered(10):
        delivery.put(line, CHANGE)
    eventually(lambda: "are lost: 8 so far" in caplog.text, WITHIN_S)
    for line in numbered(10):
        delivery.put(line, CHANGE)
    batches = len(sink.batches)
    eventually(lambda: len(sink.batches) > batches + 5, WITHIN_S)
    assert caplog.text.count("the full disk are lost") == 1, "deliveries of other tests may still tell of theirs"
    now[0] += 31
    eventually(lambda: "are lost: 18 so far" in caplog.text, WITHIN_S)
    sink.failure = None
    delivery.join(WITHIN_S)


def test_a_sink_is_tended_when_it_says_so_though_nothing_comes() -> None:
    sink = Held()
    sink.due = 0.001
    delivery = started(sink)
    eventually(lambda: sink.tended > 5, WITHIN_S)
    delivery.join(WITHIN_S)


def test_closing_what_never_started_is_no_error() -> None:
    ThreadedDelivery(Held(), buffer_bytes=PLENTY).join(WITHIN_S)


@pytest.mark.parametrize("flood", [kind for kind in KINDS if kind.budget is not Budget.CHANGES], ids=str)
def test_no_flood_displaces_a_successful_change(flood: EventKind) -> None:
    sink = Held()
    sink.gate.clear()
    delivery = started(sink, buffer_bytes=1000)
    for _ in range(1000):
        delivery.put(b"0123456789", flood)
    for line in numbered(50):
        delivery.put(line, CHANGE)
    sink.gate.set()
    delivery.join(WITHIN_S)
    assert set(numbered(50)) <= set(sink.lines)
    assert set(delivery.lost_by_kind()) == {flood}


def test_no_flood_of_refusals_displaces_a_login() -> None:
    sink = Held()
    sink.gate.clear()
    delivery = started(sink, buffer_bytes=1000)
    for kind in (FAILED_LOGIN, REFUSED_CHANGE):
        for _ in range(1000):
            delivery.put(b"0123456789", kind)
    for line in numbered(50):
        delivery.put(line, LOGIN)
    sink.gate.set()
    delivery.join(WITHIN_S)
    assert set(numbered(50)) <= set(sink.lines)
    assert set(delivery.lost_by_kind()) == {FAILED_LOGIN, REFUSED_CHANGE}


def test_all_kinds_together_keep_within_the_buffer() -> None:
    delivery = ThreadedDelivery(Held(), buffer_bytes=1000)
    for _ in range(200):
        for kind in KINDS:
            delivery.put(b"0123456789", kind)
    assert len(KINDS) * 200 - delivery.lost == 100


def test_a_line_that_is_longer_than_the_share_of_its_kind_is_taken_when_nothing_else_waits() -> None:
    delivery = ThreadedDelivery(Held(), buffer_bytes=100)
    delivery.put(b"x" * 60, FAILED_LOGIN)
    assert delivery.lost == 0
    delivery.put(b"x", FAILED_LOGIN)
    assert delivery.lost == 1


def test_what_was_lost_is_told_by_kind(caplog: pytest.LogCaptureFixture) -> None:
    sink = Held()
    sink.failure = SinkFailed("full")
    delivery = ThreadedDelivery(sink, buffer_bytes=100, linger_seconds=0.001, retry_seconds=0.001)
    for kind, count in ((FAILED_LOGIN, 30), (REFUSED_CHANGE, 7), (CHANGE, 2)):
        for _ in range(count):
            delivery.put(b"0123456789", kind)
    delivery.start()
    delivery.join(WITHIN_S)
    assert delivery.lost == 39
    assert "39 so far (30 login refused, 2 acl_created ok, 7 acl_created refused)" in caplog.text
