"""`kafka-dt pipeline watch`: signs of theft as they happen, alerts, and tokens that end by themselves.

Each case with a new finding is printed to stdout, as `pipeline report` prints it; with `--output json` as a line of
JSON. What is kept between runs is in `--to`: `watch.json` (counts and findings), `alerts.json` (what was sent) and
`responses.jsonl` (what was decided about tokens).

With `--once` the exit status is 1 if an alert was not taken or a token could not be ended; the next run tries again.
Ctrl-C or SIGTERM ends it after the batch under way, with status 130. The next run continues there.

Source: kafka_dt/pipeline/watch
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kafka_dt.cli import INTERRUPTED
from kafka_dt.cli.options import EXISTING_FILE, client_config, example, together
from kafka_dt.cli.output import Output, counted, output_option
from kafka_dt.cli.pipeline.alerting import Alerting, alert_options
from kafka_dt.cli.pipeline.cases import write_case
from kafka_dt.cli.pipeline.session import session_options, started
from kafka_dt.cli.pipeline.source import DURATION, Source, source_options
from kafka_dt.cli.progress import Steps
from kafka_dt.pipeline.alerts import History

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_dt.pipeline.cases import Case
    from kafka_dt.pipeline.watch.responding import Responder
    from kafka_dt.pipeline.watch.stream import Watch

STATE: Final = "watch.json"
JOURNAL: Final = "responses.jsonl"
_REVOKE: Final = "revoke"
_AT_MOST: Final = "/h"


@dataclass(frozen=True, slots=True)
class Response:
    """What a user lets the watch do."""

    kinds: frozenset[str]
    at_most: int
    dry_run: bool
    config: Path | None

    def responder(self, folder: Path) -> Responder:
        """Make what does it."""
        # Imported here: pyspark is an extra.
        from kafka_dt.pipeline.report.signs import SIGNS  # noqa: PLC0415
        from kafka_dt.pipeline.watch.responding import Policy, Responder, revoke_over_kafka  # noqa: PLC0415

        about_tokens = sorted(sign.kind for sign in SIGNS if sign.subject_type == "token")
        if unknown := sorted(self.kinds.difference(about_tokens)):
            raise click.BadParameter(
                f"{', '.join(unknown)}: signs about tokens are {', '.join(about_tokens)}", param_hint="'--only'"
            )
        return Responder(
            Policy(self.kinds, self.at_most, self.dry_run),
            _never if self.config is None else revoke_over_kafka(client_config(None, self.config)),
            folder / JOURNAL,
            _now,
            lambda line: click.echo(f"{line['outcome'].replace('_', ' ')}: token {line['token_id']}", err=True),
        )


def _never(_token_id: str, _owner: str | None, _sending: Callable[[], None]) -> bool:
    """Stand in for what ends tokens in a dry run without a login."""
    return False


def response_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of the response: the argument `response`, None without `--respond`."""

    @wraps(command)
    def with_response(
        *,
        respond: str | None,
        only: str | None,
        at_most: str | None,
        dry_run: bool,
        respond_config: Path | None,
        **arguments: Any,
    ) -> None:
        given = (only, at_most, respond_config)
        if respond is None and (any(each is not None for each in given) or dry_run):
            raise click.UsageError("'--only', '--at-most', '--dry-run' and '--respond-config' need '--respond'.")
        if respond is not None and (only is None or at_most is None or (respond_config is None and not dry_run)):
            raise click.UsageError("'--respond' needs '--only', '--at-most', and '--respond-config' or '--dry-run'.")
        response = None
        if only is not None and at_most is not None:
            number = at_most.removesuffix(_AT_MOST)
            if number == at_most or not number.isdecimal() or int(number) < 1:
                raise click.BadParameter(f"{at_most!r} is not of the form 5/h.", param_hint="'--at-most'")
            kinds = frozenset(each.strip() for each in only.split(","))
            response = Response(kinds, int(number), dry_run, respond_config)
        command(response=response, **arguments)

    return _response_options(with_response)


_response_options: Final = together(
    click.option(
        "--respond",
        type=click.Choice([_REVOKE]),
        help="End the tokens of findings of severity high. Off by default. Needs --only and --at-most.",
    ),
    click.option("--only", metavar="KIND[,...]", help="Respond to findings of these signs, such as stolen_token."),
    click.option("--at-most", metavar="N/h", help="End at most this many tokens within an hour."),
    click.option("--dry-run", is_flag=True, help="Write down what --respond would do, and do nothing."),
    click.option(
        "--respond-config",
        type=EXISTING_FILE,
        metavar="FILE",
        help="Kafka client properties of a user that may describe and expire all tokens, with bootstrap.servers.",
    ),
)


