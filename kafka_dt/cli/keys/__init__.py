"""`kafka-dt keys`: the secret keys of delegation tokens, and what is sealed with them. Read `listing.py` first.

Source: KIP-48, "Delegation Token Master Key Rotation"; KIP-395.
"""

from __future__ import annotations

import click

from kafka_dt.cli import LazyGroup


@click.group(
    cls=LazyGroup,
    lazy_commands={
        "list": "kafka_dt.cli.keys.listing:list_keys",
        "retire": "kafka_dt.cli.keys.retire:retire",
        "rotate": "kafka_dt.cli.keys.rotate:rotate",
        "seal": "kafka_dt.cli.keys.sealing:seal",
        "unseal": "kafka_dt.cli.keys.sealing:unseal",
        "verify": "kafka_dt.cli.keys.sealing:verify",
    },
)
def keys() -> None:
    """List, rotate, retire secret keys; seal and unseal tokens."""
