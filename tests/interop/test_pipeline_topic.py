"""`kafka-dt pipeline ingest` from a topic of a real broker, logged in with a delegation token that is replaced."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import aiokafka
import pytest

from kafka_dt.audit import AuditEvent, EventType, Outcome
from kafka_dt.audit.encoding import encode
from kafka_dt.client import DelegationToken, TokenClient, settings
from kafka_dt.files import replace_file
from tests.support.brokers.broker import USERS, Broker
from tests.support.java.maven import SPARK_KAFKA, Bundle, Classpath, cache_directory
from tests.support.java.properties import plain
from tests.support.java.tools import KafkaTools
from tests.support.processes.process import ChildProcess
from tests.support.processes.waiting import eventually
from tests.support.spark.audit_lines import events, stored, stored_ids
from tests.support.spark.quick_spark import QUICK_SPARK, options

pytestmark = pytest.mark.spark
ALICE: Final = plain("alice", USERS["alice"])
TOPIC: Final = "kafka-dt-audit"
TIMEOUT_S: Final = 150.0
DAY_MS: Final = 86_400_000
GUESS: Final = AuditEvent(
    id="guess",
    time=0,
    node="node-1-0",
    type=EventType.LOGIN,
    outcome=Outcome.REFUSED,
    reason="unknown_token",
    mechanism="SCRAM-SHA-256",
)


def ask(broker: Broker, request: Callable[[TokenClient], object]) -> object:
    async def connected() -> object:
        async with TokenClient.from_config({**ALICE, "bootstrap.servers": broker.sasl}) as client:
            return await request(client)  # type: ignore[misc]

    return asyncio.run(connected())


def make_token(broker: Broker) -> DelegationToken:
    made = ask(broker, lambda client: client.create(max_lifetime_ms=600_000))
    assert isinstance(made, DelegationToken)
    return made


def write_login(file: Path, made: DelegationToken, broker: Broker) -> None:
    """Put a token into the file of a client's properties, as an operator does who replaces one."""
    login = settings(made, "java", bootstrap_servers=broker.sasl, security_protocol="SASL_PLAINTEXT")
    replace_file(file, "".join(f"{key}={value}\n" for key, value in login.items()))


@pytest.fixture
def send(kafka_39: KafkaTools, broker: Broker) -> Callable[..., None]:
    def send(*made: AuditEvent | str) -> None:
        lines = [each if isinstance(each, str) else encode(each).decode().rstrip() for each in made]
        kafka_39.produce(broker.sasl, ALICE, TOPIC, "\n".join(lines) + "\n").ok()

    return send


class TopicIngest:
    """The process, and what it leaves."""

    def __init__(self, process: ChildProcess, folder: Path) -> None:
        self.process = process
        self.table = folder / "table"
        self.folder = folder

    def wait_for(self, *made: AuditEvent) -> None:
        wanted = {each.id: 1 for each in made}
        eventually(lambda: stored_ids(self.table) == wanted or self.ended(), TIMEOUT_S)

    def ended(self) -> bool:
        if not self.process.running:
            raise self.process.failure("ended")
        return False


def a_command(name: str, folder: Path, topic: str, login: Path) -> list[str]:
    """Give a command on one thread, which fetches Spark's Kafka source into a cache that is kept."""
    configuration = {
        **QUICK_SPARK,
        "spark.sql.shuffle.partitions": "1",
        "spark.jars.ivy": str(cache_directory() / "spark"),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": (folder / "spark-events").as_uri(),
    }
    if own := os.environ.get("KAFKA_DT_IVY_SETTINGS"):
        configuration["spark.jars.ivySettings"] = own
    (folder / "spark-events").mkdir()
    command = [str(Path(sys.executable).with_name("kafka-dt")), "pipeline", name, "--output=json", "--master=local[1]"]
    command += ["--table", str(folder / "table"), "--from-topic", topic, "--command-config", str(login)]
    return command + options(configuration)


@contextmanager
def ingesting(java_home: str, folder: Path, login: Path) -> Iterator[TopicIngest]:
    command = [*a_command("ingest", folder, TOPIC, login), "--interval=200ms", "--late-after=off"]
    with ChildProcess("ingest", command, folder / "ingest.log", {"JAVA_HOME": java_home}) as process:
        yield TopicIngest(process, folder)


