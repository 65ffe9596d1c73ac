"""A ZooKeeper with tokens of two keys, and the files that say where it is and what the keys are.

with sealed_cluster(zookeeper_connect, tmp_path) as cluster:
    cluster.znodes.write([recent(1)], OLD_KEY)
    run_bulk(spark, JobKind.VERIFY, cluster.properties)
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from kafka_dt.tokens import Token
from tests.support.java.properties import write_properties
from tests.support.zookeeper.sealable import DAY_MS, token
from tests.support.zookeeper.token_znodes import TokenZnodes, token_znodes

NEW, OLD, FOREIGN = (f"{name} secret key of at least 32 characters" for name in ("two", "one", "foreign"))
"""Texts of the keys in sealable.py: the current one, the one before it, and one of another cluster."""


class SealedCluster:
    def __init__(self, znodes: TokenZnodes, connect: str, folder: Path) -> None:
        self.znodes = znodes
        self.connect = connect
        self.folder = folder
        self.current, self.previous = folder / "secret.key", folder / "previous.keys"
        self.current.write_text(NEW)
        self.previous.write_text(f"{OLD}\n")
        self.properties: Mapping[str, str] = {
            "zookeeper.connect": connect,
            "delegation.token.secret.key": f"file:{self.current}",
            "kafka.dt.secret.keys.previous": f"file:{self.previous}",
        }
        self.configuration = write_properties(folder / "server.properties", self.properties)


def recent(number: int, **fields: object) -> Token:
    """A token of the current key that has just been issued."""
    now_ms = time.time_ns() // 1_000_000
    times = {
        "issue_timestamp_ms": now_ms,
        "expiry_timestamp_ms": now_ms + DAY_MS,
        "max_timestamp_ms": now_ms + 7 * DAY_MS,
    }
    return token(number, **{**times, **fields})  # type: ignore[arg-type]  # fields of a token


@contextmanager
def sealed_cluster(connect: str, folder: Path) -> Iterator[SealedCluster]:
    with token_znodes(connect) as znodes:
        yield SealedCluster(znodes, connect, folder)
