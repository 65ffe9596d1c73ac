"""The built manual in a real browser, as wide as a desktop's window and as a phone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from docs.generators import DOCS
from tests.integration.pipeline.browser import Browser, BrowserMissing, find_browser

WIDTHS = (1280, 390)
FAULTS = """
[...document.images].filter(image => !image.naturalWidth).map(image => `no picture ${image.src}`)
    .concat(document.documentElement.scrollWidth > window.innerWidth ? ["wider than the window"] : [])
    .join("; ")
"""


@pytest.mark.soak
def test_each_page_fits_its_window_with_all_its_pictures(tmp_path: Path) -> None:
    """Wide tables and blocks of code scroll by themselves."""
    try:
        program = find_browser()
    except BrowserMissing as missing:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(missing))
    site = tmp_path / "site"
    subprocess.run([sys.executable, "-m", "sphinx", "--quiet", "-b", "html", str(DOCS), str(site)], check=True)
    pages = [path for path in site.rglob("*.html") if path.stem not in {"genindex", "search"}]
    assert len(pages) > 50
    with Browser(program, tmp_path) as browser:
        found = []
        for path in pages:
            for width in WIDTHS:
                page = browser.open(path, width=width)
                if faults := [*page.complaints, *filter(None, [page.value(FAULTS)])]:
                    found.append((str(path.relative_to(site)), width, faults))
    assert found == []
