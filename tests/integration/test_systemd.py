"""The unit of systemd: systemd's own checks of its files, and a node under the limits that the unit sets.

systemd-analyze is part of Debian's package systemd, strace of strace.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from kafka_dt.client import TokenClient
from kafka_dt.config import from_properties, listeners
from kafka_dt.identity.mechanisms import MECHANISMS
from tests.support.brokers.broker import USERS
from tests.support.docs.documents import ROOT, blocks, marked
from tests.support.java import properties as client_config
from tests.support.nodes.server import KafkaDt, server_properties

FILES = ROOT / "ops" / "systemd"
UNIT = FILES / "kafka-dt.service"
CREDENTIALS = "/run/credentials/kafka-dt.service"
PROGRAM = Path(sys.executable).with_name("kafka-dt")
WATCHED = """\
#!{python}
import ctypes, os, sys
assert ctypes.CDLL(None).prctl(65, 1, 0, 0, 0) == 0  # PR_SET_MDWE: what MemoryDenyWriteExecute does
os.execvp("strace", ["strace", "-D", "-f", "-qq", "-o", {calls!r}, {program!r}, *sys.argv[1:]])
"""
"""A program that starts kafka-dt without memory that is writable and executable, and notes its system calls."""
MOST_EXPOSED = 15
"""What `systemd-analyze security` may say at the most, in tenths: 0 is locked up, 100 is open."""


def systemd(*command: str | Path) -> str:
    """Give what a program of systemd's says; it fails the test if it does not succeed."""
    if shutil.which(str(command[0])) is None:
        if os.environ.get("CI"):
            pytest.fail(f"{command[0]} is not installed")
        pytest.skip(f"{command[0]} is not installed (Debian's package systemd)")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def service() -> dict[str, list[str]]:
    """The lines of the unit's section [Service], each key with all its values."""
    section = UNIT.read_text(encoding="utf-8").partition("[Service]\n")[2].partition("\n[")[0]
    found: dict[str, list[str]] = {}
    for line in section.splitlines():
        if line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found.setdefault(key, []).append(value)
    return found


def test_systemd_finds_no_fault_with_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/opt/kafka-dt/bin/kafka-dt", str(PROGRAM)))
    assert str(PROGRAM) in unit.read_text()
    assert systemd("systemd-analyze", "verify", unit) == ""


def test_systemd_finds_no_fault_with_what_the_page_adds_for_0_1_0(tmp_path: Path) -> None:
    (added,) = (each.text for each in blocks("docs/how-to/upgrade.md", "ini"))
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/opt/kafka-dt/bin/kafka-dt", str(PROGRAM)) + added)
    assert systemd("systemd-analyze", "verify", unit) == ""


def test_the_page_installs_the_files_that_the_wheel_has() -> None:
    page = (ROOT / "docs" / "how-to" / "systemd.md").read_text(encoding="utf-8")
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"]
    assert table["wheel"]["shared-data"]["ops/systemd"] == "share/kafka-dt/systemd"
    assert "cd /opt/kafka-dt/share/kafka-dt/systemd\n" in page
    installed = re.findall(r"^install .*?(kafka-dt\.\S+|server\.properties) /etc/\S+$", page, re.MULTILINE)
    assert sorted(installed) == sorted(path.name for path in FILES.iterdir())


def test_the_service_is_exposed_to_little() -> None:
    said = systemd("systemd-analyze", "security", "--offline=true", f"--threshold={MOST_EXPOSED}", UNIT)
    assert "Overall exposure level for kafka-dt.service" in said


def test_the_user_and_the_folders_are_made_as_the_unit_wants_them(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    systemd("systemd-sysusers", f"--root={tmp_path}", FILES / "kafka-dt.sysusers.conf")
    (user,) = (tmp_path / "etc" / "passwd").read_text().splitlines()[-1:]
    assert user.startswith("kafka-dt:x:")
    assert user.endswith(":/var/lib/kafka-dt:/usr/sbin/nologin")
    if os.geteuid() != 0:
        pytest.skip("only root can give the folders to the group")
    systemd("systemd-tmpfiles", f"--root={tmp_path}", "--create", FILES / "kafka-dt.tmpfiles.conf")
    settings, secrets = (tmp_path / "etc" / "kafka-dt").stat(), (tmp_path / "etc" / "kafka-dt" / "secrets").stat()
    assert (settings.st_mode & 0o777, settings.st_uid, settings.st_gid) == (0o750, 0, int(user.split(":")[3]))
    assert (secrets.st_mode & 0o777, secrets.st_uid, secrets.st_gid) == (0o700, 0, 0)


def test_the_pages_look_for_audit_files_where_the_service_writes_them() -> None:
    text = (FILES / "server.properties").read_text(encoding="utf-8")
    (folder,) = re.findall(r"^kafka\.dt\.audit\.log\.dir=(\S+)$", text, re.MULTILINE)
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "how-to").glob("*.md")]
    read = r"(?:log\.dir=|--from |find |cat |audit verify )(/var/log/kafka-dt[\w/]*\w)"
    found = {page.name: set(re.findall(read, page.read_text(encoding="utf-8"))) for page in pages}
    assert found["back-up.md"]
    assert {name: folders for name, folders in found.items() if folders - {folder}} == {}


