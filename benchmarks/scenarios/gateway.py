"""Write to a broker and read from it, directly and through a gateway in front of it, with Kafka's own perf tools.

A producer writes records of 100 bytes and of 1 KiB as fast as the broker accepts them, with the client's defaults
(batches of 16 KiB, up to five requests under way) except acks. A consumer reads records of 1 KiB. The topic has six
partitions; in one case it has one, so that each request holds a single batch. On all ways clients log in with PLAIN,
without TLS. "broker" is the direct way. CPU is that of whole runs of the tools, including their start, in seconds for a
GiB of values. If all cores are busy, the CPU that all processes use together limits the throughput.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.bench import Bench
from benchmarks.gateways import Stage, Way, stage
from benchmarks.metrics import BROKER_GIB, GENERATOR, PROXY_GIB, PSS, THROUGHPUT, TOTAL_GIB
from benchmarks.perf_tools import PerfResult
from benchmarks.results import Case
from benchmarks.servers import BROKER

TITLE: Final = "Through a gateway"
COMPARED: Final = THROUGHPUT
AXIS: Final = "MiB a second"
KIB: Final = 1024
WARM_SHARE: Final = 1 / 4
"""Of the records of a round, in round 0."""
_MIB: Final = 2**20
_TOPIC: Final = "bench"


@dataclass(frozen=True, slots=True)
class Produced:
    """One way to write."""

    record_bytes: int
    acks: str
    partitions: int = 6

    @property
    def case(self) -> Case:
        """It as a case."""
        few = ", 1 partition" if self.partitions == 1 else ""
        return Case(f"produce {self.record_bytes:,} B, acks={self.acks}{few}")


PRODUCED: Final = (
    Produced(100, "1"),
    Produced(100, "all"),
    Produced(KIB, "1"),
    Produced(KIB, "all"),
    Produced(KIB, "all", partitions=1),
)
CONSUMED: Final = Case(f"consume {KIB:,} B")


def run(bench: Bench) -> None:
    """Measure all ways in turns."""
    with stage(bench) as on:
        measure(bench, on, PRODUCED)


def measure(bench: Bench, on: Stage, cases: Sequence[Produced]) -> None:
    """Measure all ways of a stage in turns: those cases of writing, and reading."""
    for produced in cases:
        for round_number, way in bench.rounds(produced.case.label, on.ways):
            bench.record(produced.case, way.subject, round_number, _produce(bench, on, way, round_number, produced))
    records = bench.plan.consume_mib * _MIB // KIB
    with bench.console.status(f"writing {records:,} records to be read"):
        on.make_topic(_TOPIC, PRODUCED[0].partitions)
        direct = next(way for way in on.ways if way.subject == BROKER)
        on.tools.produce(direct.address, _TOPIC, records=records, record_bytes=KIB, acks="1")
    for round_number, way in bench.rounds(CONSUMED.label, on.ways):
        bench.record(CONSUMED, way.subject, round_number, _consume(bench, on, way, round_number, records))


def _produce(bench: Bench, on: Stage, way: Way, round_number: int, produced: Produced) -> dict[str, float]:
    """Write to a new topic, and remove it."""
    records = _share(bench.plan.produce_mib * _MIB // produced.record_bytes, round_number)

    def write() -> PerfResult:
        return on.tools.produce(
            way.address, _TOPIC, records=records, record_bytes=produced.record_bytes, acks=produced.acks
        )

    on.make_topic(_TOPIC, produced.partitions)
    values = _measured(bench, way, records * produced.record_bytes, write)
    on.remove_topic(_TOPIC)
    return values


def _consume(bench: Bench, on: Stage, way: Way, round_number: int, records: int) -> dict[str, float]:
    """Read what all ways read."""
    wanted = _share(records, round_number)
    return _measured(bench, way, wanted * KIB, lambda: on.tools.consume(way.address, _TOPIC, records=wanted))


def _measured(bench: Bench, way: Way, size: int, work: Callable[[], PerfResult]) -> dict[str, float]:
    """Do a work that moves so many bytes, beside others that rest."""
    bench.rest()
    before = way.cpu_seconds()
    result = work()
    between, broker = (after - used for used, after in zip(before, way.cpu_seconds(), strict=True))
    gib = size / 2**30
    values = {
        THROUGHPUT: result.mib_s,
        BROKER_GIB: broker / gib,
        TOTAL_GIB: (between + broker + result.cpu_seconds) / gib,
        GENERATOR: result.cpu_seconds / result.seconds,
    }
    if memory := way.memory():
        values |= {PROXY_GIB: between / gib, PSS: memory.pss_mib, "rss_mib": memory.rss_mib}
    return values


def _share(records: int, round_number: int) -> int:
    return records if round_number else round(records * WARM_SHARE)
