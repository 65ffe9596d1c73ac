"""The targets: what kafka-dt must reach against a broker that is measured in the same run.

A target is a ratio of medians' rounds: kafka-dt's value divided by the broker's of the same round, or that of another
program that is measured beside both. A target without another program is kafka-dt's value itself, with its unit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from benchmarks.gateways import KAFKA_PROXY
from benchmarks.kraft import UPSTREAM_STORE, ZOOKEEPER_STORE
from benchmarks.metrics import METRICS, PSS, RATE, SERVER_CPU, THROUGHPUT
from benchmarks.results import Case, Results
from benchmarks.scenarios import (
    after_changes,
    audit,
    first_logins,
    gateway,
    gateway_tls,
    kraft_changes,
    kraft_logins,
    live_connections,
    logins,
    reauthentication,
)
from benchmarks.scenarios.memory import FURTHER_WORKER
from benchmarks.servers import BROKER, KAFKA_DT, UNSEALED
from benchmarks.statistics import Spread, ratios


@dataclass(frozen=True, slots=True)
class Target:
    """One line of the table."""

    work: str
    scenario: str
    case: Case
    metric: str
    at_least: float | None = None
    at_most: float | None = None
    subject: str = KAFKA_DT.name
    other: str | None = BROKER.name
    """Whose value it is divided by; None: the value itself is aimed at."""

    @property
    def words(self) -> str:
        """What is aimed at."""
        words = f"at least {self.at_least:g}" if self.at_least is not None else f"at most {self.at_most:.3g}"
        return f"{words} {METRICS[self.metric].unit}" if self.other is None else words

    def reached(self, results: Results) -> Spread | None:
        """Tell what was measured, the ratio or the value itself; None where it was not."""
        scenario = results.scenarios.get(self.scenario)
        if scenario is None:
            return None
        ours = scenario.by_round(self.case, self.subject, self.metric)
        if self.other is None:
            return Spread.of(list(ours.values())) if ours else None
        return ratios(ours, scenario.by_round(self.case, self.other, self.metric))

    def met(self, reached: Spread) -> bool:
        """Whether the median is what is aimed at."""
        if self.at_least is not None:
            return reached.median >= self.at_least
        return self.at_most is None or reached.median <= self.at_most


def _targets() -> tuple[Target, ...]:
    found = [
        Target(f"{each} at 16 connections{words}", "changes", Case(each, 16), RATE, at_least=at_least, subject=who)
        for who, words, change, expire in ((UNSEALED.name, ", unsealed", 15, 8), (KAFKA_DT.name, "", 18, 6))
        for each, at_least in (("create", change), ("renew", change), ("expire", expire))
    ]
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        for connections in (16, 128):
            case = Case(mechanism, connections)
            work = f"logins with {case.label}"
            found.append(Target(work, "logins", case, RATE, at_least=1.3))
            found.append(Target(f"{work}: server CPU", "logins", case, SERVER_CPU, at_most=0.8))
    for kind, at_least in ((logins.PLAIN, 1.6), *((each, 1.8) for each in logins.OVER_TLS)):
        for connections in (16, 128):
            case = Case(kind.label, connections)
            found.append(Target(f"logins with {case.label}", "logins", case, RATE, at_least=at_least))
    found.append(
        Target(f"first logins with {first_logins.CASE.label}", "first-logins", first_logins.CASE, RATE, at_least=1)
    )
    found.append(
        Target(
            f"logins with {after_changes.CASE.label}, after a burst of changes: times those of an idle node",
            "after-changes",
            after_changes.CASE,
            RATE,
            at_least=0.9,
            other=after_changes.IDLE.name,
        )
    )
    for connections in (16, 128):
        case = audit.case_of(connections)
        work = f"logins with {case.label}, strict audit: times those with buffered audit"
        found.append(
            Target(work, "audit", case, RATE, at_least=0.9, subject=audit.STRICT.name, other=audit.BUFFERED.name)
        )
    for mechanism in reauthentication.MECHANISMS:
        for at_once in (16, 128):
            case = reauthentication.case_of(mechanism, at_once)
            found.append(Target(f"re-authentication with {case.label}", "reauthentication", case, RATE, at_least=1.5))
    beside = live_connections.login_beside(live_connections.LIVE)
    found.append(Target(f"p99 of {beside.label}", "live-connections", beside, "p99_ms", at_most=50, other=None))
    for how in ("own", "by ACL"):
        case = Case(f"10,000 {how}")
        found.append(Target(f"describe {case.operation} of 100,000", "describe", case, "p50_ms", at_most=0.15))
    further = Case("a further token")
    for who, words, at_most in ((UNSEALED.name, ", unsealed", 1 / 40), (KAFKA_DT.name, "", 1 / 20)):
        work = f"start, a further token{words}"
        found.append(Target(work, "start", further, "token_ms", at_most=at_most, subject=who))
    memory = Case("after work", tokens=11_000)
    found.append(Target("memory, 11,000 tokens, 2 workers", "memory", memory, PSS, at_most=0.15))
    further_worker = Case(FURTHER_WORKER, tokens=11_000)
    found.append(
        Target("memory, 11,000 tokens, a further worker", "memory", further_worker, PSS, at_most=20, other=None)
    )
    return (*found, *_gateway_targets(), *_kraft_targets())


def _gateway_targets() -> Iterator[Target]:
    for scenario, produced, how in (
        ("gateway", gateway.PRODUCED, ""),
        ("gateway-tls", gateway_tls.PRODUCED, " with TLS"),
    ):
        for case in (*(each.case for each in produced), gateway.CONSUMED):
            work = f"{case.label}, through the gateway{how}"
            yield Target(work, scenario, case, THROUGHPUT, at_least=0.85)
            words = f"{work}: times {KAFKA_PROXY.name}'s"
            yield Target(words, scenario, case, THROUGHPUT, at_least=1.5, other=KAFKA_PROXY.name)


def _kraft_targets() -> Iterator[Target]:
    for case in kraft_changes.CASES:
        work = f"{case.label}, tokens of a Kafka 4 cluster, through the gateway"
        yield Target(work, "kraft-changes", case, RATE, at_least=0.8, subject=UPSTREAM_STORE.name)
    for case in kraft_logins.CASES:
        work = f"logins with {case.label}, tokens of a Kafka 4 cluster: times those with the tokens in ZooKeeper"
        yield Target(
            work, "kraft-logins", case, RATE, at_least=0.95, subject=UPSTREAM_STORE.name, other=ZOOKEEPER_STORE.name
        )


TARGETS: Final = _targets()
