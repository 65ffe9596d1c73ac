"""The parts of the report that have an oracle in Python: networks, client ids, living tokens over time.

Both engines run all of them.
"""

from __future__ import annotations

import ipaddress
import itertools
import random
import re
import uuid
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.contents import OTHER
from kafka_dt.pipeline.report.expressions import (
    client_shape,
    distinct_over,
    distinct_within,
    is_given,
    middle_network,
    of_first,
    some,
    subnet,
    wide_network,
    widest_network,
    with_most,
)
from kafka_dt.pipeline.report.timeline import Role, Timeline, alive_over_time, alive_series
from tests.support.spark.engines import sail_or_skip

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import Column, SparkSession

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""Py4J leaves its sockets to the garbage collector."""
BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
SHAPES = {
    "it-fdefcc": "it-#",
    "etl-7f9c4b-x2k9q": "etl-#",
    "rollup-clicks2-0": "rollup-clicks#",
    "Worker12": "worker#",
    "job-bcdfg2-beef12": "job-#",
    "etl-5d8c7d-bcdfg": "etl-#",
    "consumer-orders-12": "consumer-orders-#",
    "consumer-etl-7d9f8b6c4-bcdfg-1": "consumer-etl-#",
    "spark-executor-3f2a9c1e-aa01-4c44-9b1e-0123456789ab-17": "spark-executor-#",
    "spark-kafka-source-3f2a9c1e-8fcf-4adc-aeee-0123456789ab--433326038-executor-1": "spark-kafka-source-#-executor-#",
    "spark-kafka-source-3f2a9c1e-8fcf-4adc-aeee-0123456789ab-73326038-executor-1": "spark-kafka-source-#-executor-#",
    "app-ABCDEFAB-CAFE-4ADE-BEEF-ABCDEFABCDEF-StreamThread-1-consumer": "app-#-streamthread-#-consumer",
    "feed-face-cafe-dead-beef": "feed-face-cafe-dead-beef",
    "orders-https-reader": "orders-https-reader",
    "ads-beacon-bltmn": "ads-beacon-#",
    "consumer-ads-beacon-bltmn-1": "consumer-ads-beacon-#",
    "bltmn": "bltmn",
    "cdc-mssql": "cdc-mssql",
    "orders-https": "orders-https",
    "etl-7f9c4b-bltmn-StreamThread-1-consumer": "etl-#-streamthread-#-consumer",
    "etl-7f9c4b-bltmn_0_1": "etl-#",
    "clicks2-httpsd": "clicks#-httpsd",
    "worker-3--daily": "worker-#--daily",
    "Console": "console",
    "x" * 16_000: "x" * 200,
    "": "",
}


@pytest.fixture(scope="module", params=["spark", "sail"])
def session(request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    if request.param == "spark":
        yield request.getfixturevalue("spark")
        return
    with sail_or_skip() as engine:
        yield engine.session


def test_addresses_are_compared_by_the_networks_that_ipaddress_knows(session: SparkSession) -> None:
    chance = random.Random(7)  # noqa: S311 - test data
    texts = [str(ipaddress.IPv4Address(chance.getrandbits(32))) for _ in range(100)]
    for _ in range(150):
        # Runs of zeros, so that :: stands anywhere.
        groups = [0 if chance.random() < 0.5 else chance.getrandbits(16) for _ in range(8)]
        texts.append(str(ipaddress.IPv6Address(sum(group << 16 * place for place, group in enumerate(groups)))))
    texts += ["::", "::1", "fe80::1", "1::"]
    prefixes = {subnet: (24, 64), middle_network: (20, 56), wide_network: (16, 48), widest_network: (12, 44)}
    for network, (ipv4_bits, ipv6_bits) in prefixes.items():
        networks = _of(session, texts, network)
        for text in texts:
            address = ipaddress.ip_address(text)
            mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
            prefix = ipv4_bits if (mapped or address).version == 4 else ipv6_bits
            expected = ipaddress.ip_network(f"{mapped or text}/{prefix}", strict=False)
            assert ipaddress.ip_network(networks[text]) == expected, text


def test_of_several_rows_with_the_most_one_is_taken_whatever_their_order(session: SparkSession) -> None:
    rows = [("10.0.0.7", 3), ("10.0.0.9", 3), ("10.0.0.8", 3), ("10.0.0.1", 2)]
    for ordered in (rows, rows[::-1], rows[2:] + rows[:2]):
        frame = session.createDataFrame(ordered, "address string, logins int")
        found = frame.agg(with_most("address", "logins").alias("most"), of_first("address", "logins").alias("first"))
        assert found.collect() == [("10.0.0.9", "10.0.0.1")]
        assert frame.agg(of_first("logins", "address").alias("of")).collect() == [(2,)]


def test_a_null_is_before_all_other_values_whatever_the_order_of_rows(session: SparkSession) -> None:
    rows = [("a", 1), (None, 1), ("b", None), (None, None)]
    for ordered in itertools.permutations(rows):
        frame = session.createDataFrame(list(ordered), "address string, logins int").coalesce(1)
        found = frame.agg(with_most("address", "logins").alias("most"), of_first("address", "logins").alias("first"))
        assert [tuple(row) for row in found.collect()] == [("a", None)]


def test_different_values_are_none_where_all_are_null(session: SparkSession) -> None:
    rows = session.createDataFrame(
        [("x", "a"), ("x", "b"), ("x", "b"), ("x", None), ("y", None)], "zone string, who string"
    )
    zone = Window.partitionBy("zone")
    counted = rows.select("zone", distinct_over("who", "zone"), distinct_within("who", zone)).distinct()
    assert sorted(tuple(row) for row in counted.collect()) == [("x", 2, 2), ("y", 0, 0)]


def test_to_count_different_values_takes_memory_for_the_rows_and_not_for_their_square(session: SparkSession) -> None:
    rows = session.range(60_000).select(F.lit("User:scheduler").alias("who"), F.col("id").cast("string").alias("token"))
    counted = rows.select(distinct_over("token", "who").alias("tokens")).distinct()
    assert [tuple(row) for row in counted.collect()] == [(60_000,)]


def test_the_end_of_a_line_in_a_client_id_counts_as_a_space(session: SparkSession) -> None:
    given = [
        f"{name}{end}{more}" for name in ("rdkafka", "consumer-a") for end in "\n\r\x85\u2028" for more in ("", "b")
    ]
    rows = session.createDataFrame([(each,) for each in given], "client string").withColumn(
        "shape", client_shape(F.col("client"))
    )
    shapes = {
        row["client"]: (row["shape"], row["given"])
        for row in rows.withColumn("given", is_given(F.col("shape"))).collect()
    }
    for each in given:
        assert shapes[each] == (re.sub(r"[\n\r\x85\u2028]", " ", each), each.startswith("consumer-"))


def test_the_second_of_two_values_is_of_the_same_row_as_the_first(session: SparkSession) -> None:
    rows = [("t1", "10.0.0.7", 1), ("t9", "10.0.0.1", 1)]
    frame = session.createDataFrame(rows, "token_id string, address string, logins int")
    most = with_most("token_id", "logins").alias("token"), with_most("address", "logins", "token_id").alias("address")
    assert frame.agg(*most).collect() == [("t9", "10.0.0.1")]


def test_what_is_no_plain_address_is_a_place_all_the_same(session: SparkSession) -> None:
    odd = ["::ffff:10.1.2.3", "fe80::1%eth0", "unknown", "host.example", "::ffff:host", None]
    assert list(_of(session, odd, subnet).values()) == [
        *("10.1.2.0/24", "fe80:0:0:0::/64", "unknown", "host.example", "0:0:0:0::/64", "unknown")
    ]
    assert list(_of(session, odd, widest_network).values()) == [
        *("10.0.0.0/12", "fe80:0:0::/44", "unknown", "host.example", "0:0:0::/44", "unknown")
    ]


def _of(
    session: SparkSession, texts: list[str] | list[str | None], network: Callable[[Column], Column]
) -> dict[str | None, str]:
    rows = session.createDataFrame([(text,) for text in texts], "address string")
    return {row[0]: row[1] for row in rows.select("address", network(F.col("address"))).collect()}


def test_client_ids_are_compared_without_what_each_start_changes(session: SparkSession) -> None:
    rows = session.createDataFrame([(text,) for text in SHAPES], "client string")
    found = {row[0]: row[1] for row in rows.select("client", client_shape(F.col("client"))).collect()}
    assert found == SHAPES


def test_every_random_uuid_in_a_client_id_is_left_out(session: SparkSession) -> None:
    chance = random.Random(13)  # noqa: S311 - test data
    uuids = [uuid.UUID(int=chance.getrandbits(128), version=4) for _ in range(2_000)]
    rows = session.createDataFrame([(f"app-{each}-StreamThread-1",) for each in uuids], "client string")
    shapes = rows.select(client_shape(F.col("client"))).distinct().collect()
    assert shapes == [("app-#-streamthread-#",)]


def test_evidence_shows_the_first_names_and_of_long_ones_the_beginning(session: SparkSession) -> None:
    rows = session.createDataFrame([(["a", "b" * 121],), (["c"] * 7,), ([],)], "names array<string>")
    shown = [row[0] for row in rows.select(some(F.col("names"))).collect()]
    assert shown == [f"a, {'b' * 120}…", "c, c, c, c, c and 2 more", ""]


def test_living_tokens_are_those_that_began_and_did_not_end(session: SparkSession) -> None:
    chance = random.Random(11)  # noqa: S311 - test data
    timeline = Timeline.over(BEGIN + timedelta(hours=5), BEGIN + timedelta(days=20))
    tokens = []
    for _ in range(300):
        begin = BEGIN + timedelta(minutes=chance.randrange(-5_000, 25_000))
        end = begin + timedelta(minutes=chance.randrange(12_000)) if chance.random() < 0.8 else None
        login = begin + timedelta(hours=1) if chance.random() < 0.5 else None
        renewers = chance.sample(["User:a", "User:b", "User:c", "User:d"], chance.randrange(3))
        tokens.append((renewers, begin, end, login))
    lives = session.createDataFrame(
        [(renewers, *instants, "User:o", None) for renewers, *instants in tokens],
        "renewers array<string>, created_at timestamp, ended_at timestamp, last_login timestamp, owner string, "
        "requester string",
    )
    by_role = alive_series(alive_over_time(lives, timeline, top=2), timeline)
    found = by_role[Role.RENEWER.value]

    alive: dict[str, list[int]] = {}
    for renewers, begin, end, login in tokens:
        until = end or (login or begin) + timedelta(days=1)
        for name in renewers or ["(none)"]:
            numbers = alive.setdefault(name, [0] * len(found.instants))
            for place, instant in enumerate(found.instants):
                numbers[place] += begin <= instant < until
    top = sorted(alive, key=lambda name: (-sum(alive[name]), name))[:2]
    others = [sum(column) for column in zip(*(alive[name] for name in alive if name not in top), strict=True)]
    expected = {**{name: alive[name] for name in top}, OTHER: others}
    assert {name: list(values) for name, values in found.values.items()} == expected
    assert list(found.values)[-1] == OTHER
    assert list(by_role[Role.OWNER.value].values) == ["User:o"]
    assert list(by_role[Role.REQUESTER.value].values) == ["(none)"]
