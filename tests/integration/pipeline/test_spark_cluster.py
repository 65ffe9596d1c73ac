"""The pipeline on a standalone cluster by `spark-submit`, with executors that are processes of a worker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafka_dt.audit.encoding import encode
from kafka_dt.cli import main
from kafka_dt.zookeeper.sealing.sealed import open_sealed
from tests.integration.pipeline import tokens_job
from tests.integration.pipeline.spark_cluster import SparkCluster
from tests.support.java.jvm import Java
from tests.support.spark.audit_lines import events, stored_ids, write_file
from tests.support.zookeeper.sealable import NEW_KEY, OLD_KEY
from tests.support.zookeeper.sealed_cluster import NEW, OLD, recent, sealed_cluster

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
def cluster(spark_java: Java, delta_jars: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with SparkCluster(spark_java, delta_jars, tmp_path_factory.mktemp("cluster")) as running:
        yield running


def test_ingest_and_report_run_unchanged_on_a_cluster(cluster: SparkCluster, tmp_path: Path) -> None:
    program = Path(CliRunner().invoke(main, ["pipeline", "script"]).output.strip())
    write_file(tmp_path / "nodes", "first", [*map(encode, made := events(3)), b"broken\n"])
    table = tmp_path / "table"
    before = cluster.executors()
    places = ("--table", str(table), "--from", str(tmp_path / "nodes"))
    output = cluster.submit(program, "ingest", *places, "--once", "--late-after", "off", "--output", "json")
    # Spark passes on both what Python says and what it answers.
    assert json.loads(output.splitlines()[-1]).items() >= {"events": 3, "quarantined": 1, "interrupted": False}.items()
    assert stored_ids(table) == {each.id: 1 for each in made}
    report = tmp_path / "report"
    parquet = tmp_path / "parquet"
    cluster.submit(program, "report", "--table", str(table), "--to", str(report), "--parquet", parquet.as_uri())
    # Executors have an umask of their own; the directories above keep others out.
    assert [path.stat().st_mode & 0o777 for path in (table, parquet, report)] == [0o700] * 3
    assert json.loads((report / "report.json").read_text())["events"] == 3
    assert "<html" in (report / "report.html").read_text()
    assert list(parquet.rglob("*.parquet"))
    # Their work was done there: an executor logs each task that it has run.
    executors = set(cluster.executors()) - set(before)
    assert len(executors) == 2
    assert all("Finished task 0.0 in stage 0.0" in (each / "stderr").read_text() for each in executors)


def test_executors_run_the_code_of_the_driver_look_up_the_keys_and_work_on_tokens(
    cluster: SparkCluster, zookeeper_connect: str, tmp_path: Path
) -> None:
    with sealed_cluster(zookeeper_connect, tmp_path) as tokens:
        tokens.znodes.write([recent(number) for number in range(3)], OLD_KEY)
        tokens.znodes.write([recent(3)], NEW_KEY)
        (events := tmp_path / "events").mkdir()
        output = cluster.submit(Path(tokens_job.__file__), str(tokens.configuration), str(events))
        sealed = tokens.znodes.data()
    found = json.loads(output)
    old, new = OLD_KEY.id, NEW_KEY.id
    assert found["sealed_by"] == {f"token-0000{number}": key for number, key in enumerate((old, old, old, new))}
    assert Path(found["code"]["folder"]).parents[2] == cluster.folder
    assert found["code"]["file"].endswith("/kafka_dt.zip/kafka_dt/bulk/engine.py")
    assert found["rotated"] == {"changed": 3, "unchanged": 1}
    assert all(open_sealed([NEW_KEY], data) for data in sealed.values())
    logged = "".join(file.read_text() for file in events.rglob("*") if file.is_file())
    assert "BatchScan delegation_tokens" in logged
    assert not [secret for secret in (NEW, OLD) if secret in logged]
