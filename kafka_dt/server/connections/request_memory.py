"""Bound the bytes that the connections of a worker hold: requests that have not arrived whole, and answers not read.

    memory.hold(connection, size, frames=..., unfinished=...)   # after each piece that arrived
    memory.release(connection)                                  # nothing is held any more

Each worker has an equal share of the node's limit, three quarters of it for long requests and one for short ones, so
that long requests that do not go on arriving cannot keep out a login or a create:

- A request of a client that has logged in becomes long when more than `SHORT_BYTES` of it have arrived. While long
  requests hold their part of the share, nothing more is read of them. They go on, in the order in which they began to
  wait, when others end.
- Short ones are always read, and all of clients that have not logged in. Beyond their part the oldest is closed.
- A request that is longer than the share needs the node's `Turn`, which one request at a time has. A worker that has
  given the turn back takes it again in the second sweep after that: the sweeps of the others come before.
- A request that takes longer than `timeout_s` to arrive is closed. While the node does not take the request, because
  one before it is being served, its time stands still.

Unread answers have a share of the same size. Beyond it the connection is closed whose client has read nothing for the
longest time. What a call costs does not depend on how many connections hold something: any stranger can hold a byte.

Limits: what TLS and a socket buffer for each connection is not counted (17 KiB in the process, more in the kernel),
and a request takes more memory while it is decoded and served. What two answers share is counted for both. A piece
that a gateway holds while the upstream takes none is not counted.

Source: org.apache.kafka.common.memory.SimpleMemoryPool (`queued.max.request.bytes`, KIP-72), which also takes one
request beyond its limit.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from kafka_dt.config import ConfigError, Settings

SHORT_BYTES: Final = 64 * 1024
"""A request of which no more has arrived is short, however long it says it is."""
PIECE_BYTES: Final = 256 * 1024
"""What a connection may bring before it can be told to wait: the most that uvloop reads at once."""
SWEEP_SECONDS: Final = 1.0
"""Overdue requests are looked for at least this often."""
SWEEPS_WITHOUT_TURN: Final = 2
"""The first of them may come at once; between the two is a sweep of each other worker."""
_SETTING: Final = "kafka.dt.request.buffer.bytes"
_KAFKAS_SETTING: Final = "queued.max.request.bytes"


def request_buffer_bytes(settings: Settings) -> int:
    """Give the limit of a node, in bytes.

    Raises:
        ConfigError: `queued.max.request.bytes` is less than the largest request.
    """
    if settings.queued_max_request_bytes <= 0:
        return settings.request_buffer_bytes
    if settings.queued_max_request_bytes < settings.socket_request_max_bytes:
        reason = f"it is less than socket.request.max.bytes, {settings.socket_request_max_bytes}"
        raise ConfigError(_KAFKAS_SETTING, reason)
    return settings.queued_max_request_bytes


class Holder(Protocol):
    """A connection that holds bytes."""

    def pause_for_memory(self) -> None:
        """Read nothing until `resume_for_memory`."""

    def resume_for_memory(self) -> None:
        """Read again."""

    def give_up(self, reason: str) -> None:
        """Close at once and hold nothing; the reason is one line for the log."""


class Turn(Protocol):
    """What one request of a node has at a time."""

    def take(self) -> bool:
        """Take it; False while another request has it."""

    def give_back(self) -> None:
        """Let another request have it."""


@dataclass(slots=True)
class _Held:
    """What one connection holds."""

    size: int
    frames: int
    paused: bool = False
    has_turn: bool = False


class RequestMemory:
    """The unfinished requests and unread answers of one worker.

    Args:
        share_bytes: the worker's share of the node's limit.
        timeout_s: how many seconds a request may take to arrive.
        clock: seconds; never goes back.
        turn: shared by all workers of the node.
    """

    def __init__(self, share_bytes: int, timeout_s: float, clock: Callable[[], float], turn: Turn) -> None:
        self._timeout_s = timeout_s
        self._clock = clock
        self._turn = turn
        self._turn_taken = False
        self._sweeps_without_turn = 0
        self._short = _Part(share_bytes // 4)
        self._long = _Part(share_bytes - self._short.limit)
        self._unread = _Part(share_bytes)
        # When each unfinished request began to arrive, or last stood still, by the clock: the earliest is the first.
        self._arriving: OrderedDict[Holder, float] = OrderedDict()

    @property
    def sweep_seconds(self) -> float:
        """How often `sweep` is to be called."""
        return min(SWEEP_SECONDS, self._timeout_s / 4)

    def hold(self, holder: Holder, size: int, *, frames: int, unfinished: bool, logged_in: bool = True) -> None:
        """Say what a connection holds now.

        Args:
            holder: the connection.
            size: in bytes, more than 0.
            frames: how many requests it has completed; with another number this is another request than before.
            unfinished: whether more has to come from the client before anything can be done.
            logged_in: whether its client has, or need not; else the request stays a short one.
        """
        held = self._short.held.get(holder) or self._long.held.get(holder)
        if held is not None and held.frames != frames:
            self.release(holder)
            held = None
        if held is None:
            held = _Held(0, frames)
            self._short.put(holder, held)
        if not unfinished:
            self._arriving.pop(holder, None)
        elif holder not in self._arriving:
            self._arriving[holder] = self._clock()
        part = self._long if holder in self._long.held else self._short
        part.resize(held, size)
        self._judge(holder, held, may_wait=logged_in)

    def release(self, holder: Holder) -> None:
        """Forget a connection: it holds no request, or is closed."""
        held = self._drop(holder)
        if held is not None:
            if held.paused:
                holder.resume_for_memory()
            self._go_on()

    def unread(self, holder: Holder, size: int) -> None:
        """Say how many bytes wait for a client that does not read them; said again, they wait no less long."""
        held = self._unread.held.get(holder)
        if held is None:
            self._unread.put(holder, _Held(size, 0))
        else:
            self._unread.resize(held, size)
        self._evict(self._unread, "unread answers")

    def read(self, holder: Holder) -> None:
        """Forget the unread answers of a client: it has read them, or the connection is closed."""
        self._unread.pop(holder)

    def sweep(self) -> None:
        """Close what has taken too long to arrive, and let the others have its memory."""
        latest = self._clock() - self._timeout_s
        while self._arriving:
            holder, since = next(iter(self._arriving.items()))
            if since > latest:
                break
            self._give_up(holder, f"a request has not arrived within {self._timeout_s:g} s")
        self._sweeps_without_turn = max(0, self._sweeps_without_turn - 1)
        self._go_on()

    def _judge(self, holder: Holder, held: _Held, *, may_wait: bool) -> None:
        """Decide whether a connection goes on, waits, or costs another one its place."""
        if may_wait and holder not in self._long.held and held.size > SHORT_BYTES:
            if self._long.size + held.size <= self._long.limit:
                self._short.pop(holder)
                self._long.put(holder, held)
            else:
                self._short.pause(holder)
        if self._long.size > self._long.limit:
            for other, its in tuple(self._long.running.items()):
                if not its.has_turn:
                    self._long.pause(other)
        self._give_turn()
        self._evict(self._short, "unfinished request")

    def _go_on(self) -> None:
        """Let requests that wait go on as far as there is memory."""
        room = self._long.limit - self._long.size
        while (waiting := self._first_waiting()) is not None:
            holder, held = waiting
            room -= PIECE_BYTES if holder in self._long.held else held.size
            if room < 0:
                break
            self._proceed(holder, held)
        self._give_turn()

    def _give_turn(self) -> None:
        """Let the first request that waits go on beyond the share, if no other request of the node does."""
        if self._turn_taken or self._sweeps_without_turn:
            return
        waiting = self._first_waiting()
        if waiting is None or not self._turn.take():
            return
        holder, held = waiting
        self._turn_taken = held.has_turn = True
        self._proceed(holder, held)

    def _first_waiting(self) -> tuple[Holder, _Held] | None:
        """Give the connection that goes on next: one of those that are long already, if there is one."""
        waiting = self._long.waiting or self._short.waiting
        return next(iter(waiting.items())) if waiting else None

    def _proceed(self, holder: Holder, held: _Held) -> None:
        """Read a connection that has waited, and count its request among the long ones."""
        (self._long if holder in self._long.held else self._short).pop(holder)
        held.paused = False
        self._long.put(holder, held)
        holder.resume_for_memory()

    def _drop(self, holder: Holder) -> _Held | None:
        self._arriving.pop(holder, None)
        held = self._short.pop(holder) or self._long.pop(holder)
        if held is not None and held.has_turn:
            self._turn_taken = held.has_turn = False
            self._sweeps_without_turn = SWEEPS_WITHOUT_TURN
            self._turn.give_back()
        return held

    def _evict(self, part: _Part, what: str) -> None:
        """Close the oldest of a part until the others fit; the last one may stay."""
        while part.size > part.limit and len(part.held) > 1:
            self._give_up(next(iter(part.held)), f"other clients need the memory of its {what} ({_SETTING})")

    def _give_up(self, holder: Holder, reason: str) -> None:
        self._drop(holder)
        self._unread.pop(holder)
        holder.give_up(reason)


class _Part:
    """Connections in the order in which they came, and how much they hold together.

    The first of an `OrderedDict` is found at once; a `dict` looks at the places of all that were first before.
    """

    __slots__ = ("held", "limit", "running", "size", "waiting")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0
        self.held: OrderedDict[Holder, _Held] = OrderedDict()
        self.running: dict[Holder, _Held] = {}
        """Those of them that are read."""
        self.waiting: OrderedDict[Holder, _Held] = OrderedDict()
        """Those that are not, in the order in which they began to wait."""

    def put(self, holder: Holder, held: _Held) -> None:
        self.pop(holder)
        self.held[holder] = held
        self.size += held.size
        (self.waiting if held.paused else self.running)[holder] = held

    def pop(self, holder: Holder) -> _Held | None:
        held = self.held.pop(holder, None)
        if held is not None:
            self.size -= held.size
            del (self.waiting if held.paused else self.running)[holder]
        return held

    def resize(self, held: _Held, size: int) -> None:
        self.size += size - held.size
        held.size = size

    def pause(self, holder: Holder) -> None:
        """Read no more of one of them, unless it waits already."""
        held = self.running.pop(holder, None)
        if held is not None:
            held.paused = True
            self.waiting[holder] = held
            holder.pause_for_memory()
