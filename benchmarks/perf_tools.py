"""Kafka's own perf tools, each in a JVM of its own with the options of Kafka's start scripts, as people run them.

    tools = PerfTools(java, classpath, folder)
    tools.produce(address, "topic", records=1_000_000, record_bytes=1024, acks="all").mib_s
    tools.consume(address, "topic", records=1_000_000).mib_s

A producer's first records warm its JVM and count for nothing (`--warmup-records`); a consumer's count from the moment
at which it has its partitions.

Limits: CPU time is that of the whole run of the tool, its start included; one tool at a time.
Source: kafka-producer-perf-test.sh, kafka-consumer-perf-test.sh of Kafka 4.3.
"""

from __future__ import annotations

import itertools
import re
import resource
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from benchmarks.generator import LoadFailed, password_of
from benchmarks.servers import JVM
from tests.support.java.jvm import Java
from tests.support.java.maven import Classpath
from tests.support.java.properties import plain, write_properties

USER: Final = "alice"
HEAP_MB: Final = 512
WARM_SHARE: Final = 1 / 3
"""Of the records of a producer."""
SILENCE_MS: Final = 20_000
TIMEOUT_S: Final = 600.0

PRODUCED: Final = re.compile(r"records sent, [\d.]+ records/sec \((?P<mib_s>[\d.]+) MB/sec\), .* ms 99\.9th")
CONSUMED: Final = re.compile(r"^\d{4}-.*, (?P<mib_s>[\d.]+), [\d.]+\s*$", re.MULTILINE)
_LOGIN: Final = ("security.protocol", "sasl.mechanism", "sasl.jaas.config")


@dataclass(frozen=True, slots=True)
class PerfResult:
    """What one run came to."""

    mib_s: float
    """Values of records, MiB a second."""
    seconds: float
    """From the start of the tool to its end."""
    cpu_seconds: float
    """Of the tool."""


@dataclass(frozen=True, slots=True)
class PerfTools:
    """The tools of one release; they log in with PLAIN."""

    java: Java
    classpath: Classpath
    folder: Path
    """Receives the settings of the clients."""
    trusted: Path | None = None
    """The certificate of the servers as PEM: the tools connect with TLS; None = without."""
    _groups: Iterator[int] = field(default_factory=itertools.count)

    def produce(self, address: str, topic: str, *, records: int, record_bytes: int, acks: str) -> PerfResult:
        """Write records as fast as they are taken. Raises LoadFailed."""
        arguments = ["--topic", topic, "--num-records", str(records), "--record-size", str(record_bytes)]
        arguments += ["--throughput", "-1", "--warmup-records", str(round(records * WARM_SHARE))]
        arguments += ["--command-property", f"acks={acks}"]
        return self._run("ProducerPerformance", PRODUCED, address, arguments)

    def consume(self, address: str, topic: str, *, records: int) -> PerfResult:
        """Read records from the beginning, in a group of its own. Raises LoadFailed."""
        arguments = ["--topic", topic, "--num-records", str(records), "--timeout", str(SILENCE_MS)]
        arguments += ["--group", f"perf-{next(self._groups)}"]
        return self._run("ConsumerPerformance", CONSUMED, address, arguments)

    def _run(self, tool: str, result: re.Pattern[str], address: str, arguments: list[str]) -> PerfResult:
        self.folder.mkdir(parents=True, exist_ok=True)
        login = {key: value for key, value in plain(USER, password_of(USER)).items() if key in _LOGIN}
        settings = write_properties(self.folder / "client.properties", login | client_tls(self.trusted))
        command = self.java.command(
            f"org.apache.kafka.tools.{tool}",
            ["--bootstrap-server", address, "--command-config", str(settings), *arguments],
            classpath=self.classpath,
            heap_mb=HEAP_MB,
            flags=JVM,
        )
        begun, used = time.monotonic(), _children_cpu_s()
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        seconds, cpu_seconds = time.monotonic() - begun, _children_cpu_s() - used
        found = list(result.finditer(done.stdout))
        if done.returncode or not found or "Exception" in done.stdout + done.stderr:
            raise LoadFailed(f"{tool} at {address}: status {done.returncode}\n{done.stdout}\n{done.stderr}")
        return PerfResult(float(found[-1]["mib_s"]), seconds, cpu_seconds)


def client_tls(trusted: Path | None) -> dict[str, str]:
    """Give the settings with which a client connects with TLS, for a login without TLS; none if nothing is trusted."""
    if trusted is None:
        return {}
    store = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(trusted)}
    return {"security.protocol": "SASL_SSL", **store}


def _children_cpu_s() -> float:
    """Tell what the processes have used that have ended and been waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
