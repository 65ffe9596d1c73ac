"""`kafka-dt upstream`: the cluster behind a gateway. Read `check.py`."""

from __future__ import annotations

import click

from kafka_dt.cli import LazyGroup


@click.group(
    cls=LazyGroup,
    lazy_commands={
        "check": "kafka_dt.cli.upstream.check:check",
    },
)
def upstream() -> None:
    """Look at the cluster behind a gateway."""