@example(
    "kafka-dt pipeline watch --table /data/events --from-topic kafka-dt-audit --bootstrap-server broker:9092 "
    "--to /var/lib/kafka-dt/watch --alert webhook:env:WEBHOOK_URL",
)
@click.command()
@click.option(
    "--table",
    required=True,
    metavar="DIR",
    help="The table of `kafka-dt pipeline ingest`, which tells what is usual; the checkpoint is in it.",
)
@click.option(
    "--to",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="The directory for what is kept between runs, on this machine.",
)
@source_options
@click.option("--once", is_flag=True, help="End when everything that is there now has been judged.")
@click.option(
    "--interval",
    type=DURATION,
    default="2s",
    show_default=True,
    help="How long to wait between two batches, without --once.",
)
@click.option(
    "--since",
    type=DURATION,
    default="1d",
    show_default=True,
    help="Leave events that are older than this to the report.",
)
@click.option("--relearn", type=DURATION, default="1h", show_default=True, help="How often to learn what is usual.")
@click.option(
    "--networks",
    type=EXISTING_FILE,
    metavar="FILE",
    help="The company's networks, as `pipeline report` takes them.",
)
@click.option(
    "--suppressions",
    type=EXISTING_FILE,
    metavar="FILE",
    help="Maintenance windows and accepted findings, as `pipeline report` takes them.",
)
@click.option(
    "--metrics",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="A file for the textfile collector of Prometheus' node exporter: open cases and responses.",
)
@response_options
@alert_options
@output_option()
@session_options
def watch(
    *,
    table: str,
    to: Path,
    source: Source,
    once: bool,
    interval: int,
    since: int,
    relearn: int,
    networks: Path | None,
    suppressions: Path | None,
    metrics: Path | None,
    response: Response | None,
    alerting: Alerting,
    output: Output,
    master: str | None,
    conf: Mapping[str, str],
) -> None:
    """Look for signs of theft in audit events as they come.

    The command sends alerts, and ends stolen tokens if --respond says so. Run it beside `kafka-dt pipeline ingest`: the
    table tells what is usual. The rules know only what came before an event, so `kafka-dt pipeline report` finds more.
    """
    # Imported here: pyspark is an extra.
    from kafka_dt.pipeline.report.networks import load_networks  # noqa: PLC0415
    from kafka_dt.pipeline.report.signs import SIGNS  # noqa: PLC0415
    from kafka_dt.pipeline.report.suppressions import load_suppressions  # noqa: PLC0415
    from kafka_dt.pipeline.table import Table  # noqa: PLC0415
    from kafka_dt.pipeline.watch.folder import held  # noqa: PLC0415
    from kafka_dt.pipeline.watch.keeping import Keeper  # noqa: PLC0415
    from kafka_dt.pipeline.watch.stream import BATCH_RECORDS, Watch, WatchSettings  # noqa: PLC0415

    named = () if networks is None else load_networks(networks)
    kinds = [sign.kind for sign in SIGNS]
    to.mkdir(mode=0o700, parents=True, exist_ok=True)
    click.get_current_context().with_resource(held(to))
    responder = None if response is None else response.responder(to)
    keeper = Keeper(
        path=to / STATE,
        table=table,
        now=_now,
        deliver=_Telling(alerting, to),
        responder=responder,
        told=_writer(output),
        suppressions=() if suppressions is None else load_suppressions(suppressions, kinds, named),
        metrics=metrics,
    )
    keeper.load()
    settings = WatchSettings(since_ms=since, relearn_ms=relearn, networks=named)
    steps = Steps()
    source.check(conf)
    with started("watch", master, conf, delta=True, kafka=source.is_topic) as spark, steps.step("Learning") as step:
        work = Watch(
            spark,
            Table(table),
            # Nodes may write events some time after they happened, but hardly before.
            source.lines(batch=BATCH_RECORDS, begin_ms=_now_ms() - since),
            settings,
            keeper,
            now_ms=_now_ms,
            heard=lambda events: step.now(f"Watching: {events:,} events, {counted(keeper.open_cases, 'open case')}"),
        )
        with _interrupted_by(work) as interrupted:
            work.run(interval_ms=None if once else interval)
    if interrupted:
        sys.exit(INTERRUPTED)
    if once:
        if responder is not None:
            responder.again()  # what an earlier run has left, should there have been no time for it
        if keeper.is_behind:
            raise click.ClickException("Alerts were not taken, or tokens not ended; the next run tries again.")


def _now() -> datetime:
    return datetime.now(UTC)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _writer(output: Output) -> Callable[[Case], None]:
    if output is Output.JSON:
        return lambda case: click.echo(json.dumps(case.as_document()))
    return write_case


@dataclass(slots=True)
class _Telling:
    """Sends alerts again and again, and says what fails."""

    alerting: Alerting
    folder: Path
    history: History = field(default_factory=History)

    def __call__(self, cases: Sequence[Case]) -> Collection[str]:
        """Send the alerts of cases that are new; gives the ids of findings that a destination did not take."""
        told = self.alerting.tell(cases, self.folder, pauses_s=(), history=self.history)
        failures = () if told is None else told.failures
        for failure in failures:
            if failure.tried:
                click.echo(f"{failure.name} did not take {counted(failure.left, 'alert')}: {failure.reason}", err=True)
        return {finding for failure in failures for finding in failure.findings}


@contextmanager
def _interrupted_by(work: Watch) -> Iterator[list[int]]:
    """Have Ctrl-C and SIGTERM end it in order; gives the signals that came."""
    came: list[int] = []

    def handle(number: int, _frame: object) -> None:
        came.append(number)
        work.stop()

    # Spark's own handler of Ctrl-C would cancel the batch.
    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
