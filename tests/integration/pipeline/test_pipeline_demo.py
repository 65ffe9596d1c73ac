"""The generator on real Spark, and the demo from end to end with few events."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from kafka_dt.cli import main
from kafka_dt.pipeline.generator import Scenario, Truth, generate
from kafka_dt.pipeline.table import Table
from kafka_dt.zookeeper.embedded.server import require_private

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHORT = Scenario(start=datetime(2026, 9, 7, tzinfo=UTC), days=3, owners=12, tokens_a_day=15, events=3_000, incidents=1)


def _content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_executors_make_the_same_files_as_one_process(spark: SparkSession, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    on_spark = generate(SHORT, tmp_path / "spark", spark=spark, told=lambda done, of: told.append((done, of)))
    here = generate(SHORT, tmp_path / "here")
    assert _content(tmp_path / "spark") == _content(tmp_path / "here")
    assert on_spark.written == here.written
    assert told[0] == (0, 6)


@pytest.fixture(scope="module")
def shown(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """What the command says after a small demo in the user's data directory."""
    assert spark.version  # which runs already, so the command uses it
    command = ["pipeline", "demo", "--days", "8", "--events", "4000", "--output", "json"]
    variables = {"XDG_DATA_HOME": str(tmp_path_factory.mktemp("data"))}
    result = CliRunner(env=variables).invoke(main, command, catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    document: dict[str, object] = json.loads(result.stdout)
    return document


def test_a_demo_ends_with_a_page_and_what_it_has_found(shown: dict[str, object]) -> None:
    assert "<html" in Path(str(shown["page"])).read_text(encoding="utf-8")
    incidents = shown["incidents"]
    assert isinstance(incidents, dict)
    assert sum(each["planted"] for each in incidents.values()) > 8
    assert sum(each["found"] for each in incidents.values()) > 0
    assert int(str(shown["cases"])) > 0


def test_after_a_demo_the_users_data_directory_is_still_private(shown: dict[str, object]) -> None:
    directory = Path(str(shown["folder"])).parent
    assert directory.name == "kafka-dt"
    require_private(directory)  # or `kafka-dt run`, which keeps secrets there, would not start


def test_every_event_of_a_demo_is_in_its_table_and_none_in_quarantine(
    shown: dict[str, object], spark: SparkSession
) -> None:
    folder = Path(str(shown["folder"]))
    lines = sum(path.read_bytes().count(b"\n") for path in (folder / "events").glob("*.jsonl"))
    table = Table(str(folder / "table"))
    assert table.events(spark).count() == shown["events"] == lines
    assert table.quarantine(spark).count() == 0


def test_planted_incidents_are_in_the_table(shown: dict[str, object], spark: SparkSession) -> None:
    folder = Path(str(shown["folder"]))
    events = Table(str(folder / "table")).events(spark)
    truth = Truth.load(folder / "events" / "truth.json")
    tokens = {each.token_id for each in truth.incidents if each.token_id}
    addresses = {each.address for each in truth.incidents if each.address}
    assert tokens <= {row[0] for row in events.select("token_id").distinct().collect()}
    assert addresses <= {row[0] for row in events.select("client_address").distinct().collect()}


def test_a_folder_that_no_demo_has_made_is_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    assert spark.version  # which runs already, so the command uses it
    (tmp_path / "thesis.tex").write_text("all of it")
    result = CliRunner().invoke(main, ["pipeline", "demo", "--to", str(tmp_path)])
    assert result.exit_code == 1
    assert "no demo has made it; name another folder with --to" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_generate_says_what_it_has_made(spark: SparkSession, tmp_path: Path) -> None:
    assert spark.version  # which runs already, so the command uses it
    command = ["pipeline", "generate", "--to", str(tmp_path), "--days", "2", "--events", "1500", "--incidents", "1"]
    command += ["--start", "2026-09-07", "--tokens-a-day", "5"]
    result = CliRunner().invoke(main, command, catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    assert "of 2 days from 2026-09-07 on" in result.stdout
    assert f"kafka-dt pipeline ingest --once --from {tmp_path}" in result.stdout
    as_json = CliRunner().invoke(main, [*command, "--output", "json"], catch_exceptions=False)
    document = json.loads(as_json.stdout)
    assert document["files"] == len(list(tmp_path.glob("*.jsonl")))
    assert document["truth"] == str(tmp_path / "truth.json")


def test_numbers_that_do_not_go_together_are_one_line(tmp_path: Path) -> None:
    command = ["pipeline", "generate", "--to", str(tmp_path), "--events", "100", "--tokens-a-day", "50"]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 1
    assert result.stderr == "Error: 100 events are too few for 30 tokens; 360 are enough\n"
