"""Find a Java and lay out its command lines.

`find_java()` looks at JAVA_HOME, then at PATH, and takes the first that is new enough for Kafka's tools; what it tells
is asked of that Java itself. `Java.command()` gives the argument list of a small and quickly started JVM.

Limits: the JVM flags suit programs that live for seconds to minutes; benchmarks give their own.
Source: JEP 330 (single-file source launch needs the module jdk.compiler).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

MINIMUM_VERSION = 17
"""The tools of Kafka 4.x need Java 17."""

QUICK_START = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


class JavaMissing(Exception):
    """No usable Java; the message says what was looked at."""


@dataclass(frozen=True, slots=True)
class Java:
    """One Java installation."""

    executable: Path
    version: int
    """Feature release: 17, 21, ..."""
    has_compiler: bool
    """Whether it can run a .java file directly."""

    def command(
        self,
        main: str,
        arguments: Iterable[str] = (),
        *,
        classpath: Sequence[Path] = (),
        heap_mb: int = 128,
        properties: Mapping[str, str] | None = None,
        flags: Sequence[str] = QUICK_START,
    ) -> list[str]:
        """The command line for a main class (or a .java file), without any shell between.

        Secrets do not belong into `arguments` or `properties`: the process list shows them.
        """
        command = [str(self.executable), f"-Xmx{heap_mb}m", *flags]
        command += [f"-D{name}={value}" for name, value in (properties or {}).items()]
        if classpath:
            command += ["-cp", os.pathsep.join(map(str, classpath))]
        return [*command, main, *arguments]


def find_java(minimum: int = MINIMUM_VERSION, environment: Mapping[str, str] = os.environ) -> Java:
    """The first Java of at least the feature release `minimum`; raises JavaMissing with the reasons."""
    reasons = []
    for executable in _candidates(environment):
        version = _version(executable)
        if version is None:
            reasons.append(f"{executable} does not run")
        elif version < minimum:
            reasons.append(f"{executable} is Java {version}")
        else:
            return Java(executable, version, _has_compiler(executable))
    looked_at = "; ".join(reasons) or "neither JAVA_HOME nor PATH leads to one"
    raise JavaMissing(f"Java {minimum} or newer is needed: {looked_at}")


def _candidates(environment: Mapping[str, str]) -> list[Path]:
    found = []
    if home := environment.get("JAVA_HOME"):
        found.append(Path(home) / "bin" / "java")
    if on_path := shutil.which("java", path=environment.get("PATH")):
        found.append(Path(on_path))
    return found


def _version(executable: Path) -> int | None:
    """The feature release, None when this is no Java that runs."""
    text = _output([str(executable), "-version"])
    match = re.search(r'version "(\d+)(?:\.(\d+))?', text)
    if match is None:
        return None
    # Java 8 and older call themselves 1.8.
    return int(match[2]) if match[1] == "1" and match[2] else int(match[1])


def _has_compiler(executable: Path) -> bool:
    return "jdk.compiler" in _output([str(executable), "--list-modules"])


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return ""
    return done.stdout + done.stderr
