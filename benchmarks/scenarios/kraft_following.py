"""What it costs a node to follow the tokens of a Kafka 4 cluster, and how late it hears of a revocation at the broker.

A node of two workers follows the tokens at the default interval, without clients for ten seconds. Then some of the
tokens are revoked at the broker, one after the other; each time it counts until the node has closed the connection that
had logged in with it. "no node" is the broker alone, after the node has ended.

So that many tokens are made in some minutes, the controller does not wait for further records before it writes
(`controller.quorum.append.linger.ms`).
"""

from __future__ import annotations

import time
from statistics import median
from typing import Final

from benchmarks.bench import Bench
from benchmarks.gateways import Way
from benchmarks.generator import LoadFailed
from benchmarks.kraft import UPSTREAM_STORE, stage
from benchmarks.metrics import PSS
from benchmarks.new_tokens import create_tokens, revoke_token
from benchmarks.results import Case
from benchmarks.servers import Subject
from benchmarks.tokens import password_of
from kafka_dt_protocol.sasl import ScramMechanism
from tests.support.protocol.raw import ConnectionClosed, LoginRefused, RawConnection

TITLE: Final = "Following the tokens of a Kafka 4 cluster"
COMPARED: Final = "cpu_share"
AXIS: Final = ""
NO_NODE: Final = Subject("no node")
WATCHED_S: Final = 10.0
REVOCATIONS: Final = 10
KNOWN_WITHIN_S: Final = 3_600.0


def run(bench: Bench) -> None:
    """Measure with more and more tokens."""
    with stage(bench, UPSTREAM_STORE, controller_quorum_append_linger_ms=1) as (broker, node):
        ids: list[str] = []
        for tokens in bench.plan.followed:
            with bench.console.status(f"creating tokens, {tokens:,} in all"):
                ids += create_tokens(broker.address, tokens - len(ids))
                _wait_until_known(node, ids[-1])
            for round_number, way in bench.rounds(f"following {tokens:,} tokens", (node,), warm=False):
                bench.rest()
                values = _idle(way)
                late_ms = [_revocation_ms(broker, way, ids.pop()) for _ in range(REVOCATIONS)]
                values |= {"p50_ms": median(late_ms), "most_ms": max(late_ms)}
                bench.record(Case("idle", tokens=tokens), way.subject, round_number, values)
        assert node.between is not None
        node.between.stop()
        for round_number, way in bench.rounds("no node", (broker,), warm=False):
            bench.record(Case("idle", tokens=tokens), NO_NODE, round_number, _idle(way))


def _wait_until_known(node: Way, token_id: str) -> None:
    """Wait until the node has heard of a token that was just made.

    The broker may be behind by half an hour: it derives two SCRAM credentials of each token, one after the other.
    """
    deadline_s = time.monotonic() + KNOWN_WITHIN_S
    while True:
        try:
            with RawConnection(node.address) as connection:
                connection.login_scram(token_id, password_of(token_id), ScramMechanism.SHA_256, token=True)
                return
        except (LoginRefused, ConnectionClosed):
            if time.monotonic() > deadline_s:
                raise LoadFailed("a node does not hear of new tokens") from None
            time.sleep(1)


def _idle(way: Way) -> dict[str, float]:
    """Look at a way without clients; the broker alone has no node."""
    before = way.cpu_seconds()
    time.sleep(WATCHED_S)
    between, broker = ((after - used) / WATCHED_S for used, after in zip(before, way.cpu_seconds(), strict=True))
    memory = way.memory()
    return {"broker_share": broker} | ({"cpu_share": between, PSS: memory.pss_mib} if memory else {})


def _revocation_ms(broker: Way, node: Way, token_id: str) -> float:
    """Revoke a token at the broker; returns after how many milliseconds the node has closed its connection."""
    password = password_of(token_id)
    with RawConnection(node.address) as connection:
        connection.login_scram(token_id, password, ScramMechanism.SHA_256, token=True)
        revoke_token(broker.address, token_id)
        begun = time.monotonic()
        if not connection.closed():
            raise LoadFailed("a node has not closed the connection of a revoked token")
        return (time.monotonic() - begun) * 1000
