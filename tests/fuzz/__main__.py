"""Fuzz one target under atheris, or repeat one input: see the package.

    python -m tests.fuzz TARGET --seconds 600 [--corpus DIR] [--findings DIR]
    python -m tests.fuzz TARGET --input FILE

A run ends with exit status 0 when its time is over, and otherwise with the traceback of the first input for which the
target's sentence does not hold. That input is then a file in the folder of the findings. An input that takes longer
than `SLOWEST_SECONDS`, or memory of more than `MOST_MEGABYTES`, is a finding as well.

Source: atheris and libFuzzer, whose options are passed on.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
import tempfile
from pathlib import Path
from typing import Final

import atheris

with atheris.instrument_imports(include=["protocol", "kafka_dt"]):
    from tests.fuzz.targets import TARGETS

SLOWEST_SECONDS: Final = 5
MOST_MEGABYTES: Final = 1024
LONGEST_INPUT_BYTES: Final = 4096
_WORD: Final = re.compile(rb"[A-Za-z][A-Za-z0-9_.-]{2,}")
"""What the fuzzer puts together again: names of fields and options are not found by chance."""


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("target", choices=sorted(TARGETS))
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--corpus", type=Path, help="where inputs are kept from run to run")
    parser.add_argument("--findings", type=Path, default=Path("build/fuzz"), help="where failing inputs are written")
    parser.add_argument("--input", type=Path, help="check this file instead of fuzzing")
    arguments = parser.parse_args()
    if arguments.input is not None:
        TARGETS[arguments.target].check(arguments.input.read_bytes())
        return
    with tempfile.TemporaryDirectory(prefix="kafka-dt-fuzz-") as scratch:
        corpus: Path = arguments.corpus or Path(scratch)
        _fuzz(arguments.target, arguments.seconds, corpus, arguments.findings)


def _fuzz(name: str, seconds: int, corpus: Path, findings: Path) -> None:
    target = TARGETS[name]
    for folder in (corpus, findings):
        folder.mkdir(parents=True, exist_ok=True)
    words: set[bytes] = set()
    for seed in target.seeds():
        (corpus / hashlib.sha256(seed).hexdigest()).write_bytes(seed)
        words.update(_WORD.findall(seed))
    dictionary = findings / f"{name}.dict"
    dictionary.write_text("".join(f'"{word.decode("ascii")}"\n' for word in sorted(words)), encoding="ascii")
    libfuzzer = [
        f"-dict={dictionary}",
        f"-max_total_time={seconds}",
        f"-max_len={LONGEST_INPUT_BYTES}",
        f"-timeout={SLOWEST_SECONDS}",
        f"-rss_limit_mb={MOST_MEGABYTES}",
        f"-artifact_prefix={findings}/{name}-",
        "-print_final_stats=1",
        str(corpus),
    ]
    atheris.Setup([sys.argv[0], *libfuzzer], target.check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
