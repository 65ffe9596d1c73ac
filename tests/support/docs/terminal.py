"""A reader of the manual, who types the blocks of a page one after the other, and compares what is printed.

    with World(folder, zookeeper="127.0.0.1:2181/manual", brokers="127.0.0.1:2181/brokers") as world:
        Terminal(world, folder / "page").follow("docs/tutorial.md")

All pages share the world: a node with its users, and a home. Each page has a folder of its own, a checkout of kafka-dt.
The page docs/examples.md tells a reader the same rules, and a test compares its table with `World.names`.

Comments right above a block say what a program cannot know:

    <!-- not run: REASON -->        the block is only read
    <!-- slow: REASON -->           only `make soak` runs it
    <!-- serves: TEXT -->           the command goes on; the next block is typed when it has printed TEXT
    <!-- fails: TEXT -->            the last command ends with status 1 and prints TEXT
    <!-- file: NAME -->             a reader writes this block into a file
    <!-- before: COMMAND -->        what happened before, such as that a job has created a token
    <!-- prints: COMMAND -->        the block is what that command prints
    <!-- needs: PROGRAM -->         the page is skipped where that program is missing
    <!-- not printed: REASON -->    the block below a command is not what that command prints
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Self

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.support.docs import quick_commands
from tests.support.docs.documents import ROOT, Block, all_blocks
from tests.support.docs.shape import OtherShape, Shape
from tests.support.java.properties import plain, write_properties
from tests.support.java.tools import KafkaTools
from tests.support.nodes.server import KafkaDt
from tests.support.processes.ports import free_ports
from tests.support.processes.process import ChildProcess
from tests.support.processes.waiting import POLL_S, eventually

PROGRAM = Path(sys.executable).with_name("kafka-dt")
LOOPBACK = "127.0.0.1"
"""Where all clients are."""
USERS = ("admin", "alice", "bob", "scheduler")
PASSWORD = "the-password-of-all-users"
SECRET_KEY = "the secret key of the manual's node"
TIMEOUT_S, SLOW_TIMEOUT_S = 120.0, 600.0
READING_S = 0.5
"""How long a reader takes from one command to the next, at the least: audit events are in the file by then."""
AUDIT_ROLL_MS = 2_000
OUTPUTS = frozenset({"text", "json"})
TOOLS = {
    "kafka-acls.sh": "org.apache.kafka.tools.AclCommand",
    "kafka-broker-api-versions.sh": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-configs.sh": "org.apache.kafka.tools.ConfigCommand",
    "kafka-delegation-tokens.sh": "org.apache.kafka.tools.DelegationTokenCommand",
}
"""Kafka's scripts that pages use, and their classes in Kafka 4.x."""
NOTES = frozenset({"not run", "slow", "serves", "fails", "file", "before", "prints", "needs", "not printed"})
TYPED = frozenset({"sh", "python"})
NOT_FOLLOWED = {
    "CONTRIBUTING.md": "changes of kafka-dt itself: tests/unit/docs/test_worked_examples.py makes them",
    "docs/command-line.md": "the examples of --help, one for each command: tests/unit/test_documents.py checks options",
    "docs/signs-of-theft.md": "what a report advises: tests/unit/pipeline/report/signs/test_responses.py checks it",
}
"""Pages that are no sequence of steps, and why."""
SHARED = frozenset({"make run"})
"""Servers that pages share, since each has a ZooKeeper of its own."""
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_FILE_NAME = re.compile(r'\A(?:# |""")(?P<name>[\w-]+\.(?:properties|py|conf))\b')
_OF_MAKE = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")
_OF_A_TOKEN = {"TOKEN_ID": "token_id", "HMAC": "hmac"}
"""How pages call the parts of a token that a reader has -> how `token create --output json` does."""


