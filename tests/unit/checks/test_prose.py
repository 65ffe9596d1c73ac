"""The check of phrases: where it looks, what it finds, and what it leaves alone."""

from __future__ import annotations

import pytest

from checks.prose import PHRASES, findings, main, rules

JUDGED, KEPT = rules(PHRASES.read_text(encoding="utf-8"))


def found(path: str, text: str, kept: list[str] | None = None) -> list[tuple[int, str]]:
    return [(each.line, each.phrase) for each in findings(path, text, JUDGED, KEPT if kept is None else kept)]


def test_a_phrase_is_found_in_markdown_with_its_line() -> None:
    assert found("a.md", "A page.\n\nNobody reads it, and somebody should.\n") == [(3, "Nobody"), (3, "somebody")]


def test_a_code_block_of_markdown_is_not_prose() -> None:
    assert found("a.md", "```text\nuid=nobody\n```\nwhoever\n") == [(4, "whoever")]


def test_comments_docstrings_and_messages_of_python_are_read() -> None:
    code = '"""For whoever reads."""\n# somebody\nerror = f"nobody is {error}"\n'
    assert found("a.py", code) == [(1, "whoever"), (2, "somebody"), (3, "nobody")]


def test_names_of_python_are_not_prose() -> None:
    assert not found("a.py", "nobody = somebody(whoever=1)\n")


def test_a_line_of_a_long_string_is_told_by_its_own_number() -> None:
    assert found("a.py", '"""One.\n\nTwo: nobody.\n"""\n') == [(3, "nobody")]


def test_a_wire_text_stays_as_it_is() -> None:
    assert not found("a.md", "The broker answers `nobody may`.", ["nobody may"])


def test_a_part_of_a_word_is_no_phrase() -> None:
    assert not found("a.md", "whomever anyoneness")


def test_every_rule_has_advice() -> None:
    assert all(rule.better for rule in JUDGED)


@pytest.mark.parametrize(("text", "status"), [("A client asks.", 0), ("Somebody asks.", 1)])
def test_the_exit_status_says_whether_a_phrase_was_found(
    text: str, status: int, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path_factory.mktemp("tree")
    (folder / "page.md").write_text(text)
    monkeypatch.setattr("checks.prose.ROOT", folder)
    said: list[str] = []
    assert main(said.append, ["page.md"]) == status
    assert ("page.md:1" in said[0]) is bool(status)
