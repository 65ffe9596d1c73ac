"""`spark.read.format("delegation_tokens")` on a real Spark and a real ZooKeeper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from kazoo.security import make_digest_acl
from pyspark.errors import PySparkException

from kafka_dt.pipeline.tokens_source import TOKENS_SCHEMA, read_tokens, register
from kafka_dt.tokens import Token
from kafka_dt.zookeeper.znodes.kafka import TokenZnode
from tests.support.docs.documents import blocks
from tests.support.zookeeper.sealable import FOREIGN_KEY, NEW_KEY, OLD_KEY
from tests.support.zookeeper.sealed_cluster import FOREIGN, NEW, OLD, SealedCluster, recent, sealed_cluster
from tests.support.zookeeper.server import child_zookeeper, make_chroot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PASSWORD = "a password of zookeeper"
REFUSED = r"kafka\.dt\.zookeeper\.digest: is a secret"

pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # PySpark's, of collect()


@pytest.fixture(scope="module")
def cluster(zookeeper_address: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SealedCluster]:
    """Every kind of token that can be in a ZooKeeper; tests only read them."""
    with sealed_cluster(make_chroot(zookeeper_address, "tokens-source"), tmp_path_factory.mktemp("tokens")) as made:
        made.znodes.write(list(TOKENS["plain"].values()))
        made.znodes.write(list(TOKENS["new"].values()), NEW_KEY)
        made.znodes.write(list(TOKENS["old"].values()), OLD_KEY)
        made.znodes.write(list(TOKENS["foreign"].values()), FOREIGN_KEY)
        made.znodes.put("garbage", b"\xff\x00garbage")
        made.znodes.put("moved", TokenZnode.encode(TOKENS["plain"]["token-00000"]))
        made.znodes.kazoo.set(TokenZnode.path("token-00001"), TokenZnode.encode(TOKENS["plain"]["token-00001"]))
        yield made


def _tokens() -> Mapping[str, Mapping[str, Token]]:
    made = [recent(number, owner=f"owner-{number % 3}", renewers=("yarn",)) for number in range(12)]
    # A broker's, which says no key; one that lives for ever; one of a key that is not there; one with odd names.
    made[0] = replace(made[0], key_id=None)
    made[2] = replace(made[2], max_timestamp_ms=2**63 - 1)
    made[3] = replace(made[3], key_id=FOREIGN_KEY.id)
    kinds = {"plain": made[:4], "new": made[4:8], "old": made[8:10], "foreign": made[10:]}
    return {kind: {each.token_id: each for each in tokens} for kind, tokens in kinds.items()}


TOKENS = _tokens()
NOT_READABLE = {
    "garbage": "not JSON",
    "moved": "it names another token",
    "token-00010": "its MAC fits none of the secret keys",
    "token-00011": "its MAC fits none of the secret keys",
}


def rows_of(frame: DataFrame) -> dict[str, dict[str, Any]]:
    rows = [row.asDict() for row in frame.collect()]
    by_id = {row["token_id"]: row for row in rows}
    assert len(by_id) == len(rows)
    return by_id


def instant(timestamp_ms: int) -> datetime:
    return datetime.fromtimestamp(timestamp_ms / 1000, UTC).astimezone().replace(tzinfo=None)


def test_the_frame_is_what_is_in_zookeeper(spark: SparkSession, cluster: SealedCluster) -> None:
    frame = read_tokens(spark, {**cluster.properties, "tokens.per.partition": "4"})
    assert frame.schema == TOKENS_SCHEMA
    assert frame.rdd.getNumPartitions() == 4
    rows = rows_of(frame)
    readable = {name: each for kind in ("plain", "new", "old") for name, each in TOKENS[kind].items()}
    assert rows.keys() == readable.keys() | NOT_READABLE.keys()
    for name, each in readable.items():
        row = rows[name]
        expected = (str(each.owner), str(each.requester), ["User:yarn"], each.key_id)
        assert (row["owner"], row["requester"], row["renewers"], row["key_id"]) == expected
        assert (row["issue_time"], row["expiry_time"]) == (
            instant(each.issue_timestamp_ms),
            instant(each.expiry_timestamp_ms),
        )
        assert row["znode_version"] == (1 if name == "token-00001" else 0)
    assert rows["token-00002"]["max_time"].year == 9999
    assert rows["token-00001"]["max_time"] == instant(readable["token-00001"].max_timestamp_ms)
    assert {name: row["sealed_by"] for name, row in rows.items() if row["sealed_by"]} == {
        **dict.fromkeys(TOKENS["new"], NEW_KEY.id),
        **dict.fromkeys(TOKENS["old"], OLD_KEY.id),
    }
    assert {name for name, row in rows.items() if row["sealed"]} == (
        TOKENS["new"].keys() | TOKENS["old"].keys() | TOKENS["foreign"].keys()
    )
    unknown = f"the key {FOREIGN_KEY.id} that made it is none of the secret keys"
    reasons = {name: row["reason"] for name, row in rows.items() if row["reason"]}
    assert reasons == {**NOT_READABLE, "token-00003": unknown}
    assert all(rows[name]["owner"] is None for name in NOT_READABLE)


def test_without_a_key_what_is_plain_is_read_and_what_is_sealed_is_told(
    spark: SparkSession, cluster: SealedCluster
) -> None:
    rows = rows_of(read_tokens(spark, {"zookeeper.connect": cluster.connect}))
    assert len(rows) == 14
    sealed = {name for name, row in rows.items() if row["reason"] == "it is sealed, and no secret key is given"}
    assert sealed == TOKENS["new"].keys() | TOKENS["old"].keys() | TOKENS["foreign"].keys()
    assert rows["token-00003"]["owner"] == "User:owner-0"


def test_with_the_wrong_key_nothing_sealed_is_read(spark: SparkSession, cluster: SealedCluster) -> None:
    (cluster.folder / "foreign.key").write_text(FOREIGN)
    options = {"zookeeper.connect": cluster.connect, "secret.key": f"file:{cluster.folder / 'foreign.key'}"}
    rows = rows_of(read_tokens(spark, options))
    assert {name for name, row in rows.items() if row["owner"]} == TOKENS["plain"].keys() | TOKENS["foreign"].keys()


def test_it_is_filtered_and_counted_as_any_table(spark: SparkSession, cluster: SealedCluster) -> None:
    frame = read_tokens(spark, cluster.properties)
    frame.createOrReplaceTempView("tokens")
    counted = spark.sql("SELECT owner, count(*) AS n FROM tokens WHERE reason IS NULL GROUP BY owner ORDER BY owner")
    assert [tuple(row) for row in counted.collect()] == [("User:owner-0", 3), ("User:owner-1", 3), ("User:owner-2", 3)]


def test_the_example_of_the_manual_runs(
    spark: SparkSession, cluster: SealedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    (example,) = blocks("docs/how-to/pipeline-tokens.md", "python")
    text = example.text.replace("zk1:2181,zk2:2181/kafka", cluster.connect)
    text = text.replace("/etc/kafka-dt/secret.key", str(cluster.current))
    text = text.replace("/etc/kafka-dt/previous.keys", str(cluster.previous))
    exec(compile(text, str(example), "exec"), {})  # noqa: S102 - the manual's
    shown = capsys.readouterr().out
    assert "|User:owner-1|" in shown
    assert "|its MAC fits none of the secret keys" in shown
    assert spark.sparkContext._jsc is not None, "the session that ran before goes on"


def test_a_secret_in_an_option_is_refused_and_shown_nowhere(
    spark: SparkSession, cluster: SealedCluster, capfd: pytest.CaptureFixture[str]
) -> None:
    register(spark)
    reader = spark.read.format("delegation_tokens").options(**cluster.properties)
    reader = reader.option("kafka.dt.zookeeper.digest", f"kafka:{PASSWORD}")
    with pytest.raises(PySparkException, match=REFUSED) as raised:
        reader.load()
    # Where columns are given Spark asks the source for nothing before it runs; no text of a plan has its options.
    frame = reader.schema(TOKENS_SCHEMA).load()
    frame.explain(True)
    with pytest.raises(PySparkException, match=REFUSED) as refused:
        frame.collect()
    output = capfd.readouterr()
    assert PASSWORD not in f"{raised.value} {refused.value} {frame._jdf.queryExecution()} {output.out} {output.err}"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"secret.kye": "file:/x"}, "there is no such option; did you mean secret.key"),
        ({"tokens.per.partition": "none"}, "is a number from 1"),
    ],
)
def test_an_option_that_cannot_be_used_is_named(
    spark: SparkSession, cluster: SealedCluster, options: dict[str, str], message: str
) -> None:
    with pytest.raises(PySparkException, match=message):
        read_tokens(spark, {"zookeeper.connect": cluster.connect, **options})


def test_a_key_that_an_executor_does_not_have_is_told(spark: SparkSession, cluster: SealedCluster) -> None:
    frame = read_tokens(spark, {"zookeeper.connect": cluster.connect, "secret.key": "file:/no/such/file"})
    with pytest.raises(PySparkException, match="the secret's file /no/such/file cannot be read"):
        frame.collect()


def test_other_columns_cannot_be_asked_for(spark: SparkSession, cluster: SealedCluster) -> None:
    read_tokens(spark, cluster.properties)
    reader = spark.read.format("delegation_tokens").options(**cluster.properties).schema("token_id string, hmac string")
    with pytest.raises(PySparkException, match="has columns of its own"):
        reader.load().collect()


def test_where_there_are_no_tokens_there_are_no_rows(spark: SparkSession, zookeeper_connect: str) -> None:
    assert read_tokens(spark, {"zookeeper.connect": zookeeper_connect}).collect() == []
    missing = read_tokens(spark, {"zookeeper.connect": f"{zookeeper_connect}/wrong"})
    with pytest.raises(PySparkException, match="ZooKeeper has no /"):
        missing.collect()


def test_it_logs_in_to_zookeeper_as_a_node_does(spark: SparkSession, tmp_path: Path) -> None:
    jaas = tmp_path / "server.jaas"
    jaas.write_text(
        f'Server {{\n  org.apache.zookeeper.server.auth.DigestLoginModule required user_kafka="{PASSWORD}";\n}};\n'
    )
    provider = {"authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"}
    login = tmp_path / "zookeeper.jaas"
    login.write_text(
        f'org.apache.zookeeper.server.auth.DigestLoginModule required username="kafka" password="{PASSWORD}";'
    )
    system = {"java.security.auth.login.config": str(jaas)}
    with (
        child_zookeeper(tmp_path / "data", provider, system) as server,
        sealed_cluster(server.address, tmp_path) as cluster,
    ):
        cluster.znodes.write([recent(number) for number in range(2)], NEW_KEY)
        closed = make_digest_acl("another", "user", all=True)
        cluster.znodes.kazoo.set_acls(TokenZnode.path("token-00001"), [closed])
        sasl = cluster.znodes.kazoo.get_acls(TokenZnode.path("token-00000"))[0][0]._replace(
            id=closed.id._replace(scheme="sasl", id="kafka")
        )
        cluster.znodes.kazoo.set_acls(TokenZnode.path("token-00000"), [sasl])
        anonymous = rows_of(read_tokens(spark, cluster.properties))
        options = {**cluster.properties, "kafka.dt.zookeeper.sasl.jaas.config": f"file:{login}"}
        rows = rows_of(read_tokens(spark, options))
    assert {name: row["reason"] for name, row in anonymous.items()} == dict.fromkeys(
        ("token-00000", "token-00001"), "ZooKeeper does not let us"
    )
    assert (rows["token-00000"]["owner"], rows["token-00000"]["reason"]) == ("User:alice", None)
    assert (rows["token-00001"]["sealed"], rows["token-00001"]["reason"]) == (None, "ZooKeeper does not let us")


def test_no_plan_or_setting_of_spark_shows_a_secret(
    spark: SparkSession, cluster: SealedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = read_tokens(spark, cluster.properties).where("owner = 'User:owner-1'")
    frame.explain(True)
    frame.explain("formatted")
    settings = str(spark.sparkContext.getConf().getAll()) + str(spark.conf.getAll)
    shown = capsys.readouterr().out + settings
    assert "delegation_tokens" in shown.lower()
    assert not [secret for secret in (NEW, OLD) if secret in shown]
