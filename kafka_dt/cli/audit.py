"""`kafka-dt audit`: look after audit files.

- table: for people; a table of workers, and one of faults if there are any.
- json: for programs, stable. A list of series (`worker`, `files`, `lines`, `continues`, `faults`), each fault with
  `kind`, `file`, `text`, `first_line` and `last_line`.

Exit status: 0; 1 when a file has a fault; 2 for wrong usage; 3 when nothing in the folder shows that a node in strict
mode wrote it, which is neither verified nor a fault.

Source: docs/audit.md, "Evidence".
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from kafka_dt.audit.verification import shows_strict_mode, verified
from kafka_dt.cli import SuggestingGroup
from kafka_dt.cli.options import EXISTING_FILE, example
from kafka_dt.cli.output import Output, counted, output_option, printable, write_json
from kafka_dt.cli.tables import console, table

if TYPE_CHECKING:
    from kafka_dt.audit.verification import Series


class NothingToVerify(click.ClickException):
    """The files of a folder show nothing of strict mode."""

    exit_code = 3

    def __init__(self, directory: Path) -> None:
        super().__init__(
            f"nothing to verify: no file in {directory} shows that it was written with kafka.dt.audit.mode=strict. "
            "A node in strict mode leaves a chain and digests: if one wrote these files, they were altered"
        )


@click.group(cls=SuggestingGroup)
def audit() -> None:
    """Look after audit files."""


@example("kafka-dt audit verify /var/log/kafka-dt/audit --public-key audit.pub")
@audit.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR")
@click.option(
    "--public-key",
    "key_files",
    multiple=True,
    type=EXISTING_FILE,
    metavar="FILE",
    help="The public key (Ed25519, PEM) of kafka.dt.audit.log.signing.key. May be given several times, also for keys "
    "of before. Without it the command does not look at signatures.",
)
@output_option()
def verify(*, directory: Path, key_files: tuple[Path, ...], output: Output) -> None:
    """Find lines of audit files that were altered or removed.

    The command also finds lines that were cut or moved. DIR holds the files of nodes with kafka.dt.audit.mode=strict.
    The exit status is 1 if a file has a fault. It is 3 if nothing in DIR shows that a node in strict mode wrote it; but
    with --public-key such files have faults.
    """
    found = list(verified(directory, [_public_key(each) for each in key_files]))
    if not found:
        raise click.ClickException(f"{directory} has no audit files (audit-<node>-<worker>-<start>-<n>.jsonl)")
    faults = sum(len(series.faults) for series in found)
    can_verify = not faults or bool(key_files) or shows_strict_mode(directory)
    if output is Output.JSON:
        write_json([asdict(series) for series in found], indent=2)
    elif can_verify:
        _show(found)
    if not can_verify:
        raise NothingToVerify(directory)
    if faults:
        raise click.ClickException(f"{counted(faults, 'fault')} in {directory}")


def _public_key(path: Path) -> Ed25519PublicKey:
    try:
        key = load_pem_public_key(path.read_bytes())
    except ValueError:
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise click.BadParameter(f"{path} is no public key (Ed25519, PEM)", param_hint="--public-key")
    return key


def _show(found: list[Series]) -> None:
    out = console()
    workers = table("WORKER", "FILES", "LINES", "FAULTS", "OLDEST FILE", numbers={"FILES", "LINES", "FAULTS"})
    for series in found:
        oldest = "continues a file that is not here" if series.continues else "begins the chain"
        workers.add_row(
            printable(series.worker), f"{series.files:,}", f"{series.lines:,}", f"{len(series.faults):,}", oldest
        )
    out.print(workers)
    faults = table("KIND", "FILE", "LINES", "")
    for fault in (fault for series in found for fault in series.faults):
        lines = "" if fault.first_line is None else f"{fault.first_line}-{fault.last_line}"
        faults.add_row(fault.kind, *map(printable, (fault.file, lines, fault.text)))
    if faults.row_count:
        out.print(faults)
