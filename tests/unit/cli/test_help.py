"""What helps at the command line: examples, completion, and what a mistyped word was meant to be."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from docs.generators.commands import commands
from kafka_dt.cli import main
from kafka_dt.cli.completion import SHELLS

PROGRAMS = Path(sys.executable).parent


COMMANDS = list(commands(click.Context(main, info_name="kafka-dt")))
_REQUIRED = {
    "kafka-dt user create": ["alice", "--bootstrap-server", "127.0.0.1:1"],
    "kafka-dt user passwd": ["alice", "--bootstrap-server", "127.0.0.1:1"],
    "kafka-dt zookeeper": ["--data-dir", "nowhere"],
}
"""What commands need before they look at a file."""
every_command = pytest.mark.parametrize("context", COMMANDS, ids=[each.command_path for each in COMMANDS])


@every_command
def test_the_help_of_every_command_ends_with_an_example_that_it_takes(context: click.Context) -> None:
    shown = CliRunner().invoke(main, [*context.command_path.split()[1:], "--help"]).stdout
    examples = shown.partition("Example")[2].splitlines()[1:]
    assert examples
    names = {name for parameter in context.command.params for name in parameter.opts} | {"--context", "--help"}
    for line in examples:
        assert re.search(r"\bkafka-dt\b", line)
        options = [word.partition("=")[0] for word in shlex.split(line, comments=True) if word.startswith("--")]
        assert set(options) <= names, line


@every_command
def test_options_of_one_meaning_have_one_name(context: click.Context) -> None:
    names = {name for parameter in context.command.params for name in parameter.opts}
    others = {
        "--bootstrap-servers": "--bootstrap-server",
        "--broker": "--bootstrap-server",
        "--client-config": "--command-config",
        "--format": "--output",
        "--json": "--output",
        "--force": "--yes",
        "--settings": "--config",
    }
    assert not names & set(others)


@every_command
def test_an_option_that_names_a_file_that_is_not_there_is_wrong_usage(context: click.Context) -> None:
    written = {"--alert-memory", "--metrics"}
    forms = {"FILE": "/nowhere/file", "file:F|env:N": "file:/nowhere/file"}
    for parameter in context.command.params:
        file = forms.get(parameter.metavar or "")
        if file is not None and not written & set(parameter.opts):
            arguments = [*context.command_path.split()[1:], *_REQUIRED.get(context.command_path, ())]
            done = CliRunner().invoke(main, [*arguments, parameter.opts[-1], file])
            assert done.exit_code == 2, (parameter.opts, done.output)
            assert "/nowhere/file" in done.stderr


@every_command
def test_a_command_that_asks_can_be_tried_and_answered_by_a_script(context: click.Context) -> None:
    names = {name for parameter in context.command.params for name in parameter.opts}
    asks_before_what_cannot_be_tried = {"kafka-dt accept-restore"}
    if "--yes" in names and context.command_path not in asks_before_what_cannot_be_tried:
        assert "--dry-run" in names


@every_command
def test_a_list_of_commands_tells_the_whole_purpose_of_each(context: click.Context) -> None:
    groups = context.command_path.split()[1:-1]
    (line,) = (
        line
        for line in CliRunner().invoke(main, [*groups, "--help"], terminal_width=80).stdout.splitlines()
        if line.startswith(f"  {context.info_name} ")
    )
    assert not line.endswith("...")


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["tokn", "list"], "Did you mean 'token'?"),
        (["token", "rekove"], "Did you mean 'revoke'?"),
        (["user", "creat"], "Did you mean 'create'?"),
        (["token", "list", "--onwer", "x"], "'--owner'"),
        (["token", "list", "--output", "jsn"], "'json'"),
        (["serve", "--override", "kafka.dt.wrokers=1"], "did you mean kafka.dt.workers?"),
    ],
)
def test_a_mistyped_word_is_answered_with_what_was_meant(words: list[str], meant: str) -> None:
    done = CliRunner().invoke(main, words)
    assert done.exit_code in {1, 2}
    assert meant in done.stderr


def test_a_word_that_is_like_no_command_gets_no_guess() -> None:
    done = CliRunner().invoke(main, ["xyzzy"])
    assert (done.exit_code, "Did you mean" in done.stderr) == (2, False)


def completed(shell: str, *words: str) -> str:
    """What a shell is given for the last word."""
    of_shell = {
        "bash": {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)},
        "zsh": {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)},
        "fish": {"COMP_WORDS": " ".join(words), "COMP_CWORD": words[-1]},
    }
    environment = {**os.environ, "_KAFKA_DT_COMPLETE": f"{shell}_complete", **of_shell[shell]}
    program = [str(PROGRAMS / "kafka-dt")]
    return subprocess.run(program, env=environment, capture_output=True, text=True, timeout=60, check=True).stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_completes_commands_and_options(shell: str) -> None:
    script = CliRunner().invoke(main, ["completion", shell]).stdout
    assert f"_KAFKA_DT_COMPLETE={shell}_complete" in script
    assert "revoke" in completed(shell, "kafka-dt", "token", "rev")
    assert "--dry-run" in completed(shell, "kafka-dt", "token", "revoke", "--dr")


def test_bash_takes_the_script(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    script = tmp_path / "kafka-dt"
    script.write_text(CliRunner().invoke(main, ["completion", "bash"]).stdout)
    ask = f"source {script}; COMP_WORDS=(kafka-dt token sh); COMP_CWORD=2; _kafka_dt_completion kafka-dt; "
    ask += 'echo "${COMPREPLY[@]}"'
    environment = {**os.environ, "PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run([bash, "-c", ask], env=environment, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["show"]
