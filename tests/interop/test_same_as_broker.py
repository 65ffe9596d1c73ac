"""Every row of the tables in `cases/`, asked of a real broker and of kafka-dt: the transcripts are those of the table.

The broker does not change, so only `make soak` asks it again; `make test` holds kafka-dt to what it has answered. Both
have one ZooKeeper and one secret key. A row with one transcript says that both answer alike; a row with a second
one, and a reason, says where kafka-dt differs on purpose, and docs/differences.md must name it.

By hand: `pytest tests/interop/test_same_as_broker.py -k "kafka-dt and scram"`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pytest
from kazoo.client import KazooClient

from tests.interop.cases import (
    delays,
    disabled,
    frames,
    sasl,
    scram,
    sessions,
    strict,
    tokens,
    users,
    versions,
    zookeeper,
)
from tests.support.brokers.broker import Broker
from tests.support.java.tools import KafkaTools
from tests.support.nodes.server import KafkaDt, server_properties
from tests.support.protocol.conversation import Case, play
from tests.support.zookeeper.server import make_chroot

Table = tuple[str, Sequence[Case], Mapping[str, object]]
OPEN: Final[Mapping[str, object]] = MappingProxyType({})
"""The settings of the broker that all tests share."""
TABLES: Final[tuple[Table, ...]] = (
    ("frames", frames.CASES, OPEN),
    ("versions", versions.CASES, OPEN),
    ("sasl", sasl.CASES, OPEN),
    ("scram", scram.CASES, OPEN),
    ("sessions", sessions.CASES, OPEN),
    ("tokens", tokens.CASES, OPEN),
    ("users", users.CASES, OPEN),
    ("zookeeper", zookeeper.CASES, OPEN),
    ("delays", delays.CASES, strict.PROPERTIES),
    ("strict", strict.CASES, strict.PROPERTIES),
    ("disabled", disabled.CASES, disabled.PROPERTIES),
)
ROWS: Final = [
    pytest.param(case, settings, id=f"{name}: {case.name}") for name, cases, settings in TABLES for case in cases
]
DIFFERENCES: Final = Path(__file__).parents[2] / "docs" / "differences.md"


@pytest.fixture(scope="module")
def zookeeper_client(zookeeper_connect: str) -> Iterator[KazooClient]:
    """A connection to where the shared broker and kafka-dt keep their tokens."""
    client = KazooClient(hosts=zookeeper_connect)
    client.start()
    yield client
    client.stop()
    client.close()


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """New folders by name."""
    return tmp_path_factory.mktemp


@pytest.fixture(scope="module")
def broker_with(
    broker: Broker, kafka_39: KafkaTools, zookeeper_connect: str, folders: Callable[[str], Path]
) -> Iterator[Callable[[Mapping[str, object]], Broker]]:
    """A broker with the given settings; the shared one without any."""
    others: dict[int, Broker] = {}

    def running(settings: Mapping[str, object]) -> Broker:
        if not settings:
            return broker
        if id(settings) not in others:
            started = Broker(
                folders("broker"),
                zookeeper=make_chroot(zookeeper_connect.partition("/")[0], "broker"),
                java=kafka_39.java,
                classpath=kafka_39.classpath,
                overrides=settings,
            )
            started.start()
            others[id(settings)] = started
        return others[id(settings)]

    yield running
    for each in others.values():
        each.stop()


@pytest.fixture(scope="module")
def kafka_dt_with(
    server: KafkaDt, zookeeper_connect: str, folders: Callable[[str], Path]
) -> Iterator[Callable[[Mapping[str, object]], KafkaDt]]:
    """kafka-dt with the given settings; the shared one without any."""
    others: dict[int, KafkaDt] = {}

    def running(settings: Mapping[str, object]) -> KafkaDt:
        if not settings:
            return server
        if id(settings) not in others:
            connect = make_chroot(zookeeper_connect.partition("/")[0], "kafka-dt")
            started = KafkaDt(folders("kafka-dt"), {**server_properties(connect), **settings})
            started.start()
            others[id(settings)] = started
        return others[id(settings)]

    yield running
    for each in others.values():
        each.stop()


@pytest.mark.soak
@pytest.mark.parametrize(("case", "settings"), ROWS)
def test_a_broker_answers_as_the_table_says(
    case: Case,
    settings: Mapping[str, object],
    broker_with: Callable[[Mapping[str, object]], Broker],
    zookeeper_client: KazooClient,
) -> None:
    assert play(case, broker_with(settings), zookeeper_client) == list(case.broker)


@pytest.mark.parametrize(("case", "settings"), ROWS)
def test_kafka_dt_answers_as_the_table_says(
    case: Case,
    settings: Mapping[str, object],
    kafka_dt_with: Callable[[Mapping[str, object]], KafkaDt],
    zookeeper_client: KazooClient,
) -> None:
    server = kafka_dt_with(settings)
    logged_before = server.process.log.stat().st_size
    transcript = play(case, server, zookeeper_client)
    assert transcript == list(case.broker if case.ours is None else case.ours)
    with server.process.log.open("rb") as log:
        log.seek(logged_before)
        assert b"Traceback" not in log.read()


def test_every_difference_has_a_reason_and_a_row_in_the_manual() -> None:
    lines = DIFFERENCES.read_text("utf-8").splitlines()
    for name, cases, _ in TABLES:
        for case in cases:
            if case.ours is not None:
                assert case.why
                assert any(case.why in line and f"`{name}: {case.name}`" in line for line in lines), case.name
