"""Token znodes in a real ZooKeeper, as tests of bulk work fill, look at and break them.

with token_znodes(zookeeper_connect) as znodes:
    znodes.write(tokens, key)
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from kazoo.client import KazooClient

from kafka_dt.tokens import SecretKey, Token
from kafka_dt.zookeeper.sealing.sealed import is_sealed, seal
from kafka_dt.zookeeper.znodes.kafka import TokenChangeZnode, TokenZnode

BATCH = 200


class TokenZnodes:
    def __init__(self, kazoo: KazooClient) -> None:
        self.kazoo = kazoo
        for path in (TokenZnode.PARENT, TokenChangeZnode.PARENT):
            kazoo.ensure_path(path)

    def write(self, tokens: Sequence[Token], key: SecretKey | None = None) -> None:
        """Make tokens plain, or sealed with a key."""
        for begin in range(0, len(tokens), BATCH):
            transaction = self.kazoo.transaction()
            for token in tokens[begin : begin + BATCH]:
                data = TokenZnode.encode(token)
                transaction.create(
                    TokenZnode.path(token.token_id), data if key is None else seal(key, data, os.urandom(16))
                )
            for result in transaction.commit():
                assert isinstance(result, str), result

    def put(self, token_id: str, data: bytes) -> None:
        """Make a znode of any content."""
        self.kazoo.create(TokenZnode.path(token_id), data)

    def ids(self) -> set[str]:
        return set(self.kazoo.get_children(TokenZnode.PARENT))

    def data(self) -> dict[str, bytes]:
        """What every znode holds now."""
        asked = {name: self.kazoo.get_async(TokenZnode.path(name)) for name in self.ids()}
        return {name: answer.get()[0] for name, answer in asked.items()}

    def sealed(self) -> int:
        """How many of them are sealed."""
        return sum(map(is_sealed, self.data().values()))

    def first_is_sealed(self) -> bool:
        """Whether the znode is sealed that stands first in ZooKeeper's order, and so in that of a command."""
        first = self.kazoo.get_children(TokenZnode.PARENT)[0]
        return is_sealed(self.kazoo.get(TokenZnode.path(first))[0])

    def announced(self) -> set[str]:
        """The tokens whose change znodes are there."""
        names = self.kazoo.get_children(TokenChangeZnode.PARENT)
        asked = [self.kazoo.get_async(f"{TokenChangeZnode.PARENT}/{name}") for name in names]
        return {answer.get()[0].decode() for answer in asked}


@contextmanager
def token_znodes(zookeeper_connect: str) -> Iterator[TokenZnodes]:
    kazoo = KazooClient(hosts=zookeeper_connect)
    kazoo.start()
    try:
        yield TokenZnodes(kazoo)
    finally:
        kazoo.stop()
        kazoo.close()
