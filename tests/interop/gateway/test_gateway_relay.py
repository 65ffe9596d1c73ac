"""A gateway that relays logins: the cluster decides by its own users, and the connection upstream is the client's."""

from __future__ import annotations

import base64
import contextlib
import json
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any, Final

import aiokafka
import aiokafka.errors
import pytest

from kafka_dt.client import DelegationToken
from kafka_dt.jaas import OAUTHBEARER_LOGIN_MODULE, PLAIN_LOGIN_MODULE
from tests.interop.gateway.conftest import PLAIN_SESSION_MS, GatewayMaker
from tests.interop.test_scram_users import alter
from tests.support.brokers.broker import USERS
from tests.support.brokers.kraft import KraftCluster
from tests.support.identity.scram_changes import upsertion
from tests.support.java.properties import plain
from tests.support.java.records_client import ReadBack, RecordsClient
from tests.support.nodes.gateway import IDENTITY, UPSTREAM, Gateway
from tests.support.nodes.node import SHA_256
from tests.support.processes.waiting import again_if_lost, eventually
from tests.support.protocol.raw import METADATA, ConnectionClosed, LoginRefused, RawConnection, milliseconds

MOST_LOGINS: Final = 8
PASSWORD: Final = "known to the cluster alone"
SASL_AUTHENTICATION_FAILED: Final = 58
COUNT: Final = 20
PER_SECOND: Final = 100
_JAAS: Final = "listener.name.sasl_plaintext.{}.sasl.jaas.config"


@pytest.fixture(scope="module")
def relay(other_gateway: GatewayMaker) -> Iterator[Gateway]:
    """A gateway without users: PLAIN has none, and its ZooKeeper has no SCRAM users."""
    settings = {
        IDENTITY: "relay",
        f"{UPSTREAM}.identity.max.logins.per.ip": MOST_LOGINS,
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        _JAAS.format("plain"): f"{PLAIN_LOGIN_MODULE} required;",
        _JAAS.format("oauthbearer"): f"{OAUTHBEARER_LOGIN_MODULE} required;",
    }
    with other_gateway("relay", **settings) as running:
        yield running


@pytest.fixture(scope="module")
def scram_user(cluster: KraftCluster) -> str:
    """A SCRAM user of the cluster; its password is PASSWORD."""
    user = f"relayed-{uuid.uuid4().hex}"
    with RawConnection(cluster.brokers[1].plaintext) as operator:
        assert alter(operator, upsertion(user, PASSWORD)) == {user: 0}
    for broker in cluster.brokers.values():
        eventually(lambda address=broker.sasl: _scram_is_known(address, user), within_s=5)  # type: ignore[misc]
    return user


def _scram_is_known(address: str, user: str) -> bool:
    with RawConnection(address) as connection, contextlib.suppress(LoginRefused):
        connection.login_scram(user, PASSWORD, SHA_256)
        return True
    return False


async def produce(gateway: Gateway, topic: str, **login: Any) -> None:
    settings = {"bootstrap_servers": gateway.address("SASL_PLAINTEXT"), "security_protocol": "SASL_PLAINTEXT"}
    async with aiokafka.AIOKafkaProducer(**settings, **login, request_timeout_ms=15_000) as producer:
        for number in range(COUNT):
            await producer.send_and_wait(topic, str(number).encode(), partition=number % 2)


def by_plain(user: str) -> dict[str, str]:
    return {"sasl_mechanism": "PLAIN", "sasl_plain_username": user, "sasl_plain_password": USERS[user]}


async def test_a_user_of_the_cluster_has_the_permissions_that_it_has_there(relay: Gateway, topic: str) -> None:
    await produce(relay, topic, **by_plain("alice"))
    with pytest.raises(aiokafka.errors.TopicAuthorizationFailedError):
        await produce(relay, topic, **by_plain("bob"))


