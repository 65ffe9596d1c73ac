"""`kafka-dt pipeline generate`: audit events of a cluster that does not exist, and what was planted in them.

- table: for people; what was made and where it is.
- json: for programs, stable. `folder`, `truth` (a file), `events`, `files`, `bytes`, `seconds`, and `incidents`: how
  many of each kind.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kafka_dt.cli.errors import one_line
from kafka_dt.cli.node_options import Output
from kafka_dt.cli.pipeline.progress import Steps
from kafka_dt.cli.pipeline.session import output_option, session_options, started

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_dt.pipeline.generator import Generated, Scenario


@click.command()
@click.option(
    "--to",
    "folder",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Receives the files; every executor has to reach it under this path.",
)
@click.option("--events", type=click.IntRange(1), default=250_000, show_default=True, help="How many, about.")
@click.option("--days", type=click.IntRange(2, 366), default=30, show_default=True)
@click.option(
    "--start",
    type=click.DateTime(["%Y-%m-%d"]),
    help="The first day, in UTC.  [default: so that the last one is yesterday]",
)
@click.option("--owners", type=click.IntRange(1), help="How many have tokens.  [default: as fits the events]")
@click.option("--tokens-a-day", type=click.IntRange(1), help="How many are made.  [default: as fits the events]")
@click.option("--incidents", type=click.IntRange(0), default=4, show_default=True, help="How many of each kind.")
@click.option("--seed", type=int, default=1, show_default=True, help="The same one makes the same events.")
@output_option
@session_options
def generate(
    *,
    folder: Path,
    events: int,
    days: int,
    start: datetime | None,
    owners: int | None,
    tokens_a_day: int | None,
    incidents: int,
    seed: int,
    output: Output,
    master: str | None,
    conf: Mapping[str, str],
) -> None:
    """Make realistic audit events with incidents planted in them.

    They are files as nodes write them, for `kafka-dt pipeline ingest --from DIR`; truth.json beside them says what was
    planted. For trying the pipeline out, and for judging what finds incidents.
    """
    # Imported here: what reads this module for its help needs nothing of the pipeline.
    from kafka_dt.pipeline.errors import PipelineError  # noqa: PLC0415
    from kafka_dt.pipeline.generator import Scenario  # noqa: PLC0415
    from kafka_dt.pipeline.generator import generate as make  # noqa: PLC0415

    begun_s = time.monotonic()
    first_day = start.replace(tzinfo=UTC) if start else days_before(datetime.now(UTC), days)
    with one_line(PipelineError, OSError):
        scenario = Scenario.of_size(events, start=first_day, days=days, seed=seed)
        scenario = replace(
            scenario,
            incidents=incidents,
            owners=owners or scenario.owners,
            tokens_a_day=tokens_a_day or scenario.tokens_a_day,
        )
        with started("generate", master, conf) as spark, Steps().step("Making events") as step:
            made = make(scenario, folder, spark=spark, told=step.tell)
    _tell(scenario, made, output, time.monotonic() - begun_s)


def days_before(now: datetime, days: int) -> datetime:
    """Give the midnight at which so many days begin that end before today."""
    return now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=days)


def _tell(scenario: Scenario, made: Generated, output: Output, seconds: float) -> None:
    incidents = Counter(each.kind.value for each in made.truth.incidents)
    written, truth = made.written, made.truth_file
    if output is Output.JSON:
        document = {
            "folder": str(made.folder),
            "truth": str(truth),
            "events": written.events,
            "files": written.files,
            "bytes": written.size_bytes,
            "seconds": round(seconds, 3),
            "incidents": incidents,
        }
        click.echo(json.dumps(document))
        return
    click.echo(f"{written.events:,} events in {written.files:,} files, {written.size_bytes / 2**20:,.1f} MiB")
    click.echo(f"of {scenario.days} days from {scenario.start:%Y-%m-%d} on, in {seconds:.1f} s")
    for kind, count in sorted(incidents.items()):
        click.echo(f"{count:>3} x {kind}")
    click.echo(f"They are in {made.folder}, what was planted in {truth.name}")
    click.echo(f"Next: kafka-dt pipeline ingest --once --from {made.folder} --table DIR")
