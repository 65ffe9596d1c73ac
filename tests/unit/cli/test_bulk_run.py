"""How work on all tokens is shown: progress, summary, interruption, exit status."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from kafka_dt.bulk import Result, ZnodeResult
from kafka_dt.cli import filters, main, progress
from kafka_dt.cli.bulk_run import BulkRun
from kafka_dt.cli.output import Output
from kafka_dt.cli.progress import Steps
from kafka_dt.cli.token.revoke import revoke

KEY_SETTING = "delegation.token.secret.key"
RESULTS = [
    Result("a", ZnodeResult.CHANGED),
    Result("b", ZnodeResult.CHANGED),
    Result("c", ZnodeResult.UNCHANGED),
    Result("d", ZnodeResult.GONE),
    *(Result(f"e{number}\x1b", ZnodeResult.FAILED, "not JSON") for number in range(6)),
    Result("f", ZnodeResult.FAILED, "no key"),
]


async def work(stop: asyncio.Event, report: Any) -> None:
    """Report everything at once."""
    assert not stop.is_set()
    report(RESULTS)


async def test_the_table_tells_counts_reasons_and_first_names(capsys: pytest.CaptureFixture[str]) -> None:
    run = BulkRun("Sealing")
    await run.through(11, work)
    run.write_summary(Output.TABLE, lines=["first of all"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[:7] == [
        "first of all",
        "changed       2",
        "unchanged     1",
        "gone          1",
        "failed        7",
        "  6 x not JSON: e0\\x1b, e1\\x1b, e2\\x1b, e3\\x1b, e4\\x1b, ...",
        "  1 x no key: f",
    ]
    assert re.match(r"11 tokens in \d+\.\d s", lines[7])


async def test_json_is_stable(capsys: pytest.CaptureFixture[str]) -> None:
    run = BulkRun("Sealing", dry_run=True)
    await run.through(11, work)
    run.write_summary(Output.JSON, {"byOwner": {}})
    document = json.loads(capsys.readouterr().out)
    assert document.pop("seconds") >= 0
    assert document == {
        "changed": 2,
        "unchanged": 1,
        "gone": 1,
        "failed": 7,
        "total": 11,
        "failures": [
            {"reason": "not JSON", "count": 6, "tokenIds": [f"e{number}\x1b" for number in range(5)]},
            {"reason": "no key", "count": 1, "tokenIds": ["f"]},
        ],
        "dryRun": True,
        "interrupted": False,
        "byOwner": {},
    }


async def test_a_dry_run_says_what_would_change(capsys: pytest.CaptureFixture[str]) -> None:
    run = BulkRun("Sealing", dry_run=True)
    await run.through(11, work)
    run.write_summary(Output.TABLE)
    assert capsys.readouterr().out.startswith("would change  2\n")


@pytest.mark.parametrize(("results", "status"), [(RESULTS[:4], 0), (RESULTS, 1)])
async def test_the_exit_status_is_1_when_anything_failed(results: list[Result], status: int) -> None:
    run = BulkRun("Sealing")
    run.summary.add(results)
    with pytest.raises(SystemExit) as ended:
        run.exit()
    assert ended.value.code == status


async def test_ctrl_c_lets_what_is_under_way_end(capsys: pytest.CaptureFixture[str]) -> None:
    run = BulkRun("Sealing")

    async def interrupted(stop: asyncio.Event, report: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        await stop.wait()
        report(RESULTS[:2])

    await run.through(11, interrupted)
    assert (run.interrupted, run.summary.total) == (True, 2)
    assert "Interrupted: 2 of 11 are done; run it again to go on" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        run.exit()
    assert ended.value.code == 130


async def test_the_second_ctrl_c_ends_it_at_once() -> None:
    run = BulkRun("Sealing")

    async def stubborn(stop: asyncio.Event, report: Any) -> None:
        report(RESULTS[:1])
        os.kill(os.getpid(), signal.SIGINT)
        await stop.wait()
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.Event().wait()

    await asyncio.create_task(run.through(11, stubborn))
    assert (run.interrupted, run.summary.total) == (True, 1)


async def test_without_a_terminal_progress_is_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "PLAIN_INTERVAL_S", 0.0)
    run = BulkRun("Sealing")
    await run.through(22, work)
    line = capsys.readouterr().err
    assert line.startswith("Sealing: 11 of 22, ")
    assert line.endswith(" s left\n")
    assert "\x1b" not in line


async def test_a_terminal_gets_a_bar_with_rate_and_time_left() -> None:
    terminal = io.StringIO()
    run = BulkRun("Sealing")
    run._steps = Steps(Console(file=terminal, force_terminal=True, width=100))

    async def slowly(_: asyncio.Event, report: Any) -> None:
        for result in RESULTS:
            report([result])
            await asyncio.sleep(0.02)

    await run.through(11, slowly)
    assert re.search(r"Sealing .*11/11.* \d+/s .*0:00:00", terminal.getvalue(), re.DOTALL)


USAGE = [
    (["--all"], "Missing option '--config', or '--bootstrap-server'"),
    (["--config", __file__, "--bootstrap-server", "y:1"], "not both"),
    (["--bootstrap-server", "y:1", "--owner", "alice"], "write User:alice"),
    (["--bootstrap-server", "y:1", "--issued-before", "soon"], "neither ISO 8601"),
    (["--bootstrap-server", "y:1", "--issued-before", "20261121"], "write a date like 2026-11-21"),
    (["--bootstrap-server", "y:1", "--issued-before", "1795219200"], "a number in milliseconds"),
    (["--bootstrap-server", "y:1"], "say --all"),
    (["--bootstrap-server", "y:1", "--yes"], "say --all"),
    (["--bootstrap-server", "y:1", "--owner", "User:a"], "would end every token of User:a: say --yes"),
    (
        [
            "--bootstrap-server",
            "y:1",
            "--renewer",
            "User:b",
            "--owner-principal",
            "User:a",
            "--issued-before",
            "2026-11-21",
        ],
        "would end every token of User:a, with the renewer User:b, issued before 2026-11-21T00:00:00Z: say --yes",
    ),
    (["--bootstrap-server", "y:1", "some-id", "--all"], "not both"),
    (["--bootstrap-server", "y:1", "--all", "--owner", "User:a"], "--all means every token of every owner"),
    (["--bootstrap-server", "y:1", "--all", "--issued-before", "2026-11-21", "--dry-run"], "say --yes instead"),
    (["--bootstrap-server", "y:1", "../tokens/some-id"], "cannot be the id of a token"),
    (["--bootstrap-server", "y:1", "some-id", "--from-file", "/dev/nowhere"], "No such file"),
]


@pytest.mark.parametrize(("arguments", "message"), USAGE)
def test_wrong_usage_of_revoke_exits_with_2(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(main, ["token", "revoke", *arguments])
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.parametrize("said", [[], ["--yes"]])
def test_a_distributed_run_ends_every_token_only_if_a_script_says_all(said: list[str]) -> None:
    result = CliRunner().invoke(main, ["pipeline", "expire", "--override", "zookeeper.connect=127.0.0.1:1", *said])
    assert result.exit_code == 2
    assert "say --all" in result.stderr


def test_a_distributed_run_with_a_filter_does_not_take_the_word_for_every_token() -> None:
    said = ["--override", "zookeeper.connect=127.0.0.1:1", "--all", "--renewer", "User:b"]
    result = CliRunner().invoke(main, ["pipeline", "expire", *said])
    assert (result.exit_code, "say --yes instead" in result.stderr) == (2, True)


def test_a_distributed_run_ends_tokens_of_a_filter_only_if_a_script_says_yes() -> None:
    result = CliRunner().invoke(main, ["pipeline", "expire", "--config", __file__, "--owner", "User:a"])
    assert result.exit_code == 2
    assert "would end every token of User:a: say --yes" in result.stderr


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1000000000000", 1_000_000_000_000),
        ("1700000000000", 1_700_000_000_000),
        ("2023-11-14T22:13:20Z", 1_700_000_000_000),
        ("2023-11-14T22:13:20.500", 1_700_000_000_500),
        ("2023-11-14T23:13:20+01:00", 1_700_000_000_000),
        ("2023-11-14", 1_699_920_000_000),
    ],
)
def test_an_instant_is_iso_8601_or_milliseconds(text: str, milliseconds: int) -> None:
    (option,) = (each for each in revoke.params if each.name == "issued_before_ms")
    assert option.type.convert(text, None, None) == milliseconds


@pytest.mark.parametrize(("age", "age_ms"), [("7d", 604_800_000), ("12h", 43_200_000), ("30m", 1_800_000)])
def test_an_instant_can_be_an_age(monkeypatch: pytest.MonkeyPatch, age: str, age_ms: int) -> None:
    monkeypatch.setattr(filters, "now_ms", lambda: 1_700_000_000_000)
    assert filters.InstantType().convert(age, None, None) == 1_700_000_000_000 - age_ms


@pytest.mark.parametrize("command", ["seal", "unseal", "verify", "list"])
def test_without_settings_a_command_says_what_it_needs(command: str) -> None:
    result = CliRunner().invoke(main, ["keys", command])
    assert result.exit_code == 2
    assert "Missing option '--config'" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("content", "missing"),
    [("delegation.token.secret.key=secret", "zookeeper.connect"), ("zookeeper.connect=x:1", KEY_SETTING)],
)
def test_settings_that_lack_something_are_named(tmp_path: Path, content: str, missing: str) -> None:
    file = tmp_path / "server.properties"
    file.write_text(content)
    result = CliRunner().invoke(main, ["keys", "verify", "--config", str(file)])
    assert (result.exit_code, result.stderr) == (1, f"Error: {file} has no {missing}\n")
