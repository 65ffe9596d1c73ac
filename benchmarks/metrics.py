"""The measured values: their names, labels and units, and whether more or less is better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SERVER_CPU: Final = "server_cpu_ms"
ZOOKEEPER_CPU: Final = "zookeeper_cpu_ms"
GENERATOR: Final = "generator_share"
RATE: Final = "rate"
THROUGHPUT: Final = "mib_s"
PROXY_CPU: Final = "proxy_cpu_ms"
PROXY_GIB: Final = "proxy_gib_s"
BROKER_GIB: Final = "broker_gib_s"
TOTAL_GIB: Final = "total_gib_s"
PSS: Final = "pss_mib"
PEAK: Final = "peak_pss_mib"
CPU: Final = "cpu_s"
RESUMED: Final = "resumed_share"
PRECISION: Final = "precision"
RECALL: Final = "recall"
HIGH_PRECISION: Final = "high_precision"


@dataclass(frozen=True, slots=True)
class Metric:
    """One kind of value."""

    heading: str
    """Of a column, with the unit."""
    more_is_better: bool = False
    factor: float = 1.0
    """What a value is multiplied with to be shown in that unit."""
    spreads: bool = False
    """Whether tables show its spread even where subjects are compared by another value."""
    whole: bool = False
    """Whether it counts things."""

    @property
    def unit(self) -> str:
        """The unit alone."""
        return self.heading.rpartition(", ")[2]


METRICS: Final = {
    RATE: Metric("a second", more_is_better=True),
    THROUGHPUT: Metric("MiB a second", more_is_better=True),
    "p50_ms": Metric("p50, ms"),
    "p99_ms": Metric("p99, ms"),
    "most_ms": Metric("most, ms"),
    SERVER_CPU: Metric("server CPU an operation, ms"),
    ZOOKEEPER_CPU: Metric("ZooKeeper CPU an operation, ms"),
    PROXY_CPU: Metric("gateway CPU a request, ms"),
    "broker_cpu_ms": Metric("broker CPU a request, ms"),
    PROXY_GIB: Metric("gateway CPU a GiB, s"),
    BROKER_GIB: Metric("broker CPU a GiB, s"),
    TOTAL_GIB: Metric("CPU of all and the client, a GiB, s"),
    RESUMED: Metric("resumed TLS sessions, %", more_is_better=True, factor=100),
    GENERATOR: Metric("generator, % of a core", factor=100),
    "visible": Metric("visible incidents", whole=True),
    "found": Metric("found", more_is_better=True, whole=True),
    "wrong": Metric("wrong findings", spreads=True, whole=True),
    PRECISION: Metric("precision", more_is_better=True, spreads=True),
    RECALL: Metric("recall", more_is_better=True, spreads=True),
    HIGH_PRECISION: Metric("precision of severity high", more_is_better=True, spreads=True),
    "start_s": Metric("first login after, s"),
    "ready_s": Metric("every worker serves after, s"),
    "token_ms": Metric("a further token, ms"),
    "token_kib": Metric("a further token, KiB"),
    "cpu_share": Metric("CPU, % of a core", factor=100),
    "broker_share": Metric("broker CPU, % of a core", factor=100),
    "changes": Metric("changes before"),
    "change_nodes": Metric("most change znodes"),
    "change_bound": Metric("their bound"),
    "connection_kib": Metric("a connection, KiB"),
    "seconds": Metric("s"),
    CPU: Metric("CPU, s"),
    PEAK: Metric("most memory, PSS, MiB"),
    "disk_mib": Metric("on disk, MiB"),
    PSS: Metric("PSS, MiB"),
    "rss_mib": Metric("RSS, MiB"),
    "request_bytes": Metric("largest request, bytes"),
    "cpu_ms": Metric("its CPU, ms"),
    "cpu_us_byte": Metric("CPU a byte, us"),
    "cpu_growth": Metric("CPU, growth"),
    "memory_byte": Metric("memory a byte, bytes"),
    "log_byte": Metric("log a byte, bytes"),
    "audit_byte": Metric("audit a byte, bytes"),
}
"""In the order of the columns."""


def written(name: str, value: float) -> str:
    """Write a value as a table shows it: three digits that matter, none behind the point of a large number."""
    metric = METRICS[name]
    return f"{value:,.0f}" if metric.whole else digits(value * metric.factor)


def digits(value: float) -> str:
    """Write a number with three digits that matter."""
    if value == 0:
        return "0"
    places = max(0, 3 - len(str(int(abs(value)))) if abs(value) >= 1 else 3)
    return f"{value:,.{places}f}"
