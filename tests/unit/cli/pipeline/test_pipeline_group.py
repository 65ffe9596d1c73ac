"""The commands `kafka-dt pipeline`: help without Spark, one line for a missing extra, a program for spark-submit."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from kafka_dt.cli import main
from kafka_dt.cli.pipeline import pipeline

_HELP_WITHOUT_SPARK = """
import sys
from kafka_dt.cli import main
try:
    main(["pipeline", "ingest", "--help"])
finally:
    assert not {"pyspark", "pyarrow"} & set(sys.modules), "imported"
"""


def test_the_help_of_ingest_imports_nothing_of_spark() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _HELP_WITHOUT_SPARK], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "--from-topic" in done.stdout


@pytest.mark.parametrize("missing", ["pyspark", "pyspark.sql", "pyarrow"])
def test_a_missing_extra_is_one_line(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    def fails() -> None:
        raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)

    monkeypatch.setattr(pipeline, "get_command", lambda _context, name: click.Command(name, callback=fails))
    result = CliRunner().invoke(main, ["pipeline", "ingest"])
    assert result.exit_code == 1
    assert result.output == (
        "Error: ingest needs packages of an extra; in a checkout of kafka-dt: pip install ./protocol '.[spark]' "
        f"(No module named {missing!r})\n"
    )


def test_a_missing_module_of_our_own_is_no_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise ModuleNotFoundError("No module named 'kafka_dt.gone'", name="kafka_dt.gone")

    monkeypatch.setattr(pipeline, "get_command", lambda _context, name: click.Command(name, callback=fails))
    assert isinstance(CliRunner().invoke(main, ["pipeline", "ingest"]).exception, ModuleNotFoundError)


def test_the_program_for_spark_submit_stands_alone_in_its_folder() -> None:
    program = Path(CliRunner().invoke(main, ["pipeline", "script"]).output.strip())
    # Python looks beside a program for every module first, `token` and `keys` of the command line among them.
    assert sorted(path.name for path in program.parent.glob("*.py")) == ["__init__.py", program.name]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--table", "t"],
        ["--table", "t", "--from", "a", "--from-topic", "b"],
        ["--table", "t", "--from", "a", "--late-after", "a week"],
        ["--table", "t", "--from", "a", "--interval", "10"],
        ["--table", "t", "--from", "a", "--conf", "executor.memory=1g"],
    ],
)
def test_wrong_usage_of_ingest_is_told_before_spark_starts(arguments: list[str]) -> None:
    assert CliRunner().invoke(main, ["pipeline", "ingest", *arguments]).exit_code == 2


@pytest.mark.parametrize("name", sorted(set(pipeline.list_commands(click.Context(pipeline))) - {"script"}))
def test_ctrl_c_in_a_command_is_one_line_that_says_what_holds_and_status_130(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pipeline, "get_command", lambda _context, name: click.Command(name, callback=interrupted))
    result = CliRunner().invoke(main, ["pipeline", name])
    assert result.exit_code == 130
    assert result.stdout == ""
    assert re.fullmatch(r"Error: interrupted; .*run .+\n", result.stderr)