def test_a_scram_user_that_only_the_cluster_has_logs_in(relay: Gateway, scram_user: str) -> None:
    with RawConnection(relay.address("SASL_PLAINTEXT")) as connection:
        connection.login_scram(scram_user, PASSWORD, SHA_256)
        assert connection.ask(METADATA, 1, topics=()).brokers


def refused(address: str, log_in: Callable[[RawConnection], object]) -> tuple[int, str]:
    """Error code and message of a login."""
    with RawConnection(address) as connection, pytest.raises(LoginRefused) as error:
        log_in(connection)
    return error.value.answer.error_code.value, error.value.answer.error_message


@pytest.mark.parametrize("known", [True, False])
def test_a_wrong_password_is_answered_in_the_words_of_the_cluster(
    relay: Gateway, cluster: KraftCluster, scram_user: str, known: bool
) -> None:
    def refusals(address: str) -> list[tuple[int, str]]:
        return [
            refused(address, lambda connection: connection.login_plain("alice" if known else "unknown", "wrong")),
            refused(
                address, lambda connection: connection.login_scram(scram_user if known else "unknown", "wrong", SHA_256)
            ),
        ]

    assert refusals(relay.address("SASL_PLAINTEXT")) == refusals(cluster.brokers[1].sasl)


def test_a_login_without_frames_around_it_is_translated(relay: Gateway) -> None:
    with RawConnection(relay.address("SASL_PLAINTEXT")) as connection:
        connection.handshake("PLAIN", version=0)
        connection.send_frame(f"\0alice\0{USERS['alice']}".encode())
        assert connection.receive_frame() == b""
        assert connection.ask(METADATA, 1, topics=()).brokers
    with RawConnection(relay.address("SASL_PLAINTEXT")) as connection:
        connection.handshake("PLAIN", version=0)
        connection.send_frame(b"\0alice\0wrong")
        assert connection.closed()


def test_a_session_is_as_long_as_the_clusters(relay: Gateway) -> None:
    with RawConnection(relay.address("SASL_PLAINTEXT")) as connection:
        lasts_ms = milliseconds(connection.login_plain("alice", USERS["alice"]).session_lifetime)
        assert 0 < lasts_ms <= PLAIN_SESSION_MS


def test_a_java_client_logs_in_again_at_the_cluster_on_the_same_connections(
    relay: Gateway, make_topic: Callable[..., str], records: RecordsClient
) -> None:
    seconds = 2 * PLAIN_SESSION_MS / 1000
    count = round(seconds * PER_SECOND)
    client = plain("alice", USERS["alice"]) | {"bootstrap.servers": relay.address("SASL_PLAINTEXT")}

    def send_beyond_a_session() -> None:
        topic = make_topic(1, 2)
        sent = records.send(client, topic, count, per_second=PER_SECOND)
        assert sent.acknowledged == count
        assert sent.connections <= 3
        assert sent.logins_again >= 2
        assert records.read(client, topic, count) == ReadBack.of(count, partitions=2)

    again_if_lost(send_beyond_a_session)


def test_another_principal_cannot_log_in_on_the_same_connection(relay: Gateway) -> None:
    with RawConnection(relay.address("SASL_PLAINTEXT")) as connection:
        connection.login_plain("alice", USERS["alice"])
        connection.ask(METADATA, 1, topics=())
        time.sleep(1.1)  # a second login is let in after a second
        with pytest.raises((LoginRefused, ConnectionClosed)):
            connection.login_plain("bob", USERS["bob"])
        assert connection.closed()


@pytest.mark.parametrize("says_so", [True, False])
def test_a_token_of_the_gateway_logs_in_whether_or_not_its_client_can_say_that_it_is_one(
    relay: Gateway, says_so: bool
) -> None:
    token: DelegationToken = relay.make_token("alice")
    assert str(token.owner) == "User:alice"
    with RawConnection(relay.address("SASL_PLAINTEXT")) as connection:
        connection.login_scram(token.token_id, token.hmac_base64, SHA_256, token=says_so)
        assert connection.ask(METADATA, 1, topics=()).brokers


