"""What a worker measures of itself every second, and what it counts from time to time.

    sampling = Sampling(memory, number, counts, tokens=tokens, ports=ports, ...)
    sampling.start()
    await sampling.sample()         # publishes the gauges; call it every SAMPLE_SECONDS
    await sampling.count_tokens()   # returns when it is time to count them again
    sampling.hand_over()            # at the end, when nothing is counted any more

A sample takes some tens of microseconds. The tokens are counted in batches, so that requests have their turns, and with
pauses that leave a thousandth of the worker's time for it, however many tokens there are.
"""

from __future__ import annotations

import asyncio
import math
import resource
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kafka_dt.metrics import Counts, Gauges, MetricsMemory
from kafka_dt.tokens.store import NEVER_MS

if TYPE_CHECKING:
    from kafka_dt.node.audit_trail import AuditTrail
    from kafka_dt.node.listeners import WorkerPorts
    from kafka_dt.node.tokens import WorkerTokens

TICK_SECONDS: Final = 0.1
"""How often the event loop is asked whether it is late."""
DAY_MS: Final = 24 * 60 * 60 * 1000
BATCH: Final = 500
"""How many tokens are counted before requests get their turn."""
COUNT_SECONDS: Final = 1.0
"""The shortest pause between two counts of the tokens."""
COUNT_SHARE: Final = 0.001
"""Which part of the worker's time counting tokens may take."""
PAGE_BYTES: Final = resource.getpagesize()


@dataclass(frozen=True, slots=True)
class TokenCount:
    """How many tokens there are."""

    live: int
    ending: int
    """How many of them expire within a day."""


class Sampling:
    """Measures one worker.

    Args:
        memory: of the node.
        number: which worker it is.
        counts: its counters.
        tokens: its tokens.
        ports: its ports.
        audit: its audit trail; None where no events are written.
        derivations: says how many credentials wait to be derived.
        now_ms: the wall clock, milliseconds since 1970.
    """

    def __init__(
        self,
        memory: MetricsMemory,
        number: int,
        counts: Counts,
        *,
        tokens: WorkerTokens,
        ports: WorkerPorts,
        audit: AuditTrail | None,
        derivations: Callable[[], int],
        now_ms: Callable[[], int],
    ) -> None:
        self._memory = memory
        self._number = number
        self._counts = counts
        self._tokens = tokens
        self._ports = ports
        self._audit = audit
        self._derivations = derivations
        self._now_ms = now_ms
        self._counted: TokenCount | None = None
        self._lag = LoopLag()
        self._seen: Counter[tuple[str, ...]] = Counter()
        """The numbers that others count, as they were when they were looked at last."""
        self._cpu_s = 0.0

    def start(self) -> None:
        """Measure from now on, and publish a first sample."""
        self._lag.start()
        self._publish()

    def stop(self) -> None:
        """Measure no more."""
        self._lag.stop()

    def hand_over(self) -> None:
        """Add what others have counted since the last sample to the numbers of the node."""
        self._counts.take_over()
        self._take_over_audit()
        usage = resource.getrusage(resource.RUSAGE_SELF)
        before_s, self._cpu_s = self._cpu_s, usage.ru_utime + usage.ru_stime
        self._counts.cpu_seconds.increase(self._cpu_s - before_s)

    async def sample(self) -> None:
        """Publish the gauges, and take over what others have counted."""
        self._publish()

    async def count_tokens(self) -> None:
        """Count the tokens once, and wait until it is time to do so again."""
        begun_s, worked_s = time.perf_counter(), 0.0
        now_ms, tally = self._now_ms(), Counter[str]()
        for batch in self._batches():
            for token_id in batch:
                held = self._tokens.cache.get(token_id)
                if held is not None and not held.token.is_expired(now_ms):
                    tally["live"] += 1
                    tally["ending"] += held.token.end_timestamp_ms <= now_ms + DAY_MS
            worked_s += time.perf_counter() - begun_s
            await asyncio.sleep(0)
            begun_s = time.perf_counter()
        self._counted = TokenCount(tally["live"], tally["ending"])
        await asyncio.sleep(max(COUNT_SECONDS, worked_s / COUNT_SHARE))

    def _publish(self) -> None:
        self._memory.publish(self._number, self._gauges())
        self.hand_over()

    def _batches(self) -> Iterator[list[str]]:
        ids = iter(self._tokens.cache.copied_ids())
        while batch := list(islice(ids, BATCH)):
            yield batch

    def _gauges(self) -> Gauges:
        tokens, ports, gateway = self._tokens, self._ports, self._ports.gateway
        staleness_ms = tokens.manager.staleness_ms()
        has_tokens, counted = staleness_ms is not None, self._counted
        keyed, ahead_ms = tokens.stores.keyed_tokens, tokens.manager.clock_ahead_ms
        return Gauges(
            sampled_s=time.monotonic(),
            unready=tuple(self._unready()),
            tokens=counted.live if has_tokens and counted else None,
            tokens_ending=counted.ending if has_tokens and counted else None,
            tokens_unreadable=None if keyed is None else keyed.unreadable_tokens,
            staleness_s=None if staleness_ms is None else math.inf if staleness_ms >= NEVER_MS else staleness_ms / 1000,
            staleness_limit_s=tokens.stores.tokens.max_staleness_ms / 1000 if has_tokens else None,
            store_connected=tokens.stores.tokens.connected,
            clock_ahead_s=None if ahead_ms is None else ahead_ms / 1000,
            news_silence_s=None if tokens.stores.news_silence_s is None else tokens.stores.news_silence_s(),
            loop_lag_s=self._lag.take(),
            connections=ports.connections(),
            derivations_waiting=self._derivations(),
            upstream_connections=None if gateway is None else gateway.open_connections,
            upstream_brokers={} if gateway is None else gateway.brokers.reachable(),
            keys=tokens.key_roles(),
            certificates=ports.certificates(),
            resident_bytes=_resident_bytes(),
        )

    def _unready(self) -> Iterator[str]:
        gateway = self._ports.gateway
        if gateway is not None and gateway.brokers.problem:
            yield gateway.brokers.problem
        if self._audit is not None and self._audit.holds_up:
            yield "audit events cannot be written, and kafka.dt.audit.mode=strict allows nothing without them"

    def _take_over_audit(self) -> None:
        for sink, delivery in self._audit.deliveries.items() if self._audit else ():
            for name, counter, by_kind in (
                ("written", self._counts.audit_events, delivery.written_by_kind()),
                ("lost", self._counts.audit_events_lost, delivery.lost_by_kind()),
            ):
                for kind, now in by_kind.items():
                    key = (name, sink, *kind)
                    counter.increase(now - self._seen[key], *kind, sink)
                    self._seen[key] = now


class LoopLag:
    """The longest time for which the event loop of this thread has done nothing else than one piece of work."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._longest_s = 0.0
        self._due_s = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Look from now on."""
        self._due_s = time.monotonic() + TICK_SECONDS
        self._timer = self._loop.call_later(TICK_SECONDS, self._tick)

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()

    def take(self) -> float:
        """Return the longest time since the last call, in seconds."""
        longest_s, self._longest_s = self._longest_s, 0.0
        return longest_s

    def _tick(self) -> None:
        self._longest_s = max(self._longest_s, time.monotonic() - self._due_s)
        self.start()


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * PAGE_BYTES
