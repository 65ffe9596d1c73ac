"""The page about upgrades names the settings with which the last version does not start."""

from __future__ import annotations

import re
import subprocess
from fnmatch import fnmatchcase

import pytest

from tests.support.docs.documents import LAST_RELEASE, ROOT


def settings_of(page: str) -> set[str]:
    return set(re.findall(r"`(kafka\.dt\.[a-z.<>]+)`", page))


def test_the_page_names_the_settings_that_the_last_version_does_not_know() -> None:
    command = ["git", "show", f"{LAST_RELEASE}:docs/configuration.md"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if shown.returncode:
        pytest.skip("this is no clone, or a shallow one without the commit of the last release")
    new = settings_of((ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")) - settings_of(shown.stdout)
    page = (ROOT / "docs" / "how-to" / "upgrade.md").read_text(encoding="utf-8")
    sentence = page[page.index("So do not use new settings") : page.index("[Upgrading]")]
    named = re.findall(r"`(kafka\.dt\.[a-z.*]+)`", sentence)
    assert new
    assert {name for name in new if not any(fnmatchcase(name, each) for each in named)} == set()
    assert {each for each in named if not any(fnmatchcase(name, each) for name in new)} == {"kafka.dt.token.store"}
