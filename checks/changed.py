"""The unit tests of what changed since main: `python -m checks.changed` prints their paths, part of `make check`.

Changed is what differs from the commit where this branch left main, or from HEAD on main itself and where there is no
main; files that git does not know yet count as well. The tests of `kafka_dt/FOLDER/...` are those of the deepest folder
of tests/unit with the same path, those of `protocol/` are tests/unit/protocol.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

UNIT = PurePosixPath("tests/unit")


def chosen(changed: Iterable[str], root: Path) -> list[str]:
    """Choose the files and folders of tests/unit, below `root`, that test the changed files; none is inside another."""
    found = {str(test) for path in changed if (test := _test_of(PurePosixPath(path), root)) is not None}
    return sorted(each for each in found if not any(str(parent) in found for parent in PurePosixPath(each).parents))


def _test_of(path: PurePosixPath, root: Path) -> PurePosixPath | None:
    if path.is_relative_to(UNIT):
        is_there = path.name.startswith("test_") and (root / path).is_file()
        return path if is_there else _folder(path.parent, root)
    if path.suffix != ".py" or path.parts[0] not in ("kafka_dt", "protocol"):
        return None
    inside = path.parent.parts[1:] if path.parts[0] == "kafka_dt" else ("protocol", *path.parent.parts[2:])
    return _folder(UNIT.joinpath(*inside), root)


def _folder(wanted: PurePosixPath, root: Path) -> PurePosixPath | None:
    """Find the deepest folder of tests on the way to `wanted`; None where that would be all of them."""
    while wanted != UNIT and not (root / wanted).is_dir():
        wanted = wanted.parent
    return None if wanted == UNIT else wanted


def _changed() -> list[str]:
    base = _git("merge-base", "HEAD", "main") or ["HEAD"]
    return [*_git("diff", "--name-only", base[0]), *_git("ls-files", "--others", "--exclude-standard")]


def _git(*arguments: str) -> list[str]:
    done = subprocess.run([shutil.which("git") or "git", *arguments], capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


if __name__ == "__main__":
    sys.stdout.writelines(f"{each}\n" for each in chosen(_changed(), Path()))
