"""Tell the other nodes which tokens this worker has ended, and hear which ones they have ended.

    news = NewsExchange("__kafka_dt_revocations", connect, knowledge, ...)
    news.start()
    news.tell(token_id, hmac, None)      # it was deleted
    await news.close()                   # what was told has been written, if that takes no longer than a moment

No request waits for the topic: `tell` puts a message into a queue. While the topic cannot be written to, messages wait
until they are too old to tell anything: by then each worker has proved what the cluster has, or accepts no token.

A worker reads every replica of the topic from its end on, not the leader's alone: a leader that is cut off from its
controllers is deposed without knowing it, and goes on answering that there is nothing new. What is heard twice is
believed once. Whatever a worker may have missed, at the start and when records that it had not read are gone, it learns
from the cluster by a proof.

Limit: a worker that is killed takes with it what it has not told yet; others hear of it from their brokers.

Source: docs/decisions/0034-news-of-revocations.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafka_dt.kraft.news.member import Member, for_ever, leader_of
from kafka_dt.kraft.news.message import Revocation
from kafka_dt.kraft.news.reading import Reader
from kafka_dt.kraft.news.records import batch
from kafka_dt.kraft.news.settings import MOST_REPLICAS
from kafka_dt.kraft.news.topic import produce

if TYPE_CHECKING:
    from kafka_dt.client import Address
    from kafka_dt.client.session import ClientSession
    from kafka_dt.kraft.news.reading import Hearer
    from kafka_dt.metrics import Counts

MOST_WAITING: Final = 10_000
"""How many messages wait for the topic, at most: some minutes of as many as a cluster makes."""
MOST_AT_ONCE: Final = 64
"""How many messages are written in one batch: below what the topic takes."""
PRODUCE_MS: Final = 400
"""How long the replicas may take. Then the broker may have been deposed, and the messages go to the one that leads now,
perhaps a second time."""
LAST_WORDS_S: Final = 1.0
"""How long a worker that ends waits until its messages have been written."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    message: Revocation
    since_s: float


class NewsExchange:
    """Tells and hears for one worker.

    Args:
        topic: its name.
        connect: makes the session of a broker, or of any bootstrap server (None).
        hearer: takes what is heard.
        counts: where messages are counted.
        keep_s: after how long a message tells nothing any more, in seconds.
        now_ms: the wall clock, in milliseconds since 1970.
        monotonic: seconds of a clock that never goes back.
    """

    def __init__(
        self,
        topic: str,
        connect: Callable[[Address | None], ClientSession],
        hearer: Hearer,
        *,
        counts: Counts,
        keep_s: float,
        now_ms: Callable[[], int],
        monotonic: Callable[[], float],
    ) -> None:
        self._topic = topic
        self._counts = counts
        self._keep_s = keep_s
        self._now_ms = now_ms
        self._monotonic = monotonic
        self._leader = Member(topic, connect, leader_of)
        self._readers = [
            Reader(topic, connect, number, hearer=hearer, counts=counts, monotonic=monotonic)
            for number in range(MOST_REPLICAS)
        ]
        self._queue: asyncio.Queue[_Waiting] = asyncio.Queue(MOST_WAITING)
        self._batch: list[_Waiting] = []
        """What is being written; it is written again after a failure."""
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Tell and follow from now on; again while it does so already, it changes nothing."""
        if not self._tasks:
            words = f"tell other nodes of revocations (topic {self._topic})"
            self._tasks = [
                asyncio.create_task(for_ever(self._tell, self._leader, words, self._monotonic)),
                *(asyncio.create_task(reader.read_for_ever()) for reader in self._readers),
            ]

    def tell(self, token_id: str, hmac: bytes, end_timestamp_ms: int | None) -> None:
        """Tell the other nodes that a token ends sooner.

        Args:
            token_id: of the token.
            hmac: its secret, which proves that this is true.
            end_timestamp_ms: when it ends now, in milliseconds since 1970; None if it was deleted.
        """
        try:
            self._queue.put_nowait(_Waiting(Revocation.of(token_id, hmac, end_timestamp_ms), self._monotonic()))
        except asyncio.QueueFull:
            self._counts.revocation_news.increase(1, "dropped")

    def silence_s(self) -> float:
        """Return the time since the topic was heard of last, in seconds."""
        return min(reader.silence_s() for reader in self._readers)

    async def close(self) -> None:
        """Write what waits, if that takes no longer than a moment, and follow no more."""
        if self._tasks:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._queue.join(), LAST_WORDS_S)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for member in (self._leader, *(reader.replica for reader in self._readers)):
            await member.leave()

    async def _tell(self) -> None:
        """Write what waits, up to a batch."""
        if not self._batch:
            self._batch.append(await self._queue.get())
        while len(self._batch) < MOST_AT_ONCE and not self._queue.empty():
            self._batch.append(self._queue.get_nowait())
        self._drop_old()
        if self._batch:
            content = batch([each.message for each in self._batch], self._now_ms())
            await produce(await self._leader.ready(), self._topic, content, PRODUCE_MS)
            self._finish(self._batch, "told")

    def _drop_old(self) -> None:
        oldest_s = self._monotonic() - self._keep_s
        self._finish([each for each in self._batch if each.since_s < oldest_s], "dropped")

    def _finish(self, done: list[_Waiting], outcome: str) -> None:
        self._batch = [each for each in self._batch if each not in done]
        for _ in done:
            self._queue.task_done()
        self._counts.revocation_news.increase(len(done), outcome)
