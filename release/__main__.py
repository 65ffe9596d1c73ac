"""Make a release in `dist/kafka-dt-VERSION`: `python -m release [--key FILE]`, which `make release` calls.

Exit status: 0 all is there; 1 the tree cannot be released, or a step failed.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from release.components import write_components
from release.packages import build, build_compiled, can_compile
from release.signatures import sign, write_sums
from release.tools import NotReleased
from release.tree import export, read_release

if TYPE_CHECKING:
    from collections.abc import Callable


def make_release(root: Path, key: Path | None, say: Callable[[str], object]) -> Path:
    """Make all files of a release; returns their folder.

    key: signs the checksums; without one there is no signature

    Raises:
        NotReleased: the tree cannot be released, or a step failed.
    """
    release = read_release(root)
    name = f"kafka-dt-{release.version}"
    output = root / "dist" / name
    say(f"{name}, commit {release.commit}")
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "source")
        export(root, release.commit, source)
        build(source, output, release.time_s)
        if can_compile():
            build_compiled(source, output, release.time_s)
        else:
            say("There is no compiled wheel: it needs a C compiler and Python's headers.")
        write_components(source, output, release.version, output / f"{name}.cdx.json", release.time_s)
    (output / f"{name}.md").write_text(release.notes, encoding="utf-8")
    write_sums(output)
    if key is None:
        say("There is no signature: name a key with KEY=FILE.")
    else:
        sign(output, key)
    for path in sorted(output.iterdir()):
        say(f"{path.stat().st_size:>9}  {path.relative_to(root)}")
    return output


def main() -> int:
    """Read the arguments and make the release of this tree; returns the exit status."""
    parser = argparse.ArgumentParser(prog="release", description="Make a release of this tree's commit.")
    parser.add_argument("--key", type=lambda text: Path(text).expanduser().absolute(), help="the SSH key that signs")
    try:
        make_release(Path.cwd(), parser.parse_args().key, lambda line: sys.stdout.write(f"{line}\n"))
    except NotReleased as error:
        sys.stderr.write(f"Error: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
