"""Spark 4.0 reads and writes through the gateway with tokens: the programs and commands of docs/spark.md, and of
docs/how-to/jobs-of-users.md."""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

import javaproperties
import pytest

from kafka_dt.client import DelegationToken, Renewal, settings
from kafka_dt.files import replace_file
from tests.support.brokers.broker import USERS
from tests.support.docs.documents import blocks
from tests.support.java.jvm import Java
from tests.support.java.maven import SPARK_KAFKA, Bundle, Classpath
from tests.support.java.properties import plain, write_properties
from tests.support.java.records_client import ReadBack, RecordsClient
from tests.support.nodes.gateway import Gateway
from tests.support.protocol.raw import LoginRefused
from tests.support.spark.submit import CLUSTER, SparkSubmit, Submitted, documented, program_of

pytestmark = pytest.mark.spark
PAGE: Final = "docs/spark.md"
SCHEDULER_PAGE: Final = "docs/how-to/jobs-of-users.md"
COUNT: Final = 200
SESSION_MS: Final = 6_000
"""How long a token lives, and so a session with it, unless it is renewed."""
START_S: Final = 120.0
SEEN_S: Final = 30.0
HMAC: Final = re.compile(rb"[A-Za-z0-9+/]{86}==")
QUERY_STARTED: Final = re.compile(r"Starting \[id = [0-9a-f-]+, runId = ")


class Topics:
    """One topic that Spark copies to another."""

    def __init__(self, records: RecordsClient, java: dict[str, str], source: str, sink: str) -> None:
        self._records = records
        self._java = java
        self.source = source
        self.sink = sink
        self._sent = 0

    def send(self) -> None:
        """Send some more records."""
        assert self._records.send(self._java, self.source, COUNT, first=self._sent).acknowledged == COUNT
        self._sent += COUNT

    def check(self) -> None:
        """See that all of them, and no others, are copied once each and in order."""
        found = self._records.read(self._java, self.sink, self._sent)
        assert found == ReadBack.of(self._sent, partitions=2)

    async def pass_through(self) -> None:
        """Both, while the event loop runs."""
        await asyncio.to_thread(self.send)
        await asyncio.to_thread(self.check)


@pytest.fixture
def topics(gateway: Gateway, alice: DelegationToken, make_topic: Callable[..., str], records: RecordsClient) -> Topics:
    return Topics(records, gateway.settings(alice, "java"), make_topic(1, 2), make_topic(2, 1))


@pytest.fixture
def spark(java: Java, classpath_of: Callable[[Bundle], Classpath], tmp_path: Path) -> SparkSubmit:
    return SparkSubmit(java, classpath_of(SPARK_KAFKA), tmp_path / "spark")


def command_of(program: str, brokers: str) -> Submitted:
    """The manual's command that starts a program, for other brokers."""
    text = next(block for block in blocks(PAGE, "sh") if program in block.text)
    here = text.text.replace("kafka.example.com:9092", brokers).replace(r"kafka\.example\.com:9092", re.escape(brokers))
    return documented(replace(text, text=here))


def errors_of_an_ended_token() -> list[str]:
    """The lines of the manual that a driver logs when its client has a token that has ended, as patterns."""
    text = next(block.text for block in blocks(PAGE, "text") if "AdminMetadataManager" in block.text)
    return [re.escape(line.strip()).replace(r"\.\.\.", ".*") for line in text.splitlines()]


def hand(token: DelegationToken, file: Path) -> None:
    replace_file(file, javaproperties.dumps(settings(token, "java")))


def check_secrets(spark: SparkSubmit) -> None:
    """See that no HMAC is in a log, an event log or a checkpoint."""
    files = dict(spark.written())
    assert any(b"SparkListenerApplicationStart" in content for content in files.values())
    assert [path for path, content in files.items() if HMAC.search(content)] == []


@pytest.mark.soak
@pytest.mark.client("spark", "login", "records")
async def test_a_running_query_goes_on_with_its_token_renewed_and_with_the_next_token(
    gateway: Gateway, topics: Topics, spark: SparkSubmit, tmp_path: Path
) -> None:
    command = command_of("with_token.py", gateway.sasl)
    program = spark.write(program_of(PAGE, command.program), command.program)
    copies = spark.write(program_of(PAGE, command.arguments[1]), command.arguments[1])
    file = tmp_path / "token.properties"
    arguments = [str(file), str(copies), gateway.sasl, topics.source, topics.sink, str(spark.folder / "checkpoints")]
    async with gateway.client("alice") as client:
        first = await client.create()
        hand(first, file)
        expiry = await client.renew(first.hmac, SESSION_MS)
        renewal = Renewal(replace(first, expiry_timestamp_ms=expiry), client.renew, period_ms=SESSION_MS)
        with spark.running(program, arguments, command.configuration, master=CLUSTER) as job:
            async with renewal:
                await asyncio.to_thread(job.wait_for, "Streaming query made progress", START_S)
                await topics.pass_through()
                # The sessions that there are now end before the token would have, had it not been renewed again.
                await asyncio.sleep(renewal.token.expiry_timestamp_ms / 1000 - time.time())
                await topics.pass_through()
                second = await client.create()
                hand(second, file)
                await asyncio.to_thread(job.wait_for, f"Spark has the token {second.token_id}", SEEN_S)
                # What was under way with the first token has ended when these are through.
                await topics.pass_through()
            await client.expire(first.hmac)
            with pytest.raises(LoginRefused):
                gateway.connect_by_token(first)
            await topics.pass_through()
            for line in errors_of_an_ended_token():
                await asyncio.to_thread(job.wait_for, line, SEEN_S)
            assert job.running
            assert len(QUERY_STARTED.findall(job.output())) == 1
    check_secrets(spark)


def test_a_batch_has_its_token_in_the_options_and_spark_shows_it_nowhere(
    gateway: Gateway, topics: Topics, spark: SparkSubmit, tmp_path: Path
) -> None:
    topics.send()
    alice = {**plain("alice", USERS["alice"]), "bootstrap.servers": gateway.sasl}
    config = write_properties(tmp_path / "client.properties", alice)
    program = spark.write(program_of(PAGE, "copy_once.py"), "copy_once.py")
    spark.run(program, [str(config), topics.source, topics.sink])
    topics.check()
    check_secrets(spark)


@pytest.mark.soak
def test_a_job_reads_and_writes_as_the_user_for_whom_a_scheduler_has_started_it(
    gateway: Gateway, topics: Topics, spark: SparkSubmit, tmp_path: Path
) -> None:
    """bob, the scheduler, may use no topic of alice's, and has no token left when the job has ended."""
    topics.send()
    bob = {**plain("bob", USERS["bob"]), "bootstrap.servers": gateway.sasl}
    config = write_properties(tmp_path / "scheduler.properties", bob)
    scheduler = spark.write(program_of(SCHEDULER_PAGE, "run_as.py"), "run_as.py")
    job = spark.write(program_of(SCHEDULER_PAGE, "copy_as_user.py"), "copy_as_user.py")
    before = [sys.executable, str(scheduler), str(config), "bob", "alice"]
    spark.run(job, [topics.source, topics.sink], before=before)
    topics.check()
    check_secrets(spark)
    assert not [token for token in gateway.tokens("bob") if token.requester == "User:bob"]
