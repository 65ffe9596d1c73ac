"""The audit log: every event to every sink, and a sink that fails costs the others nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path

from kafka_dt.audit import AuditEvent, EventType, Outcome
from kafka_dt.audit.delivery import SinkFailed
from kafka_dt.audit.durability import Place
from kafka_dt.audit.files import EventFiles, FileRules
from kafka_dt.audit.recorder import Origin, QueuedLog, Recorder

PLENTY = 1024 * 1024


class Down:
    """A sink that never takes anything."""

    name = "the broker"

    def open(self) -> None:
        raise SinkFailed("down")

    def write(self, lines: Sequence[bytes]) -> None:
        raise SinkFailed(f"down, {len(lines)} lines wait")

    def tend(self) -> float | None:
        return None

    def close(self) -> None:
        raise SinkFailed("down")


class Files(EventFiles):
    """Files that are rolled at the end only."""

    def __init__(self, directory: Path) -> None:
        super().__init__(
            FileRules(
                directory=directory,
                node="n",
                worker=0,
                file_bytes=PLENTY,
                roll_ms=300_000,
                retention_ms=-1,
                now_ms=lambda: 0,
            )
        )


def event(number: int) -> AuditEvent:
    return AuditEvent(id=f"a-{number}", time=number, node="n-0", type=EventType.LOGIN, outcome=Outcome.OK)


def written(directory: Path) -> list[str]:
    return [json.loads(line)["id"] for path in sorted(directory.iterdir()) for line in path.read_text().splitlines()]


async def test_a_sink_that_fails_costs_the_others_nothing(tmp_path: Path) -> None:
    log = QueuedLog([Down(), Files(tmp_path)], buffer_bytes=PLENTY)
    log.start()
    for number in range(1000):
        log.record(event(number))
    await log.close()
    assert written(tmp_path) == [f"a-{number}" for number in range(1000)]
    assert log.lost == 1000


async def test_what_is_recorded_is_written_by_another_thread(tmp_path: Path) -> None:
    writers: list[str] = []

    class Named(Files):
        def write(self, lines: Sequence[bytes]) -> None:
            writers.append(threading.current_thread().name)
            super().write(lines)

    log = QueuedLog([Named(tmp_path)], buffer_bytes=PLENTY)
    log.start()
    log.record(event(1))
    await log.close()
    assert set(writers) == {f"audit to {tmp_path}"}


async def test_closing_twice_or_what_never_started_is_no_error(tmp_path: Path) -> None:
    log = QueuedLog([Files(tmp_path)], buffer_bytes=PLENTY)
    await log.close()
    log.start()
    await log.close()
    await log.close()
    assert written(tmp_path) == []


def test_a_recorder_numbers_its_events_and_connections() -> None:
    found: list[AuditEvent] = []

    class Kept:
        def record(self, event: AuditEvent) -> Place:
            found.append(event)
            return ()

    recorder = Recorder(Kept(), node="kdt1-0", instance="cafe", now_ms=lambda: 7)
    origin = Origin(listener="SASL", connection=recorder.connection(), client_port=1)
    recorder.record(EventType.TOKENS_DESCRIBED, Outcome.OK, origin, count=3)
    recorder.record(EventType.KEYS_CHANGED, Outcome.OK, keys=("k1",))
    assert [each.id for each in found] == ["cafe-1", "cafe-2"]
    assert (found[0].connection, recorder.connection()) == ("cafe-c1", "cafe-c2")
    assert (found[0].time, found[0].node, found[0].listener, found[0].count) == (7, "kdt1-0", "SASL", 3)
    assert (found[1].listener, found[1].keys) == (None, ("k1",))
