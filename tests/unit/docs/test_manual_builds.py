"""The manual builds without a warning."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from docs.generators import DOCS


def test_sphinx_finds_nothing_to_warn_about(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going", "--builder", "html"]
    done = subprocess.run(
        [*command, "--doctree-dir", str(tmp_path / "doctrees"), str(DOCS), str(tmp_path / "html")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "html" / "index.html").exists()
