"""The tests in containers, where a Docker daemon runs.

tests/interop/composed runs the same services as processes.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator

import pytest

from tests.support.docs.documents import ROOT

COMPOSE = ("compose", "--project-name", "kafka-dt-soak", "--profile", "tests")
"""A project of its own, so that only volumes of this test are removed."""

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]


@pytest.fixture
def compose() -> Iterator[tuple[str, ...]]:
    """The command, with nothing left of its containers and volumes afterwards."""
    if (docker := shutil.which("docker")) is None:
        pytest.skip("Docker is not installed")
    asked = subprocess.run([docker, "info"], capture_output=True, text=True, check=False)
    if asked.returncode:
        pytest.skip(f"no Docker daemon answers: {asked.stderr.strip()[-200:]}")
    command = (docker, *COMPOSE)
    yield command
    subprocess.run([*command, "down", "--volumes"], cwd=ROOT, check=True)


def test_the_tests_and_the_clients_pass_in_containers(compose: tuple[str, ...]) -> None:
    subprocess.run([*compose, "run", "--build", "--rm", "tests"], cwd=ROOT, check=True)
