from __future__ import annotations

import os
import shlex
import stat
import subprocess
from dataclasses import replace
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_dt.cli import main
from kafka_dt.pipeline.report.signs import SIGNS, Evidence, Finding, Severity, Sign, SubjectType
from kafka_dt.pipeline.report.signs.stolen_token import STOLEN_TOKEN

SEEN = datetime(2026, 3, 2, tzinfo=UTC)
STOLEN = Finding(
    kind=STOLEN_TOKEN.kind,
    severity=Severity.HIGH,
    subject_type=SubjectType.TOKEN,
    subject="-tokenId",
    token_id="-tokenId",
    owner="User:o'brien; rm -rf $HOME",
    address="203.0.113.9",
    first_seen=SEEN,
    last_seen=SEEN,
    events=1,
    evidence=(Evidence("in networks", "203.0.113.0/24"),),
)

every_sign = pytest.mark.parametrize("sign", SIGNS, ids=[sign.kind for sign in SIGNS])


@every_sign
def test_every_sign_has_something_to_do(sign: Sign[Any]) -> None:
    steps = sign.responses(STOLEN, "/data/audit")
    assert any(step.command for step in steps)
    assert all(step.why for step in steps)


@given(owner=st.text(), token_id=st.text(), address=st.text(), table=st.text())
def test_no_value_is_more_than_one_word_of_a_command(owner: str, token_id: str, address: str, table: str) -> None:
    finding = replace(STOLEN, owner=owner, token_id=token_id, address=address)
    plain = replace(STOLEN, owner="o", token_id="t", address="a")
    usual = {len(shlex.split(step.command)) for step in STOLEN_TOKEN.responses(plain, "table")}
    for step in STOLEN_TOKEN.responses(finding, table):
        assert step.command.isprintable()
        assert len(shlex.split(step.command)) in usual


@every_sign
def test_the_commands_and_their_options_exist(sign: Sign[Any]) -> None:
    plain = replace(STOLEN, owner="User:alice")
    for step in sign.responses(plain, "/data/audit"):
        words = shlex.split(step.command)
        if words:
            assert words.pop(0) == "kafka-dt"
            check_command(words)


def check_command(words: list[str]) -> None:
    """See that a command exists, with its options."""
    command: click.Command | None = main
    while isinstance(command, click.Group):
        command = command.get_command(click.Context(main), words.pop(0))
    assert command is not None
    known = {name for parameter in command.params for name in parameter.opts}
    for word in takewhile(lambda word: word != "--", words):
        assert not word.startswith("--") or word.partition("=")[0] in known


def test_a_name_that_does_not_print_is_in_no_command() -> None:
    steps = STOLEN_TOKEN.responses(replace(STOLEN, owner="User:\x1b[2J", token_id="\x1b[2J"), "/data/audit")
    assert not any("\x1b" in step.command or "revoke" in step.command for step in steps)


def test_the_command_that_ends_a_token_takes_its_id_as_no_option(tmp_path: Path) -> None:
    """Run as it is by a shell, with a kafka-dt that notes its arguments."""
    (end,) = (step for step in STOLEN_TOKEN.responses(STOLEN, "t") if step.command.endswith("-tokenId"))
    program = tmp_path / "kafka-dt"
    program.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["/bin/sh", "-c", end.command], check=True, env=environment, capture_output=True, text=True)
    assert done.stdout.split() == ["token", "revoke", "--command-config", "admin.properties", "--", "-tokenId"]
