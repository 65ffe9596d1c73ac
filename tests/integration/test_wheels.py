"""The wheels in an environment of their own, beside the package that PyPI calls `protocol`.

The wheels are built from this tree. pip installs their dependencies by name from the registries that it is configured
for, as it does for a user.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import venv
from collections.abc import Sequence
from pathlib import Path

import pytest

from release.packages import build
from release.tree import read_version
from tests.support.brokers.broker import USERS
from tests.support.java import properties as client_config
from tests.support.java.properties import write_properties
from tests.support.nodes.server import KafkaDt, server_properties

ROOT = Path(__file__).parents[2]
NAMESAKE = "protocol==0.37"
"""A package on PyPI. kafka-dt once overwrote its `protocol/__init__.py`, since it had a package of that name too."""

PROGRAM = """\
from kafka_dt.client import TokenClient
from kafka_dt_protocol import FrameSplitter
async def token_id(client: TokenClient) -> str:
    return (await client.create()).token_id
frame: bytes | None = FrameSplitter(1_000).next_frame()
"""


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` folder of a virtual environment with `NAMESAKE` and the two wheels."""
    folder = tmp_path_factory.mktemp("wheels")
    venv.create(folder / "environment", symlinks=True)
    commands = folder / "environment" / "bin"
    pip: list[str | Path] = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    # The build tools are those of this environment, so that building needs no registry.
    build(ROOT, folder, time_s=int(time.time()))
    wheels = sorted(folder.glob("*.whl"))
    assert [wheel.name.split("-")[0] for wheel in wheels] == ["kafka_dt", "kafka_dt_protocol"]
    install = [*pip, "--python", commands / "python", "install"]
    try:
        run([*install, "--no-deps", NAMESAKE], folder)
        run([*install, *wheels], folder)
    except AssertionError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"pip cannot install the dependencies: {error}")
    return commands


def run(command: Sequence[str | Path], folder: Path) -> str:
    """Give what a command prints; it fails the test if it does not succeed."""
    # In this tree, or with its path, Python would import the packages of the tree instead of the installed ones.
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_wheels_leave_the_files_of_pypis_protocol_alone(commands: Path) -> None:
    check = """if True:
        import base64, hashlib, importlib.metadata as metadata
        for file in metadata.files("protocol"):
            if file.hash:
                digest = hashlib.new(file.hash.mode, file.locate().read_bytes()).digest()
                assert base64.urlsafe_b64encode(digest).decode().rstrip("=") == file.hash.value, file
                print(file)
    """
    assert "protocol/__init__.py" in run([commands / "python", "-c", check], commands)


def test_the_installed_command_says_the_version_of_the_tree(commands: Path) -> None:
    version = read_version(ROOT)
    assert run([commands / "kafka-dt", "--version"], commands) == f"kafka-dt, version {version} (interpreted)\n"


def test_a_users_program_is_type_checked_against_both_packages(commands: Path) -> None:
    program = commands.parent / "program.py"
    program.write_text(PROGRAM)
    mypy: list[str | Path] = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", commands.parent / "mypy"]
    assert "Success" in run([*mypy, "--python-executable", commands / "python", program], commands)


def test_a_client_of_the_wheel_logs_in_at_a_node_of_the_wheel(
    commands: Path, tmp_path: Path, zookeeper_connect: str
) -> None:
    node = KafkaDt(
        tmp_path, server_properties(zookeeper_connect), environment={"PYTHONPATH": ""}, program=commands / "kafka-dt"
    )
    login = write_properties(tmp_path / "client.properties", client_config.plain("alice", USERS["alice"]))
    with node:
        answer = run(
            [
                commands / "kafka-dt",
                "token",
                "create",
                "--bootstrap-server",
                node.sasl,
                "--command-config",
                login,
                "--output",
                "json",
            ],
            commands,
        )
    assert json.loads(answer)["owner"] == "User:alice"
