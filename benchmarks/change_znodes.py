"""Count and remove the change znodes in a server's ZooKeeper.

A broker keeps its own for 15 minutes and reads all of them again at each change, so it would get slower from round to
round: 100 changes a second are 90,000 change znodes. Each measurement therefore begins without any. A broker in
production has more of them and is slower.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from kafka_dt.zookeeper.znodes.kafka import TokenChangeZnode

_BATCH: Final = 500


def count_changes(kazoo: KazooClient) -> int:
    """Count the change znodes of tokens."""
    stat = kazoo.exists(TokenChangeZnode.PARENT)
    return stat.children_count if stat is not None else 0


def remove_changes(address: str) -> None:
    """Remove the change znodes of tokens; other processes may remove them at the same time."""
    with connected(address) as kazoo:
        try:
            paths = [
                f"{TokenChangeZnode.PARENT}/{name}" for name in sorted(kazoo.get_children(TokenChangeZnode.PARENT))
            ]
        except NoNodeError:
            return
        for begin in range(0, len(paths), _BATCH):
            pending = [kazoo.delete_async(path) for path in paths[begin : begin + _BATCH]]
            for each in pending:
                each.wait()
                if each.exception is not None and not isinstance(each.exception, NoNodeError):
                    raise each.exception


@contextmanager
def connected(address: str) -> Iterator[KazooClient]:
    """Talk to a ZooKeeper during a block."""
    kazoo = KazooClient(hosts=address)
    kazoo.start()
    try:
        yield kazoo
    finally:
        kazoo.stop()
        kazoo.close()
