"""Realistic audit events with incidents planted in them, and the truth about what was planted.

    scenario = Scenario.of_size(250_000, start=datetime(2026, 10, 1, tzinfo=UTC))
    generated = generate(scenario, Path("/tmp/events"), spark=spark)
    generated.truth.of(IncidentKind.STOLEN_TOKEN)

They are what a cluster's nodes would have written in a month: batch jobs at night whose executors all log in at once,
streaming jobs and services whose tokens are renewed and replaced while they run, people with notebooks, tokens that a
scheduler asks for in the name of others, nodes and clients that are upgraded, and everything that goes wrong without
an attack. In between are a few incidents of each kind and of three strengths.

Read `scenario.py` first. `owners.py` has the owners, `clients.py` where their clients are; `batch.py`, `standing.py`
and `notebooks.py` plan the lives of their tokens (`lives.py`), `recording.py` makes a day's events of them, `noise.py`
and `incidents.py` add what is no job's. `run.py` puts all of it together and writes it.

Limits: IPv4 only; a client has one address, though in reality there is NAT; a worker's instance changes each midnight;
the expiry of tokens is a day and their longest life a week, as they are by default.

Source: KIP-48, KIP-373; docs/audit.md
"""

from kafka_dt.pipeline.generator.run import FolderInUse, Generated, Written, generate
from kafka_dt.pipeline.generator.scenario import Scenario, ScenarioError
from kafka_dt.pipeline.generator.truth import TRUTH_FILE, Incident, IncidentKind, Strength, Truth, TruthError

__all__ = [
    "TRUTH_FILE",
    "FolderInUse",
    "Generated",
    "Incident",
    "IncidentKind",
    "Scenario",
    "ScenarioError",
    "Strength",
    "Truth",
    "TruthError",
    "Written",
    "generate",
]
