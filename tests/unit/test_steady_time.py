"""Time that passes only while a loop waits: the tests of timers rest on it."""

from __future__ import annotations

import asyncio
import time

import pytest

pytestmark = pytest.mark.usefixtures("steady_time")


async def test_what_the_loop_does_takes_no_time_and_a_timer_is_never_late() -> None:
    loop = asyncio.get_running_loop()
    begun_s, real_s = loop.time(), time.monotonic()
    time.sleep(0.05)  # noqa: ASYNC251 - a machine that stands still
    assert loop.time() == begun_s
    await asyncio.sleep(3600)
    assert loop.time() == pytest.approx(begun_s + 3600, abs=1e-6)
    assert time.monotonic() - real_s < 3600


async def test_timers_go_off_in_their_order_and_what_arrives_comes_before_them() -> None:
    heard: list[object] = []

    async def note(delay_s: float) -> None:
        await asyncio.sleep(delay_s)
        heard.append(delay_s)

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readline())
        writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    timers = [asyncio.create_task(note(delay_s)) for delay_s in (30, 10, 20)]
    writer.write(b"first\n")
    await asyncio.gather(*timers)
    assert heard == [b"first\n", 10, 20, 30]
    writer.close()
    server.close()
