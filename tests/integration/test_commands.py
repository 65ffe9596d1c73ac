"""The commands as a user meets them: what they print, how they fail, and that they leave nothing behind."""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import SessionClosedRequireSaslError

from kafka_dt.cli.run import METRICS_PORT
from tests.support.nodes.commands import called
from tests.support.nodes.server import PROGRAM
from tests.support.processes.process import ChildProcess
from tests.support.processes.waiting import eventually
from tests.support.zookeeper.server import quick_zookeeper

NOT_ZOOKEEPER = "127.0.0.1:1"


@contextmanager
def running(directory: Path, *arguments: str) -> Iterator[ChildProcess]:
    process = ChildProcess(
        "kafka-dt",
        [str(PROGRAM), *arguments],
        directory / "kafka-dt.log",
        {"JDK_JAVA_OPTIONS": " ".join(quick_zookeeper())},
    )
    try:
        process.start()
        yield process
    finally:
        process.stop()


def processes_with(text: str) -> list[int]:
    """Give the processes whose command line or working files name a text."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes().decode("utf-8", "replace")
            except OSError:
                continue  # it has just ended
            if text in command:
                found.append(int(entry.name))
    return found


@dataclass(frozen=True, slots=True)
class Demonstration:
    """A `kafka-dt run` that has started."""

    process: ChildProcess
    data: Path
    """Its data directory."""

    def shown(self, pattern: str) -> str:
        """The first group of a pattern in what it has printed."""
        found = re.search(pattern, self.process.output())
        assert found is not None
        return found[1]

    def described(self) -> set[str]:
        """The ids of its tokens, by a command of its user's."""
        done = called(
            "token", "describe", "--bootstrap-server", self.shown(r"Kafka clients +(\S+)"),
            "--command-config", str(self.data / "client.properties"), "--output", "json",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return set(re.findall(r'"token_id": "([^"]+)"', done.stdout))


@contextmanager
def demonstration(directory: Path) -> Iterator[Demonstration]:
    data = directory / "data"
    with running(directory, "run", "--port", "0", "--data-dir", str(data)) as process:
        process.wait_for(r"Ctrl-C stops it", 60)
        yield Demonstration(process, data)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demonstration]:
    """One for the tests that leave it running."""
    with demonstration(tmp_path_factory.mktemp("run")) as running:
        yield running


def test_run_ends_its_start_with_a_token_that_works_and_leaves_nothing_behind_but_its_tokens(tmp_path: Path) -> None:
    with demonstration(tmp_path) as first:
        token = first.shown(r"Token +(\S+), owner User:alice: created and logged in with")
        assert first.described() == {token}
        assert first.process.stop() == 0
        assert f"kafka-dt has stopped; the tokens stay in {first.data}." in first.process.output()
    eventually(lambda: not processes_with(str(first.data)), 10)
    with demonstration(tmp_path) as again:
        # It has taken the user of before as well, whose password is in the same file.
        assert {token} < again.described()


def test_run_shows_the_command_that_asks_its_own_node_for_its_health(tmp_path: Path) -> None:
    """Where another program has the usual port of metrics, which a plain `kafka-dt health` asks."""
    with ExitStack() as stack:
        with suppress(OSError):  # a node of this machine has it
            stack.enter_context(socket.create_server(("127.0.0.1", METRICS_PORT)))
        here = stack.enter_context(demonstration(tmp_path))
        done = called(*shlex.split(here.shown(r"Metrics +\S+/metrics \(kafka-dt (.+)\)")))
        assert (done.returncode, done.stdout) == (0, "ready\n")


def test_run_logs_why_a_login_is_refused(shared: Demonstration, tmp_path: Path) -> None:
    login = tmp_path / "client.properties"
    text = (shared.data / login.name).read_text()
    login.write_text(re.sub(r'password="[^"]*"', 'password="mistyped"', text))
    assert called("token", "create", "--command-config", str(login)).returncode == 1
    shared.process.wait_for(r"failed authentication, 'alice' by PLAIN: \S+", 20)
    assert "mistyped" not in shared.process.output()


def test_a_token_that_cannot_be_printed_is_named_with_the_way_to_its_hmac(shared: Demonstration) -> None:
    login = ("--command-config", str(shared.data / "client.properties"))
    before = shared.described()
    with Path("/dev/full").open("w") as full:
        command = [str(PROGRAM), "token", "create", *login]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    (made,) = shared.described() - before
    assert (done.returncode, done.stderr) == (
        1,
        f"Error: the token {made} is made, but the output cannot be written: No space left on device; "
        "kafka-dt token describe prints it again\n",
    )
    assert called("token", "revoke", made, *login).returncode == 0


