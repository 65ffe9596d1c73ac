"""Check the Sigma rules with pySigma, and write them as SQL by its backend for SQLite.

    sigma = Sigma.fetched()                   # once; needs a registry, kept in a cache of the user
    sigma.read(path)["issues"]                # what is wrong with the rules of a file
    sigma.read(path)["queries"]               # find what the rules of the file look for, in a table `logs`

pySigma has compiled parts that not every machine can have, so it is not in requirements.lock but has a lock of its own.
Tags are not checked: pySigma compares them with lists that it loads from the web.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from tests.support.docs.documents import ROOT

LOCK: Final = ROOT / "requirements-sigma.lock"
_PROGRAM: Final = """
import json, sys
from sigma.backends.sqlite.sqlite import sqliteBackend
from sigma.collection import SigmaCollection
from sigma.rule import SigmaDetection, SigmaRule
from sigma.validation import SigmaValidator
from sigma.validators.core import validators

def fields(detection):
    for item in detection.detection_items:
        yield from fields(item) if isinstance(item, SigmaDetection) else [item.field]

rules = SigmaCollection.load_ruleset([sys.argv[1]])
used = [each for name, each in validators.items() if name not in {"attacktag", "d3_fendtag", "d3fendtag"}]
detections = [each for rule in rules if isinstance(rule, SigmaRule) for each in rule.detection.detections.values()]
print(json.dumps({
    "issues": [str(issue) for issue in SigmaValidator(used).validate_rules(rules)],
    "fields": sorted({field for each in detections for field in fields(each)}),
    "queries": sqliteBackend().convert(rules),
}))
"""


class SigmaMissing(Exception):
    """pySigma cannot be had here; the text says why."""


@dataclass(frozen=True, slots=True)
class Sigma:
    """pySigma."""

    packages: Path
    """A folder for PYTHONPATH."""

    @classmethod
    def fetched(cls) -> Self:
        """Fetch it if it is not in the cache yet.

        Raises:
            SigmaMissing: the registry has no such packages for this machine.
        """
        caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kafka-dt"
        packages = caches / f"sigma-{sys.implementation.cache_tag}"
        if not (packages / LOCK.name).exists() or (packages / LOCK.name).read_bytes() != LOCK.read_bytes():
            shutil.rmtree(packages, ignore_errors=True)
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes"]
            pip += ["--only-binary", ":all:", "--target", str(packages), "--requirement", str(LOCK)]
            done = subprocess.run(pip, capture_output=True, text=True, check=False)
            if done.returncode:
                raise SigmaMissing(done.stderr.strip())
            shutil.copy(LOCK, packages)
        return cls(packages)

    def read(self, path: Path) -> dict[str, Any]:
        """Read the rules of a file: `issues` (texts), `fields` (of events) and `queries` (SQL)."""
        variables = os.environ | {"PYTHONPATH": str(self.packages)}
        command = [sys.executable, "-c", _PROGRAM, str(path)]
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found
