"""`kafka-dt pipeline report`: what the audit events say about tokens, as a page, JSON and Parquet.

On stdout: where everything is and the numbers that matter; with `--output json` the same for programs, with the
findings (the document on disk has the rest). While the command works, it names the present step on stderr.

Exit status: 0, whatever was found; 1 when the report could not be made; 2 for wrong usage.

Source: kafka_dt/pipeline/report
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kafka_dt.cli.bulk_run import ascii_name
from kafka_dt.cli.errors import one_line
from kafka_dt.cli.node_options import Output
from kafka_dt.cli.pipeline.progress import Steps
from kafka_dt.cli.pipeline.session import output_option, session_options, started

if TYPE_CHECKING:
    from kafka_dt.pipeline.report.contents import Contents
    from kafka_dt.pipeline.report.reporting import Made

_MOST_STEPS: Final = 10
_TEN_YEARS_H: Final = 10 * 366 * 24
_SHOWN: Final = 10
"""How many findings the table has."""


class _Instant(click.ParamType[datetime]):
    """An instant: ISO 8601, in UTC where it does not say."""

    name = "instant"

    def convert(self, value: str | datetime, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        try:
            instant = datetime.fromisoformat(value)
            return (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is not ISO 8601, like 2026-11-21T08:00:00Z.", param, ctx)


def _duration(_context: click.Context, _parameter: click.Parameter, hours: float) -> timedelta:
    try:
        return timedelta(hours=hours)
    except ValueError as error:  # nan is in any range
        raise click.BadParameter(f"{hours} is no number of hours.") from error


@click.command()
@click.option("--table", required=True, metavar="DIR", help="The table that ingest writes: a path or a URI.")
@click.option(
    "--to",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where report.html and report.json go, on this machine; an earlier report there is replaced.",
)
@click.option(
    "--parquet",
    metavar="DIR",
    help="Where the Parquet output goes: a path or a URI that the executors can write; needed on a cluster. "
    "[default: parquet in --to]",
)
@click.option(
    "--at",
    type=_Instant(),
    metavar="TIME",
    help="The instant for which the report holds, ISO 8601 (UTC unless it says otherwise). [default: the newest event]",
)
@click.option("--owner", metavar="User:NAME", help="With the blast radius of an owner of tokens.")
@click.option("--address", metavar="IP", help="With the blast radius of a client's address.")
@click.option(
    "--steps",
    type=click.IntRange(1, _MOST_STEPS),
    default=4,
    show_default=True,
    help="How far a blast radius is followed.",
)
@click.option(
    "--expiring-within",
    type=click.FloatRange(min=0, min_open=True, max=_TEN_YEARS_H),
    default=2.0,
    callback=_duration,
    show_default=True,
    metavar="HOURS",
    help="Tokens that end within are about to expire.",
)
@click.option(
    "--unused-for",
    type=click.FloatRange(min=0, max=_TEN_YEARS_H),
    default=6.0,
    callback=_duration,
    show_default=True,
    metavar="HOURS",
    help="Living tokens that had no login for so long are never used; ended ones always.",
)
@output_option
@session_options
def report(  # noqa: PLR0917 - click gives them by name
    table: str,
    to: Path,
    parquet: str | None,
    at: datetime | None,
    owner: str | None,
    address: str | None,
    steps: int,
    expiring_within: timedelta,
    unused_for: timedelta,
    output: Output,
    master: str | None,
    conf: Mapping[str, str],
) -> None:
    """Report on tokens, logins and signs of theft: a page, JSON and Parquet.

    The page is one file without anything from the network. With --owner or --address it also tells what a thief could
    reach that has the owner's credentials or the machine.
    """
    if owner is not None and address is not None:
        raise click.UsageError("Give --owner or --address, not both.")
    if owner is not None and ":" not in owner:
        raise click.BadParameter(f"{owner!r} has no type: write User:{owner}", param_hint="--owner")
    # Imported here: pyspark, plotly and jinja2 are an extra, and --help does without.
    from kafka_dt.pipeline.report.analysis import ReportSettings  # noqa: PLC0415
    from kafka_dt.pipeline.report.blast import Start  # noqa: PLC0415
    from kafka_dt.pipeline.report.contents import Lines  # noqa: PLC0415
    from kafka_dt.pipeline.report.reporting import report as make_report  # noqa: PLC0415
    from kafka_dt.pipeline.table import Table  # noqa: PLC0415

    settings = ReportSettings(
        at=at,
        lines=Lines(expiring_within=expiring_within, unused_for=unused_for),
        start=Start.owner(owner) if owner is not None else Start.address(address) if address is not None else None,
        steps=steps,
    )
    with started("report", master, conf) as spark, one_line(OSError), Steps().step("Reading the table") as step:
        made = make_report(
            spark,
            Table(table),
            to,
            settings,
            progress=step.now,
            now=datetime.now(UTC),
            parquet=parquet,
        )
    if output is Output.JSON:
        click.echo(json.dumps(_summary(made)))
    else:
        _write_table(made)


def _summary(made: Made) -> dict[str, Any]:
    from kafka_dt.pipeline.report.contents import document  # noqa: PLC0415

    contents = made.contents
    whole = document(contents)
    summary: dict[str, Any] = {
        "page": str(made.page),
        "document": str(made.document),
        "parquet": made.parquet,
        "at": whole["at"],
        "since": whole["since"],
        **_numbers(contents),
        "finding_counts": whole["finding_counts"],
        "findings": whole["findings"],
    }
    if contents.blast is not None:
        summary["exposed"] = contents.blast.exposed
    return summary


def _numbers(contents: Contents) -> dict[str, int]:
    return {
        "events": contents.events,
        "quarantined": contents.quarantined,
        "tokens": contents.tokens,
        "alive": contents.alive_now,
        "expiring_in_use": contents.expiring.total,
        "never_used": contents.never_used.total,
        "past_half": contents.past_half.total,
    }


def _write_table(made: Made) -> None:
    contents = made.contents
    click.echo(f"as of            {contents.at:%Y-%m-%d %H:%M:%S} UTC")
    for name, number in _numbers(contents).items():
        click.echo(f"{name.replace('_', ' '):16} {number:,}")
    click.echo(f"{'signs of theft':16} {contents.finding_total:,}")
    for finding in contents.findings[:_SHOWN]:
        owner = f" of {ascii_name(finding.owner)}" if finding.owner else ""
        click.echo(f"  {finding.severity.value:6} {finding.kind:20} {ascii_name(finding.subject)}{owner}")
    if (more := contents.finding_total - _SHOWN) > 0:
        click.echo(f"  and {more:,} more")
    if contents.blast is not None:
        exposed = ", ".join(f"{count:,} x {what}" for what, count in contents.blast.exposed.items()) or "nothing"
        click.echo(f"{'blast radius':16} {ascii_name(contents.blast.start)} exposes {exposed}")
    click.echo(f"{'page':16} {made.page}")
    click.echo(f"{'JSON':16} {made.document}")
    click.echo(f"{'Parquet':16} {made.parquet}")
