"""The compiled wheel holds what it says, and the command tells the two forms apart.

`make test-compiled` runs the tests of this folder with the wheel, not with the tree: black once released wheels that
said they were compiled and were not.

Source: the change log of black, 23.9.1.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import distribution
from pkgutil import walk_packages

import pytest
from click.testing import CliRunner

import kafka_dt_protocol
from kafka_dt.cli import main

COMPILED = (".so", ".pyd")


@pytest.mark.compiled
def test_each_module_of_the_wheel_is_compiled() -> None:
    found = [module for module in walk_packages(kafka_dt_protocol.__path__, "kafka_dt_protocol.") if not module.ispkg]
    files = {module.name: str(import_module(module.name).__file__) for module in found}
    assert "kafka_dt_protocol.connection" in files
    assert [name for name, file in files.items() if not file.endswith(COMPILED)] == []


@pytest.mark.compiled
def test_the_wheel_is_for_one_platform_and_has_the_source_too() -> None:
    wheel = distribution("kafka-dt-protocol")
    assert "Root-Is-Purelib: false" in (wheel.read_text("WHEEL") or "")
    assert "kafka_dt_protocol/connection.py" in {str(file) for file in wheel.files or ()}


@pytest.mark.compiled
def test_the_command_says_that_it_is_compiled() -> None:
    assert CliRunner().invoke(main, ["--version"]).output.endswith(" (compiled)\n")


@pytest.mark.interpreted
def test_the_command_says_that_it_is_interpreted() -> None:
    assert CliRunner().invoke(main, ["--version"]).output.endswith(" (interpreted)\n")
