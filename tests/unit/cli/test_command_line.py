"""The command line as a process: what it imports, how it ends."""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from io import UnsupportedOperation
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from kafka_dt.cli import health, main
from kafka_dt.client import TokenClientError
from kafka_dt.config import ConfigError

KAFKA_DT = [sys.executable, "-c", "from kafka_dt.cli import main; main(prog_name='kafka-dt')"]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*KAFKA_DT, *arguments], capture_output=True, text=True, timeout=60, check=False)


def test_help_names_every_command() -> None:
    result = CliRunner().invoke(main, ["--help"])
    assert result.exit_code == 0
    for command in ("run", "serve", "token", "zookeeper"):
        assert f"  {command} " in result.stdout


def test_no_line_of_the_help_is_cut() -> None:
    result = CliRunner(env={"COLUMNS": "80"}).invoke(main, ["--help"])
    assert "..." not in result.stdout.partition("Commands:")[2]


def test_serve_without_settings_says_how_to_give_them() -> None:
    result = CliRunner().invoke(main, ["serve"])
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1].startswith("Error: zookeeper.connect: is needed, for example localhost:2181")
    assert "--config" in result.stderr
    assert "--override" in result.stderr


def test_every_command_can_be_imported() -> None:
    context = click.Context(main)
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None
        assert command.help, f"{name} says nothing of itself"


def test_a_version_is_told() -> None:
    assert run("--version").stdout.startswith("kafka-dt, version ")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("serve --override nonsense", "Invalid value for '--override': 'nonsense' is not of the form KEY=VALUE"),
        ("check --config /dev/null --override =x", "Invalid value for '--override': '' is not of the form KEY=VALUE"),
        (
            "token list --bootstrap-server k1",
            "Invalid value for '--bootstrap-server': 'k1' is not of the form host:port",
        ),
        ("context add k --bootstrap-server ,", "Invalid value for '--bootstrap-server': it names no server"),
        ("context add k --bootstrap-server k1", "Invalid value for '--bootstrap-server': 'k1' is not of the form host"),
        ("token create --owner-principal bob", "Invalid value for '--owner-principal': 'bob' has no type: write User:"),
        (
            "token create --renewer-principal b",
            "Invalid value for '--renewer-principal': 'b' has no type: write User:b",
        ),
        ("token describe --owner-principal b", "Invalid value for '--owner-principal': 'b' has no type: write User:b"),
    ],
)
def test_wrong_usage_names_the_option_and_exits_with_2(arguments: str, line: str) -> None:
    result = CliRunner().invoke(main, arguments.split())
    assert (result.exit_code, result.stderr.splitlines()[-1][: len(line) + 7]) == (2, f"Error: {line}")


def test_a_file_in_a_folder_that_the_user_may_not_enter_is_not_said_to_be_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(path: Path) -> None:  # root, which tests may run as, may enter every folder
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "stat", refuse)
    result = CliRunner().invoke(main, ["serve", "--config", "/secret/server.properties"])
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1].endswith("'--config': /secret/server.properties: Permission denied")


def test_an_unknown_command_exits_with_2() -> None:
    result = run("tokens")
    assert result.returncode == 2
    assert "No such command 'tokens'" in result.stderr


