"""What pyproject.toml says of the two distributions and their dependencies."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def project(folder: str) -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return table


OURS, PROTOCOL = project("."), project("protocol")
REQUIREMENTS = [
    *OURS["dependencies"],
    *PROTOCOL["dependencies"],
    *(requirement for extra in OURS["optional-dependencies"].values() for requirement in extra),
]


def test_kafka_dt_needs_the_protocol_of_its_own_version() -> None:
    assert OURS["version"] == PROTOCOL["version"]
    assert f"kafka-dt-protocol=={PROTOCOL['version']}" in OURS["dependencies"]


def test_the_protocol_needs_nothing_of_kafka_dt() -> None:
    assert not [each for each in PROTOCOL["dependencies"] if each.startswith("kafka-dt")]


@pytest.mark.parametrize("requirement", REQUIREMENTS)
def test_a_dependency_has_a_lower_bound(requirement: str) -> None:
    assert re.search(r"[>=]=\d", requirement)


def test_a_dependency_that_is_named_twice_has_the_same_bounds() -> None:
    assert len(set(REQUIREMENTS)) == len({re.split(r"[<>=]", requirement)[0] for requirement in REQUIREMENTS})


@pytest.mark.parametrize("lock", sorted(path.name for path in ROOT.glob("requirements*.lock")))
def test_a_lock_names_packages_of_registries_alone(lock: str) -> None:
    lines = (ROOT / lock).read_text(encoding="utf-8").splitlines()
    assert lines
    # A path, an editable package or an index would be one of the machine that wrote the lock.
    form = r"[a-z0-9.-]+==\S+( ; [^/]+)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?"
    assert [line for line in lines if not re.fullmatch(form, line)] == []
