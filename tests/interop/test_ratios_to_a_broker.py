"""A short look at the ratios of the benchmarks: is kafka-dt still about as fast, beside a real broker, as it was?

No time is judged, only what kafka-dt and the broker did in turns on this machine a moment ago. The margins are wide,
several times what `docs/performance.md` shows, because turns of less than a second on a busy machine tell little; what
they catch is a change that costs a multiple. `make bench` measures.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pytest

from benchmarks.change_znodes import remove_changes
from benchmarks.credentials import write_credentials
from benchmarks.generator import Job, LoadGenerator
from benchmarks.statistics import ratios
from tests.support.brokers.broker import Broker
from tests.support.nodes.server import KafkaDt

pytestmark = pytest.mark.soak

ROUNDS: Final = 1
CONNECTIONS: Final = 16
WARM_MS: Final = 300
MEASURE_MS: Final = 600


@dataclass
class Rates:
    """Operations a second of each of the two, by round."""

    broker: dict[int, float]
    kafka_dt: dict[int, float]

    @property
    def ratio(self) -> float:
        found = ratios(self.kafka_dt, self.broker)
        assert found is not None
        return found.median


@dataclass
class Bench:
    """Both, and what puts a load on them."""

    broker: Broker
    server: KafkaDt
    zookeeper: str
    generator: LoadGenerator
    folder: Path

    def compare(self, job: Job, *, credentials: list[str] | None = None) -> dict[str, Rates]:
        """Let them do a job in turns; round 0 warms them."""
        found = {phase: Rates({}, {}) for phase in job.phases}
        for number in range(ROUNDS + 1):
            for address, name in ((self.broker.sasl, "broker"), (self.server.sasl, "kafka_dt")):
                remove_changes(self.zookeeper)
                turn = replace(job, address=address, warm_ms=WARM_MS, measure_ms=MEASURE_MS)
                if credentials:
                    turn = replace(turn, credentials=self._credentials(address, job.mechanism, credentials))
                for phase, result in self.generator.run(turn).items():
                    if number:
                        getattr(found[phase], name)[number] = result.count / result.seconds
        return found

    def _credentials(self, address: str, mechanism: str, ids: list[str]) -> Path:
        return write_credentials(self.folder / "credentials.tsv", self.generator, (address, mechanism), ids, {})


@pytest.fixture(scope="module")
def bench(
    broker: Broker,
    server: KafkaDt,
    zookeeper_connect: str,
    generator: LoadGenerator,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Bench]:
    yield Bench(broker, server, zookeeper_connect, generator, tmp_path_factory.mktemp("bench"))
    remove_changes(zookeeper_connect)


def test_tokens_are_made_and_renewed_several_times_as_fast(bench: Bench) -> None:
    found = bench.compare(Job(address="", phases=("CREATE", "RENEW", "EXPIRE"), connections=CONNECTIONS))
    assert found["CREATE"].ratio > 2
    assert found["RENEW"].ratio > 2


def test_logins_by_token_are_not_much_slower(bench: Bench, load_tokens: list[str]) -> None:
    job = Job(address="", phases=("LOGIN",), connections=CONNECTIONS, mechanism="SCRAM-SHA-256")
    found = bench.compare(job, credentials=load_tokens)
    assert found["LOGIN"].ratio > 0.25
