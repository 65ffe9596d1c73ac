"""Client programs of other languages: built where their toolchain is, and asked over JSON.

    franz_go = CLIENTS["franz-go"].build(folder)       # raises ToolchainMissing
    franz_go.ask("topics", {"servers": "127.0.0.1:9092", "mechanism": "PLAIN", "user": ..., "password": ...})

The action is the program's argument, the settings are JSON on its standard input, its answer is JSON on its standard
output. All of them know `topics` (the names of the topics) and `records` (send records to a topic, then read them in a
group: [partition, key, value] of each); franz-go alone knows `tokens` (create, describe, renew and expire one).

The folder of each language has the versions (go.mod, package.json, Cargo.toml) and a lock file.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.support.docs.documents import ROOT

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet

    from kafka_dt.client import DelegationToken

BUILT: Final = ROOT / "build" / "clients"
ANSWER_TIMEOUT_S: Final = 60.0
"""More than the programs give themselves."""
_HERE: Final = Path(__file__).parent


class ToolchainMissing(Exception):
    """A program cannot be built here; the text says why."""


class BuildFailed(Exception):
    """A compiler or a package manager failed; the text is its own."""


class ClientFailed(Exception):
    """The program ended with an error; the text is the program's."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program that is built."""

    command: Sequence[str]

    def ask(self, action: str, settings: Mapping[str, object]) -> Any:
        """Do something with the client; raises ClientFailed."""
        done = subprocess.run(
            [*self.command, action],
            input=json.dumps(settings),
            capture_output=True,
            text=True,
            timeout=ANSWER_TIMEOUT_S,
            check=False,
        )
        if done.returncode:
            raise ClientFailed(done.stderr.strip())
        return json.loads(done.stdout)


@dataclass(frozen=True, slots=True)
class Client:
    """A client library of another language."""

    name: str
    language: str
    build: Callable[[], Program]
    """Raises ToolchainMissing; what was built before is built again only if it changed."""
    version: Callable[[], str]
    """The version that its folder names."""


def login(servers: str, token: DelegationToken, mechanism: str = "SCRAM-SHA-256") -> dict[str, object]:
    """The settings of a client that logs in with a token; those that cannot say tokenauth do not."""
    return {
        "servers": servers,
        "mechanism": mechanism,
        "user": token.token_id,
        "password": token.hmac_base64,
        "tokenauth": True,
    }


def seen(does: str, *names: str) -> list[ParameterSet]:
    """Parameters of a test that proves that these clients do something, for the README's table."""
    return [pytest.param(name, marks=pytest.mark.client(name, does)) for name in names]


def _go(name: str, module: str) -> Client:
    folder = _HERE / "go"

    def build() -> Program:
        go = _found("go", "/usr/local/go/bin/go")
        _fetch([go, "mod", "download"], folder)
        _run([go, "build", "-mod=readonly", "-o", f"{BUILT / 'go'}/", f"./{name}"], folder)
        return Program([str(BUILT / "go" / name)])

    def version() -> str:
        (found,) = re.findall(rf"^\t{re.escape(module)} v(\S+)$", (folder / "go.mod").read_text(), re.MULTILINE)
        return str(found)

    return Client(name, "Go", build, version)


def _javascript(name: str, package: str) -> Client:
    folder, built = _HERE / "javascript", BUILT / "javascript"

    def build() -> Program:
        node, npm = _found("node"), _found("npm")
        built.mkdir(parents=True, exist_ok=True)
        lock = (folder / "package-lock.json").read_bytes()
        if not (built / "installed").exists() or (built / "installed").read_bytes() != lock:
            for each in ("package.json", "package-lock.json"):
                shutil.copy(folder / each, built)
            _fetch([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], built)
            (built / "installed").write_bytes(lock)
        for module in folder.glob("*.mjs"):
            shutil.copy(module, built)
        return Program([node, str(built / f"{name}.mjs")])

    def version() -> str:
        return str(json.loads((folder / "package.json").read_text())["dependencies"][package])

    return Client(package, "JavaScript", build, version)


def _rust(name: str) -> Client:
    folder = _HERE / "rust"

    def build() -> Program:
        cargo = _found("cargo")
        for each in ("cc", "make"):
            _found(each)
        if subprocess.run([_found("pkg-config"), "--exists", "openssl"], check=False).returncode:
            raise ToolchainMissing("the headers of OpenSSL are not installed")
        _fetch([cargo, "fetch", "--locked"], folder)
        _run([cargo, "build", "--locked", "--offline", "--target-dir", str(BUILT / "rust")], folder)
        return Program([str(BUILT / "rust" / "debug" / name)])

    def version() -> str:
        dependencies = tomllib.loads((folder / "Cargo.toml").read_text())["dependencies"]
        return str(dependencies[name]["version"]).removeprefix("=")

    return Client(name, "Rust", build, version)


CLIENTS: Final[Mapping[str, Client]] = {
    each.name: each
    for each in (
        _go("franz-go", "github.com/twmb/franz-go"),
        _go("sarama", "github.com/IBM/sarama"),
        _javascript("kafkajs", "kafkajs"),
        _javascript("platformatic", "@platformatic/kafka"),
        _rust("rdkafka"),
    )
}


def _found(*names: str) -> str:
    for name in names:
        if found := shutil.which(name):
            return found
    raise ToolchainMissing(f"{names[0]} is not installed")


def _fetch(command: Sequence[str], folder: Path) -> None:
    """Run what needs a registry; where it fails, the client cannot be had here."""
    try:
        _run(command, folder)
    except BuildFailed as failure:
        raise ToolchainMissing(str(failure)) from failure


def _run(command: Sequence[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildFailed(f"{' '.join(command)}: {done.stdout}{done.stderr}")
