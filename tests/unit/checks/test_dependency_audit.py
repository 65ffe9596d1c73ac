"""The audit of locked packages, on reports as pip-audit writes them; nothing is asked over the network."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from checks import dependencies
from checks.dependencies import AdvisoriesMissing, ignored_ids, main, vulnerabilities

KNOWN = {"id": "PYSEC-2030-1", "aliases": ["CVE-2030-1"], "fix_versions": ["1.0.1"], "description": "bad"}
SOUND = {"name": "sound", "version": "2.0", "vulns": []}
WEAK = {"name": "weak", "version": "1.0", "vulns": [KNOWN]}
SKIPPED = {"name": "odd", "skip_reason": "not found"}


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run the check on packages as pip-audit reports them, with a list of what is ignored."""

    def run(packages: list[Any] | AdvisoriesMissing, ignored: str = "") -> tuple[int, list[str]]:
        (tmp_path / "lock").write_text("weak==1.0 \\\n")
        (tmp_path / "ignored.toml").write_text(ignored)

        def audit(_locks: object) -> dict[str, Any]:
            if isinstance(packages, AdvisoriesMissing):
                raise packages
            return {"dependencies": packages}

        monkeypatch.setattr(dependencies, "ask_for_one", lambda _lock: None)
        monkeypatch.setattr(dependencies, "audit", audit)
        said: list[str] = []
        return main(said.append, [tmp_path / "lock"], tmp_path / "ignored.toml"), said

    return run


def test_a_known_vulnerability_fails_with_its_ids_and_the_better_version(ask: Any) -> None:
    assert ask([SOUND, WEAK, SKIPPED]) == (
        1,
        ["Known vulnerability: weak 1.0: PYSEC-2030-1, CVE-2030-1; fixed in 1.0.1"],
    )


@pytest.mark.parametrize("name", ["PYSEC-2030-1", "CVE-2030-1"])
def test_one_that_is_ignored_with_a_reason_passes(ask: Any, name: str) -> None:
    assert ask([WEAK], f'"{name}" = "not called"') == (0, ["Known vulnerabilities of dependencies: none (1 ignored)"])


def test_what_is_ignored_for_nothing_fails(ask: Any) -> None:
    status, said = ask([SOUND], '"PYSEC-2030-9" = "not called"')
    assert (status, said) == (1, ["ignored.toml: no locked version has PYSEC-2030-9 any more; take it out"])


def test_without_advisories_one_line_says_so_and_the_check_passes(ask: Any) -> None:
    status, said = ask(AdvisoriesMissing("PyPI cannot be reached"))
    assert (status, said) == (0, ["Known vulnerabilities of dependencies: not checked, PyPI cannot be reached"])


def test_a_machine_without_a_network_has_no_advisories(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:1")
    with pytest.raises(AdvisoriesMissing, match="pip-audit ended with status"):
        dependencies.ask_for_one(f"weak==1.0 \\\n    --hash=sha256:{'0' * 64}\nother==1.0\n")


def test_the_first_version_alone_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(dependencies, "audit", lambda locks: asked.extend(each.read_text() for each in locks))
    dependencies.ask_for_one("# words\nweak==1.0 \\\n    --hash=sha256:00 \\\n    --hash=sha256:01\nother==1.0\n")
    assert asked == ["weak==1.0 \\\n    --hash=sha256:00 \\\n    --hash=sha256:01\n"]


def test_an_advisory_of_a_package_in_two_locks_is_told_once() -> None:
    assert len(vulnerabilities({"dependencies": [WEAK, json.loads(json.dumps(WEAK))]})) == 1


def test_an_ignored_vulnerability_needs_a_reason() -> None:
    with pytest.raises(ValueError, match="needs a reason"):
        ignored_ids('"PYSEC-2030-1" = " "')
    assert ignored_ids((dependencies.ROOT / "checks" / dependencies.IGNORED).read_text()) == {}
