"""The page about installing names what can be installed."""

from __future__ import annotations

import re
import tomllib

from tests.support.docs.documents import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_page_has_every_extra_of_the_package() -> None:
    page = (ROOT / "docs" / "how-to" / "install.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| `([a-z-]+)` \|", page[page.index("| extra |") :], re.MULTILINE)
    assert sorted(named) == sorted(PROJECT["project"]["optional-dependencies"])


def test_pages_name_the_folders_that_a_release_has() -> None:
    pages = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "how-to").glob("*.md"))
    shared = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    for source, target in shared.items():
        assert (ROOT / source).exists()
        assert target.partition("share/kafka-dt/")[2] in pages
