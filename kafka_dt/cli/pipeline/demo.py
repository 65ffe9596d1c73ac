"""`kafka-dt pipeline generate|demo`: audit events of a cluster that does not exist, and the whole pipeline on them.

The JSON is stable. That of `generate`: `folder`, `truth` (a file), `events`, `files`, `bytes`, `seconds`, and
`incidents`: how many of each kind. That of `demo`: `page`, `document`, `folder`, `events`, `tokens`, `seconds`, `cases`
(how many), and `incidents`: for each kind how many were `planted`, how many of these were `found`, and how many
findings are about something else (`others`).
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kafka_dt.cli.options import example, make_user_data_dir, together
from kafka_dt.cli.output import Output, output_option, write_json
from kafka_dt.cli.pipeline.cases import case_count, write_worst
from kafka_dt.cli.pipeline.session import EngineChoice, on_engine, session_options, started
from kafka_dt.cli.progress import Steps

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kafka_dt.pipeline.demo import Shown
    from kafka_dt.pipeline.generator import Generated, Scenario

_SMALL: Final = {"spark.sql.codegen.wholeStage": "false"}
"""Of a month that one core could read: compiling a query takes longer than running it."""


def _size_options(events: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return together(
        click.option(
            "--events",
            type=click.IntRange(1),
            default=events,
            show_default=True,
            help="About how many events to make.",
        ),
        click.option(
            "--days", type=click.IntRange(2, 366), default=30, show_default=True, help="How many days the events cover."
        ),
    )


_seed_option: Final = click.option(
    "--seed",
    type=int,
    default=1,
    show_default=True,
    help="The seed of the random choices. The same seed and options make the same events.",
)


@example("kafka-dt pipeline generate --to /tmp/month --incidents 3")
@click.command()
@click.option(
    "--to",
    "folder",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="The directory for the files. Every executor must reach it under this path.",
)
@_size_options(250_000)
@click.option(
    "--start",
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="YYYY-MM-DD",
    help="The first day, in UTC. [default: the last day is yesterday]",
)
@click.option(
    "--owners", type=click.IntRange(1), help="How many owners have tokens. [default: as many as suit the events]"
)
@click.option(
    "--tokens-a-day",
    type=click.IntRange(1),
    help="How many tokens are created in a day. [default: as many as suit the events]",
)
@click.option(
    "--incidents",
    type=click.IntRange(0),
    default=4,
    show_default=True,
    help="How many incidents of each kind to plant.",
)
@_seed_option
@output_option()
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

    The command writes the files that nodes would write, for `kafka-dt pipeline ingest --from DIR`. The file truth.json
    beside them lists the planted incidents. Use the events to try the pipeline, or to measure how many incidents it
    finds.
    """
    # Imported here: pyspark is an extra, and --help does without.
    from kafka_dt.pipeline.generator import Scenario  # noqa: PLC0415
    from kafka_dt.pipeline.generator import generate as make  # noqa: PLC0415

    begun_s = time.monotonic()
    first_day = start.replace(tzinfo=UTC) if start else _days_before(datetime.now(UTC), days)
    scenario = Scenario.of_size(events, start=first_day, days=days, seed=seed)
    scenario = replace(
        scenario,
        incidents=incidents,
        owners=owners or scenario.owners,
        tokens_a_day=tokens_a_day or scenario.tokens_a_day,
    )
    with started("generate", master, conf) as spark, Steps().step("Making events") as step:
        made = make(scenario, folder, spark=spark, told=step.tell)
    _tell_generated(scenario, made, output, time.monotonic() - begun_s)


@example("kafka-dt pipeline demo --to /tmp/demo")
@click.command()
@click.option(
    "--to",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="The directory for all files of the demo; an earlier demo there is replaced. "
    "[default: a directory in the user's data directory]",
)
@_size_options(150_000)
@_seed_option
@output_option()
@session_options
def demo(
    *,
    folder: Path | None,
    events: int,
    days: int,
    seed: int,
    output: Output,
    master: str | None,
    conf: Mapping[str, str],
) -> None:
    """Try the pipeline on a generated month of events.

    The month has planted incidents; the demo ingests it and reports on it. The demo needs no cluster and no server. It
    takes some minutes, and prints the path of a page for the browser.
    """
    # Imported here: pyspark, plotly and jinja2 are an extra.
    from kafka_dt.pipeline.generator import Scenario  # noqa: PLC0415

    now = datetime.now(UTC)
    scenario = Scenario.of_size(events, start=_days_before(now, days), days=days, seed=seed)
    with started("demo", master, {**_SMALL, **conf}, delta=True, once=True) as spark:
        from kafka_dt.pipeline.demo import run_demo  # noqa: PLC0415

        folder = folder or make_user_data_dir() / "demo"
        places = [str(folder)]
        engine = partial(on_engine, name="demo", choice=EngineChoice.AUTO, master=master, conf=conf, places=places)
        shown = run_demo(spark, engine, scenario, folder, Steps(), now=now)
    _tell_shown(shown, output)


def _days_before(now: datetime, days: int) -> datetime:
    """Give the midnight at which so many days begin that end before today."""
    return now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=days)


def _tell_generated(scenario: Scenario, made: Generated, output: Output, seconds: float) -> None:
    incidents = Counter(each.kind.value for each in made.truth.incidents)
    written, truth = made.written, made.truth_file
    if output is Output.JSON:
        write_json(
            {
                "folder": str(made.folder),
                "truth": str(truth),
                "events": written.events,
                "files": written.files,
                "bytes": written.size_bytes,
                "seconds": round(seconds, 3),
                "incidents": incidents,
            }
        )
        return
    click.echo(f"{written.events:,} events in {written.files:,} files, {written.size_bytes / 2**20:,.1f} MiB")
    click.echo(f"of {scenario.days} days from {scenario.start:%Y-%m-%d} on, in {seconds:.1f} s")
    for kind, count in sorted(incidents.items()):
        click.echo(f"{count:>3} x {kind}")
    click.echo(f"The events are in {made.folder}; {truth.name} there lists the planted incidents")
    click.echo(f"Next: kafka-dt pipeline ingest --once --from {made.folder} --table DIR")


def _tell_shown(shown: Shown, output: Output) -> None:
    if output is Output.JSON:
        write_json(
            {
                "page": str(shown.page),
                "document": str(shown.document),
                "folder": str(shown.folder),
                "events": shown.counts.events,
                "tokens": shown.tokens,
                "seconds": round(shown.seconds, 3),
                "cases": len(shown.cases),
                "incidents": {
                    each.kind: {"planted": each.planted, "found": each.found, "others": each.others}
                    for each in shown.verdicts
                },
            }
        )
        return
    click.echo(f"{'':22}planted  found  other findings")
    for each in shown.verdicts:
        name = each.kind.replace("_", " ")
        click.echo(f"{name:22}{each.planted:>7}  {each.found:>5}  {each.others:>14}")
    click.echo(f"\n{'cases':16} {case_count(shown.cases)}")
    write_worst(shown.cases)
    click.echo(f"Done in {shown.seconds:.0f} s. Open in a browser:")
    click.echo(shown.page)
