"""`kafka-dt token`: the commands about delegation tokens. Read `commands.py` first."""

from __future__ import annotations

import click

from kafka_dt.cli import LazyGroup


@click.group(
    cls=LazyGroup,
    lazy_commands={
        "create": "kafka_dt.cli.token.commands:create",
        "describe": "kafka_dt.cli.token.commands:describe",
        "expire": "kafka_dt.cli.token.commands:expire",
        "expire-all": "kafka_dt.cli.token.revoke:revoke",
        "list": "kafka_dt.cli.token.listing:list_tokens",
        "renew": "kafka_dt.cli.token.commands:renew",
        "revoke": "kafka_dt.cli.token.revoke:revoke",
        "show": "kafka_dt.cli.token.listing:show",
    },
)
def token() -> None:
    """Create, renew, list and revoke delegation tokens."""
