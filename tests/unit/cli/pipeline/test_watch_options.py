"""`kafka-dt pipeline watch` says what is wrong with its options before it starts Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from kafka_dt.cli import main
from kafka_dt.pipeline.watch.folder import held

RESPOND = ("--respond=revoke", "--only=stolen_token", "--at-most=5/h", "--dry-run")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "Give one of '--from' and '--from-topic'"),
        (("--from=nodes", "--from-topic=audit"), "Give one of"),
        (("--from=nodes", "--only=stolen_token"), "need '--respond'"),
        (("--from=nodes", "--dry-run"), "need '--respond'"),
        (("--from=nodes", *RESPOND[:3]), "'--respond-config' or '--dry-run'"),
        (("--from=nodes", *RESPOND[:2], "--dry-run"), "needs '--only', '--at-most'"),
        (("--from=nodes", *RESPOND, "--at-most=5"), "'5' is not of the form 5/h"),
        (("--from=nodes", *RESPOND, "--at-most=0/h"), "'0/h' is not of the form 5/h"),
        (
            ("--from=nodes", *RESPOND, "--only=stolen_token,unknown_id_burst"),
            "unknown_id_burst: signs about tokens are",
        ),
        (("--from=nodes", "--interval=soon"), "'soon' is not of the form"),
        (("--from=nodes", "--alert=pigeon:x"), "write one of webhook"),
    ],
)
def test_wrong_usage_is_one_line(tmp_path: Path, options: tuple[str, ...], message: str) -> None:
    command = ["pipeline", "watch", "--table", str(tmp_path / "table"), "--to", str(tmp_path / "watch"), *options]
    result = CliRunner().invoke(main, command)
    assert (result.exit_code, message in result.output) == (2, True), result.output


def test_a_second_watch_of_the_same_folder_ends_with_one_line(tmp_path: Path) -> None:
    command = ["pipeline", "watch", "--table", str(tmp_path / "table"), "--to", str(tmp_path), "--from=nodes"]
    with held(tmp_path):
        result = CliRunner().invoke(main, command)
    assert result.exit_code == 1
    assert (
        result.output == f"Error: {tmp_path} is that of another watch, which is running: name another one with --to\n"
    )
    with held(tmp_path):
        pass
