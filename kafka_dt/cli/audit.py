"""`kafka-dt audit`: look after audit files.

- table: for people; a table of workers, and one of faults if there are any.
- json: for programs, stable. A list of series (`worker`, `files`, `lines`, `continues`, `faults`), each fault with
  `kind`, `file`, `text`, `first_line` and `last_line`.

Source: docs/audit.md, "Evidence".
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from kafka_dt.audit.verification import verified
from kafka_dt.cli import SuggestingGroup
from kafka_dt.cli.options import example
from kafka_dt.cli.output import Output, counted, output_option, write_json
from kafka_dt.cli.tables import console, table

if TYPE_CHECKING:
    from kafka_dt.audit.verification import Series


@click.group(cls=SuggestingGroup)
def audit() -> None:
    """Look after audit files."""


@example("kafka-dt audit verify /var/log/kafka-dt/audit --public-key audit.pub")
@audit.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR")
@click.option(
    "--public-key",
    "key_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The public key (Ed25519, PEM) of kafka.dt.audit.log.signing.key. Without it the command does not look at "
    "signatures.",
)
@output_option()
def verify(*, directory: Path, key_file: Path | None, output: Output) -> None:
    """Find lines of audit files that were altered or removed.

    The command also finds lines that were cut or moved. DIR holds the files of nodes with kafka.dt.audit.mode=strict.
    The exit status is 1 if a file has a fault.
    """
    found = list(verified(directory, None if key_file is None else _public_key(key_file)))
    if not found:
        raise click.ClickException(f"{directory} has no audit files (audit-<node>-<worker>-<start>-<n>.jsonl)")
    if output is Output.JSON:
        write_json([asdict(series) for series in found], indent=2)
    else:
        _show(found)
    if faults := sum(len(series.faults) for series in found):
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
        workers.add_row(series.worker, f"{series.files:,}", f"{series.lines:,}", f"{len(series.faults):,}", oldest)
    out.print(workers)
    faults = table("KIND", "FILE", "LINES", "")
    for fault in (fault for series in found for fault in series.faults):
        lines = "" if fault.first_line is None else f"{fault.first_line}-{fault.last_line}"
        faults.add_row(fault.kind, fault.file, lines, fault.text)
    if faults.row_count:
        out.print(faults)
