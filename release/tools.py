"""Programs that a release runs: git, hatchling, pip, ssh-keygen; and the error that ends a release."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


class NotReleased(Exception):
    """There is no release; the text says why and, where the tree is the reason, what to do."""


def run(
    command: Sequence[str | Path], folder: Path, *, environment: Mapping[str, str] | None = None, stdin: bytes = b""
) -> str:
    """Run a program in a folder; returns what it prints.

    environment: its variables, those of this process if there are none

    Raises:
        NotReleased: it failed; the text has what it said.
    """
    done = subprocess.run(command, cwd=folder, env=environment, input=stdin, capture_output=True, check=False)
    said = done.stdout.decode("utf-8", "replace")
    if done.returncode:
        said += done.stderr.decode("utf-8", "replace")
        raise NotReleased(f"{' '.join(map(str, command))} ended with status {done.returncode}\n{said.strip()}")
    return said.strip()
