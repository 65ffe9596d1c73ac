"""`kafka-dt pipeline convert`: a table that kafka-dt 0.1 has written becomes one of Delta Lake.

The table is tests/vectors/table-0.1, whose README says how it was made and what is in it.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from click.testing import CliRunner, Result

from kafka_dt.cli import main
from kafka_dt.pipeline.errors import OldTable
from kafka_dt.pipeline.ingest import Counts, FileSource, Ingest
from kafka_dt.pipeline.table import Table
from tests.support.spark.audit_lines import DAY_MS, NOON_MS, events, stored, stored_ids

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OLD: Final = Path(__file__).parents[2] / "vectors" / "table-0.1"
PLACE: Final = "/tmp/kafka-dt-0.1"  # noqa: S108 - where the table was written
TOPIC: Final = "topic-0123456789ab"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """The old table and the files of its nodes, as if they had always been here; with a topic's checkpoint."""
    here = tmp_path / "here"
    shutil.copytree(OLD, here)
    checkpoints = here / "table" / "_checkpoints"
    for file in (path for path in checkpoints.rglob("*") if path.is_file()):
        file.write_text(file.read_text().replace(PLACE, str(here)))
    (found,) = checkpoints.iterdir()
    digest = hashlib.sha256(f"file:{here}/nodes".encode()).hexdigest()[:12]
    found.rename(checkpoints / f"files-{digest}")
    (checkpoints / TOPIC).mkdir()
    (checkpoints / TOPIC / "metadata").write_text('{"id":"a topic\'s"}')
    return here


def convert(spark: SparkSession, old: Path, new: Path, *options: str) -> Result:
    assert spark.version  # which runs already, so the command uses it
    return CliRunner().invoke(main, ["pipeline", "convert", "--table", str(old), "--to", str(new), *options])


def test_an_old_table_is_converted_and_its_ingest_goes_on_where_it_ended(
    spark: SparkSession, here: Path, tmp_path: Path
) -> None:
    old, new = here / "table", tmp_path / "new"
    before = {path: path.read_bytes() for path in old.rglob("*") if path.is_file()}
    result = convert(spark, old, new, "--cluster-id", "here", "--output", "json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout).items() >= {"events": 5, "quarantined": 2, "sources": 2}.items()
    assert {path: path.read_bytes() for path in old.rglob("*") if path.is_file()} == before
    # Of the last batch, which was prepared and never counted, nothing is there.
    made = [*events(2), *events(2, first=2, time_ms=NOON_MS + DAY_MS), *events(1, first=4)]
    assert stored_ids(new) == {each.id: 1 for each in made}
    assert {row["cluster_id"] for row in stored(new)} == {"here"}
    assert sorted(row["reason"] for row in stored(new, "quarantine")) == ["not_json", "unknown_version"]
    # The checkpoint of the topic is that of its cluster now.
    assert len(list((new / "_checkpoints").glob(f"{TOPIC}-????????????/metadata"))) == 1

    source = FileSource(str(here / "nodes"), "here")
    counts = Ingest(spark, Table(str(new)), source, now_ms=lambda: NOON_MS + 2 * DAY_MS).run()
    assert counts == Counts(batches=1, lines=2, events=2)
    assert stored_ids(new) == {each.id: 1 for each in [*made, *events(2, first=5)]}


def test_an_old_table_is_refused_until_it_is_converted(spark: SparkSession, here: Path) -> None:
    table = Table(str(here / "table"))
    with pytest.raises(OldTable, match=r"`kafka-dt pipeline convert --table .*table --to DIR` makes a new one of it"):
        table.events(spark)
    with pytest.raises(OldTable):
        Ingest(spark, table, FileSource(str(here / "nodes")), now_ms=lambda: NOON_MS).run()


def test_what_cannot_be_converted_is_one_line(spark: SparkSession, here: Path, tmp_path: Path) -> None:
    result = convert(spark, here, tmp_path / "new")
    assert (result.exit_code, result.stderr) == (
        1,
        f"Error: {here} cannot be converted: it is no table of kafka-dt 0.1\n",
    )
    result = convert(spark, here / "table", here)
    assert result.exit_code == 1
    assert "is there already; name a new directory" in result.stderr


def test_a_table_that_has_quarantined_nothing_is_converted(spark: SparkSession, here: Path, tmp_path: Path) -> None:
    shutil.rmtree(here / "table" / "quarantine")
    result = convert(spark, here / "table", tmp_path / "new", "--output", "json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout).items() >= {"events": 5, "quarantined": 0}.items()
    assert Table(str(tmp_path / "new")).quarantine(spark).count() == 0


def test_a_conversion_that_fails_leaves_no_table_and_one_line(spark: SparkSession, here: Path, tmp_path: Path) -> None:
    broken, new = next((here / "table" / "events").rglob("*.parquet")), tmp_path / "made" / "new"
    content = broken.read_bytes()
    broken.write_bytes(b"no Parquet")
    broken.with_name(f".{broken.name}.crc").unlink(missing_ok=True)
    result = convert(spark, here / "table", new)
    assert result.exit_code == 1
    (line,) = (
        line for line in result.stderr.splitlines() if line.startswith("Error: ")
    )  # Spark logs what failed as well
    assert line.startswith(f"Error: {here / 'table'} cannot be converted: ")
    assert "is not a Parquet file" in line
    assert list(tmp_path.glob("made/*")) == []
    broken.write_bytes(content)
    assert convert(spark, here / "table", new).exit_code == 0
    assert [path.name for path in new.parent.iterdir()] == ["new"]


def test_what_a_killed_conversion_has_left_is_named(spark: SparkSession, here: Path, tmp_path: Path) -> None:
    (tmp_path / "new.partial").mkdir()
    result = convert(spark, here / "table", tmp_path / "new")
    assert result.exit_code == 1
    assert f"{tmp_path}/new.partial is there: if no other conversion runs, delete it" in result.stderr
