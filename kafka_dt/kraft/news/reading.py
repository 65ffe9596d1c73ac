"""Read one replica of the topic of news, from its end on.

    reader = Reader(topic, connect, number, hearer=knowledge, counts=counts, monotonic=time.monotonic)
    await reader.read_for_ever()

Source: KIP-392 (consumers may read replicas that do not lead); docs/decisions/0034-news-of-revocations.md.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from kio.schema.errors import ErrorCode

from kafka_dt.client import RequestRefused
from kafka_dt.kraft.news.member import Member, NoMember, for_ever, leader_of
from kafka_dt.kraft.news.records import read
from kafka_dt.kraft.news.topic import TopicState, end_offset, fetch

if TYPE_CHECKING:
    from uuid import UUID

    from kafka_dt.client import Address
    from kafka_dt.client.session import ClientSession
    from kafka_dt.kraft.news.message import Revocation
    from kafka_dt.metrics import Counts

FETCH_MS: Final = 1_000
"""How long a broker waits for records before it says that there are none."""
PAUSE_S: Final = 0.05
"""Between an answer with records and the next request: a flood takes a small part of a worker's time."""
LOOK_S: Final = 10.0
"""How often a reader looks for a replica that the topic does not have."""


class Hearer(Protocol):
    """Takes what is heard: `Knowledge`."""

    def heard(self, message: Revocation) -> None:
        """Take a message of a node; any writer of the topic may have made it up."""

    def missed(self) -> None:
        """Take note that messages may have been missed that were written before this call."""


class Reader:
    """Reads one of the replicas.

    Args:
        topic: its name.
        connect: makes the session of a broker, or of any bootstrap server (None).
        number: which replica, from 0; the topic may have fewer.
        hearer: takes what is heard.
        counts: where messages are counted.
        monotonic: seconds of a clock that never goes back.
    """

    def __init__(
        self,
        topic: str,
        connect: Callable[[Address | None], ClientSession],
        number: int,
        *,
        hearer: Hearer,
        counts: Counts,
        monotonic: Callable[[], float],
    ) -> None:
        self.replica: Final = Member(topic, connect, self._choose)
        self._connect = connect
        self._number = number
        self._hearer = hearer
        self._counts = counts
        self._monotonic = monotonic
        self._exists = number == 0
        """Whether the topic has this replica."""
        self._offset: int | None = None
        """Where to read on; None: at the end."""
        self._read_topic: UUID | None = None
        """The topic to which the offset belongs."""
        self._heard_s: float | None = None

    def silence_s(self) -> float:
        """Return the time since the broker answered last, in seconds."""
        return math.inf if self._heard_s is None else self._monotonic() - self._heard_s

    async def read_for_ever(self) -> None:
        """Read, and begin again after each failure."""
        words = f"hear of revocations by other nodes from replica {self._number + 1} of topic {self.replica.topic}"
        await for_ever(self._read, self.replica, words, self._monotonic)

    def _choose(self, state: TopicState) -> Address | None:
        self._exists = self._number == 0 or self._number < len(state.replicas)
        return state.replicas[self._number] if self._number < len(state.replicas) else None

    async def _read(self) -> None:
        """Read once."""
        try:
            connection = await self.replica.ready()
        except (NoMember, RequestRefused):
            # One reader is enough to complain of a topic that is missing.
            if self._exists:
                raise
            await asyncio.sleep(LOOK_S)
            return
        if self._offset is None or self._read_topic != self.replica.topic_id:
            self._offset, self._read_topic = await self._end(), self.replica.topic_id
            self._hearer.missed()
        try:
            content = await fetch(connection, self.replica.topic, self._offset, FETCH_MS)
        except RequestRefused as refusal:
            if refusal.code is ErrorCode.offset_out_of_range:
                self._offset = None
            raise
        self._heard_s = self._monotonic()
        # Records that make the reader fail, in whatever way, are not met again: it would go on at the end.
        offset, self._offset = self._offset, None
        found = read(content, offset)
        self._offset = found.next_offset
        for message in found.messages:
            self._hearer.heard(message)
        self._counts.revocation_news.increase(len(found.messages), "heard")
        self._counts.revocation_news.increase(found.unreadable, "unreadable")
        if content:
            await asyncio.sleep(PAUSE_S)

    async def _end(self) -> int:
        """Ask the leader where the topic ends."""
        leader = Member(self.replica.topic, self._connect, leader_of)
        try:
            return await end_offset(await leader.ready(), leader.topic)
        finally:
            await leader.leave()
