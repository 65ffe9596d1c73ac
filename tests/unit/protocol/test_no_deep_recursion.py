"""No message chooses how deep the calls of this package are nested.

The interpreter limits the depth of calls. Compiled code does not: a message that chose the depth would overflow the
stack and end the process. So functions call themselves only along the schema, which no peer chooses.

Source: pull request 242 of hukkin/tomli.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest

from kafka_dt_protocol import APIS, ApiKey
from kafka_dt_protocol.wire.layout import entity_layout
from tests.unit.protocol.conversation import ALL_VERSIONS

DEEPEST: Final = 6
"""Entities in entities; Kafka's schema has no entity in itself."""

ALONG_THE_SCHEMA: Final = {
    "api/entities.py": {"_type_0", "_version_0"},
    "rewriting/skipping.py": {"_add_fields", "_add_field", "_add_value"},
    "wire/decoding.py": {"_entity_reader", "_field_reader", "_tagged_fields_reader", "_value_reader"},
    "wire/encoding.py": {
        "_entity_writer",
        "_entity_writers",
        "_field_writer",
        "_tagged_fields_writer",
        "_value_writer",
    },
    "wire/layout.py": {"_default", "_field_layout", "_field_layouts"},
}
"""Functions that call themselves, by way of one another: all read the schema, once, before any message."""


def folder() -> Path:
    spec = find_spec("kafka_dt_protocol")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0])


def called(function: ast.AST) -> Iterator[str]:
    """Give the names of functions of the same module that a function calls."""
    for node in ast.walk(function):
        match node:
            case ast.Call(func=ast.Name(id=name)):
                yield name
            case ast.Call(func=ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name)):
                yield name


def calling_themselves(source: str) -> set[str]:
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    calls: dict[str, set[str]] = {function.name: set() for function in functions}
    for function in functions:
        calls[function.name].update(name for name in called(function) if name in calls)
    reached = {name: set(names) for name, names in calls.items()}
    for _ in calls:
        for names in reached.values():
            names.update(*(calls[name] for name in tuple(names)))
    return {name for name, names in reached.items() if name in names}


def test_functions_call_themselves_only_along_the_schema() -> None:
    root = folder()
    found = {str(path.relative_to(root)): calling_themselves(path.read_text()) for path in sorted(root.rglob("*.py"))}
    assert {name: functions for name, functions in found.items() if functions} == ALONG_THE_SCHEMA


def depth(entity: type) -> int:
    layout = entity_layout(entity)
    return 1 + max((depth(field.entity) for field in layout.plain + layout.tagged if field.entity), default=0)


@pytest.mark.parametrize(("api", "version"), ALL_VERSIONS)
def test_the_schema_is_not_deep(api: ApiKey, version: int) -> None:
    assert depth(APIS[api].request[version]) <= DEEPEST
    assert depth(APIS[api].response[version]) <= DEEPEST
