"""`kafka-dt upstream`: the cluster behind a gateway, as the store of its tokens. Read `check.py` first."""

from __future__ import annotations

import click

from kafka_dt.cli import LazyGroup


@click.group(
    cls=LazyGroup,
    short_help="Prepare and check the cluster behind a gateway.",
    lazy_commands={
        "check": "kafka_dt.cli.upstream.check:check",
        "init": "kafka_dt.cli.upstream.init:init",
        "remaining": "kafka_dt.cli.upstream.remaining:remaining",
    },
)
def upstream() -> None:
    """Prepare and check the cluster behind a gateway, and look at what has not moved to it yet."""
