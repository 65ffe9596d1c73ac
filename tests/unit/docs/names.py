"""The code that a page of the manual names: `path`, `path::name`, `module.Name`, and whether it exists.

for name in named(read("docs/architecture.md")): assert problem(name) is None
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

from tests.support.docs.documents import ROOT

_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`([^`\n]+)`")
_PATH = re.compile(
    r"(?:kafka_dt|protocol|tests|docs|checks|benchmarks|docker|ops)/[\w./*-]*|[A-Za-z][\w-]*\.(?:md|toml)"
)
_MODULE = re.compile(r"kafka_dt(?:_protocol)?(?:\.\w+)+")
_CLASS = re.compile(r"(?:[A-Z][a-z0-9]+){2,}(?:\.[a-z_]\w*)?")


def named(text: str) -> Iterator[str]:
    """Give what a text of Markdown names as code, outside its blocks of code."""
    return (match[1] for match in _CODE.finditer(_FENCE.sub("", text)))


def problem(name: str) -> str | None:
    """Say why a name is of nothing; None if it exists, or is no name of a file, module, class, function or test."""
    path, _, inner = name.partition("::")
    if _PATH.fullmatch(path):
        if not (ROOT / path).exists():
            return f"{path} does not exist"
        return None if not inner or inner in definitions(path) else f"{path} defines no {inner}"
    if inner:
        return f"{path} is no path from the root of the project"
    if _MODULE.fullmatch(name):
        return None if _is_module(name) else f"{name} does not exist"
    if _CLASS.fullmatch(name) and name not in _classes():
        return f"no file of the project defines {name}"
    return None


@cache
def definitions(path: str) -> frozenset[str]:
    """Give what a file of Python defines: functions, classes, constants, and `Class.method`."""
    found: set[str] = set()
    for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
        found.update(_names(node))
        if isinstance(node, ast.ClassDef):
            found.update(f"{node.name}.{inner}" for child in node.body for inner in _names(child))
    return frozenset(found)


def _names(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield name
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
            yield name
        case _:
            pass


def _is_module(name: str) -> bool:
    """Say whether a dotted name is a module, a folder, or a name that one of them defines."""
    parts = name.split(".")
    root = ROOT / "protocol" if parts[0] == "kafka_dt_protocol" else ROOT
    for length in range(len(parts), 0, -1):
        place = root.joinpath(*parts[:length])
        file = place.with_suffix(".py") if place.with_suffix(".py").is_file() else place / "__init__.py"
        if file.is_file():
            inner = ".".join(parts[length:])
            return not inner or inner in definitions(str(file.relative_to(ROOT)))
    return False


@cache
def _classes() -> frozenset[str]:
    files = [*(ROOT / "kafka_dt").rglob("*.py"), *(ROOT / "protocol" / "kafka_dt_protocol").rglob("*.py")]
    return frozenset().union(*(definitions(str(file.relative_to(ROOT))) for file in files))
