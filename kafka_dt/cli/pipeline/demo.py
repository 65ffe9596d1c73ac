"""`kafka-dt pipeline demo`: a month of events, the ingest and the report, without any cluster.

- table: for people; what was planted and found, and the path of the page.
- json: for programs, stable. `page`, `document`, `folder`, `events`, `tokens`, `seconds`, and `incidents`: for each
  kind how many were `planted`, how many of these were `found`, and how many findings are about something else
  (`others`).
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kafka_dt.cli.errors import one_line
from kafka_dt.cli.node_options import Output
from kafka_dt.cli.pipeline.generate import days_before
from kafka_dt.cli.pipeline.progress import Steps
from kafka_dt.cli.pipeline.session import output_option, session_options, started

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_dt.pipeline.demo import Shown

_SMALL: Final = {
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.codegen.wholeStage": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m",
}
"""Of a month that one core could read: a query is run once, and compiling it well takes longer than running it."""


def default_folder() -> Path:
    """Say where a demo goes unless told otherwise (XDG base directories)."""
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "kafka-dt" / "demo"


@click.command()
@click.option(
    "--to",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=default_folder,
    help="Where everything goes; an earlier demo there is replaced.  [default: in the user's data directory]",
)
@click.option("--events", type=click.IntRange(1), default=150_000, show_default=True, help="How many, about.")
@click.option("--days", type=click.IntRange(2, 366), default=30, show_default=True)
@click.option("--seed", type=int, default=1, show_default=True, help="Another one makes another month.")
@output_option
@session_options
def demo(
    *, folder: Path, events: int, days: int, seed: int, output: Output, master: str | None, conf: Mapping[str, str]
) -> None:
    """Show the pipeline: a month of events with incidents in it, ingested and reported on.

    Nothing else is needed, no cluster and no server. It takes a minute or two and ends with the path of a page for
    the browser.
    """
    # Imported here: pyspark, plotly and jinja2 are an extra.
    from kafka_dt.pipeline.generator import Scenario, ScenarioError  # noqa: PLC0415

    now = datetime.now(UTC)
    with one_line(ScenarioError):
        scenario = Scenario.of_size(events, start=days_before(now, days), days=days, seed=seed)
    with started("demo", master, {**_SMALL, **conf}) as spark, one_line(OSError):
        from kafka_dt.pipeline.demo import run_demo  # noqa: PLC0415

        shown = run_demo(spark, scenario, folder, Steps(), now=now)
    if output is Output.JSON:
        click.echo(json.dumps(_document(shown)))
    else:
        _write_table(shown)


def _document(shown: Shown) -> Mapping[str, object]:
    return {
        "page": str(shown.page),
        "document": str(shown.document),
        "folder": str(shown.folder),
        "events": shown.counts.events,
        "tokens": shown.tokens,
        "seconds": round(shown.seconds, 3),
        "incidents": {
            each.kind: {"planted": each.planted, "found": each.found, "others": each.others} for each in shown.verdicts
        },
    }


def _write_table(shown: Shown) -> None:
    click.echo(f"{'':22}planted  found  other findings")
    for each in shown.verdicts:
        name = each.kind.replace("_", " ")
        click.echo(f"{name:22}{each.planted:>7}  {each.found:>5}  {each.others:>14}")
    click.echo(f"Done in {shown.seconds:.0f} s. Open in a browser:")
    click.echo(shown.page)
