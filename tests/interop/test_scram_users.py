"""SCRAM users over the wire: Kafka's own tool and clients, a real broker and kafka-dt on one ZooKeeper.

What either of the two changes, the other takes; and both say the same about what cannot be.
"""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from kazoo.client import KazooClient

from tests.interop.conftest import Authority
from tests.support.brokers.broker import USERS, Broker
from tests.support.identity.scram_changes import deletion, names, upsertion
from tests.support.java.properties import SCRAM_MECHANISMS, plain
from tests.support.java.tools import KafkaTools
from tests.support.nodes.server import KafkaDt
from tests.support.processes.waiting import eventually
from tests.support.protocol.raw import CREATE, RawConnection, ms, scram_logs_in

DESCRIBE_USERS = 50
ALTER_USERS = 51
WITHIN_S = 2.0
ALICE = plain("alice", USERS["alice"])
NEW_TOKEN = {"owner_principal_type": None, "owner_principal_name": None, "renewers": (), "max_lifetime": ms(-1)}


@pytest.fixture
def user() -> str:
    return f"user {uuid.uuid4().hex}*~"


@pytest.fixture(params=["broker to kafka-dt", "kafka-dt to broker"])
def sides(request: pytest.FixtureRequest, broker: Broker, server: KafkaDt) -> tuple[Authority, Authority]:
    """Where a user is changed, and where it has to be seen."""
    return (broker, server) if request.param.startswith("broker") else (server, broker)


@pytest.fixture
def connection(authority: Authority) -> Iterator[RawConnection]:
    with alice_at(authority) as opened:
        yield opened


def alice_at(authority: Authority) -> RawConnection:
    opened = RawConnection(authority.sasl)
    opened.login_plain("alice", USERS["alice"])
    return opened


def logs_in(authority: Authority, user: str, password: str, mechanism: str) -> bool:
    return scram_logs_in(authority.sasl, user, password, mechanism)


def alter(opened: RawConnection, *upsertions: Any, deletions: tuple[Any, ...] = ()) -> dict[str, int]:
    answer = opened.ask(ALTER_USERS, 0, deletions=deletions, upsertions=upsertions)
    found = {result.user: result.error_code.value for result in answer.results}
    assert len(found) == len(answer.results)
    return found


def described(opened: RawConnection, *users: str) -> dict[str, tuple[int, list[tuple[int, int]]]]:
    answer = opened.ask(DESCRIBE_USERS, 0, users=names(*users))
    assert answer.error_code.value == 0
    return {
        each.user: (each.error_code.value, [(info.mechanism, info.iterations) for info in each.credential_infos])
        for each in answer.results
    }


@pytest.mark.parametrize(
    ("mechanism", "sides"),
    [("SCRAM-SHA-256", "broker to kafka-dt"), ("SCRAM-SHA-512", "kafka-dt to broker")],
    indirect=["sides"],
)
def test_kafka_configs_makes_changes_and_deletes_a_user_for_both(
    tools: KafkaTools, sides: tuple[Authority, Authority], user: str, mechanism: str
) -> None:
    here, there = sides
    entity = ("--alter", "--entity-type", "users", "--entity-name", user)

    def set_password(password: str, iterations: int) -> None:
        credential = f"{mechanism}=[iterations={iterations},password={password}]"
        tools.configs(here.sasl, ALICE, *entity, "--add-config", credential).ok()

    set_password("first", 8192)
    eventually(lambda: logs_in(here, user, "first", mechanism), WITHIN_S)
    eventually(lambda: logs_in(there, user, "first", mechanism), WITHIN_S)
    set_password("second", 4096)
    eventually(lambda: logs_in(here, user, "second", mechanism), WITHIN_S)
    eventually(lambda: logs_in(there, user, "second", mechanism), WITHIN_S)
    # Another worker of the node may answer, and hear of the change a moment later.
    eventually(lambda: not logs_in(here, user, "first", mechanism), WITHIN_S)
    tools.configs(here.sasl, ALICE, *entity, "--delete-config", mechanism).ok()
    eventually(lambda: not logs_in(here, user, "second", mechanism), WITHIN_S)
    eventually(lambda: not logs_in(there, user, "second", mechanism), WITHIN_S)
    again = tools.configs(here.sasl, ALICE, *entity, "--delete-config", mechanism)
    assert again.status == 1
    assert "ResourceNotFoundException" in again.stdout + again.stderr


def test_one_changes_what_the_other_made(sides: tuple[Authority, Authority], user: str) -> None:
    with alice_at(sides[0]) as here, alice_at(sides[1]) as there:
        assert alter(here, upsertion(user, "first"), upsertion(user, "first", mechanism=2)) == {user: 0}
        assert alter(there, upsertion(user, "second", iterations=8192), deletions=(deletion(user, 2),)) == {user: 0}
        eventually(lambda: logs_in(sides[0], user, "second", "SCRAM-SHA-256"), WITHIN_S)
        eventually(lambda: described(here, user) == {user: (0, [(1, 8192)])}, WITHIN_S)
        assert described(there, user) == {user: (0, [(1, 8192)])}


def test_a_password_set_here_holds_in_the_very_next_login(server: KafkaDt, user: str) -> None:
    with alice_at(server) as here:
        for number in range(5):
            assert alter(here, upsertion(user, f"password {number}")) == {user: 0}
            eventually(lambda n=number: logs_in(server, user, f"password {n}", "SCRAM-SHA-256"), WITHIN_S)  # type: ignore[misc]


