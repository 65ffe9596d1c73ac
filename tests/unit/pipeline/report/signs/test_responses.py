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

KAFKA_DT = """
printf '%s\\n' "$KAFKA_DT_HMAC" "$@" > "$NOTES/$2"
echo '{"tokens": [{"tokenId": "other", "hmac": "b3RoZXI="}, {"tokenId": "-tokenId", "hmac": "c2VjcmV0"}]}'
"""
"""Notes what it is asked for, and describes two tokens."""
JQ = """
[ "$1 $2 $3 $4" = "-r --arg id -tokenId" ] || exit 1
python3 -c '
import json, sys
print(*(token["hmac"] for token in json.load(sys.stdin)["tokens"] if token["tokenId"] == sys.argv[1]))
' "$4"
"""


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
        words = shlex.split(step.command.replace("$(", "").replace("=kafka-dt", " kafka-dt").replace(")", " )"))
        for place in (number for number, word in enumerate(words) if word == "kafka-dt"):
            check_command(words[place + 1 :])


def check_command(words: list[str]) -> None:
    """See that a command exists, with the options up to where another program begins."""
    command: click.Command | None = main
    while isinstance(command, click.Group):
        command = command.get_command(click.Context(main), words.pop(0))
    assert command is not None
    known = {name for parameter in command.params for name in parameter.opts}
    for word in takewhile(lambda word: word not in {"|", ")"}, words):
        assert not word.startswith("--") or word.partition("=")[0] in known


def test_a_name_that_does_not_print_is_in_no_command() -> None:
    steps = STOLEN_TOKEN.responses(replace(STOLEN, owner="User:\x1b[2J"), "/data/audit")
    assert not any("\x1b" in step.command or "expire" in step.command for step in steps)


def test_the_command_that_ends_a_token_takes_its_hmac_and_no_other(tmp_path: Path) -> None:
    """Run as it is by a shell, with a kafka-dt and a jq that do what the real ones would."""
    (end,) = (step for step in STOLEN_TOKEN.responses(STOLEN, "t") if "KAFKA_DT_HMAC" in step.command)
    _program(tmp_path / "kafka-dt", KAFKA_DT)
    _program(tmp_path / "jq", JQ)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "NOTES": str(tmp_path)}
    subprocess.run(["/bin/sh", "-c", end.command], check=True, env=environment)
    assert "--owner-principal=User:o'brien; rm -rf $HOME" in (tmp_path / "describe").read_text().splitlines()
    assert (tmp_path / "expire").read_text().splitlines() == [
        "c2VjcmV0",
        "token",
        "expire",
        "--command-config",
        "admin.properties",
    ]


def _program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
