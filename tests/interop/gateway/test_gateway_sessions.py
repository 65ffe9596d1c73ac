"""How long connections live, here and upstream, and how many there may be."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from kafka_dt.client import DelegationToken
from tests.interop.gateway.conftest import (
    IDLE_MS,
    MAX_CONNECTIONS,
    MAX_CONNECTIONS_PER_IP,
    PLAIN_SESSION_MS,
    SESSION_MS,
    GatewayMaker,
)
from tests.support.brokers.kraft import KraftCluster
from tests.support.brokers.kraft_operator import FETCH, request_records
from tests.support.java.records_client import ReadBack, RecordsClient
from tests.support.nodes.gateway import CLIENT_SESSION_MS, Gateway
from tests.support.processes.waiting import again_if_lost, eventually
from tests.support.protocol.raw import API_VERSIONS, METADATA, ConnectionClosed, RawConnection

PER_SECOND = 100
ASK_S = 0.05
MAX_AGE_MS = 500
MECHANISM = "SCRAM-SHA-256"


def ask(connection: RawConnection) -> None:
    """Have something answered upstream."""
    connection.ask(METADATA, 1, topics=())


def ask_for(connection: RawConnection, seconds: float) -> None:
    """Ask again and again; a broker closes a connection with the first request after its session."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        ask(connection)
        time.sleep(ASK_S)


def wait_until(moment: float) -> None:
    """Let time pass, until an instant of the monotonic clock."""
    eventually(lambda: time.monotonic() > moment, within_s=60)


def test_connections_outlive_their_sessions_here_and_upstream(
    gateway: Gateway, alice: DelegationToken, make_topic: Callable[..., str], records: RecordsClient
) -> None:
    seconds = 1.5 * SESSION_MS / 1000
    count = round(seconds * PER_SECOND)
    client = gateway.settings(alice, "java", listener="SESSIONS")

    def use_connections() -> None:
        topic = make_topic(1, 2)
        with gateway.connect_by_token(alice) as connection, ThreadPoolExecutor(1) as thread:
            sending = thread.submit(records.send, client, topic, count, per_second=PER_SECOND)
            ask_for(connection, seconds)
        sent = sending.result()
        assert sent.acknowledged == count
        # One to find out where the brokers are, one to each of them: none was lost and made anew.
        assert sent.connections <= 3
        assert sent.logins_again >= 2 * (1000 * seconds // CLIENT_SESSION_MS - 1)
        assert records.read(client, topic, count) == ReadBack.of(count, partitions=2)

    again_if_lost(use_connections)


def test_users_of_a_file_are_logged_in_again_upstream(small_gateway: Gateway, alice: DelegationToken) -> None:
    def ask_beyond_a_session() -> None:
        with small_gateway.connect_by_token(alice) as connection:
            ask_for(connection, 1.5 * PLAIN_SESSION_MS / 1000)

    again_if_lost(ask_beyond_a_session)


def test_a_request_that_waits_while_a_session_ends_is_answered_and_so_is_the_next(
    small_gateway: Gateway, alice: DelegationToken, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(1)

    def wait_beyond_a_session() -> None:
        with small_gateway.connect_by_token(alice, to=small_gateway.address_of_broker(1)) as connection:
            ask(connection)
            start = time.monotonic()
            wait_until(start + 0.6 * PLAIN_SESSION_MS / 1000)
            request_records(connection, topic, max_wait_ms=PLAIN_SESSION_MS * 6 // 10)
            wait_until(start + PLAIN_SESSION_MS / 1000)
            connection.request(METADATA, 1, topics=())
            answer = connection.answer(FETCH, 12)
            assert time.monotonic() > start + 1.1 * PLAIN_SESSION_MS / 1000
            assert answer.responses[0].partitions[0].error_code.value == 0
            connection.answer(METADATA, 1)
            ask(connection)

    again_if_lost(wait_beyond_a_session)


def test_who_logs_in_again_in_time_goes_on_and_who_does_not_is_left(gateway: Gateway, alice: DelegationToken) -> None:
    def log_one_in_again() -> None:
        with contextlib.ExitStack() as stack:
            faithful, careless = (
                stack.enter_context(gateway.connect_by_token(alice, MECHANISM, "SESSIONS")) for _ in range(2)
            )
            start = time.monotonic()
            for each in (faithful, careless):
                ask(each)
            wait_until(start + 0.5 * CLIENT_SESSION_MS / 1000)
            faithful.login_scram(alice.token_id, alice.hmac_base64, MECHANISM, token=True)
            wait_until(start + CLIENT_SESSION_MS / 1000)
            ask(faithful)
            careless.request(METADATA, 1, topics=())
            assert careless.closed()
            ask(faithful)

    again_if_lost(log_one_in_again)


def test_an_idle_connection_ends_on_both_sides_and_a_busy_one_does_not(
    small_gateway: Gateway, alice: DelegationToken, cluster: KraftCluster
) -> None:
    before = small_gateway.sockets_to(cluster.sasl)
    with small_gateway.connect_by_token(alice) as idle, small_gateway.connect_by_token(alice) as busy:
        ask(idle)
        opened = small_gateway.sockets_to(cluster.sasl) - before
        assert opened

        def ended() -> bool:
            ask_for(busy, ASK_S)
            return not opened & small_gateway.sockets_to(cluster.sasl)

        eventually(ended, within_s=2 * IDLE_MS / 1000 + 1)
        assert idle.closed()
        ask(busy)


def admitted(address: str, source: str) -> RawConnection | None:
    """A connection from a host of this machine, if it may stay."""
    connection = RawConnection(address, source=source)
    try:
        connection.ask(API_VERSIONS, 0)
    except (ConnectionClosed, ConnectionError):
        connection.close()
        return None
    return connection


def test_connections_are_limited_by_address_and_in_all(small_gateway: Gateway) -> None:
    ports = (small_gateway.sasl, small_gateway.address_of_broker(1), small_gateway.address_of_broker(2))
    with contextlib.ExitStack() as stack:

        def open_many(source: str) -> int:
            """Open connections to all ports in turn until one is refused; how many were not."""
            for number in range(MAX_CONNECTIONS + 1):
                connection = admitted(ports[number % len(ports)], source)
                if connection is None:
                    return number
                stack.enter_context(connection)
            raise AssertionError("there is no limit")

        assert open_many("127.0.0.3") == MAX_CONNECTIONS_PER_IP
        assert 0 < open_many("127.0.0.4") <= MAX_CONNECTIONS - MAX_CONNECTIONS_PER_IP
    log = small_gateway.log()
    assert "(max.connections.per.ip)" in log
    assert "(max.connections)" in log

    def room() -> bool:
        connection = admitted(small_gateway.sasl, "127.0.0.3")
        if connection is not None:
            connection.close()
        return connection is not None

    eventually(room, within_s=5)


def test_a_java_producer_and_consumer_lose_nothing_when_their_connections_are_closed_for_their_age(
    other_gateway: GatewayMaker, topic: str, records: RecordsClient
) -> None:
    count = 5_000
    with other_gateway("aging", **{"kafka.dt.connections.max.age.ms": MAX_AGE_MS}) as gateway:
        client = {**gateway.settings(gateway.make_token("alice"), "java"), "reconnect.backoff.max.ms": "100"}
        sent = records.send(client, topic, count, per_second=1_000)
        assert sent.acknowledged == count
        assert sent.connections > 5
        assert records.read(client, topic, count) == ReadBack.of(count, partitions=2)
