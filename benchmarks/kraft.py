"""A Kafka 4 broker with delegation tokens, and kafka-dt as a gateway in front of it that serves these tokens.

    with stage(bench, UPSTREAM_STORE) as (broker, node):
        for round_number, way in bench.rounds("create", (broker, node)): ...

The node has two workers and no ZooKeeper. It follows the tokens all the time, also while the broker itself is measured.
`ZOOKEEPER_STORE` is the same gateway with tokens of its own in a ZooKeeper.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from benchmarks.bench import Bench
from benchmarks.gateways import Way, kafka_4
from benchmarks.generator import Job
from benchmarks.metrics import GENERATOR, PSS, RATE, SERVER_CPU
from benchmarks.servers import BROKER, KAFKA_DT, Subject
from benchmarks.tokens import password_of
from kafka_dt.config import Settings
from kafka_dt.zookeeper.embedded.server import EmbeddedZooKeeper
from tests.support.nodes.gateway import PORTS, gateway_properties, upstream_store_properties
from tests.support.nodes.server import KafkaDt
from tests.support.processes.ports import free_ports

UPSTREAM_STORE: Final = Subject("kafka-dt, cluster's tokens", workers=KAFKA_DT.workers)
ZOOKEEPER_STORE: Final = Subject("kafka-dt, tokens in ZooKeeper", workers=KAFKA_DT.workers)


@contextmanager
def stage(bench: Bench, *gateways: Subject, **settings: object) -> Iterator[tuple[Way, ...]]:
    """Start the broker and some gateways, and stop them at the end; gives the way to the broker, and those of each.

    Args:
        bench: has the programs.
        gateways: which ones.
        settings: further ones of the broker, with `_` for each `.`.
    """
    bench.clear_stage()
    folder = bench.folder_of("kraft")
    shutil.rmtree(folder, ignore_errors=True)
    with ExitStack() as stack, bench.console.status("starting the broker and the gateways"):
        overrides = {key.replace("_", "."): value for key, value in settings.items()}
        cluster = stack.enter_context(kafka_4(bench, folder / "kraft", overrides))
        (broker,) = cluster.brokers.values()
        ways = [Way(BROKER, broker.sasl, broker.process)]
        for subject in gateways:
            ports = free_ports(PORTS)
            if subject is ZOOKEEPER_STORE:
                zookeeper = stack.enter_context(EmbeddedZooKeeper(folder / "zookeeper"))
                properties = gateway_properties(zookeeper.address, cluster, ports)
            else:
                properties = upstream_store_properties(cluster, ports)
            common = {
                "kafka.dt.workers": subject.workers,
                "kafka.dt.log.lines.per.minute": Settings.log_lines_per_minute,
            }
            node = stack.enter_context(KafkaDt(folder / f"node-{len(ways)}", properties | common))
            ways.append(Way(subject, node.sasl, broker.process, node.process))
        yield tuple(ways)


def load(bench: Bench, way: Way, job: Job, round_number: int) -> dict[str, float]:
    """Do a job of one phase on a way, and give its values."""
    bench.rest()
    used: dict[str, tuple[float, float]] = {}

    def look(_phase: str, mark: str) -> None:
        used[mark] = way.cpu_seconds()

    (result,) = bench.generator.run(bench.timed(replace(job, address=way.address), round_number), look).values()
    between, broker = (after - before for before, after in zip(used["begin"], used["end"], strict=True))
    values = {
        RATE: result.count / result.seconds,
        "p50_ms": result.p50_us / 1000,
        "p99_ms": result.p99_us / 1000,
        SERVER_CPU: between / result.count * 1000,
        "broker_cpu_ms": broker / result.count * 1000,
        GENERATOR: result.cpu_seconds / result.seconds,
    }
    if memory := way.memory():
        values |= {PSS: memory.pss_mib, "rss_mib": memory.rss_mib}
    return values


def write_hmacs(path: Path, ids: Sequence[str]) -> Path:
    """Write the file of tokens to be renewed."""
    path.write_text("".join(f"{password_of(each)}\n" for each in ids))
    return path
