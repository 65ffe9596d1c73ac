"""Known vulnerabilities of the packages that the lock files name: `python -m checks.dependencies`, part of `make lint`.

pip-audit asks PyPI for the advisories of each locked version. A vulnerability is an error; one that does not concern
kafka-dt stands in `ignored-vulnerabilities.toml` with the reason. If PyPI's advisories are not available (no network,
a mirror without them), one line says so and the check passes: a build must not depend on a service.

Exit status: 0 no known vulnerability, or not checked; 1 vulnerabilities, or an entry that is no longer needed.

Source: PyPI, "JSON API", `vulnerabilities`; pip-audit.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

ROOT: Final = Path(__file__).resolve().parent.parent
LOCKS: Final = (
    "requirements.lock",
    "requirements-bench.lock",
    "requirements-kerberos.lock",
    "requirements-release.lock",
)
"""All locked packages; those of requirements-server.lock are among the first file's."""
IGNORED: Final = "ignored-vulnerabilities.toml"
_TIMEOUT_S: Final = 10
_PIN: Final = re.compile(r"^[A-Za-z0-9._\-]+==.*\n(?:\s+--hash.*\n)*", re.MULTILINE)
"""One locked version with its hashes."""


@dataclass(frozen=True, slots=True)
class Vulnerability:
    """One advisory about one locked version."""

    package: str
    version: str
    id: str
    aliases: tuple[str, ...]
    fixed_in: tuple[str, ...]

    def __str__(self) -> str:
        """Say which it is, and which version is better."""
        names = ", ".join((self.id, *self.aliases))
        return f"{self.package} {self.version}: {names}; fixed in {', '.join(self.fixed_in) or 'no version'}"


class AdvisoriesMissing(Exception):
    """PyPI's advisories are not available here."""


def main(say: Callable[[str], object], locks: Sequence[Path], ignored: Path) -> int:
    """Check lock files; returns the exit status."""
    reasons = ignored_ids(ignored.read_text(encoding="utf-8"))
    try:
        ask_for_one(locks[0].read_text(encoding="utf-8"))
        report = audit(locks)
    except AdvisoriesMissing as missing:
        say(f"Known vulnerabilities of dependencies: not checked, {missing}")
        return 0
    found = vulnerabilities(report)
    named = {name for each in found for name in (each.id, *each.aliases)}
    remaining = [each for each in found if not reasons.keys() & {each.id, *each.aliases}]
    unneeded = sorted(reasons.keys() - named)
    for each in remaining:
        say(f"Known vulnerability: {each}")
    for name in unneeded:
        say(f"{ignored.name}: no locked version has {name} any more; take it out")
    if not remaining and not unneeded:
        say(f"Known vulnerabilities of dependencies: none ({len(reasons)} ignored)")
    return 1 if remaining or unneeded else 0


def ignored_ids(text: str) -> Mapping[str, str]:
    """Read the list of what is ignored: the id of each vulnerability and the reason.

    Raises:
        ValueError: an entry has no reason.
    """
    reasons = {name: str(reason).strip() for name, reason in tomllib.loads(text).items()}
    if nameless := [name for name, reason in reasons.items() if not reason]:
        raise ValueError(f"{', '.join(nameless)}: an ignored vulnerability needs a reason")
    return reasons


def ask_for_one(lock: str) -> None:
    """Audit one locked version, so that a place without advisories costs one request.

    Raises:
        AdvisoriesMissing: there are none.
    """
    pin = _PIN.search(lock)
    if pin is None:
        raise AdvisoriesMissing("the lock file names no version")
    with tempfile.TemporaryDirectory() as folder:
        first = Path(folder) / "first.lock"
        first.write_text(pin[0], encoding="utf-8")
        audit([first])


def audit(locks: Iterable[Path]) -> Mapping[str, Any]:
    """Run pip-audit on lock files and return its report.

    Raises:
        AdvisoriesMissing: it made none.
    """
    files = [part for lock in locks for part in ("--requirement", str(lock))]
    command = [sys.executable, "-m", "pip_audit", "--format=json", "--vulnerability-service=pypi", "--disable-pip"]
    command += ["--require-hashes", "--no-deps", "--progress-spinner=off", f"--timeout={_TIMEOUT_S}", *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        report: Mapping[str, Any] = json.loads(done.stdout)
    except ValueError:
        last = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
        raise AdvisoriesMissing(f"pip-audit ended with status {done.returncode}: {last}") from None
    if all("skip_reason" in each for each in report["dependencies"]):
        raise AdvisoriesMissing("PyPI's advisories are not served here")
    return report


def vulnerabilities(report: Mapping[str, Any]) -> list[Vulnerability]:
    """Take the vulnerabilities out of pip-audit's report, each once."""
    found = {
        Vulnerability(
            each["name"], each["version"], known["id"], tuple(known.get("aliases", ())), tuple(known["fix_versions"])
        )
        for each in report["dependencies"]
        for known in each.get("vulns", ())
    }
    return sorted(found, key=lambda each: (each.package, each.id))


if __name__ == "__main__":
    sys.exit(
        main(lambda line: sys.stdout.write(f"{line}\n"), [ROOT / lock for lock in LOCKS], ROOT / "checks" / IGNORED)
    )
