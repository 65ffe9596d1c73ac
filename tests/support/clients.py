"""Which clients work with kafka-dt, as tests have seen it; the README's table of clients is made of it.

    @pytest.mark.client("aiokafka", "login", "records")
    def test_aiokafka(...): ...

says what the test proves of a client when it passes. Each pass is a line in build/clients.jsonl, with the version of
the client.

    python -m tests.support.clients

takes the lines over into tests/interop/clients/seen.json. `make soak` does it when all tests have passed, and then
writes the README again (docs/generators/clients.py, which has the words of the table).
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Final

import pytest

from tests.interop.clients.programs import CLIENTS
from tests.support.docs.documents import ROOT
from tests.support.java.maven import KAFKA_4X, KAFKA_39, Bundle

MARK: Final = "client"
PASSES: Final = ROOT / "build" / "clients.jsonl"
SEEN: Final = ROOT / "tests" / "interop" / "clients" / "seen.json"


def _of_package(name: str) -> str:
    found = re.search(rf"^{re.escape(name)}==(\S+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    assert found, f"requirements.lock does not have {name}"
    return found[1]


def _of_kcat() -> str:
    program = shutil.which("kcat")
    text = subprocess.run([program, "-V"], capture_output=True, text=True, check=True).stdout if program else ""
    found = re.search(r"librdkafka ([\d.]+)", text)
    return f"with librdkafka {found[1]}" if found else ""


def _of_kafka(*bundles: Bundle) -> str:
    return ", ".join(bundle.coordinates[0].rpartition(":")[2] for bundle in bundles)


VERSIONS: Final[Mapping[str, Callable[[], str]]] = {
    "java": lambda: _of_kafka(KAFKA_39, KAFKA_4X),
    "kafka-dt": lambda: "this one",
    **{name: partial(_of_package, name) for name in ("aiokafka", "kafka-python", "confluent-kafka")},
    "kcat": _of_kcat,
    **{name: client.version for name, client in CLIENTS.items()},
    "spark-on-yarn": partial(_of_package, "pyspark"),
    "spark": partial(_of_package, "pyspark"),
}
"""How the version of each client is found that the tests use."""


@cache
def version_of(name: str) -> str:
    """Tell the version of a client that the tests use; empty if it is not here."""
    return VERSIONS[name]()


def record(item: pytest.Item) -> None:
    """Note that a test has passed, if it is about a client."""
    test = item.nodeid.partition("::")[0]
    lines = [
        json.dumps({"client": name, "version": version_of(name), "does": does, "test": test})
        for name, *proves in (mark.args for mark in item.iter_markers(MARK))
        for does in proves
    ]
    if lines:
        PASSES.parent.mkdir(exist_ok=True)
        with PASSES.open("a") as file:
            file.writelines(f"{line}\n" for line in lines)


def take_over(passes: Path, seen: Path) -> None:
    """Add the passes to what was seen before; what was seen of another version of the client is forgotten."""
    found = json.loads(seen.read_text()) if seen.exists() else {}
    lines = [json.loads(line) for line in passes.read_text().splitlines()] if passes.exists() else []
    for line in lines:
        if line["version"] != version_of(line["client"]):
            continue
        entry = found.get(line["client"])
        if entry is None or entry["version"] != line["version"]:
            entry = found[line["client"]] = {"version": line["version"], "does": {}}
        tests = entry["does"].setdefault(line["does"], [])
        entry["does"][line["does"]] = sorted({*tests, line["test"]})
    seen.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    take_over(PASSES, SEEN)
    PASSES.unlink(missing_ok=True)
