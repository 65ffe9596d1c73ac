"""An unmodified Spark 4.0 job on a YARN with Kerberos, as docs/spark.md starts it: Spark gets its token from kafka-dt.

The driver has a keytab; the executor has none and logs in by the token, with SCRAM-SHA-512, to a real broker that
shares ZooKeeper and the key with kafka-dt. That broker takes no Kerberos, so nothing but a token gets in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafka_dt.client import TokenClient
from tests.interop.conftest import unavailable
from tests.interop.kdc import REALM, SERVICE, Kdc
from tests.interop.test_kerberos import kerberos_properties
from tests.interop.yarn import Yarn
from tests.support.brokers.broker import USERS, Broker
from tests.support.docs.documents import blocks
from tests.support.java.jvm import Java
from tests.support.java.maven import SPARK_KAFKA, YARN, Bundle, Classpath
from tests.support.java.properties import plain
from tests.support.nodes.server import KafkaDt
from tests.support.spark.submit import documented, program_of

pytestmark = [pytest.mark.spark, pytest.mark.soak]
PAGE = "docs/spark.md"


@pytest.fixture
def yarn(kdc: Kdc, java: Java, classpath_of: Callable[[Bundle], Classpath], tmp_path: Path) -> Iterator[Yarn]:
    if not java.has_compiler:
        unavailable(f"{java.executable} has no compiler, YARN is started from source")
    (tmp_path / "yarn").mkdir()
    with Yarn(tmp_path / "yarn", kdc, java, classpath_of(YARN)) as running:
        yield running


@pytest.fixture
def kerberos_server(kdc: Kdc, zookeeper_connect: str, tmp_path: Path) -> Iterator[KafkaDt]:
    properties = kerberos_properties(zookeeper_connect, kdc.keytab(SERVICE))
    with KafkaDt(tmp_path / "kafka-dt", properties, environment=kdc.environment) as running:
        yield running


async def tokens_of_alice(broker: Broker) -> set[str]:
    """The ids of the tokens that alice made for herself, as the broker knows them."""
    async with TokenClient.from_config({**plain("alice", USERS["alice"]), "bootstrap.servers": broker.sasl}) as client:
        found = await client.describe(["User:alice"])
    return {each.token_id for each in found if str(each.requester) == "User:alice" and not each.renewers}


@pytest.mark.client("spark-on-yarn", "tokens", "login")
async def test_a_spark_job_gets_its_token_by_kerberos_and_its_executor_logs_in_with_it(
    yarn: Yarn,
    kdc: Kdc,
    kerberos_server: KafkaDt,
    broker: Broker,
    classpath_of: Callable[[Bundle], Classpath],
    *,
    tmp_path: Path,
) -> None:
    command = next(documented(block) for block in blocks(PAGE, "sh") if "--master yarn" in block.text)
    (job := tmp_path / command.program).write_text(program_of(PAGE, command.program).text)
    assert command.configuration.keys() >= {"spark.kerberos.principal", "spark.kerberos.keytab"}
    before = await tokens_of_alice(broker)
    configuration = {
        **command.configuration,
        "spark.kerberos.principal": f"alice@{REALM}",
        "spark.kerberos.keytab": str(kdc.keytab("alice")),
        "spark.kafka.clusters.here.auth.bootstrap.servers": kerberos_server.sasl,
        # There is neither here.
        "spark.security.credentials.hive.enabled": "false",
        "spark.security.credentials.hbase.enabled": "false",
    }
    output = yarn.run_spark(job, [broker.sasl, "spark"], configuration, classpath_of(SPARK_KAFKA))
    assert "read back: " + " ".join(f"value-{number}" for number in range(10)) in output
    assert len(await tokens_of_alice(broker) - before) == 1