def unsigned(claims: dict[str, object]) -> str:
    """A bearer token that the cluster of the tests takes, because nothing sets how it checks signatures."""
    encoded = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode() for part in ({"alg": "none"}, claims))
    return ".".join(part.rstrip("=") for part in encoded) + "."


def bearer_message(subject: str, *, exp: int) -> bytes:
    """The first message of a login by a bearer token that ends at an instant, in seconds since 1970."""
    return f"n,,\1auth=Bearer {unsigned({'sub': subject, 'iat': 1, 'exp': exp})}\1\1".encode()


class UnsignedToken(aiokafka.abc.AbstractTokenProvider):  # type: ignore[misc]
    def __init__(self, subject: str) -> None:
        self._subject = subject

    async def token(self) -> str:
        now = int(time.time())
        return unsigned({"sub": self._subject, "iat": now, "exp": now + 3600})


async def test_a_bearer_token_is_judged_by_the_cluster(relay: Gateway, topic: str) -> None:
    await produce(relay, topic, sasl_mechanism="OAUTHBEARER", sasl_oauth_token_provider=UnsignedToken("alice"))
    with pytest.raises(aiokafka.errors.TopicAuthorizationFailedError):
        await produce(relay, topic, sasl_mechanism="OAUTHBEARER", sasl_oauth_token_provider=UnsignedToken("bob"))


def test_an_expired_bearer_token_gets_the_refusal_of_the_cluster(relay: Gateway, cluster: KraftCluster) -> None:
    first = bearer_message("alice", exp=2)

    def answers(address: str) -> tuple[bytes, int]:
        with RawConnection(address) as connection:
            connection.handshake("OAUTHBEARER")
            challenge = connection.authenticate(first)
            assert challenge.error_code.value == 0
            return challenge.auth_bytes, connection.authenticate(b"\1").error_code.value

    assert answers(relay.address("SASL_PLAINTEXT")) == answers(cluster.brokers[1].sasl)


def test_a_second_bearer_token_after_a_refusal_logs_nobody_in(relay: Gateway, cluster: KraftCluster) -> None:
    """A broker takes it, and its client is alice there; the gateway has read the name in the first one, admin."""

    def second(address: str) -> int:
        with RawConnection(address) as connection:
            connection.handshake("OAUTHBEARER")
            assert connection.authenticate(bearer_message("admin", exp=2)).auth_bytes, "the refusal"
            answer = connection.authenticate(bearer_message("alice", exp=int(time.time()) + 3600))
            code: int = answer.error_code.value
            return code

    assert second(cluster.brokers[1].sasl) == 0
    assert second(relay.address("SASL_PLAINTEXT")) == SASL_AUTHENTICATION_FAILED


def test_one_address_has_only_so_many_logins_under_way_at_the_cluster(relay: Gateway, scram_user: str) -> None:
    def begun(stack: contextlib.ExitStack) -> RawConnection:
        connection = stack.enter_context(RawConnection(relay.address("SASL_PLAINTEXT")))
        connection.begin_scram(scram_user, PASSWORD, SHA_256)
        return connection

    with contextlib.ExitStack() as stack:
        for _ in range(MOST_LOGINS):
            begun(stack)
        with pytest.raises(ConnectionClosed):
            begun(stack)

    def lets_in() -> bool:
        with RawConnection(relay.address("SASL_PLAINTEXT")) as connection, contextlib.suppress(ConnectionClosed):
            connection.login_plain("alice", USERS["alice"])
            return True
        return False

    eventually(lets_in, within_s=2)


def test_a_client_that_leaves_takes_its_connection_upstream_with_it(relay: Gateway, cluster: KraftCluster) -> None:
    before = relay.sockets_to(cluster.sasl)
    with RawConnection(relay.address("SASL_PLAINTEXT")) as connection:
        connection.login_plain("alice", USERS["alice"])
        opened = relay.sockets_to(cluster.sasl) - before
        assert len(opened) == 1
    eventually(lambda: not opened & relay.sockets_to(cluster.sasl), within_s=2)
