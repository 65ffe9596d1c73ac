"""A real broker and kafka-dt on one ZooKeeper: an ACL that is made at either holds at the other, and looks the same."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient

from kafka_dt.identity.acls.binding import AclOperation, AclPermissionType, PatternType, ResourceType
from tests.interop.conftest import Authority
from tests.interop.test_broker_oracle_acls import create, granted, logged_in, removed_afterwards
from tests.support.brokers.broker import USERS, Broker
from tests.support.identity.acl_client import Acl, Filter, create_acls, delete_acls, describe_acls, filter_of
from tests.support.java.properties import plain
from tests.support.java.tools import KafkaTools
from tests.support.nodes.server import KafkaDt, server_properties
from tests.support.processes.waiting import eventually

WITHIN_S = 2.0
ADMIN = plain("admin", USERS["admin"])
ALICE = plain("alice", USERS["alice"])
CREATE_TOKENS, USER = AclOperation.CREATE_TOKENS, ResourceType.USER
DENY, PREFIXED = AclPermissionType.DENY, PatternType.PREFIXED


@pytest.fixture(params=["broker to kafka-dt", "kafka-dt to broker"])
def sides(
    request: pytest.FixtureRequest, guarded_broker: Broker, guarded_server: KafkaDt
) -> tuple[Authority, Authority]:
    """Where an ACL is changed, and where it has to hold."""
    if request.param.startswith("broker"):
        return guarded_broker, guarded_server
    return guarded_server, guarded_broker


@pytest.fixture
def zookeeper(guarded_connect: str) -> Iterator[KazooClient]:
    """A ZooKeeper client of the test's own."""
    client = KazooClient(hosts=guarded_connect)
    client.start()
    try:
        yield client
    finally:
        client.stop()
        client.close()


@pytest.fixture
def owner() -> str:
    """A principal that is this test's own."""
    return f"User:Zo\u00eb {uuid.uuid4().hex} *~:%+"


@pytest.mark.parametrize("pattern", [PatternType.LITERAL, PREFIXED])
def test_an_acl_made_at_one_holds_at_the_other(
    sides: tuple[Authority, Authority], owner: str, pattern: PatternType
) -> None:
    here, there = sides
    allowed = Acl("User:alice", CREATE_TOKENS, USER, owner, pattern=int(pattern))
    denied = Acl("User:*", CREATE_TOKENS, USER, owner, int(DENY), int(pattern), "127.0.0.1")
    with logged_in(here, "admin") as admin, logged_in(there, "alice") as alice:

        def error() -> int:
            code: int = create(alice, owner).error_code.value
            return code

        assert error() == 65
        with removed_afterwards(admin, allowed, denied):
            assert create_acls(admin, allowed) == [0]
            eventually(lambda: error() == 0, within_s=WITHIN_S)
            assert create_acls(admin, denied) == [0]
            eventually(lambda: error() == 65, within_s=WITHIN_S)
            assert delete_acls(admin, filter_of(denied)) == [(0, {denied})]
            eventually(lambda: error() == 0, within_s=WITHIN_S)
            assert delete_acls(admin, Filter(USER, owner)) == [(0, {allowed})]
            eventually(lambda: error() == 65, within_s=WITHIN_S)


def test_both_add_to_and_take_from_what_the_other_wrote(sides: tuple[Authority, Authority], owner: str) -> None:
    acls = {user: Acl(f"User:{user}", CREATE_TOKENS, USER, owner) for user in ("alice", "bob", "carol")}
    here, there = sides
    with logged_in(here, "admin") as admin, logged_in(there, "admin") as other, granted(admin, acls["alice"]):
        eventually(lambda: describe_acls(other, Filter(name=owner)) == (0, {acls["alice"]}), within_s=WITHIN_S)
        with granted(other, acls["bob"]):
            both = {acls["alice"], acls["bob"]}
            eventually(lambda: describe_acls(admin, Filter(name=owner)) == (0, both), within_s=WITHIN_S)
            assert create_acls(admin, acls["carol"]) == [0]
            assert delete_acls(other, filter_of(acls["carol"])) == [(0, {acls["carol"]})]
            eventually(lambda: describe_acls(admin, Filter(name=owner)) == (0, both), within_s=WITHIN_S)


