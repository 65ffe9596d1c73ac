"""The components of an installation as CycloneDX JSON (a "software bill of materials").

The list is made of an environment into which the locked dependencies of the server and the new wheels are installed, so
it has what runs: each package with its version, its licence and what it depends on. cyclonedx-py checks it against
CycloneDX's schema.

Source: https://cyclonedx.org/docs/1.6/json/.
"""

from __future__ import annotations

import os
import sys
import tempfile
import venv
from pathlib import Path
from typing import Final

from release.tools import run

LOCK: Final = "requirements-server.lock"


def write_components(source: Path, packages: Path, version: str, output: Path, time_s: int) -> None:
    """Install the wheels of a version and write what the environment consists of.

    source: the folder with pyproject.toml and the lock file
    packages: the folder with the wheels
    time_s: the time that the list states, in seconds since the epoch

    Raises:
        NotReleased: the wheels cannot be installed, or the list is not valid.
    """
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, symlinks=True)
        python = Path(folder, "bin", "python")
        install: list[str | Path] = [
            sys.executable,
            "-m",
            "pip",
            "--python",
            python,
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ]
        run([*install, "--no-deps", "--require-hashes", "--requirement", LOCK], source)
        # Found by name: a path would get into the list.
        ours = [f"{name}=={version}" for name in ("kafka-dt", "kafka-dt-protocol")]
        run([*install, "--no-deps", "--no-index", "--find-links", packages, *ours], source)
        command: list[str | Path] = [
            sys.executable,
            "-m",
            "cyclonedx_py",
            "environment",
            "--pyproject",
            "pyproject.toml",
        ]
        command += ["--mc-type", "application", "--output-reproducible", "--validate", "--output-file", output, python]
        run(command, source, environment={**os.environ, "SOURCE_DATE_EPOCH": str(time_s)})