class World:
    """What the pages take for granted.

    Args:
        folder: receives everything.
        zookeeper: `zookeeper.connect` of the node, with a chroot of its own.
        brokers: `zookeeper.connect` of the nodes beside brokers, whose tokens are plain, with another chroot.
    """

    def __init__(self, folder: Path, zookeeper: str, brokers: str) -> None:
        self.root = folder
        self.home = folder / "home" / "alice"
        self.programs = folder / "bin"
        self._shared: dict[str, ChildProcess] = {}
        self._quick: subprocess.Popen[bytes] | None = None
        first = free_ports(5)
        node, metrics, other, drill, drills_zookeeper = range(first, first + 5)
        self.names: Mapping[str, str] = {
            "node:9092": f"127.0.0.1:{node}",
            "127.0.0.1:9092": f"127.0.0.1:{node}",
            "127.0.0.1:9404": f"127.0.0.1:{metrics}",
            "tokens.example.com:9192": f"127.0.0.1:{other}",
            "://:9192": f"://127.0.0.1:{other}",
            "127.0.0.1:9193": f"127.0.0.1:{drill}",
            "127.0.0.1:2182": f"127.0.0.1:{drills_zookeeper}",
            "127.0.0.1/2182": f"127.0.0.1/{drills_zookeeper}",
            "--port 2182": f"--port {drills_zookeeper}",
            "zk1:2181,zk2:2181,zk3:2181/kafka": brokers,
            **{
                path: str(folder / path.removeprefix("/"))
                for path in ("/etc/kafka-dt", "/var/log/kafka-dt", "/opt/kafka", "/run/secrets", "/data", "/reports")
            },
            "10.8.0.155": LOOPBACK,
            "/home/alice": str(self.home),
            '"..."': f'"{PASSWORD}"',
        }
        """What pages call it -> what it is here."""
        self.settings, secrets = Path(self.names["/etc/kafka-dt"]), Path(self.names["/run/secrets"])
        for made in (self.home, self.programs, self.settings, secrets):
            made.mkdir(parents=True)
        self.settings.chmod(0o700)
        (secrets / "etl").write_text(PASSWORD)
        self._write_files(brokers)
        self.node = KafkaDt(
            self.settings,
            {
                "listeners": f"SASL_PLAINTEXT://{self.names['node:9092']}",
                "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512,PLAIN",
                "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"file:{self.settings}/users.jaas",
                "zookeeper.connect": zookeeper,
                "delegation.token.secret.key": f"file:{self.settings}/secret.key",
                "kafka.dt.secret.keys.previous": f"file:{self.settings}/previous.keys",
                "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
                "allow.everyone.if.no.acl.found": False,
                "super.users": "User:admin",
                "kafka.dt.workers": 2,
                "kafka.dt.sealing.ahead": 16,
                "kafka.dt.audit.mode": "strict",
                "kafka.dt.audit.log.dir": f"{self.names['/var/log/kafka-dt']}/audit",
                "kafka.dt.audit.log.roll.ms": AUDIT_ROLL_MS,
                "kafka.dt.audit.log.signing.key": f"file:{self.settings}/audit.key",
                "kafka.dt.audit.node.name": "kdt1",
                "kafka.dt.metrics.listener": f"http://{self.names['127.0.0.1:9404']}",
            },
            "server",
        )

    def _write_files(self, brokers: str) -> None:
        """Write the secrets of the node, and the settings of a broker."""
        (self.settings / "secret.key").write_text(SECRET_KEY)
        (self.settings / "previous.keys").touch()
        users = " ".join(f'user_{name}="{PASSWORD}"' for name in USERS)
        (self.settings / "users.jaas").write_text(f"{_PLAIN} {users};")
        key = Ed25519PrivateKey.generate()
        (self.settings / "audit.key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        for path in self.settings.iterdir():
            path.chmod(0o600)
        broker = Path(self.names["/opt/kafka"]) / "config"
        broker.mkdir(parents=True)
        write_properties(
            broker / "server.properties",
            {
                "broker.id": 1,
                "listeners": "SASL_PLAINTEXT://:9093",
                "sasl.enabled.mechanisms": "SCRAM-SHA-256",
                "inter.broker.listener.name": "SASL_PLAINTEXT",
                "zookeeper.connect": brokers,
                "log.dirs": "/var/lib/kafka",
                "num.network.threads": 3,
                "delegation.token.secret.key": f"file:{self.settings}/secret.key",
                "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
                "super.users": "User:admin",
            },
        )

    def __enter__(self) -> Self:
        self._start_quick_commands()
        self.node.start()
        try:
            self.make_token()
            files = Path(self.names["/var/log/kafka-dt"])
            eventually(lambda: any(files.rglob("*.jsonl")), within_s=20)
        except BaseException:
            self.node.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.ExitStack() as stops:
            stops.callback(self.node.stop)
            if self._quick is not None:
                stops.callback(self._quick.communicate)
            for server in self._shared.values():
                stops.callback(server.stop)

    def _start_quick_commands(self) -> None:
        """Put a kafka-dt on the path that need not be imported for each command."""
        address = str(self.root / "commands")
        self._quick = subprocess.Popen([sys.executable, quick_commands.__file__, address], stdin=subprocess.PIPE)
        words = [sys.executable, "-I", "-S", quick_commands.__file__, address, str(PROGRAM)]
        self._write_program("kafka-dt", words)
        eventually(Path(address).exists, within_s=TIMEOUT_S)

    def _write_program(self, name: str, words: Sequence[str]) -> None:
        script = self.programs / name
        script.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        script.chmod(0o755)

    def install(self, tools: KafkaTools) -> None:
        """Put Kafka's scripts on the path."""
        for name, main in TOOLS.items():
            self._write_program(name, tools.command(main))

    @property
    def environment(self) -> dict[str, str]:
        """The variables of a terminal."""
        inherited = {
            key: value
            for key, value in os.environ.items()
            if key not in _OF_MAKE and not key.startswith(("KAFKA_DT_", "XDG_", "OTEL_"))
        }
        path = os.pathsep.join([str(self.programs), str(Path(sys.executable).parent), os.environ["PATH"]])
        # PORT is for `make run`: another program may have the usual port.
        return inherited | {"HOME": str(self.home), "PATH": path, "PORT": "0", "PYTHONWARNINGS": "ignore"}

    def write_login(self, user: str, folder: Path) -> Path:
        """Write the client settings of a user."""
        login = {"bootstrap.servers": self.names["node:9092"], **plain(user, PASSWORD)}
        return write_properties(folder / f"{user}.properties", login)

    def make_token(self) -> dict[str, str]:
        """Create a token of alice's; gives its parts as pages call them."""
        login = self.write_login("alice", self.root)
        command = [
            str(self.programs / "kafka-dt"),
            "token",
            "create",
            "--command-config",
            str(login),
            "--output",
            "json",
        ]
        made = json.loads(subprocess.run(command, capture_output=True, check=True, env=self.environment).stdout)
        return {name: made[key] for name, key in _OF_A_TOKEN.items()}

    def serve(self, command: str, folder: Path) -> ChildProcess:
        """Start a command that goes on; who starts one that is not shared stops it."""
        server = self._shared.get(command)
        if server is None:
            variables = [f"{name}={value}" for name, value in self.environment.items()]
            words = ["env", "--ignore-environment", *variables, "bash", "-c", f"exec {command}"]
            server = ChildProcess(command, words, folder / "server.log", folder=folder)
            if command in SHARED:
                self._shared[command] = server
            server.start()
        return server


def names_in_front_of(cluster: str, port_base: int) -> dict[str, str]:
    """Give further names of a page about a Kafka 4 cluster: here it has no certificates, and the users of the node.

    Args:
        cluster: its `bootstrap.servers`, with logins.
        port_base: the first of some free ports, for a node in front of it and for the node's ports of brokers.
    """
    return {
        "kafka1:9093,kafka2:9093,kafka3:9093": cluster,
        "kafka1:9093": cluster,
        "listeners=SASL_SSL://:9092": f"listeners=SASL_PLAINTEXT://127.0.0.1:{port_base}",
        "protocol=SASL_SSL": "protocol=SASL_PLAINTEXT",
        "port.base=9100": f"port.base={port_base}",
        "password=...": f"password={PASSWORD}",
    }


class Terminal:
    """Where one page is typed.

    Args:
        world: what is around it.
        folder: to be made; the commands run there.
        patient: whether slow blocks are typed as well.
        names: what the page calls further things -> what they are here.
    """

    def __init__(
        self, world: World, folder: Path, *, patient: bool = False, names: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self._world = world
        self._folder = folder
        self._patient = patient
        self._names = {**world.names, **names, "/home/alice": str(folder)}
        self._values: dict[str, str] = {}
        """What the page shows -> what was printed in its place."""
        self._server: ChildProcess | None = None
        self._sessions: list[int] = []
        """The process groups of the commands; some may still run in the background."""
        self._state = folder.with_suffix(".state")
        self._state.write_text("umask 022\n")
        self._check_out()

    def _check_out(self) -> None:
        """Make the folder look like the one of kafka-dt's sources, and put the files of the examples there."""
        self._folder.mkdir()
        for entry in ROOT.iterdir():
            if entry.name not in {".venv", ".git", "build"}:
                (self._folder / entry.name).symlink_to(entry)
        environment = self._folder / ".venv"
        environment.mkdir()
        for entry in Path(sys.prefix).iterdir():
            if entry.name != ".ready":
                (environment / entry.name).symlink_to(entry)
        (environment / ".ready").touch()  # newer than what `make` compares it with
        (self._folder / "server.properties").symlink_to(self._world.node.configuration)
        for user in USERS:
            self._world.write_login(user, self._folder)
        shutil.rmtree(self._world.home / ".config", ignore_errors=True)  # contexts of other pages

    def follow(self, page: str) -> None:
        """Do what a page says."""
        try:
            self._follow(page)
        finally:
            self._stop_server()
            for session in self._sessions:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(session, signal.SIGKILL)

    def _follow(self, page: str) -> None:
        printed: str | ChildProcess | None = None
        for block in all_blocks(page):
            if "not run" in block.notes or ("slow" in block.notes and not self._patient):
                printed = None
                continue
            try:
                if before := block.notes.get("before"):
                    self._run(self._real(before), slow="slow" in block.notes)
                if name := block.notes.get("file") or _name_of(block):
                    (self._folder / self._real(name)).write_text(self._real(block.text), encoding="utf-8")
                elif block.language == "sh":
                    printed = self._type(block, block.text)
                elif block.language == "python":
                    program = self._folder / f"line_{block.line}.py"
                    program.write_text(self._real(block.text), encoding="utf-8")
                    printed = self._type(block, f"python {program.name}")
                elif command := block.notes.get("prints"):
                    self._compare(block, self._type(block, command))
                elif block.language in OUTPUTS and printed is not None and "not printed" not in block.notes:
                    self._compare(block, printed)
                    printed = None
            except Exception as error:
                error.add_note(f"in {block}")
                raise

    def _type(self, block: Block, text: str) -> str | ChildProcess:
        time.sleep(READING_S)
        text = self._real(text)
        until = block.notes.get("serves")
        if until is None:
            return self._run(text, block.notes.get("fails"), slow="slow" in block.notes)
        command = text.strip()
        self._stop_server()
        server = self._world.serve(command, self._folder)
        if command not in SHARED:
            self._server = server
        server.wait_for(re.escape(until), TIMEOUT_S)
        return server

    def _stop_server(self) -> None:
        if self._server is not None:
            self._server.stop()
            self._server = None

    def _run(self, text: str, fails: str | None = None, *, slow: bool = False) -> str:
        """Run commands as one terminal does: variables and the umask stay for the next ones.

        Of slow ones only the output counts: Spark tells its steps, and where its jars come from, as errors.
        """
        script = f"trap '{{ export -p; umask -p; }} > {self._state}' EXIT\n. {self._state}\n{text}"
        with subprocess.Popen(
            ["/bin/bash", "-e", "-o", "pipefail", "-c", script],
            cwd=self._folder,
            env=self._world.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=None if slow else subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as done:
            self._sessions.append(done.pid)
            try:
                output, _ = done.communicate(timeout=SLOW_TIMEOUT_S if slow else TIMEOUT_S)
            except subprocess.TimeoutExpired:
                os.killpg(done.pid, signal.SIGKILL)
                raise
        printed = self._shown(output)
        wanted = 0 if fails is None else 1
        assert done.returncode == wanted, f"status {done.returncode} instead of {wanted} of\n{text}\n{printed}"
        assert fails is None or fails in printed, f"not printed was {fails!r}:\n{printed}"
        return printed

    def _compare(self, block: Block, printed: str | ChildProcess) -> None:
        """See that a block shows what was printed; a server may still be printing it."""
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            text = printed if isinstance(printed, str) else self._shown(printed.output())
            try:
                self._values |= Shape(block.text).values(text)
            except OtherShape:
                if isinstance(printed, str) or not printed.running or time.monotonic() > deadline:
                    raise
                time.sleep(POLL_S)
            else:
                return

    def _real(self, text: str) -> str:
        """Replace values that the page has shown by those of this run, and the manual's names by what they are here."""
        if "TOKEN_ID" in text and "TOKEN_ID" not in self._values:
            self._values |= self._world.make_token()
        return _replace(_replace(text, self._values), self._names)

    def _shown(self, text: str) -> str:
        """Replace what is here by the manual's names."""
        names = [(name, real) for name, real in self._names.items() if not name.startswith(":") and real != LOOPBACK]
        return _replace(text, {real: name for name, real in reversed(names)} | {str(self._world.home): "/home/alice"})


def _name_of(block: Block) -> str | None:
    """The file that a block names in its first line."""
    match = _FILE_NAME.match(block.text)
    return match["name"] if match else None


def _replace(text: str, values: Mapping[str, str]) -> str:
    if not values:
        return text
    longest_first = sorted(values, key=len, reverse=True)
    names = "|".join(_boundary(name) + re.escape(name) for name in longest_first)
    return re.sub(rf"(?:{names})(?!\w)", lambda match: values[match[0]], text)


def _boundary(name: str) -> str:
    """The characters that may not precede a name: a path is no part of a longer one."""
    if name.startswith("/"):
        return r"(?<![\w./-])"
    return r"(?<!\w)" if name[0].isalnum() else ""
