"""The server's image is built of a part of what was tested."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def pins(name: str) -> dict[str, frozenset[str]]:
    """The pinned packages of a lock file, each with its hashes."""
    text = (ROOT / name).read_text(encoding="utf-8")
    entries = re.findall(r"^(\S+==\S+)(.*(?:\n +--hash=.*)+)", text, re.MULTILINE)
    return {pin: frozenset(re.findall(r"sha256:[0-9a-f]{64}", rest)) for pin, rest in entries}


def test_the_images_wheels_are_built_with_a_part_of_what_is_tested() -> None:
    build, whole = pins("requirements-build.lock"), pins("requirements.lock")
    assert {pin.partition("==")[0] for pin in build} >= {"hatchling", "hatch-mypyc", "mypy", "setuptools"}
    assert build.items() <= whole.items(), "make both again with `make lock`"


def test_the_servers_lock_is_a_part_of_the_whole() -> None:
    server, whole = pins("requirements-server.lock"), pins("requirements.lock")
    assert server
    assert server.items() <= whole.items(), "make both again with `make lock`"
    assert not any(pin.startswith(("hatchling==", "pyspark==", "pytest==", "sphinx==")) for pin in server)