@pytest.fixture
def spark_jars(classpath_of: Callable[[Bundle], Classpath]) -> Classpath:
    """Says whether Maven Central can be reached, or was before."""
    return classpath_of(SPARK_KAFKA)


@pytest.mark.usefixtures("spark_jars")
def test_a_topic_is_ingested_with_a_token_that_is_replaced(
    kafka_39: KafkaTools, broker: Broker, send: Callable[..., None], tmp_path: Path
) -> None:
    login = tmp_path / "client.properties"
    first, second = make_token(broker), make_token(broker)
    write_login(login, first, broker)
    made = events(5)
    # A producer that had no answer sends again.
    send(*made[:2], "no event", *made[1:3])
    java_home = str(kafka_39.java.executable.resolve().parent.parent)
    with ingesting(java_home, tmp_path, login) as ingest:
        ingest.wait_for(*made[:3])
        ask(broker, lambda client: client.expire(first.hmac))
        write_login(login, second, broker)
        send(*made[2:])
        ingest.wait_for(*made)
        assert ingest.process.pid is not None
        os.kill(ingest.process.pid, signal.SIGTERM)
        assert ingest.process.wait(TIMEOUT_S) == 130, ingest.process.output()
        output = ingest.process.output()

    (result,) = map(json.loads, re.findall(r"^{.*}$", output, re.MULTILINE))
    assert result.items() >= {"lines": 8, "events": 5, "duplicates": 2, "quarantined": 1, "interrupted": True}.items()
    (bad,) = stored(ingest.table, "quarantine")
    # The id of a Kafka cluster is an UUID in base64.
    assert {len(row["cluster_id"]) for row in [bad, *stored(ingest.table)]} == {22}
    place = ("source", "source_partition", "source_offset", "raw")
    assert [bad[name] for name in place] == [TOPIC, 0, 2, "no event"]
    assert "Traceback" not in output
    for token in (first, second):
        assert_secret_is_nowhere(token, tmp_path, besides=login)


@pytest.mark.soak
@pytest.mark.usefixtures("spark_jars")
def test_a_first_watch_begins_with_what_was_produced_within_its_last_day(
    kafka_39: KafkaTools, broker: Broker, tmp_path: Path
) -> None:
    """All events are of now, so a watch that read the older records would tell of their guesses too."""
    topic, login = "watched", tmp_path / "client.properties"
    login.write_text("".join(f"{key}={value}\n" for key, value in {**ALICE, "bootstrap.servers": broker.sasl}.items()))
    now_ms = time.time_ns() // 1_000_000

    async def produce() -> None:
        account = {"sasl_plain_username": "alice", "sasl_plain_password": USERS["alice"]}
        wire = {"bootstrap_servers": broker.sasl, "security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN"}
        async with aiokafka.AIOKafkaProducer(**wire, **account) as producer:
            for address, produced_ms in (("192.0.2.1", now_ms - 3 * DAY_MS), ("192.0.2.2", now_ms)):
                for number in range(8):
                    guess = replace(
                        GUESS, id=f"{address}-{number}", time=now_ms, client_address=address, token_id=f"x{number}"
                    )
                    await producer.send_and_wait(topic, encode(guess).rstrip(), timestamp_ms=produced_ms)

    asyncio.run(produce())
    java_home = str(kafka_39.java.executable.resolve().parent.parent)
    command = [*a_command("watch", tmp_path, topic, login), "--once", "--to", str(tmp_path / "watch")]
    with ChildProcess("watch", command, tmp_path / "watch.log", {"JAVA_HOME": java_home}) as process:
        assert process.wait(TIMEOUT_S) == 0, process.output()
        cases = [json.loads(line) for line in re.findall(r"^{.*}$", process.output(), re.MULTILINE)]
    assert [case["addresses"] for case in cases] == [["192.0.2.2"]]


def assert_secret_is_nowhere(token: DelegationToken, folder: Path, *, besides: Path) -> None:
    """Look into everything that was written: the table, checkpoints, Spark's event log, what was said."""
    secret = base64.b64encode(token.hmac)
    files = [path for path in folder.rglob("*") if path.is_file() and path != besides]
    assert any(path.parent.parent.name == "spark-events" or path.parent.name == "spark-events" for path in files)
    assert [path for path in files if secret in path.read_bytes()] == []
