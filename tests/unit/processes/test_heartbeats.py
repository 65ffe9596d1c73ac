"""When a worker is taken to hang."""

from __future__ import annotations

import asyncio
import os
import time

from kafka_dt.processes import heartbeats
from kafka_dt.processes.heartbeats import ALIVE, Watch, beat, beat_once

TIMEOUT_S = 0.5


async def test_a_worker_that_was_heard_and_falls_silent_hangs() -> None:
    watch = Watch(TIMEOUT_S)
    watch.heard()
    await asyncio.wait_for(watch.silence(), 30)


async def test_a_pause_of_the_supervisor_is_not_the_silence_of_a_worker() -> None:
    watch = Watch(TIMEOUT_S)
    watch.heard()
    silence = asyncio.create_task(watch.silence())
    await asyncio.sleep(0)
    time.sleep(3 * TIMEOUT_S)  # noqa: ASYNC251 - a supervisor that stands still, as with the whole machine
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not silence.done()
    await asyncio.wait_for(silence, 30)


async def test_a_worker_that_still_loads_its_program_has_longer() -> None:
    silence = asyncio.create_task(Watch(TIMEOUT_S).silence())
    heard = Watch(TIMEOUT_S)
    heard.heard()
    await heard.silence()
    assert not silence.done()
    silence.cancel()
    assert heartbeats.START_S > TIMEOUT_S


async def test_a_worker_beats_as_long_as_its_loop_turns() -> None:
    reading, writing = os.pipe()
    beating = asyncio.create_task(beat(writing, 0.001))
    for _ in range(3):
        assert await asyncio.to_thread(os.read, reading, len(ALIVE) + 1) == f"{ALIVE}\n".encode()
    beating.cancel()
    os.close(writing)
    os.close(reading)


def test_a_beat_waits_for_no_supervisor() -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    for _ in range(20_000):
        beat_once(writing)  # more than the pipe takes: it would block
    assert os.read(reading, 6) == b"alive\n"
    os.close(reading)
    beat_once(writing)
    os.close(writing)
