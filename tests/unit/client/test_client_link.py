"""The bytes of a connection: frames in, pressure out, and who has them next."""

from __future__ import annotations

import asyncio

import pytest

from kafka_dt.client.connection import Link
from kafka_dt_protocol.errors import InvalidFrameLength
from kafka_dt_protocol.wire.frames import frame


class Transport(asyncio.Transport):
    """Writes down what is done to it."""

    def __init__(self) -> None:
        super().__init__()
        self.done: list[object] = []
        self.closing = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.done.append(bytes(data))

    def pause_reading(self) -> None:
        self.done.append("pause")

    def resume_reading(self) -> None:
        self.done.append("resume")

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.closing = True
        self.done.append("close")

    def abort(self) -> None:
        self.closing = True
        self.done.append("abort")

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.done.append(protocol)


@pytest.fixture
async def transport() -> Transport:
    return Transport()


@pytest.fixture
async def link(transport: Transport) -> Link:
    made = Link(1_000_000)
    made.connection_made(transport)
    return made


async def begun(task: asyncio.Task[object]) -> None:
    await asyncio.sleep(0)
    assert not task.done()


async def test_a_frame_is_waited_for_until_it_is_whole(link: Link) -> None:
    reading = asyncio.create_task(link.next_frame())
    await begun(reading)
    link.data_received(frame(b"answer")[:7])
    await begun(reading)
    link.data_received(frame(b"answer")[7:])
    assert await reading == b"answer"


async def test_what_came_before_the_end_is_still_given(link: Link) -> None:
    link.data_received(frame(b"answer"))
    link.eof_received()
    assert not link.usable
    assert await link.next_frame() == b"answer"
    with pytest.raises(EOFError):
        await link.next_frame()


@pytest.mark.parametrize("error", [None, ConnectionResetError("gone")])
async def test_whoever_waits_hears_of_the_end(link: Link, error: Exception | None) -> None:
    link.pause_writing()
    waiting = [asyncio.create_task(link.next_frame()), asyncio.create_task(link.drain())]
    await begun(waiting[0])
    link.connection_lost(error)
    for task in waiting:
        with pytest.raises(type(error) if error else EOFError):
            await task


async def test_a_drain_waits_for_room(link: Link) -> None:
    await link.drain()
    link.pause_writing()
    draining = asyncio.create_task(link.drain())
    await begun(draining)
    link.resume_writing()
    await draining


async def test_a_wait_can_be_given_up(link: Link) -> None:
    for wait in (link.next_frame, link.drain):
        link.pause_writing()
        task = asyncio.create_task(wait())
        await begun(task)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    link.data_received(frame(b"answer"))
    link.resume_writing()
    assert await link.next_frame() == b"answer"
    await link.drain()


async def test_a_server_that_sends_what_nobody_waits_for_is_held_back(link: Link, transport: Transport) -> None:
    long = frame(bytes(100_000))
    link.data_received(long[:65536])
    assert transport.done == []
    link.data_received(long[65536:90_000])
    assert transport.done == ["pause"]
    reading = asyncio.create_task(link.next_frame())
    await begun(reading)
    assert transport.done == ["pause", "resume"]
    link.data_received(long[90_000:])
    assert await reading == bytes(100_000)
    assert transport.done == ["pause", "resume"]


async def test_a_length_that_cannot_be_is_an_error(link: Link) -> None:
    link.data_received(b"\x7f\xff\xff\xff")
    with pytest.raises(InvalidFrameLength):
        await link.next_frame()


async def test_closing_waits_for_the_end_and_not_for_ever(link: Link, transport: Transport) -> None:
    closing = asyncio.create_task(link.close(5))
    await begun(closing)
    link.connection_lost(None)
    await closing
    assert transport.done == ["close"]
    other = Link(1_000)
    other.connection_made(transport)
    await other.close(0.01)
    assert transport.done == ["close", "close", "abort"]


async def test_another_protocol_can_take_its_place(link: Link, transport: Transport) -> None:
    other = asyncio.Protocol()
    assert link.hand_over(other) is transport
    assert transport.done == [other]


async def test_whoever_takes_its_place_gets_what_comes(link: Link, transport: Transport) -> None:
    link.data_received(frame(bytes(100_000)))
    await link.next_frame()
    other = asyncio.Protocol()
    link.hand_over(other)
    assert transport.done == ["pause", other, "resume"]


@pytest.mark.parametrize("too_late", ["eof", "closing", "bytes"])
async def test_a_connection_that_has_ended_or_tells_of_itself_is_not_handed_over(
    link: Link, transport: Transport, too_late: str
) -> None:
    match too_late:
        case "eof":
            link.eof_received()
        case "closing":
            transport.closing = True
        case _:
            link.data_received(b"unasked")
    with pytest.raises(EOFError):
        link.hand_over(asyncio.Protocol())
    assert transport.done == ["abort"]