def test_the_token_commands_need_nothing_of_the_server() -> None:
    program = (
        "import sys; from kafka_dt.cli import main; import kafka_dt.cli.token.commands;"
        "print(*(m for m in sys.modules if m.split('.')[0] in {'kazoo', 'uvloop'}"
        " or m.startswith(('kafka_dt.server', 'kafka_dt.zookeeper', 'kafka_dt.app'))))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout.strip() == ""


def test_no_server_is_one_line() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        result = run("token", "describe", "--bootstrap-server", address)
    assert result.returncode == 1
    assert result.stderr == f"Error: no bootstrap server can be used: {address} (Connection refused)\n"
    assert result.stdout == ""


@pytest.fixture
def heeds_ctrl_c() -> Iterator[None]:
    """Have programs end by Ctrl-C also where these tests run in the background of a script, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A server that takes connections and answers nothing."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        server.settimeout(30)
        yield server


@pytest.mark.usefixtures("heeds_ctrl_c")
def test_ctrl_c_ends_it_without_a_traceback(silent: socket.socket) -> None:
    command = ["token", "describe", "--bootstrap-server", f"127.0.0.1:{silent.getsockname()[1]}"]
    assert interrupted(silent, command) == (130, "", "Error: interrupted\n")


@pytest.mark.usefixtures("heeds_ctrl_c")
def test_ctrl_c_in_a_rotation_of_keys_says_how_it_goes_on_and_has_the_status_of_ctrl_c(
    silent: socket.socket, tmp_path: Path
) -> None:
    for name in ("current", "previous"):
        (tmp_path / name).write_text("a secret\n" if name == "current" else "")
        (tmp_path / name).chmod(0o600)
    settings = tmp_path / "server.properties"
    settings.write_text(
        f"zookeeper.connect=127.0.0.1:{silent.getsockname()[1]}\n"
        f"delegation.token.secret.key=file:{tmp_path}/current\n"
        f"kafka.dt.secret.keys.previous=file:{tmp_path}/previous\n"
    )
    status, stdout, stderr = interrupted(silent, ["keys", "rotate", "--config", str(settings)])
    assert (status, stdout) == (130, "")
    assert stderr == "Error: interrupted; a rotation that has begun goes on when the command is run again\n"


@pytest.mark.usefixtures("heeds_ctrl_c")
@pytest.mark.parametrize(
    ("arguments", "question"),
    [(("accept-restore",), b"Go on?"), (("user", "create", "alice"), b"Password")],
    ids=["yes or no", "password"],
)
def test_ctrl_c_at_a_question_has_the_status_of_ctrl_c(
    tmp_path: Path, arguments: tuple[str, ...], question: bytes
) -> None:
    settings = tmp_path / "server.properties"
    settings.write_text(f"zookeeper.connect=127.0.0.1:1\ndelegation.token.secret.key={'k' * 32}\n")
    terminal, stdin = os.openpty()
    command = [*KAFKA_DT, *arguments, "--config", str(settings)]
    with subprocess.Popen(
        command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, bufsize=0
    ) as process:
        assert process.stderr is not None
        asked = b""
        while question not in asked and (piece := process.stderr.read(4096)):
            asked += piece
        assert question in asked
        time.sleep(0.5)  # Python does not see a signal that comes in the moment in which it begins to read
        process.send_signal(signal.SIGINT)
        try:
            _, said = process.communicate(timeout=30)
        finally:
            process.kill()
            os.close(terminal)
            os.close(stdin)
    assert (process.returncode, said.splitlines()[-1]) == (130, b"Error: interrupted")


def interrupted(silent: socket.socket, arguments: Sequence[str]) -> tuple[int, str, str]:
    """Press Ctrl-C in a command that waits for a server's answer; gives its status and what it says."""
    command = [*KAFKA_DT, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        connection, _ = silent.accept()
        with connection:
            connection.settimeout(30)
            # Its first request is here, so it waits for the answer.
            assert connection.recv(4)
            stdout, stderr = interrupt(process)
    return process.returncode, stdout, stderr


def interrupt(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Press Ctrl-C; Python does not see a signal that comes in the moment in which it begins to wait for a socket."""
    for _ in range(3):
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=10)
    raise AssertionError("it goes on")


def test_a_reader_that_goes_away_is_no_error_to_talk_about() -> None:
    with subprocess.Popen(
        [*KAFKA_DT, "token", "renew", "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        stderr = process.stderr.read()
        process.wait(30)
    assert stderr == b""


@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("arguments", ["--help", "--version", "completion bash"])
def test_an_output_that_takes_nothing_more_is_one_line(arguments: str, unbuffered: str) -> None:
    with Path("/dev/full").open("w") as full:
        command = [*KAFKA_DT, *arguments.split()]
        environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, env=environment, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (1, b"Error: the output cannot be written: No space left on device\n")


def test_an_output_that_is_closed_is_no_error() -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", '"$@" >&-', "sh", *KAFKA_DT, "--version"], stderr=subprocess.PIPE, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_character_that_the_output_does_not_have_is_escaped() -> None:
    program = "from kafka_dt.cli import main; import click; main.get_command = lambda *_: click.Command('c', callback="
    program += "lambda: click.echo('\\u0416')); main(['c'])"
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, env=environment, timeout=60, check=True)
    assert done.stdout == b"\\u0416\n"


def test_an_error_of_the_system_is_one_line_that_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = CliRunner().invoke(main, ["zookeeper", "--port", "0", "--data-dir", str(tmp_path / "file" / "data")])
    assert (result.exit_code, result.stderr) == (1, f"Error: {tmp_path}/file/data: Not a directory\n")


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (FileNotFoundError(errno.ENOENT, "No such file or directory", b"/a/key"), "/a/key: No such file or directory"),
        (OSError(errno.ENOSPC, "No space left on device", "/a/key"), "/a/key: No space left on device"),
        (OSError(errno.ENOSPC, "No space left on device"), "the output cannot be written: No space left on device"),
        (
            ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('127.0.0.1', 2181)"),
            "[Errno 111] Connect call failed ('127.0.0.1', 2181)",
        ),
        (
            BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"),
            "[Errno 11] Resource temporarily unavailable",
        ),
        (OSError(errno.EIO, "Input/output error", "/a/key"), "/a/key: Input/output error"),
        (OSError(errno.EMFILE, "Too many open files"), "[Errno 24] Too many open files"),
        (OSError(errno.ENFILE, "Too many open files in system"), "[Errno 23] Too many open files in system"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "[Errno 12] Cannot allocate memory"),
        (TimeoutError(errno.ETIMEDOUT, "Connection timed out"), "[Errno 110] Connection timed out"),
        (OSError(errno.EHOSTUNREACH, "No route to host"), "[Errno 113] No route to host"),
        (OSError(errno.ENETUNREACH, "Network is unreachable"), "[Errno 101] Network is unreachable"),
        (
            socket.gaierror(socket.EAI_NONAME, "Name or service not known"),
            "[Errno -2] Name or service not known",
        ),
        (ConfigError("listeners", "two\nlines"), "listeners: two lines"),
        (TokenClientError(), "TokenClientError"),
    ],
)
def test_a_foreseen_error_is_one_line(monkeypatch: pytest.MonkeyPatch, error: Exception, line: str) -> None:
    result = run_failing(monkeypatch, error)
    assert (result.exit_code, result.stderr) == (1, f"Error: {line}\n")


@pytest.mark.parametrize(
    "error",
    [
        ZeroDivisionError("a bug"),
        OSError(errno.EBADF, "Bad file descriptor"),
        OSError(errno.EBADF, "Bad file descriptor", 7),
        UnsupportedOperation("not writable"),
        ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"),
        TimeoutError("too late"),
    ],
    ids=repr,
)
def test_an_error_that_is_not_foreseen_shows_its_traceback(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    assert run_failing(monkeypatch, error).exception is error


def run_failing(monkeypatch: pytest.MonkeyPatch, error: Exception) -> Result:
    def fails() -> None:
        raise error

    monkeypatch.setattr(main, "get_command", lambda _context, name: click.Command(name, callback=fails))
    return CliRunner().invoke(main, ["serve"])


@pytest.mark.parametrize(
    "command", ["token list", "token revoke --all", "keys list", "upstream remaining", "user list", "acl list"]
)
def test_a_command_about_zookeeper_says_where_the_tokens_of_a_cluster_are(command: str, tmp_path: Path) -> None:
    file = tmp_path / "gateway.properties"
    file.write_text("kafka.dt.token.store=upstream\n")
    result = CliRunner().invoke(main, [*command.split(), "--config", str(file)])
    assert result.exit_code == 1
    assert "kafka.dt.token.store=upstream has none; ask a node about the cluster's" in result.stderr


def test_health_without_an_address_says_how_to_name_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "DEFAULT_URL", "http://127.0.0.1:1")
    done = CliRunner().invoke(main, ["health"])
    assert (done.exit_code, done.stdout) == (1, "down\n127.0.0.1:1 does not answer: Connection refused\n")
    assert "name it by --config or --url" in done.stderr
    assert CliRunner().invoke(main, ["health", "--url", "http://127.0.0.1:1"]).stderr == ""
