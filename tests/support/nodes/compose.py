"""Services of docker-compose.yml without containers: their commands, scripts and settings, as processes.

    composed = Composed(folder, hosts=["kafka", "kafka-dt-beside"], scripts=kafka_scripts(folder, java, classpath, ...))
    composed.run("beside-secrets")                  # a service that ends
    with composed.process("kafka") as broker: ...   # one that goes on
    composed.address("kafka", 9092)                 # "127.17.4.1:9092"

Each host is an address of the loopback network, so that its ports are those of the file. Only names of hosts and paths
differ from the containers'.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml  # type: ignore[import-untyped]

from tests.support.brokers.broker import LOGGING_PROPERTIES
from tests.support.docs.documents import ROOT
from tests.support.java.jvm import QUICK_START, Java
from tests.support.java.maven import Classpath
from tests.support.processes.process import ChildProcess

_DEFAULT: Final = re.compile(r"\$\{\w+:-([^}]*)\}")


class Composed:
    """Some services, on addresses of this machine.

    Args:
        folder: receives everything that they write.
        hosts: the services that others reach by their names.
        scripts: the folder with Kafka's scripts.
        others: what stands in place of other services, host:port -> host:port.
    """

    def __init__(
        self, folder: Path, hosts: Sequence[str], scripts: Path, others: Mapping[str, str] | None = None
    ) -> None:
        self.secrets = folder / "secrets"
        self._folder = folder
        self._services: Mapping[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
        self._network = f"127.{random.randrange(1, 250)}.{random.randrange(250)}"  # noqa: S311 - its ports are given
        self._hosts = {name: f"{self._network}.{number}" for number, name in enumerate(hosts, start=1)}
        self.secrets.mkdir()
        docker = folder / "docker"
        shutil.copytree(ROOT / "docker", docker, ignore=shutil.ignore_patterns("__pycache__"))
        self._places = {
            "/etc/kafka-dt/secrets": str(self.secrets),
            "/etc/kafka-dt/cluster": str(folder / "cluster"),
            "/etc/kafka-dt/gateway.properties": str(docker / "kraft" / "gateway.properties"),
            "/etc/kafka-dt/server.properties": str(docker / "server.properties"),
            "/opt/kafka-dt/make_secrets.py": str(docker / "make_secrets.py"),
            "/opt/kraft": str(docker / "kraft"),
            "/opt/beside": str(docker / "beside"),
            "/opt/kafka/bin": str(scripts),
            "/var/lib/kafka": str(folder / "data"),
            # Of docker/kraft/broker.sh and docker/beside/broker.sh.
            "kafka-$1:": f"{self._network}.$1:",
            "INTERNAL://localhost:": f"INTERNAL://{self._network}.250:",
            **(others or {}),
        }
        for path in (each for each in docker.rglob("*") if each.is_file()):
            path.write_text(self._here(path.read_text()))

    def address(self, name: str, port: int) -> str:
        """host:port of a service."""
        return f"{self._hosts[name]}:{port}"

    def run(self, name: str) -> None:
        """Do what a service does that ends; an assertion fails with what it says if it fails."""
        variables = os.environ | self._environment(name)
        done = subprocess.run(self._command(name), cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{name}: {done.stdout}{done.stderr}"

    def process(self, name: str, *more: str) -> ChildProcess:
        """Make the process of a service, with more arguments."""
        command = [*self._command(name), *more]
        return ChildProcess(name, command, self._folder / f"{name}.log", self._environment(name))

    def client(self, user: str, bootstrap_servers: str) -> dict[str, str]:
        """The settings of a user's client, as copied from the volume, with another address."""
        lines = (self.secrets / f"{user}.properties").read_text().splitlines()
        return {**dict(line.split("=", 1) for line in lines), "bootstrap.servers": bootstrap_servers}

    def _environment(self, name: str) -> dict[str, str]:
        return {key: self._here(text, name) for key, text in self._services[name].get("environment", {}).items()}

    def _command(self, name: str) -> list[str]:
        service = self._services[name]
        # Only the server's image has an entry point that no service takes away.
        entry = service.get("entrypoint", ["kafka-dt"] if service["image"] == "kafka-dt" else [])
        program, *arguments = (self._here(each, name) for each in [*entry, *service["command"]])
        if program.startswith("python"):
            program = sys.executable
        elif program == "kafka-dt":
            program = str(Path(sys.executable).with_name(program))
        return [program, *arguments]

    def _here(self, text: str, name: str = "") -> str:
        """A text of the containers with what this machine has in place of it; `name`: the service whose text it is."""
        text = _DEFAULT.sub(r"\1", text)
        own = self._hosts.get(name)
        of_the_service = {"://:": f"://{own}:", "localhost:": f"{own}:"} if own else {}
        for there, here in {**self._places, **of_the_service}.items():
            text = text.replace(there, here)
        for host, address in self._hosts.items():
            text = re.sub(rf"(?<![\w-]){re.escape(host)}:", f"{address}:", text)
        return text


def kafka_scripts(folder: Path, java: Java, classpath: Classpath, programs: Mapping[str, str]) -> Path:
    """Write scripts of Kafka's distribution: their names without `.sh`, and the main class of each."""
    folder.mkdir()
    logging = folder / "log4j.properties"
    logging.write_text(LOGGING_PROPERTIES)
    properties = {"log4j.configuration": logging.as_uri()}
    for name, main in programs.items():
        command = java.command(main, classpath=classpath, heap_mb=320, properties=properties, flags=QUICK_START)
        path = folder / f"{name}.sh"
        path.write_text("#!/bin/bash\nexec " + " ".join(f"'{each}'" for each in command) + ' "$@"\n')
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return folder
