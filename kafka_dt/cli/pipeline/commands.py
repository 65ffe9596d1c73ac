"""`kafka-dt pipeline`: audit events to a table, reports from it, and work on every token with Spark.

The commands need an extra. `--help` works without it.
"""

from __future__ import annotations

from typing import Any, Final

import click

from kafka_dt.cli import LazyGroup
from kafka_dt.extras import installed_by

_COMMANDS: Final = {
    "demo": "kafka_dt.cli.pipeline.demo:demo",
    "expire": "kafka_dt.cli.pipeline.bulk:expire",
    "generate": "kafka_dt.cli.pipeline.generate:generate",
    "ingest": "kafka_dt.cli.pipeline.ingest:ingest",
    "report": "kafka_dt.cli.pipeline.report:report",
    "rotate": "kafka_dt.cli.pipeline.bulk:rotate",
    "script": "kafka_dt.cli.pipeline.submit:script",
    "seal": "kafka_dt.cli.pipeline.bulk:seal",
    "unseal": "kafka_dt.cli.pipeline.bulk:unseal",
    "verify": "kafka_dt.cli.pipeline.bulk:verify",
}
"""Command -> module:attribute of its click command."""
_EXTRA: Final = frozenset({"jinja2", "plotly", "pyarrow", "py4j", "pyspark"})
"""The packages of the extra `spark`."""


class _PipelineGroup(LazyGroup):
    """The commands; a missing package of the extra is one line."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was named."""
        try:
            return super().invoke(ctx)
        except ImportError as error:
            # Spark's own error about pyarrow has no name; its module identifies it.
            missing = (error.name or type(error).__module__).partition(".")[0]
            if missing not in _EXTRA:
                raise
            raise click.ClickException(
                f"{ctx.invoked_subcommand} needs packages of an extra; {installed_by('spark')} ({error})"
            ) from error


@click.group(cls=_PipelineGroup, lazy_commands=_COMMANDS)
def pipeline() -> None:
    """Ingest and report audit events, work on all tokens (Spark)."""
