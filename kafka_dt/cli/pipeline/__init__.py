"""`kafka-dt pipeline`: audit events to a table, reports from it, and work on every token with Spark.

Read `ingest.py` first. The commands need an extra. They import pyspark when they run: `--help` works without it.
"""

from __future__ import annotations

from typing import Any, Final

import click

from kafka_dt.cli import Interrupted, LazyGroup

_GOES_ON: Final = "run it again to go on"
_WHAT_NOW: Final = {
    "convert": "the old table is as it was; if NEW.partial is there, delete it before you run it again",
    "demo": "run it again to begin anew",
    "expire": _GOES_ON,
    "generate": "run it again to make all files anew",
    "ingest": "the ingest goes on where it was when it is run again",
    "report": "the table is as it was; run it again to make the report",
    "rotate": _GOES_ON,
    "seal": _GOES_ON,
    "unseal": _GOES_ON,
    "verify": "run it again to begin anew",
    "watch": "the watch goes on where it was when it is run again",
}
"""Command -> what holds after Ctrl-C."""


class _ExplainingGroup(LazyGroup):
    """A group that says after Ctrl-C what holds now."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was named."""
        try:
            return super().invoke(ctx)
        except Interrupted:
            if what_now := _WHAT_NOW.get(ctx.invoked_subcommand or ""):
                raise Interrupted(f"interrupted; {what_now}") from None
            raise


@click.group(
    cls=_ExplainingGroup,
    lazy_commands={
        "convert": "kafka_dt.cli.pipeline.convert:convert",
        "demo": "kafka_dt.cli.pipeline.demo:demo",
        "expire": "kafka_dt.cli.pipeline.bulk:expire",
        "generate": "kafka_dt.cli.pipeline.demo:generate",
        "ingest": "kafka_dt.cli.pipeline.ingest:ingest",
        "report": "kafka_dt.cli.pipeline.report:report",
        "rotate": "kafka_dt.cli.pipeline.bulk:rotate",
        "script": "kafka_dt.cli.pipeline.submit:script",
        "seal": "kafka_dt.cli.pipeline.bulk:seal",
        "unseal": "kafka_dt.cli.pipeline.bulk:unseal",
        "verify": "kafka_dt.cli.pipeline.bulk:verify",
        "watch": "kafka_dt.cli.pipeline.watch:watch",
    },
)
def pipeline() -> None:
    """Ingest, report and watch audit events; work on all tokens."""
