"""`kafka-dt pipeline report`: what the audit events say about tokens, as a page, JSON and Parquet.

On stdout: where everything is, the numbers that matter, and the worst cases with the command that ends each; with
`--output json` the same for programs, with all cases and findings (the document on disk has the rest). While the
command works, it names the present step on stderr.

Exit status: 0; 1 when the report could not be made, or an alert could not be sent; 2 for wrong usage; 4 when there is a
case of the severity of `--fail-on`, or of a higher one.

Source: kafka_dt/pipeline/report
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kafka_dt.cli.filters import EPOCH, InstantType
from kafka_dt.cli.options import EXISTING_FILE, PrincipalType, example
from kafka_dt.cli.output import Output, output_option, printable, write_json
from kafka_dt.cli.pipeline.alerting import Alerting, alert_options
from kafka_dt.cli.pipeline.cases import case_count, write_worst
from kafka_dt.cli.pipeline.session import EngineChoice, engine_option, on_engine, session_options
from kafka_dt.cli.progress import Steps
from kafka_dt.pipeline.cases import SEVERITIES, reaches
from kafka_dt.pipeline.errors import NoTable
from kafka_dt.pipeline.local_paths import is_missing

if TYPE_CHECKING:
    from kafka_dt.pipeline.engines import Engine
    from kafka_dt.pipeline.report.contents import Contents
    from kafka_dt.pipeline.report.reporting import Made

_MOST_STEPS: Final = 10
_TEN_YEARS_H: Final = 10 * 366 * 24
FOUND: Final = 4
"""The exit status of `--fail-on` when there is such a case."""


def _duration(_context: click.Context, _parameter: click.Parameter, hours: float) -> timedelta:
    try:
        return timedelta(hours=hours)
    except ValueError as error:  # nan is in any range
        raise click.BadParameter(f"{hours} is not a number of hours.") from error


@example(
    "kafka-dt pipeline report --table /data/events --to /data/report",
    "kafka-dt pipeline report --table /data/events --to /data/alice --owner User:alice",
)
@click.command()
@click.option(
    "--table", required=True, metavar="DIR", help="The table that `kafka-dt pipeline ingest` writes: a path or a URI."
)
@click.option(
    "--to",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="The directory for report.html and report.json, on this machine; an earlier report there is replaced.",
)
@click.option(
    "--parquet",
    metavar="DIR",
    help="The directory for the Parquet output: a path or a URI that the executors can write. A cluster needs it. "
    "[default: parquet in --to]",
)
@click.option(
    "--at",
    type=InstantType(),
    metavar="TIME",
    help="The time for which the report holds: ISO 8601 (UTC unless it says otherwise), or milliseconds since 1970. "
    "[default: the newest event]",
)
@click.option(
    "--owner",
    type=PrincipalType(),
    metavar="User:NAME",
    help="Add the blast radius of this owner of tokens: what a thief reaches with the owner's credentials.",
)
@click.option(
    "--address",
    metavar="IP",
    help="Add the blast radius of this client address: what a thief reaches who controls the machine.",
)
@click.option(
    "--steps",
    type=click.IntRange(1, _MOST_STEPS),
    default=4,
    show_default=True,
    help="How many steps to follow a blast radius.",
)
@click.option(
    "--expiring-within",
    type=click.FloatRange(min=0, min_open=True, max=_TEN_YEARS_H),
    default=2.0,
    callback=_duration,
    show_default=True,
    metavar="HOURS",
    help="Report a token as about to expire when it expires within this time.",
)
@click.option(
    "--unused-for",
    type=click.FloatRange(min=0, max=_TEN_YEARS_H),
    default=6.0,
    callback=_duration,
    show_default=True,
    metavar="HOURS",
    help="Report a live token as never used when it had no login for this long. Ended tokens without a login always "
    "count.",
)
@click.option(
    "--networks",
    type=EXISTING_FILE,
    metavar="FILE",
    help="The company's networks, a line for each: CIDR, name, kind (cluster, vpn, office, nat, foreign). The zones of "
    "other addresses are learned from the table.",
)
@click.option(
    "--suppressions",
    type=EXISTING_FILE,
    metavar="FILE",
    help="Maintenance windows and accepted findings, as TOML: who, why, until when, and what each covers. The report "
    "lists what was suppressed; cases, --fail-on and alerts leave it out.",
)
@click.option(
    "--fail-on",
    type=click.Choice(SEVERITIES),
    help="Exit with status 4 if there is a case of this severity, or of a higher one. The report is made all the same.",
)
@alert_options
@output_option()
@engine_option
@session_options
def report(  # noqa: PLR0917 - click gives them by name
    table: str,
    to: Path,
    parquet: str | None,
    at: int | None,
    owner: str | None,
    address: str | None,
    steps: int,
    expiring_within: timedelta,
    unused_for: timedelta,
    networks: Path | None,
    suppressions: Path | None,
    fail_on: str | None,
    alerting: Alerting,
    output: Output,
    engine: EngineChoice,
    master: str | None,
    conf: Mapping[str, str],
) -> None:
    """Report on tokens, logins and signs of theft.

    The report is a page, JSON and Parquet. The page is one file that loads nothing from the network. With --owner or
    --address it also lists the tokens, owners and addresses that a thief could reach from there.
    """
    if owner is not None and address is not None:
        raise click.UsageError("Give --owner or --address, not both.")
    # Imported here: pyspark, plotly and jinja2 are an extra, and --help does without.
    from kafka_dt.pipeline.report.analysis import ReportSettings  # noqa: PLC0415
    from kafka_dt.pipeline.report.blast import Start  # noqa: PLC0415
    from kafka_dt.pipeline.report.contents import Lines  # noqa: PLC0415
    from kafka_dt.pipeline.report.networks import load_networks  # noqa: PLC0415
    from kafka_dt.pipeline.report.reporting import report as make_report  # noqa: PLC0415
    from kafka_dt.pipeline.report.signs import SIGNS  # noqa: PLC0415
    from kafka_dt.pipeline.report.suppressions import load_suppressions  # noqa: PLC0415
    from kafka_dt.pipeline.table import Table  # noqa: PLC0415

    named = () if networks is None else load_networks(networks)
    kinds = [sign.kind for sign in SIGNS]
    settings = ReportSettings(
        at=None if at is None else EPOCH + timedelta(milliseconds=at),
        lines=Lines(expiring_within=expiring_within, unused_for=unused_for),
        start=Start.owner(owner) if owner is not None else Start.address(address) if address is not None else None,
        steps=steps,
        networks=named,
        suppressions=() if suppressions is None else load_suppressions(suppressions, kinds, named),
    )
    if is_missing(table, conf):
        raise NoTable(table)
    places = [table, str(to) if parquet is None else parquet]
    now = datetime.now(UTC)

    def make(running: Engine) -> Made:
        with Steps().step("Reading the table") as step:
            return make_report(running, Table(table), to, settings, progress=step.now, now=now, parquet=parquet)

    made = on_engine(make, name="report", choice=engine, master=master, conf=conf, places=places)
    told = alerting.tell(made.contents.cases, to)
    if output is Output.JSON:
        write_json(_summary(made) | ({} if told is None else {"alerts": told.as_document()}))
    else:
        _write_table(made)
        if told is not None:
            click.echo(f"{'alerts':16} {told.sent:,} sent")
    if told is not None:
        told.raise_failure()
    if fail_on is not None and any(reaches(case.severity, fail_on) for case in made.contents.cases):
        sys.exit(FOUND)


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
        "cases": whole["cases"],
        "findings": whole["findings"],
        "suppressions": whole["suppressions"],
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
    click.echo(f"{'cases':16} {case_count(contents.cases)}")
    if contents.suppressions:
        over = sum(entry.has_run_out(contents.generated_at) for entry in contents.suppressions)
        run_out = f", {over:,} of {len(contents.suppressions):,} entries have run out" if over else ""
        click.echo(f"{'suppressed':16} {len(contents.suppressed):,}{run_out}")
    write_worst(contents.cases)
    if contents.blast is not None:
        exposed = ", ".join(f"{count:,} x {what}" for what, count in contents.blast.exposed.items()) or "nothing"
        click.echo(f"{'blast radius':16} {printable(contents.blast.start)} exposes {exposed}")
    click.echo(f"{'page':16} {made.page}")
    click.echo(f"{'JSON':16} {made.document}")
    click.echo(f"{'Parquet':16} {made.parquet}")
