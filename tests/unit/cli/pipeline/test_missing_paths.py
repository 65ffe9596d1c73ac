"""A path of this machine that is not there is told before Spark starts, which takes ten seconds."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from kafka_dt.cli import main

NO_SPARK = "Error: Spark does not start: there is no java; it needs Java 17 or newer, in JAVA_HOME or on PATH\n"


@pytest.fixture(autouse=True)
def spark_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR", "SPARK_HOME", "PYSPARK_SUBMIT_ARGS"):
        monkeypatch.delenv(name, raising=False)


def said(*command: str) -> str:
    done = CliRunner().invoke(main, ["pipeline", *command])
    assert done.exit_code == 1
    return done.stderr


@pytest.mark.parametrize("path", ["nosuch", "/no/such", "file:/no/such", "file:///no/such"])
def test_a_missing_path_of_this_machine_is_told_before_spark_starts(path: str) -> None:
    no_source = f"Error: {path} cannot be ingested from: there is no such directory\n"
    assert said("ingest", "--once", "--from", path, "--table", "t") == no_source
    assert said("watch", "--once", "--from", path, "--table", "t", "--to", "w") == no_source
    no_table = f"Error: {path} is no table of audit events; `kafka-dt pipeline ingest --table {path}` makes one\n"
    assert said("report", "--table", path, "--to", "r") == no_table
    assert not Path("t").exists()


@pytest.mark.parametrize("path", [".", "hdfs:///no/such", "s3a://bucket/no/such", "file://other/no/such"])
def test_spark_looks_for_what_is_there_or_elsewhere(path: str) -> None:
    assert said("ingest", "--once", "--from", path, "--table", "t") == NO_SPARK
    assert said("report", "--table", path, "--to", "r", "--engine", "spark") == NO_SPARK


@pytest.mark.parametrize("more", [["--master", "local[2]"], ["--conf", "spark.a=b"], ["--parquet", "hdfs:///r"]])
def test_what_only_spark_can_do_is_not_asked_of_sail(more: list[str]) -> None:
    Path("t").mkdir()
    command = ["report", "--table", "t", "--to", "r", *more]
    assert said(*command) == NO_SPARK
    refused = CliRunner().invoke(main, ["pipeline", *command, "--engine", "sail"])
    assert refused.exit_code == 2
    assert "--engine sail takes directories of this machine" in refused.stderr


def test_spark_looks_for_a_path_where_its_own_file_system_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    command = ("ingest", "--once", "--table", "t", "--from")
    assert said(*command, "nosuch", "--conf", "spark.hadoop.fs.defaultFS=hdfs://namenode") == NO_SPARK
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    assert said(*command, "nosuch") == NO_SPARK
    assert "no such directory" in said(*command, "file:/no/such")