@pytest.mark.parametrize("pattern", [PatternType.LITERAL, PREFIXED])
def test_both_write_an_acl_into_zookeeper_alike(
    guarded_broker: Broker, guarded_server: KafkaDt, zookeeper: KazooClient, owner: str, pattern: PatternType
) -> None:
    tree = "/kafka-acl" if pattern is PatternType.LITERAL else "/kafka-acl-extended/prefixed"
    changes = "/kafka-acl-changes" if pattern is PatternType.LITERAL else "/kafka-acl-extended-changes"
    path = f"{tree}/User/{owner}"
    acl = Acl("User:Zo\u00eb", CREATE_TOKENS, USER, owner, int(DENY), int(pattern), "10.0.0.7")
    written = []
    for authority in (guarded_broker, guarded_server):
        before = set(zookeeper.get_children(changes))
        with logged_in(authority, "admin") as admin, granted(admin, acl):
            content, _ = zookeeper.get(path)
            guards, _ = zookeeper.get_acls(path)
            (change,) = set(zookeeper.get_children(changes)) - before
            announced, _ = zookeeper.get(f"{changes}/{change}")
            written.append((content, guards, announced, change[:-10], len(change)))
        assert zookeeper.exists(path) is None
    assert written[0] == written[1]


def test_both_make_the_same_paths(guarded_broker: Broker, guarded_server: KafkaDt, zookeeper: KazooClient) -> None:
    assert guarded_broker.sasl
    assert guarded_server.sasl
    for tree in ("/kafka-acl", "/kafka-acl-extended/prefixed"):
        assert set(zookeeper.get_children(tree)) == {
            "Topic",
            "Group",
            "Cluster",
            "TransactionalId",
            "DelegationToken",
            "User",
        }


def test_kafka_acls_manages_the_acls_here(
    tools: KafkaTools, guarded_broker: Broker, guarded_server: KafkaDt, owner: str
) -> None:
    server = guarded_server.sasl
    rule = ("--operation", "CreateTokens", "--user-principal", owner)
    tools.acls(server, ADMIN, "--add", "--allow-principal", "User:alice", *rule).ok()
    listed = tools.acls(server, ADMIN, "--list", "--user-principal", owner).ok().stdout
    assert "principal=User:alice, host=*, operation=CREATE_TOKENS, permissionType=ALLOW" in listed
    assert f"resourceType=USER, name={owner}, patternType=LITERAL" in listed
    with logged_in(guarded_broker, "alice") as alice:
        eventually(lambda: create(alice, owner).error_code.value == 0, within_s=WITHIN_S)
    removed = tools.acls(server, ADMIN, "--remove", "--force", "--allow-principal", "User:alice", *rule).ok().stdout
    assert "alice" not in removed
    assert not tools.acls(server, ADMIN, "--list", "--user-principal", owner).ok().stdout.strip()


def test_kafka_acls_lists_here_what_it_added_at_the_broker(
    tools: KafkaTools, guarded_broker: Broker, guarded_server: KafkaDt
) -> None:
    prefix = f"orders-{uuid.uuid4().hex}"
    topics = ("--topic", prefix, "--resource-pattern-type", "prefixed")
    rule = ("--deny-principal", "User:bob", "--deny-host", "10.0.0.7", "--operation", "Read")
    tools.acls(guarded_broker.sasl, ADMIN, "--add", *rule, *topics).ok()
    wanted = ("--list", "--topic", f"{prefix}-1", "--resource-pattern-type", "match")
    try:
        there = tools.acls(guarded_broker.sasl, ADMIN, *wanted).ok().stdout
        here = tools.acls(guarded_server.sasl, ADMIN, *wanted).ok().stdout
    finally:
        tools.acls(guarded_server.sasl, ADMIN, "--remove", "--force", *rule, *topics).ok()
    assert "principal=User:bob, host=10.0.0.7, operation=READ, permissionType=DENY" in here
    assert here == there


def test_kafka_acls_tells_who_may_not_see_them(tools: KafkaTools, guarded: Authority) -> None:
    refused = tools.acls(guarded.sasl, ALICE, "--list")
    assert "ClusterAuthorizationException" in refused.stdout + refused.stderr


def test_without_an_authorizer_kafka_acls_says_so(
    tools: KafkaTools, guarded_connect: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    properties = {**server_properties(guarded_connect), "authorizer.class.name": "", "kafka.dt.workers": 1}
    with KafkaDt(tmp_path_factory.mktemp("open"), properties, "open") as server:
        refused = tools.acls(server.sasl, ALICE, "--list")
        assert "SecurityDisabledException" in refused.stdout + refused.stderr
        with logged_in(server, "alice") as alice:
            assert create(alice, "User:bob").error_code.value == 0
            assert create_acls(alice, Acl("bob", CREATE_TOKENS, USER, "x")) == [54]
            assert delete_acls(alice, Filter(USER, "x")) == [(54, set())]
