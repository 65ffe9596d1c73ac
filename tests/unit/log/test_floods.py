"""Floods of alike lines are a few lines and a number."""

import io
import logging
import threading
from collections.abc import Callable

from kafka_dt.log import of_peer
from kafka_dt.log.floods import PEERS_AT_LEAST, WINDOW_S, Floods, GuardedHandler, _call_later
from kafka_dt.log.text import OneLineFormatter

SITE_LINES = 100
PEER_LINES = SITE_LINES // PEERS_AT_LEAST


class MessageAlone(OneLineFormatter):
    """Lines without time, level and process."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        return super().formatMessage(record).partition("[test] ")[2]


class Log:
    """A logger with a guarded handler, in a test's time."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.stream = io.StringIO()
        self.handler = GuardedHandler(
            self.stream,
            Floods(SITE_LINES),
            monotonic=lambda: self.now,
            call_later=lambda s, f: self.timers.append((s, f)),
        )
        self.handler.setFormatter(MessageAlone("test", guarded=True))
        self.logger = logging.Logger("test")
        self.logger.addHandler(self.handler)

    def refuse(self, name: str, peer: str | None = None, error: BaseException | None = None) -> None:
        self.logger.warning("Refused: %s", name, extra=of_peer(peer) if peer else None, exc_info=error)

    def lines(self) -> list[str]:
        text = self.stream.getvalue()
        self.stream.seek(0)
        self.stream.truncate()
        return text.splitlines()

    def wait(self) -> None:
        """Let the time of the next timer come."""
        ((seconds, over),) = self.timers
        self.timers.clear()
        self.now += seconds
        over()


def test_a_flood_of_one_client_is_told_by_its_first_lines_and_a_number_when_it_just_stops() -> None:
    log = Log()
    for number in range(PEER_LINES + 1100):
        log.refuse(str(number), "10.0.0.7")
    assert log.lines() == [f"Refused: {number}" for number in range(PEER_LINES)]
    log.wait()
    assert log.lines() == [f"Refused: {PEER_LINES} ... and 1,099 more in 60 s"]
    assert log.timers == []


def test_a_flood_of_one_client_hides_no_line_of_another() -> None:
    log = Log()
    for number in range(1000):
        log.refuse(str(number), "10.0.0.7")
    log.lines()
    log.refuse("another", "10.0.0.8")
    assert log.lines() == ["Refused: another"]


def test_many_addresses_write_no_more_than_the_lines_of_one_statement() -> None:
    log = Log()
    for number in range(10_000):
        log.refuse(str(number), f"10.0.{number // 256}.{number % 256}")
    assert len(log.lines()) == SITE_LINES
    log.wait()
    assert log.lines() == [f"Refused: {SITE_LINES} ... and {9_999 - SITE_LINES:,} more in 60 s"]


def test_a_flood_of_one_statement_hides_no_line_of_another_statement_or_level() -> None:
    log = Log()
    for level in [logging.INFO] * 1000 + [logging.ERROR]:
        log.logger.log(level, "%d", level)
    log.logger.info("other")
    assert log.lines()[SITE_LINES:] == [str(logging.ERROR), "other"]


def test_tracebacks_that_repeat_are_held_back_as_well_and_the_number_has_none() -> None:
    log = Log()
    for _ in range(1000):
        log.refuse("x", "10.0.0.7", ValueError("why"))
    assert log.lines().count("    ValueError: why") == PEER_LINES
    log.wait()
    assert log.lines() == [f"Refused: x ... and {999 - PEER_LINES} more in 60 s"]


def test_a_flood_that_goes_on_is_told_in_each_window() -> None:
    log = Log()
    for _ in range(3):
        for _ in range(PEER_LINES + 5):
            log.refuse("x", "10.0.0.7")
        assert log.lines() == ["Refused: x"] * PEER_LINES
        log.wait()
        assert log.lines() == ["Refused: x ... and 4 more in 60 s"]


def test_a_line_after_the_window_tells_what_was_held_back_before_it() -> None:
    log = Log()
    for _ in range(PEER_LINES + 2):
        log.refuse("x", "10.0.0.7")
    log.lines()
    log.now += WINDOW_S
    log.refuse("y", "10.0.0.7")
    assert log.lines() == ["Refused: x ... and 1 more in 60 s", "Refused: y"]


def test_a_single_line_that_was_held_back_is_told_later_as_it_is() -> None:
    log = Log()
    for number in range(PEER_LINES + 1):
        log.refuse(str(number), "10.0.0.7")
    log.lines()
    log.wait()
    assert log.lines() == [f"Refused: {PEER_LINES}"]


def test_lines_with_values_by_name_are_held_back_too() -> None:
    log = Log()
    for _ in range(SITE_LINES + 2):
        log.logger.info("%(who)s", {"who": "bob"})
    log.lines()
    log.wait()
    assert log.lines() == ["bob ... and 1 more in 60 s"]


def test_the_end_tells_what_was_held_back() -> None:
    log = Log()
    for _ in range(PEER_LINES + 3):
        log.refuse("x", "10.0.0.7")
    log.lines()
    log.handler.close()
    assert log.lines() == ["Refused: x ... and 2 more in 60 s"]


def test_what_is_for_debugging_is_not_held_back() -> None:
    log = Log()
    for _ in range(1000):
        log.logger.debug("x")
    assert len(log.lines()) == 1000


def test_the_timer_of_a_process_calls() -> None:
    called = threading.Event()
    _call_later(0.0, called.set)
    assert called.wait(10.0)
