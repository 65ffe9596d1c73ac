"""Names that ZooKeeper does not take, in every request that makes the path of a znode of a name: each is answered."""

from __future__ import annotations

import pytest

from kafka_dt.identity.acls.binding import RESOURCE_TYPES, AclOperation, PatternType, ResourceType
from kafka_dt_protocol import ApiKey
from kafka_dt_protocol.api.responses import element_type
from tests.support.identity.acl_client import (
    Acl,
    Filter,
    ask_to_create,
    create_acls,
    delete_acls,
    describe_acls,
    filter_of,
)
from tests.support.nodes.node import ADMIN, Node
from tests.support.protocol.raw import request_type

INVALID_REQUEST = 42
NONE = 0
ALTER_USERS = int(ApiKey.ALTER_USER_SCRAM_CREDENTIALS)
UNSTORABLE = (
    "🐘",
    "a🐘b",
    "\U00010000",
    "\U0010ffff",
    "\uf8ff",
    "\ufffd",
    "\x00",
    "\x1f",
    "\x7f",
    "\x9f",
    "..",
    ".",
    "a/b",
)
"""Of each range that Java's PathUtils refuses, beside the slash and the two that mean a place."""


@pytest.mark.parametrize("pattern", [PatternType.LITERAL, PatternType.PREFIXED])
def test_an_acl_for_a_name_that_zookeeper_does_not_take_is_refused_with_a_reason(
    node: Node, pattern: PatternType
) -> None:
    acls = [
        Acl("User:bob", AclOperation.DESCRIBE, kind, name, pattern=pattern)
        for kind in RESOURCE_TYPES
        if kind is not ResourceType.CLUSTER
        for name in UNSTORABLE
    ]
    good = Acl("User:bob", AclOperation.DESCRIBE, ResourceType.TOPIC, f"beside-{pattern}", pattern=pattern)
    with node.connect(user=ADMIN) as admin:
        answer = ask_to_create(admin, *acls, good)
        *refused, made = [(each.error_code.value, each.error_message) for each in answer.results]
        assert {code for code, _ in refused} == {INVALID_REQUEST}
        assert all(reason and "The store of ACLs cannot hold" in reason for _, reason in refused)
        assert made == (NONE, None)  # the others of its request are not concerned
        assert delete_acls(admin, *map(filter_of, acls)) == [(NONE, set())] * len(acls)
        assert delete_acls(admin, filter_of(good)) == [(NONE, {good})]
    node.check_log()


def test_an_acl_for_principals_and_hosts_of_any_characters_is_kept(node: Node) -> None:
    odd = Acl("User:🐘\U0010ffff", AclOperation.DESCRIBE, ResourceType.TOPIC, "of-an-elephant", host="🐘")
    with node.connect(user=ADMIN) as admin:
        assert create_acls(admin, odd) == [NONE]
        assert describe_acls(admin, Filter(name="of-an-elephant")) == (NONE, {odd})
        assert delete_acls(admin, filter_of(odd)) == [(NONE, {odd})]
    node.check_log()


@pytest.mark.parametrize("name", ["🐘", "a/b", "\x00", "\ufffd"])
def test_a_user_of_any_characters_can_be_made_and_deleted(node: Node, name: str) -> None:
    kind = request_type(ALTER_USERS, 0)
    with node.connect(user=ADMIN) as admin:
        made = element_type(kind, "upsertions")(
            name=name, mechanism=1, iterations=4096, salt=b"0123456789ab", salted_password=bytes(32)
        )
        (result,) = admin.ask(ALTER_USERS, 0, deletions=(), upsertions=(made,)).results
        assert result.error_code.value == NONE
        gone = element_type(kind, "deletions")(name=name, mechanism=1)
        (result,) = admin.ask(ALTER_USERS, 0, deletions=(gone,), upsertions=()).results
        assert result.error_code.value == NONE
    node.check_log()