def sample_settings(folder: Path) -> dict[str, str]:
    """Give the settings that the page starts with, their credentials in a folder."""
    (folder / "token.key").write_text("k" * 32)
    (folder / "users.jaas").write_text(
        'org.apache.kafka.common.security.plain.PlainLoginModule required user_admin="b";'
    )
    text = (FILES / "server.properties").read_text(encoding="utf-8").replace(CREDENTIALS, str(folder))
    return dict(line.split("=", 1) for line in text.splitlines() if line and line[0] != "#")


def test_the_settings_read_the_units_credentials_and_write_where_it_lets_them(
    tmp_path: Path, service: dict[str, list[str]]
) -> None:
    text = (FILES / "server.properties").read_text(encoding="utf-8")
    loaded = {each.partition(":")[0] for each in service["LoadCredential"]}
    assert set(re.findall(rf"file:{CREDENTIALS}/(\S+)", text)) == loaded
    found = from_properties(sample_settings(tmp_path))
    assert (found.ignored, found.unprotected, found.unknown) == ((), (), ())
    settings = found.settings
    assert all(listener.mechanisms for listener in listeners(settings, MECHANISMS))
    assert not settings.allow_everyone_if_no_acl_found
    assert settings.state_dir == f"/var/lib/{service['StateDirectory'][0]}"
    assert settings.audit_log_dir == f"/var/log/{service['LogsDirectory'][0]}/audit"
    assert int(service["TimeoutStopSec"][0]) >= settings.drain_timeout_ms / 1000 + 15


def test_the_page_checks_the_settings_before_systemd_has_copied_the_secrets(
    tmp_path: Path, zookeeper_connect: str
) -> None:
    sample_settings(tmp_path)
    text = (FILES / "server.properties").read_text(encoding="utf-8")
    (tmp_path / "server.properties").write_text(text.replace("localhost:2181", zookeeper_connect))
    (command,) = marked("docs/how-to/systemd.md", "check")
    command = command.replace("/opt/kafka-dt/bin/kafka-dt", str(PROGRAM))
    command = command.replace("/etc/kafka-dt/secrets", str(tmp_path)).replace("/etc/kafka-dt", str(tmp_path))
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (
        0,
        "ok       a node starts with these settings (1 warning)",
    )


async def test_a_node_on_the_pages_settings_serves_and_tells_systemd_that_it_is_ready_lives_and_stops(
    tmp_path: Path, zookeeper_connect: str
) -> None:
    settings = sample_settings(tmp_path) | {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "zookeeper.connect": zookeeper_connect,
        "kafka.dt.metrics.listener": "none",
        "kafka.dt.state.dir": str(tmp_path / "state"),
        "kafka.dt.audit.log.dir": str(tmp_path / "log"),
    }
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        manager.setblocking(False)
        variables = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "2000000"}
        with KafkaDt(tmp_path, settings, environment=variables) as node:
            login = {**client_config.plain("admin", "b"), "bootstrap.servers": node.sasl}
            async with TokenClient.from_config(login) as client:
                assert (await client.create()).owner == "User:admin"
        heard = []
        while select.select([manager], [], [], 0)[0]:
            heard.append(manager.recv(100))
    assert heard[0] == b"WATCHDOG=1"
    assert [each for each in heard if each != b"WATCHDOG=1"] == [b"READY=1", b"STOPPING=1"]
    assert list((tmp_path / "log").iterdir())


def allowed_system_calls(service: dict[str, list[str]]) -> set[str]:
    """Give the system calls that the unit allows, the groups taken apart."""

    def members(name: str) -> set[str]:
        if not name.startswith("@"):
            return {name}
        lines = systemd("systemd-analyze", "syscall-filter", name).splitlines()[1:]
        words = [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]
        return set().union(*map(members, words))

    allowed: set[str] = set()
    for line in service["SystemCallFilter"]:
        named = set().union(*map(members, line.removeprefix("~").split()))
        allowed = allowed - named if line.startswith("~") else allowed | named
    return allowed


@pytest.mark.soak
async def test_a_node_uses_no_system_call_and_no_memory_that_the_unit_forbids(
    tmp_path: Path, zookeeper_connect: str, service: dict[str, list[str]]
) -> None:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    calls, program = tmp_path / "calls", tmp_path / "kafka-dt"
    program.write_text(WATCHED.format(python=sys.executable, calls=str(calls), program=str(PROGRAM)))
    program.chmod(0o755)
    with KafkaDt(tmp_path / "node", server_properties(zookeeper_connect), program=program) as node:
        login = client_config.plain("alice", USERS["alice"])
        async with TokenClient.from_config({**login, "bootstrap.servers": node.sasl}) as client:
            token = await client.create()
        by_token = client_config.token(client_config.TokenLogin(token.token_id, token.hmac_base64))
        async with TokenClient.from_config({**by_token, "bootstrap.servers": node.sasl}):
            pass
        assert node.stop() == 0
    used = set(re.findall(r"^\d+ +(\w+)\(", calls.read_text(errors="replace"), re.MULTILINE))
    assert {"execve", "accept4", "clone", "memfd_create"} <= used
    assert used - allowed_system_calls(service) == set()
