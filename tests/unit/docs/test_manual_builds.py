"""The manual builds without a warning."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from docs.generators import DOCS


def test_sphinx_finds_nothing_to_warn_about_and_lists_each_page_once(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going", "--builder", "html"]
    done = subprocess.run(
        [*command, "--doctree-dir", str(tmp_path / "doctrees"), str(DOCS), str(tmp_path / "html")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "html" / "index.html").read_text(encoding="utf-8")
    sidebar = page.partition('<div class="sidebar-tree">')[2].partition("</div>")[0]
    listed = re.findall(r'<li class="toctree-l1"><a class="reference internal" href="([^"]+)"', sidebar)
    assert {"security.html", "tutorial.html"} <= set(listed)
    assert sorted(listed) == sorted(set(listed)), "a page is listed twice"
