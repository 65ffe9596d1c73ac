"""The first logins with 400 tokens that were created a second before, SCRAM-SHA-256 on 16 connections.

The executors of a job log in like this. A broker derives the credential of a token when it creates the token; kafka-dt
does so in idle time afterwards. The clients' keys are prepared between the last creation and the first login, which
takes another second. kafka-dt learns nothing of it: the salts are computed with the secret in its ZooKeeper, because
kafka-dt would derive a credential when a client asks for its salt. The broker is asked, and gets the time to come to
rest before: it derives the credential again, with another salt, when it hears of its own change from ZooKeeper.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kazoo.client import KazooClient

from benchmarks.bench import Bench
from benchmarks.credentials import derived_lines
from benchmarks.generator import Job
from benchmarks.metrics import RATE
from benchmarks.new_tokens import create_tokens, remove_tokens
from benchmarks.results import Case
from benchmarks.servers import BROKER, KAFKA_DT, Server
from kafka_dt.identity.credentials.derivation import ITERATIONS, Salts
from kafka_dt.zookeeper.znodes.own import SaltSecretZnode
from kafka_dt_protocol.sasl import ScramMechanism

TITLE: Final = "First logins with new tokens"
COMPARED: Final = RATE
AXIS: Final = "logins a second"
TOKENS: Final = 400
CONNECTIONS: Final = 16
MECHANISM: Final = ScramMechanism.SHA_256
CASE: Final = Case(f"{MECHANISM}, {TOKENS} new tokens", CONNECTIONS)
WAIT_S: Final = 1.0
_AT_MOST_MS: Final = 60_000


def run(bench: Bench) -> None:
    """Create the tokens, wait for a second, and log in with each of them once."""
    for round_number, server in bench.rounds("first logins", bench.stage(bench.plan.few, (BROKER, KAFKA_DT))):
        bench.rest()
        ids = create_tokens(server.address, TOKENS)
        time.sleep(WAIT_S)
        job = Job(
            address=server.address,
            phases=("LOGIN",),
            connections=CONNECTIONS,
            mechanism=MECHANISM,
            credentials=_credentials(bench, server, ids),
            once=True,
            measure_ms=_AT_MOST_MS,
        )
        values = bench.load(server, job, rested=False)["LOGIN"]
        bench.record(CASE, server.subject, round_number, values)
        remove_tokens(server.address)


def _credentials(bench: Bench, server: Server, ids: Sequence[str]) -> Path:
    if server.subject.is_broker:
        bench.rest()
        return bench.credentials(server, MECHANISM, ids)
    salts = _salts(server.zookeeper.address)
    named = [(each, base64.b64encode(salts.salt(MECHANISM, each)).decode(), str(ITERATIONS)) for each in ids]
    path = bench.folder / "jobs" / "first-logins.tsv"
    path.write_text("".join(derived_lines(MECHANISM, named, {})))
    return path


def _salts(zookeeper: str) -> Salts:
    client = KazooClient(hosts=zookeeper)
    client.start()
    try:
        data, _ = client.get(SaltSecretZnode.PATH)
    finally:
        client.stop()
        client.close()
    return Salts(SaltSecretZnode.decode(data))
