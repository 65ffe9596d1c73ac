"""Other tools read the table as it is: the programs of the manual in DuckDB, polars and a plain Spark."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import duckdb
import pytest

from kafka_dt.audit import Outcome
from kafka_dt.pipeline.ingest import Counts, Rules
from tests.support.docs.documents import blocks
from tests.support.spark.audit_lines import NOON_MS, events
from tests.support.spark.ingests import Ingests

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PAGE: Final = "docs/how-to/pipeline.md"
PLACE: Final = "/data/audit"


@pytest.fixture(scope="module")
def ingests(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Ingests:
    """A table of two batches with three refused logins in it."""
    ingests = Ingests(spark, tmp_path_factory.mktemp("readers"), Rules(compact_at=1))
    refused = [replace(each, outcome=Outcome.REFUSED, reason="expired_token") for each in events(3)]
    for made in (refused[:1], refused[1:]):
        ingests.add(made)
    ingests.run()
    return ingests


@pytest.fixture(scope="module")
def early(ingests: Ingests) -> DataFrame:
    """What a reader of the first two batches has begun to read."""
    return ingests.table.events(ingests.spark)


@pytest.fixture(scope="module")
def table(ingests: Ingests, early: DataFrame) -> Path:
    """The table with a third batch, whose ingest has merged the files of the first two."""
    assert early.columns
    ingests.add(events(4, first=3))
    assert ingests.run() == Counts(batches=1, lines=4, events=4, compacted_files=2)
    return ingests.path


def program(language: str, mark: str, table: Path) -> str:
    """The block of the manual with a mark, about this table."""
    (found,) = (block.text for block in blocks(PAGE, language) if mark in block.text)
    return found.replace(PLACE, str(table))


@pytest.mark.usefixtures("table")
def test_merged_files_are_kept_for_those_who_read_them(ingests: Ingests, early: DataFrame) -> None:
    assert {row.id for row in early.collect()} == {each.id for each in events(3)}
    assert ingests.seen() == ingests.stored() == {each.id for each in events(7)}


def test_duckdb_reads_the_table(table: Path) -> None:
    load, query = program("sql", "delta_scan", table).strip().split("\n", 1)
    package = importlib.util.find_spec("duckdb_extension_delta")
    assert package is not None
    assert package.origin is not None
    (extension,) = Path(package.origin).parent.rglob("delta.duckdb_extension")
    with duckdb.connect() as connection:
        assert load == "LOAD delta;"
        connection.load_extension(str(extension))
        assert connection.sql(query).fetchall() == [("expired_token", 3)]
        (found,) = connection.sql(f"SELECT epoch_ms(min(time)), count(*) FROM delta_scan('{table}/events')").fetchall()  # noqa: S608
    assert found == (NOON_MS, 7)


def test_polars_reads_the_table(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    exec(program("python", "polars.scan_delta", table), names)  # noqa: S102 - the manual\'s program
    assert "expired_token" in capsys.readouterr().out
    assert names["events"].collect().height == 7


def test_a_plain_spark_reads_the_table_and_its_change_data_feed(
    spark: SparkSession, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exec(program("python", 'read.format("delta")', table), {"spark": spark})  # noqa: S102 - the manual\'s program
    assert "|expired_token|    3|" in capsys.readouterr().out
    *definition, last = program("python", "readChangeFeed", table).strip().splitlines()
    names: dict[str, Any] = {"spark": spark}
    exec("\n".join(definition) + f"\nfeed = {last}", names)  # noqa: S102 - the manual\'s program
    stream = names["feed"].writeStream.format("memory").queryName("added").trigger(availableNow=True)
    stream.option("checkpointLocation", str(tmp_path)).start().awaitTermination()
    # What OPTIMIZE writes anew was added by no batch.
    assert spark.table("added").count() == 7
