"""The map of the code names only what exists, and each invariant has a file that keeps it and a test that holds it."""

from __future__ import annotations

import re

import pytest

from tests.support.docs.documents import read
from tests.unit.docs.names import named, problem

PAGES = ("docs/architecture.md", "docs/design.md", "CONTRIBUTING.md")
MAP = read("docs/architecture.md")


def part(heading: str) -> str:
    return MAP.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


INVARIANTS = part("What always holds").split("\n### ")[1:]


@pytest.mark.parametrize("page", PAGES)
def test_every_file_class_function_and_test_that_a_page_names_exists(page: str) -> None:
    names = list(named(read(page)))
    assert names
    assert [found for found in map(problem, names) if found is not None] == []


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("kafka_dt/app.py", None),
        ("kafka_dt/gone.py", "kafka_dt/gone.py does not exist"),
        ("kafka_dt/tokens/", None),
        ("kafka_dt/tokens/token.py::Token.may_renew", None),
        ("kafka_dt/tokens/token.py::Token.may_fly", "kafka_dt/tokens/token.py defines no Token.may_fly"),
        ("tokens/token.py::Token", "tokens/token.py is no path from the root of the project"),
        ("kafka_dt.tokens.token.Token", None),
        ("kafka_dt_protocol.sasl", None),
        ("kafka_dt.tokens.token.Coin", "kafka_dt.tokens.token.Coin does not exist"),
        ("TokenManager.create", None),
        ("TokenMaker", "no file of the project defines TokenMaker"),
        ("connections.max.reauth.ms", None),
    ],
)
def test_a_name_of_nothing_is_found(name: str, found: str | None) -> None:
    assert problem(name) == found


@pytest.mark.parametrize("invariant", INVARIANTS, ids=lambda text: text.partition("\n")[0])
def test_every_invariant_has_the_file_that_keeps_it_and_the_test_that_holds_it(invariant: str) -> None:
    kept, _, held = invariant.partition("Held by")
    if "Answers are a broker's" not in invariant:  # all files keep it
        assert re.search(r"Kept\s+by.*`(?:kafka_dt|protocol)/", kept, re.DOTALL)
    assert re.search(r"`tests/[\w/]+\.py(?:::test_\w+)?`", held)


def test_the_paths_name_the_file_of_each_step() -> None:
    for heading in ("One login", "One create"):
        steps = re.split(r"\n\d+\. ", part(heading))[1:]
        assert len(steps) > 5
        for step in steps:
            assert re.search(r"`(?:kafka_dt|protocol)/[\w/]+\.py::", step), step


def test_common_changes_say_where_to_start() -> None:
    rows = re.findall(r"^\| (.+?) \| (.+?) \| (.+) \|$", part("Where do I change ...?"), re.MULTILINE)[1:]
    assert len(rows) >= 10
    assert all(re.search(r"`(?:kafka_dt|protocol)/", start) for _, start, _ in rows[1:])
