"""Kafka's Java producer and consumers behind a pipe of JSON lines, and the records that they send and count.

    with RecordsClient(java, classpath, log=folder / "records.log") as client:
        client.send(alice, "topic", 1000)
        read = client.read({**alice, "group.id": "group"}, "topic", 1000)
        assert read == ReadBack.of(1000, partitions=2)

`alice` are the settings of a Java client, `bootstrap.servers` included. Record number n has the key `n` and a value
that only n has: the digest over all values in the order of their numbers says whether every byte came through.

Source: org.apache.kafka.clients.producer.KafkaProducer, org.apache.kafka.clients.consumer.KafkaConsumer,
org.apache.kafka.clients.consumer.KafkaShareConsumer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tests.support.java.jvm import Java
from tests.support.java.maven import Classpath
from tests.support.java.reference_client import ANSWER_TIMEOUT_S, ReferenceClient

SOURCE = Path(__file__).with_name("RecordsClient.java")
TIMEOUT_S = 30.0


def value(number: int) -> str:
    """The value of record `number`."""
    return f"{number}:{hashlib.sha256(str(number).encode()).hexdigest()}"


@dataclass(frozen=True, slots=True)
class ReadBack:
    """What a consumer found."""

    total: int
    """How many records, those that came twice counted twice."""
    distinct: int
    out_of_order: int
    """How many came after one with a higher number in the same partition."""
    partitions: int
    """How many partitions had any."""
    digest: str
    """SHA-256 of all values in the order of their numbers."""

    @classmethod
    def of(cls, count: int, *, partitions: int, first: int = 0) -> Self:
        """Return the expected result when the records from `first` on came through once each and in order."""
        numbers = range(first, first + count)
        digest = hashlib.sha256("".join(map(value, numbers)).encode()).hexdigest()
        return cls(count, count, 0, partitions, digest)

    @classmethod
    def gathered(cls, found: Iterable[tuple[int | None, bytes | None, bytes | None]]) -> Self:
        """Count what another client has read: partition, key and value of each record in the order of their coming."""
        values: dict[int, bytes] = {}
        last: dict[int, int] = {}
        total = out_of_order = 0
        for partition, key, content in found:
            assert partition is not None
            assert key is not None
            assert content is not None
            number = int(key)
            out_of_order += last.get(partition, -1) >= number
            last[partition] = number
            values[number] = content
            total += 1
        digest = hashlib.sha256(b"".join(values[number] for number in sorted(values))).hexdigest()
        return cls(total, len(values), out_of_order, len(last), digest)


@dataclass(frozen=True, slots=True)
class Sent:
    """What a producer did."""

    acknowledged: int
    """How many records."""
    connections: int
    """How many connections it has made in all."""
    logins_again: int
    """How often it has logged in again on one of them (KIP-368)."""


class RecordsClient(ReferenceClient):
    """The Java process.

    Args:
        java: what runs it, with a compiler.
        classpath: the jars of one Kafka release.
        log: receives what Java writes to its standard error.
        properties: Java system properties.
    """

    def __init__(
        self, java: Java, classpath: Classpath, log: Path, *, properties: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(java, classpath, log, source=SOURCE, properties=properties)

    def send(
        self,
        config: Mapping[str, str],
        topic: str,
        count: int,
        *,
        first: int = 0,
        per_second: int = 0,
        until: Path | None = None,
    ) -> Sent:
        """Send records `first` to `first + count` with a producer of its own, as fast as it can or at a pace.

        It sends fewer if the file `until` comes to be.
        """
        timeout_s = TIMEOUT_S + (2 * count / per_second if per_second else 0)
        arguments: dict[str, Any] = {"topic": topic, "count": count, "first": first, "per_second": per_second}
        if until is not None:
            arguments["until"] = str(until)
        return Sent(**self._perform("send", config, timeout_s=timeout_s, **arguments))

    def transact(
        self, config: Mapping[str, str], topic: str, count: int, *, first: int = 0, commit: bool = True
    ) -> int:
        """The same in one transaction; `config` has a `transactional.id`."""
        return int(
            self._perform("transact", config, topic=topic, count=count, first=first, per_second=0, commit=commit)
        )

    def share(self, config: Mapping[str, str], topic: str, count: int) -> ReadBack:
        """Read in a share group until there are `count` records, and acknowledge them; takes a client of 4.x."""
        return ReadBack(**self._perform("share", config, topic=topic, count=count, timeout_ms=int(TIMEOUT_S * 1000)))

    def copy(self, config: Mapping[str, str], topic: str, target: str, count: int) -> int:
        """Read in a group and write to `target`, records and offsets in transactions; how many were copied."""
        return int(
            self._perform("copy", config, topic=topic, target=target, count=count, timeout_ms=int(TIMEOUT_S * 1000))
        )

    def read(self, config: Mapping[str, str], topic: str, count: int, *, timeout_s: float = TIMEOUT_S) -> ReadBack:
        """Read until there are `count` records; with a `group.id` in a group, else all partitions from the start."""
        config = {"auto.offset.reset": "earliest", **config}
        arguments = {"topic": topic, "count": count, "timeout_ms": int(timeout_s * 1000)}
        return ReadBack(**self._perform("read", config, timeout_s=timeout_s, **arguments))

    def _perform(
        self, operation: str, config: Mapping[str, str], timeout_s: float = TIMEOUT_S, **arguments: object
    ) -> Any:
        # Longer than the operation itself takes, whose failure tells more.
        request = {"operation": operation, "config": dict(config), **arguments}
        return self.call(request, timeout_s=timeout_s + ANSWER_TIMEOUT_S)