def test_both_write_a_user_alike(broker: Broker, server: KafkaDt, zookeeper_connect: str) -> None:
    zookeeper = KazooClient(hosts=zookeeper_connect)
    zookeeper.start()
    try:
        written = []
        for authority in (broker, server):
            user = f"same {uuid.uuid4().hex}"
            before = set(zookeeper.get_children("/config/changes"))
            with alice_at(authority) as opened:
                assert alter(opened, upsertion(user), upsertion(user, mechanism=2)) == {user: 0}
            path = f"/config/users/{user.replace(' ', '%20')}"
            node, _ = zookeeper.get(path)
            acls, _ = zookeeper.get_acls(path)
            (change,) = set(zookeeper.get_children("/config/changes")) - before
            announced, _ = zookeeper.get(f"/config/changes/{change}")
            written.append((json.loads(node), acls, announced.replace(user[-32:].encode(), b"")))
        assert written[0] == written[1]
        assert written[0][0]["config"].keys() == set(SCRAM_MECHANISMS)
    finally:
        zookeeper.stop()
        zookeeper.close()


def test_quotas_that_a_broker_was_told_stay(tools: KafkaTools, broker: Broker, server: KafkaDt, user: str) -> None:
    entity = ("--entity-type", "users", "--entity-name", user)
    tools.configs(broker.sasl, ALICE, "--alter", *entity, "--add-config", "producer_byte_rate=4321").ok()
    with alice_at(server) as here:
        assert alter(here, upsertion(user)) == {user: 0}
    shown = tools.configs(broker.sasl, ALICE, "--describe", *entity).ok()
    assert "producer_byte_rate=4321" in shown.stdout
    assert "SCRAM-SHA-256" in shown.stdout
    with alice_at(server) as here:
        assert alter(here, deletions=(deletion(user),)) == {user: 0}
    shown = tools.configs(broker.sasl, ALICE, "--describe", *entity).ok()
    assert "producer_byte_rate=4321" in shown.stdout
    assert "SCRAM-SHA-256" not in shown.stdout


@pytest.mark.parametrize(
    ("upsertions", "deletions", "expected"),
    [
        ([upsertion("")], (), {"": 93}),
        ([], (deletion(""),), {"": 93}),
        ([upsertion("few", iterations=4095)], (), {"few": 93}),
        ([upsertion("many", iterations=16385)], (), {"many": 93}),
        ([upsertion("unknown", mechanism=0)], (), {"unknown": 33}),
        ([upsertion("unknown", mechanism=3)], (), {"unknown": 33}),
        ([], (deletion("unknown", -1),), {"unknown": 33}),
        ([upsertion("twice"), upsertion("twice")], (), {"twice": 92}),
        ([], (deletion("twice"), deletion("twice")), {"twice": 92}),
        ([upsertion("twice")], (deletion("twice"),), {"twice": 92}),
        ([upsertion("both", iterations=1), upsertion("both", mechanism=9)], (), {"both": 33}),
        ([upsertion("both", iterations=1)], (deletion("both", 9),), {"both": 93}),
        ([], (deletion("nobody"),), {"nobody": 91}),
        ([upsertion("nobody", mechanism=2)], (deletion("nobody"),), {"nobody": 91}),
        ([], (), {}),
    ],
)
def test_what_cannot_be_altered_has_the_codes_of_a_broker(
    connection: RawConnection, upsertions: list[Any], deletions: tuple[Any, ...], expected: dict[str, int]
) -> None:
    assert alter(connection, *upsertions, deletions=deletions) == expected


def test_users_are_described_as_a_broker_does(connection: RawConnection, user: str) -> None:
    other = f"{user} 2"
    assert alter(connection, upsertion(user, mechanism=2, iterations=16384), upsertion(user), upsertion(other)) == {
        user: 0,
        other: 0,
    }
    expected = {user: (0, [(1, 4096), (2, 16384)]), other: (0, [(1, 4096)])}
    assert described(connection, user, other) == expected
    everybody = described(connection)
    assert {each: everybody[each] for each in (user, other)} == expected
    assert list(everybody) == sorted(everybody)
    odd = described(connection, "nobody", user, user, "", "")
    assert odd == {"nobody": (91, []), user: (92, []), "": (91, [])}


@contextmanager
def holder_of_a_token(authority: Authority) -> Iterator[RawConnection]:
    """A connection that logged in with a token of alice's."""
    with alice_at(authority) as alice:
        made = alice.ask(CREATE, 3, **NEW_TOKEN)
    with RawConnection(authority.sasl) as holder:
        holder.login_scram(made.token_id, base64.b64encode(made.hmac).decode(), "SCRAM-SHA-256", token=True)
        yield holder


def test_a_login_by_token_alters_nothing_here(server: KafkaDt, user: str) -> None:
    with holder_of_a_token(server) as holder:
        assert alter(holder, upsertion(user), deletions=(deletion("bob"),)) == {user: 64, "bob": 64}
        assert described(holder, user) == {user: (91, [])}


def test_a_broker_lets_a_login_by_token_make_a_password(broker: Broker, user: str) -> None:
    def made() -> bool:
        with holder_of_a_token(broker) as holder:
            return alter(holder, upsertion(user)) == {user: 0}

    eventually(made, WITHIN_S)  # a broker refuses a login with a token until it has heard of it
