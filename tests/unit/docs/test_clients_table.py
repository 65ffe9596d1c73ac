"""The README's table of clients says what tests have seen, of the versions that the tests use."""

from __future__ import annotations

import json
from pathlib import Path

from docs.generators.clients import CLIENTS, SEEN, table
from tests.support import clients
from tests.support.docs.documents import ROOT

FOUND = json.loads(SEEN.read_text())


def line(client: str, does: str, *, version: str | None = None, test: str = "tests/a.py") -> str:
    version = clients.version_of(client) if version is None else version
    return json.dumps({"client": client, "version": version, "does": does, "test": test}) + "\n"


def taken_over(folder: Path, *lines: str) -> dict[str, object]:
    (folder / "passes").write_text("".join(lines))
    clients.take_over(folder / "passes", folder / "seen.json")
    found: dict[str, object] = json.loads((folder / "seen.json").read_text())
    return found


def test_every_client_is_in_the_table_and_was_seen_to_log_in_with_a_token() -> None:
    assert set(FOUND) == set(CLIENTS) == set(clients.VERSIONS)
    assert [name for name, entry in FOUND.items() if "login" not in entry["does"]] == []


def test_the_table_is_about_the_versions_that_the_tests_use() -> None:
    # kcat is the machine's own; the versions of all others are in the tree.
    used = {name: clients.version_of(name) for name in FOUND if name != "kcat"}
    assert {name: FOUND[name]["version"] for name in used} == used, "run `make soak`, which writes the table again"


def test_the_tests_that_the_table_names_say_what_they_prove() -> None:
    tests = {(test, name) for name, entry in FOUND.items() for each in entry["does"].values() for test in each}
    for test, name in tests:
        text = (ROOT / test).read_text()
        assert f'mark.client("{name}"' in text or "seen(" in text, f"{test} does not say that it is about {name}"


def test_passes_are_added_to_what_was_seen_before(tmp_path: Path) -> None:
    taken_over(tmp_path, line("sarama", "login"), line("sarama", "login", test="tests/b.py"))
    assert taken_over(tmp_path, line("sarama", "records"), line("sarama", "login")) == {
        "sarama": {
            "version": clients.version_of("sarama"),
            "does": {"login": ["tests/a.py", "tests/b.py"], "records": ["tests/a.py"]},
        }
    }


def test_what_another_version_did_does_not_count(tmp_path: Path) -> None:
    old = {"sarama": {"version": "1.0.0", "does": {"login": ["tests/a.py"], "tokens": ["tests/a.py"]}}}
    (tmp_path / "seen.json").write_text(json.dumps(old))
    assert taken_over(tmp_path, line("sarama", "tokens", version="0.9.0")) == old
    assert taken_over(tmp_path, line("sarama", "login")) == {
        "sarama": {"version": clients.version_of("sarama"), "does": {"login": ["tests/a.py"]}}
    }


def test_the_table_says_what_was_not_seen() -> None:
    seen = {"franz-go": {"version": "1", "does": {"login": ["tests/interop/a.py"]}}}
    (row,) = table(seen).splitlines()[3:]
    assert row == (
        "| Go: franz-go | 1 | it has no such calls | yes, with `tokenauth` | no | [a.py](tests/interop/a.py) |"
    )
