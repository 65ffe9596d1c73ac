"""`kafka-dt keys`: the secret keys of delegation tokens, and what is sealed with them.

Source: KIP-48, "Delegation Token Master Key Rotation"; KIP-395.
"""

from __future__ import annotations

from typing import Final

import click

from kafka_dt.cli import LazyGroup

_COMMANDS: Final = {
    "list": "kafka_dt.cli.keys.listing:list_keys",
    "retire": "kafka_dt.cli.keys.retire:retire",
    "rotate": "kafka_dt.cli.keys.rotate:rotate",
    "seal": "kafka_dt.cli.keys.bulk:seal",
    "unseal": "kafka_dt.cli.keys.bulk:unseal",
    "verify": "kafka_dt.cli.keys.bulk:verify",
}
"""Command -> module:attribute of its click command."""


@click.group(cls=LazyGroup, lazy_commands=_COMMANDS)
def keys() -> None:
    """List, rotate and retire secret keys; seal and verify tokens."""
