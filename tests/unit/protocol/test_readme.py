"""The README of kafka-dt-protocol: its program runs, and the files that it names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[3] / "protocol"
README = (FOLDER / "README.md").read_text(encoding="utf-8")


def test_the_program_of_the_readme_logs_in(capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    exec(compile(program, "README.md", "exec"), {})  # noqa: S102 - it is ours
    assert capsys.readouterr().out.startswith("CredentialRequest(name='alice', token=False")


def test_the_files_that_the_readme_names_exist() -> None:
    named = re.findall(r"\]\((?!https)([^)]+)\)", README)
    assert named
    assert [name for name in named if not (FOLDER / name).is_file()] == []
