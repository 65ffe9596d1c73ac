"""docs/how-to/systemd.md under a real systemd: the service is installed, checked, started, reloaded, hung and stopped.

The release is this tree's, installed with the system's Python as docs/how-to/install.md says. Its dependencies come
from the registry that pip is configured for.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from release.packages import build
from release.tree import read_version
from tests.support.docs.documents import ROOT, marked
from tests.support.processes.namespaces_of_systemd import Machine
from tests.support.processes.ports import free_ports
from tests.support.processes.waiting import eventually

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]

SETTINGS = "/etc/kafka-dt/server.properties"
HANG_S = 60.0
"""In which systemd has replaced a supervisor that hangs: twice the unit's WatchdogSec."""


SYSTEM = "import ensurepip, sys; sys.exit(sys.version_info < (3, 11))"


def block(page: str, mark: str) -> str:
    (commands,) = marked(f"docs/how-to/{page}.md", mark)
    return commands


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    if subprocess.run(["/usr/bin/python3", "-c", SYSTEM], capture_output=True, check=False).returncode != 0:
        pytest.skip("the system has no Python from 3.11 with venv (Debian's packages python3 and python3-venv)")
    build(ROOT, tmp_path / "wheels", time_s=int(time.time()))
    return tmp_path / "wheels"


def test_the_service_of_the_page_runs_under_systemd(wheels: Path, tmp_path: Path, zookeeper_connect: str) -> None:
    kafka, http = free_ports(2), free_ports(1)
    changes = {"localhost:2181": zookeeper_connect, ":9192": f":{kafka}", ":9404": f":{http}"}
    with Machine(tmp_path / "machine") as machine:
        assert machine.run(f"cd {wheels}\n{block('install', 'install')}").endswith(
            f"version {read_version(ROOT)} (interpreted)\n"
        )
        machine.run(block("install", "link"))
        machine.run(block("systemd", "install"))
        machine.run("umask 077; cd /etc/kafka-dt/secrets; echo 0123456789abcdef0123456789abcdef > token.key")
        plain = "org.apache.kafka.common.security.plain.PlainLoginModule"
        machine.run(f"""echo '{plain} required user_admin="CHANGE-THIS";' > /etc/kafka-dt/secrets/users.jaas""")
        for before, after in changes.items():
            machine.run(f"sed -i 's#{before}#{after}#' {SETTINGS}")

        assert machine.run(block("systemd", "check")).endswith("starts with these settings (1 warning)\n")
        said = machine.run(block("systemd", "start"))
        assert "Active: active (running)" in said
        created = machine.run(block("systemd", "create").replace("9192", str(kafka)))
        assert "OWNER      User:admin" in created
        assert machine.run("ls -A /var/log/kafka-dt/audit") != ""
        assert machine.run(f"/opt/kafka-dt/bin/kafka-dt health --config {SETTINGS}") == "ready\n"

        machine.run(f"echo kafka.dt.log.level=DEBUG >> {SETTINGS}; systemctl reload kafka-dt")
        machine.run(f"echo kafka.dt.log.levels=INFO >> {SETTINGS}")
        machine.run("systemctl reload kafka-dt", succeeds=False)
        machine.run(f"sed -i '$d' {SETTINGS}; systemctl restart kafka-dt")

        machine.run("kill -STOP $(systemctl show --property MainPID --value kafka-dt)")
        restarts = "systemctl show --property NRestarts --value kafka-dt"
        eventually(lambda: machine.run(restarts) == "1\n", within_s=HANG_S)
        eventually(lambda: machine.run("systemctl is-active kafka-dt || true") == "active\n", within_s=HANG_S)
        machine.run("systemctl stop kafka-dt")
        assert "Result=success" in machine.run("systemctl show --property Result kafka-dt")
