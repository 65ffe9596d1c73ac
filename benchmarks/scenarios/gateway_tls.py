"""Write to a broker and read from it as in the part before, with TLS on both sides of the gateway.

Clients speak TLS with the gateway, and the gateway speaks TLS with the broker. "broker" is the direct way, with TLS as
well. A gateway decrypts and encrypts each byte once more than the direct way does.
"""

from __future__ import annotations

from typing import Final

from benchmarks.bench import Bench
from benchmarks.gateways import stage
from benchmarks.metrics import THROUGHPUT
from benchmarks.scenarios.gateway import KIB, Produced, measure

TITLE: Final = "Through a gateway, with TLS on both sides"
COMPARED: Final = THROUGHPUT
AXIS: Final = "MiB a second"
PRODUCED: Final = (Produced(100, "1"), Produced(KIB, "all"))


def run(bench: Bench) -> None:
    """Measure all ways in turns."""
    with stage(bench, tls=True) as on:
        measure(bench, on, PRODUCED)
