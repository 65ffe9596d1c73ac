"""A real broker and kafka-dt on one ZooKeeper with one key: what either does, the other knows."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from kazoo.client import KazooClient
from kio.schema.create_delegation_token.v3.request import CreatableRenewers

from kafka_dt.tokens import SecretKey
from tests.interop.conftest import Authority
from tests.support.brokers.broker import SECRET_KEY, USERS, Broker
from tests.support.java.properties import SCRAM_MECHANISMS, plain, token
from tests.support.java.tools import KafkaTools, parse_tokens
from tests.support.nodes.server import KafkaDt
from tests.support.processes.waiting import eventually
from tests.support.protocol.raw import (
    CREATE,
    DESCRIBE,
    DESCRIBE_CLUSTER,
    EXPIRE,
    RENEW,
    LoginRefused,
    RawConnection,
    ms,
)

WITHIN_S = 1.0
ALICE = plain("alice", USERS["alice"])


@pytest.fixture(params=["broker to kafka-dt", "kafka-dt to broker"])
def sides(request: pytest.FixtureRequest, broker: Broker, server: KafkaDt) -> tuple[Authority, Authority]:
    """Where something is done, and where it has to be seen."""
    return (broker, server) if request.param.startswith("broker") else (server, broker)


@pytest.fixture
def here(sides: tuple[Authority, Authority]) -> Iterator[RawConnection]:
    """A connection of User:alice where something is done."""
    with alice_at(sides[0]) as connection:
        yield connection


@pytest.fixture
def there(sides: tuple[Authority, Authority]) -> Iterator[RawConnection]:
    """A connection of User:alice where it has to be seen."""
    with alice_at(sides[1]) as connection:
        yield connection


def alice_at(authority: Authority) -> RawConnection:
    connection = RawConnection(authority.sasl)
    connection.login_plain("alice", USERS["alice"])
    return connection


def create(connection: RawConnection) -> Any:
    renewer = CreatableRenewers(principal_type="User", principal_name="Zoë * ~ / :%+")
    return connection.ask(
        CREATE,
        3,
        owner_principal_type=None,
        owner_principal_name=None,
        renewers=(renewer,),
        max_lifetime=ms(-1),
    )


def described(connection: RawConnection, token_id: str) -> Any | None:
    tokens = connection.ask(DESCRIBE, 3, owners=None).tokens
    return next((each for each in tokens if each.token_id == token_id), None)


def logs_in(authority: Authority, made: Any, mechanism: str = "SCRAM-SHA-256") -> bool:
    password = base64.b64encode(made.hmac).decode()
    with RawConnection(authority.sasl) as connection:
        try:
            connection.login_scram(made.token_id, password, mechanism, token=True)
        except LoginRefused:
            return False
        return True


@pytest.mark.parametrize("mechanism", SCRAM_MECHANISMS)
def test_a_token_made_on_one_logs_in_on_the_other(
    sides: tuple[Authority, Authority], here: RawConnection, mechanism: str
) -> None:
    made = create(here)
    eventually(lambda: logs_in(sides[1], made, mechanism), within_s=WITHIN_S)


def test_a_token_of_the_broker_logs_in_here_in_the_very_next_call(broker: Broker, server: KafkaDt) -> None:
    with alice_at(broker) as alice:
        assert all(logs_in(server, create(alice)) for _ in range(20))


def test_both_describe_a_token_alike(here: RawConnection, there: RawConnection) -> None:
    made = create(here)
    eventually(lambda: described(there, made.token_id) is not None, within_s=WITHIN_S)
    assert described(there, made.token_id) == described(here, made.token_id)


def test_a_renewal_is_seen_by_the_other(here: RawConnection, there: RawConnection) -> None:
    made = create(here)
    eventually(lambda: described(there, made.token_id) is not None, within_s=WITHIN_S)
    here.ask(RENEW, 2, hmac=made.hmac, renew_period=ms(60_000))
    expected = described(here, made.token_id)
    eventually(lambda: described(there, made.token_id) == expected, within_s=WITHIN_S)


def test_one_renews_what_the_other_made(here: RawConnection, there: RawConnection) -> None:
    made = create(here)
    eventually(
        lambda: there.ask(RENEW, 2, hmac=made.hmac, renew_period=ms(60_000)).error_code.value == 0,
        within_s=WITHIN_S,
    )
    expected = described(there, made.token_id)
    eventually(lambda: described(here, made.token_id) == expected, within_s=WITHIN_S)


def test_an_expired_token_is_refused_by_the_other(
    sides: tuple[Authority, Authority], here: RawConnection, there: RawConnection
) -> None:
    made = create(here)
    eventually(lambda: logs_in(sides[1], made), within_s=WITHIN_S)
    here.ask(EXPIRE, 2, hmac=made.hmac, expiry_time_period=ms(-1))
    eventually(lambda: not logs_in(sides[1], made), within_s=WITHIN_S)
    assert described(there, made.token_id) is None


def test_a_token_deleted_by_the_broker_ends_its_sessions_here(broker: Broker, server: KafkaDt) -> None:
    with alice_at(broker) as alice, RawConnection(server.sasl) as holder:
        made = create(alice)
        holder.login_scram(made.token_id, base64.b64encode(made.hmac).decode(), "SCRAM-SHA-256", token=True)
        alice.ask(EXPIRE, 2, hmac=made.hmac, expiry_time_period=ms(-1))
        assert holder.closed(within_s=WITHIN_S)


def test_both_write_a_token_into_zookeeper_alike(broker: Broker, server: KafkaDt, zookeeper_connect: str) -> None:
    zookeeper = KazooClient(hosts=zookeeper_connect)
    zookeeper.start()
    try:
        written = []
        for authority in (broker, server):
            with alice_at(authority) as alice:
                made = create(alice)
            path = f"/delegation_token/tokens/{made.token_id}"
            node, _ = zookeeper.get(path)
            acls, _ = zookeeper.get_acls(path)
            content = json.loads(node)
            assert content.pop("tokenId") == made.token_id
            times = [content.pop(f"{each}Timestamp") for each in ("issue", "max", "expiry")]
            assert all(isinstance(each, int) for each in times)
            written.append((content, acls))
        assert written[1][0].pop("keyId") == SecretKey(SECRET_KEY).id, "which a broker ignores"
        assert written[0] == written[1]
        assert written[0][0]["renewers"] == ["User%3AZo%C3%AB%20%2A%20%7E%20%2F%20%3A%25%2B"]
    finally:
        zookeeper.stop()
        zookeeper.close()


def test_with_a_token_of_ours_the_console_tools_produce_and_consume_there(
    tools: KafkaTools, broker: Broker, server: KafkaDt
) -> None:
    topic = f"records-{uuid.uuid4().hex}"
    created = tools.delegation_tokens(server.sasl, ALICE, "--create", "--max-life-time-period", "-1").ok()
    login = parse_tokens(created.stdout)[0].login
    eventually(  # until the broker has heard of the token
        lambda: tools.topics(broker.sasl, token(login), "--create", "--topic", topic).status == 0, within_s=WITHIN_S
    )
    tools.produce(broker.sasl, token(login, "SCRAM-SHA-256"), topic, "a record\n").ok()
    consumed = tools.consume(broker.sasl, token(login, "SCRAM-SHA-512"), topic, count=1).ok()
    assert consumed.stdout.splitlines()[0] == "a record"


@pytest.mark.parametrize("mechanism", SCRAM_MECHANISMS)
def test_users_of_kafka_configs_log_in_here(tools: KafkaTools, broker: Broker, server: KafkaDt, mechanism: str) -> None:
    user = f"user {uuid.uuid4().hex}*"
    entity = ("--alter", "--entity-type", "users", "--entity-name", user)

    def set_password(password: str, iterations: int) -> None:
        credential = f"{mechanism}=[iterations={iterations},password={password}]"
        tools.configs(broker.sasl, ALICE, *entity, "--add-config", credential).ok()

    def logs_in_with(password: str) -> bool:
        with RawConnection(server.sasl) as connection:
            try:
                connection.login_scram(user, password, mechanism)
            except LoginRefused:
                return False
            return True

    set_password("first", 8192)
    eventually(lambda: logs_in_with("first"), within_s=WITHIN_S)
    set_password("second", 4096)
    eventually(lambda: logs_in_with("second"), within_s=WITHIN_S)
    eventually(lambda: not logs_in_with("first"), within_s=WITHIN_S)  # each worker hears of it by itself
    tools.configs(broker.sasl, ALICE, *entity, "--delete-config", mechanism).ok()
    eventually(lambda: not logs_in_with("second"), within_s=WITHIN_S)


def test_both_are_one_cluster(here: RawConnection, there: RawConnection) -> None:
    ids = [
        connection.ask(DESCRIBE_CLUSTER, 0, include_cluster_authorized_operations=False).cluster_id
        for connection in (here, there)
    ]
    assert ids[0]
    assert ids[0] == ids[1]