def test_the_secrets_of_run_are_readable_by_their_owner_alone(shared: Demonstration) -> None:
    assert shared.data.stat().st_mode & 0o077 == 0
    for name in ("secrets.json", "client.properties", "server.properties"):
        assert (shared.data / name).stat().st_mode & 0o077 == 0


def test_the_zookeeper_of_run_serves_its_user_alone_whose_commands_work(shared: Demonstration) -> None:
    stranger = KazooClient(shared.shown(r"ZooKeeper +(\S+)"))
    stranger.start(10)
    with pytest.raises(SessionClosedRequireSaslError):
        stranger.get_children("/")
    stranger.stop()
    stranger.close()
    listed = called("keys", "list", "--config", str(shared.data / "server.properties"), "--output", "json")
    assert listed.returncode == 0, listed.stderr
    assert json.loads(listed.stdout)["keys"][0]["liveTokens"] == 1


def test_run_refuses_a_directory_that_others_can_open(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    done = called("run", "--port", "0", "--data-dir", str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith(f"chmod 700 {tmp_path}")


def test_the_embedded_zookeeper_alone_takes_a_login_that_is_on_no_command_line(tmp_path: Path) -> None:
    data, login = tmp_path / "data", tmp_path / "login"
    login.write_text("operator:a-password\n")
    refused = called("zookeeper", "--port", "0", "--data-dir", str(data), "--login", "operator:a-password")
    assert refused.returncode == 2
    assert "file:F or env:N" in refused.stderr
    with running(tmp_path, "zookeeper", "--port", "0", "--data-dir", str(data), "--login", f"file:{login}") as process:
        address = process.wait_for(r"ZooKeeper is ready: (127\.0\.0\.1:\d+)", 60)[1]
        sasl = {"mechanism": "DIGEST-MD5", "username": "operator", "password": "a-password"}
        operator = KazooClient(address, sasl_options=sasl)
        operator.start(10)
        assert operator.get_children("/") == ["zookeeper"]
        operator.stop()
        operator.close()


def test_run_dies_with_its_zookeeper_when_it_is_killed(tmp_path: Path) -> None:
    with demonstration(tmp_path) as running:
        assert processes_with(str(running.data))
        running.process.kill()
        eventually(lambda: not processes_with(str(running.data)), 20)


@pytest.mark.parametrize(
    ("overrides", "error"),
    [
        ([], "zookeeper.connect: is needed, for example localhost:2181"),
        (["zookeeper.connect=x", "broker.id=one"], "broker.id: 'one' is not a whole number"),
        (["zookeeper.connect=x", "listeners=nonsense"], "listeners: 'nonsense' is not of the form NAME://host:port"),
        (["zookeeper.connect=x", "super.users=admin"], "super.users: Expected a principal in the form Type:name"),
        (
            ["zookeeper.connect=x", "zookeeper.set.acl=true"],
            "zookeeper.set.acl: needs a login that the znodes can belong to",
        ),
    ],
    ids=["no ZooKeeper", "number", "listener", "principal", "ACL"],
)
def test_serve_names_the_setting_that_it_cannot_use_in_one_line(overrides: Sequence[str], error: str) -> None:
    done = called("serve", *(part for override in overrides for part in ("--override", override)))
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith(f"Error: {error}")


def test_serve_says_that_zookeeper_cannot_be_reached() -> None:
    done = called(
        "serve",
        "--override", f"zookeeper.connect={NOT_ZOOKEEPER}",
        "--override", "listeners=PLAINTEXT://127.0.0.1:0",
        "--override", "zookeeper.connection.timeout.ms=500",
    )  # fmt: skip
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert NOT_ZOOKEEPER in done.stderr.splitlines()[-1]


def test_run_on_a_port_that_is_taken_says_how_to_choose_another(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = called("run", "--port", str(port), "--data-dir", str(tmp_path / "data"))
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].endswith("choose another port with --port, 0 is any")


def test_a_wrong_flag_is_a_usage_error() -> None:
    assert called("serve", "--nonsense").returncode == 2
    assert called("nonsense").returncode == 2
    assert called("zookeeper").returncode == 2


def test_the_embedded_zookeeper_alone_stops_at_sigterm(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running(tmp_path, "zookeeper", "--port", "0", "--data-dir", str(data)) as process:
        process.wait_for(r"ZooKeeper is ready: 127\.0\.0\.1:\d+", 60)
        assert process.stop() == 0
    eventually(lambda: not processes_with(str(data)), 10)
