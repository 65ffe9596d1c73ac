"""`kafka-dt acl`: the ACLs of a cluster. Read `commands.py` first.

`options.py` reads the words of the command line, `rules.py` says what they mean.
"""

from __future__ import annotations

import click

from kafka_dt.cli import LazyGroup


@click.group(
    cls=LazyGroup,
    lazy_commands={
        "add": "kafka_dt.cli.acl.commands:add",
        "list": "kafka_dt.cli.acl.commands:list_acls",
        "remove": "kafka_dt.cli.acl.commands:remove",
    },
)
def acl() -> None:
    """Add, remove and list ACLs, in the words of kafka-acls.sh.

    With --config a command works on ZooKeeper itself, with the settings of a node, and needs no user that may do so.
    Without it the command asks a node or a broker, as the user that logs in.
    """
