"""Who may do what, under which ACLs."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_dt.config import ConfigError, from_properties
from kafka_dt.identity.acls.authorizer import Authorizer, Caller
from kafka_dt.identity.acls.binding import (
    PATTERN_TYPES,
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kafka_dt.identity.acls.cache import AclCache
from kafka_dt.identity.acls.store import AclStoreUnavailable
from kafka_dt.tokens import Principal, Token
from tests.support.identity.authorization import ADMIN, acl, authorizer, cache_of

USER, TOKEN, TOPIC, CLUSTER = (
    ResourceType.USER,
    ResourceType.DELEGATION_TOKEN,
    ResourceType.TOPIC,
    ResourceType.CLUSTER,
)
READ, WRITE, DELETE, ALTER = AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER
ALL, DESCRIBE, CREATE_TOKENS = AclOperation.ALL, AclOperation.DESCRIBE, AclOperation.CREATE_TOKENS
DESCRIBE_CONFIGS, ALTER_CONFIGS = AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS
ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY
HOST = "10.0.0.7"
ALICE = Caller(Principal.user("alice"), HOST)
BOB = Caller(Principal.user("bob"), HOST)


def rule(
    operation: AclOperation,
    permission: AclPermissionType = ALLOW,
    *,
    name: str = "t",
    user: str = "alice",
    host: str = "*",
    pattern: PatternType = PatternType.LITERAL,
) -> AclBinding:
    return acl(TOPIC, name, user, operation, permission=permission, host=host, pattern=pattern)


CASES = {
    "nothing is said": ([], READ, False),
    "allowed": ([rule(READ)], READ, True),
    "another operation": ([rule(READ)], WRITE, False),
    "all operations": ([rule(ALL)], WRITE, True),
    "read implies describe": ([rule(READ)], DESCRIBE, True),
    "write implies describe": ([rule(WRITE)], DESCRIBE, True),
    "delete implies describe": ([rule(DELETE)], DESCRIBE, True),
    "alter implies describe": ([rule(ALTER)], DESCRIBE, True),
    "create implies nothing": ([rule(AclOperation.CREATE)], DESCRIBE, False),
    "describe implies nothing": ([rule(DESCRIBE)], READ, False),
    "altering configs implies describing them": ([rule(ALTER_CONFIGS)], DESCRIBE_CONFIGS, True),
    "altering configs implies nothing more": ([rule(ALTER_CONFIGS)], DESCRIBE, False),
    "alter implies no configs": ([rule(ALTER)], DESCRIBE_CONFIGS, False),
    "denied": ([rule(READ), rule(READ, DENY)], READ, False),
    "denied, the other way round": ([rule(READ, DENY), rule(READ)], READ, False),
    "denied alone": ([rule(READ, DENY)], READ, False),
    "all denied": ([rule(READ), rule(ALL, DENY)], READ, False),
    "something else denied": ([rule(READ), rule(WRITE, DENY)], READ, True),
    "a denial implies nothing": ([rule(DESCRIBE), rule(READ, DENY)], DESCRIBE, True),
    "denied to describe what may be read": ([rule(READ), rule(DESCRIBE, DENY)], DESCRIBE, False),
    "denied to another user": ([rule(READ), rule(READ, DENY, user="bob")], READ, True),
    "denied to everybody": ([rule(READ), rule(READ, DENY, user="*")], READ, False),
    "denied from elsewhere": ([rule(READ), rule(READ, DENY, host="10.0.0.8")], READ, True),
    "denied from here": ([rule(READ), rule(READ, DENY, host=HOST)], READ, False),
    "allowed to everybody": ([rule(READ, user="*")], READ, True),
    "allowed to another user": ([rule(READ, user="bob")], READ, False),
    "allowed from here": ([rule(READ, host=HOST)], READ, True),
    "allowed from elsewhere": ([rule(READ, host="10.0.0.8")], READ, False),
    "another resource": ([rule(READ, name="u")], READ, False),
    "every resource": ([rule(READ, name="*")], READ, True),
    "by its beginning": ([rule(READ, name="t", pattern=PatternType.PREFIXED)], READ, True),
    "by more than its name": ([rule(READ, name="tt", pattern=PatternType.PREFIXED)], READ, False),
    "a prefix of * is a prefix": ([rule(READ, name="*", pattern=PatternType.PREFIXED)], READ, False),
    "denied by *": ([rule(READ), rule(READ, DENY, name="*")], READ, False),
    "denied by prefix": ([rule(READ), rule(READ, DENY, name="t", pattern=PatternType.PREFIXED)], READ, False),
    "an operation of a newer Kafka": ([rule(AclOperation.UNKNOWN)], READ, False),
    "a permission of a newer Kafka": ([rule(READ, AclPermissionType.UNKNOWN)], READ, False),
}


@pytest.mark.parametrize(("acls", "operation", "allowed"), CASES.values(), ids=CASES)
def test_the_rules(acls: list[AclBinding], operation: AclOperation, allowed: bool) -> None:
    assert authorizer(*acls).allows(ALICE, operation, TOPIC, "t") is allowed


@pytest.mark.parametrize(("acls", "operation", "allowed"), CASES.values(), ids=CASES)
def test_the_rules_for_a_super_user_and_without_an_authorizer(
    acls: list[AclBinding], operation: AclOperation, allowed: bool
) -> None:
    del allowed
    assert authorizer(*acls).allows(Caller(ADMIN, HOST), operation, TOPIC, "t")
    assert authorizer(*acls, enabled=False).allows(ALICE, operation, TOPIC, "t")


def test_where_no_acl_is_found_everyone_may_if_the_setting_says_so() -> None:
    lenient = authorizer(
        rule(READ, user="bob"), rule(READ, name="p", pattern=PatternType.PREFIXED), allow_everyone=True
    )
    assert lenient.allows(ALICE, READ, TOPIC, "u")
    assert lenient.allows(ALICE, READ, USER, "t")
    assert not lenient.allows(ALICE, READ, TOPIC, "t")
    assert not lenient.allows(ALICE, WRITE, TOPIC, "pq")
    everything = authorizer(rule(READ, name="*", user="bob"), allow_everyone=True)
    assert not everything.allows(ALICE, READ, TOPIC, "u")


def test_another_type_of_the_same_name_is_somebody_else() -> None:
    allowing = authorizer(rule(READ))
    assert not allowing.allows(Caller(Principal("Group", "alice"), HOST), READ, TOPIC, "t")
    assert not allowing.allows(Caller(Principal("Group", "admin"), HOST), READ, TOPIC, "t")


# Against Kafka's rule, said anew and without any index

NAMES = st.text(alphabet="ab*", min_size=1, max_size=3)
ENTRIES = st.builds(
    AccessControlEntry,
    st.sampled_from([ALICE.principal, BOB.principal, Principal.user("*")]),
    st.sampled_from(["*", HOST, "10.0.0.8"]),
    st.sampled_from([READ, DESCRIBE, ALTER_CONFIGS, DESCRIBE_CONFIGS, ALL, AclOperation.UNKNOWN]),
    st.sampled_from([ALLOW, ALLOW, DENY]),
)
BINDINGS = st.builds(
    AclBinding,
    st.builds(ResourcePattern, st.sampled_from([TOPIC, USER]), NAMES, st.sampled_from(PATTERN_TYPES)),
    ENTRIES,
)


def as_kafka_says(acls: list[AclBinding], name: str, operation: AclOperation, *, allow_everyone: bool) -> bool:
    found = [
        each.entry
        for each in acls
        if each.pattern.resource_type is TOPIC
        and (
            name.startswith(each.pattern.name)
            if each.pattern.pattern_type is PatternType.PREFIXED
            else each.pattern.name in (name, "*")
        )
    ]

    def matching(permission: AclPermissionType, wanted: AclOperation) -> bool:
        return any(
            each.permission_type is permission
            and str(each.principal) in ("User:alice", "User:*")
            and each.operation in (wanted, ALL)
            and each.host in (HOST, "*")
            for each in found
        )

    implying = {DESCRIBE: [DESCRIBE, READ, WRITE, DELETE, ALTER], DESCRIBE_CONFIGS: [DESCRIBE_CONFIGS, ALTER_CONFIGS]}
    if not found:
        return allow_everyone
    if matching(DENY, operation):
        return False
    return any(matching(ALLOW, each) for each in implying.get(operation, [operation]))


@given(
    acls=st.lists(BINDINGS, max_size=8),
    name=NAMES,
    operation=st.sampled_from([READ, DESCRIBE, DESCRIBE_CONFIGS]),
    allow_everyone=st.booleans(),
)
def test_any_acls_mean_what_kafka_says(
    acls: list[AclBinding], name: str, operation: AclOperation, allow_everyone: bool
) -> None:
    expected = as_kafka_says(acls, name, operation, allow_everyone=allow_everyone)
    assert authorizer(*acls, allow_everyone=allow_everyone).allows(ALICE, operation, TOPIC, name) is expected


@given(before=st.lists(BINDINGS, max_size=6), after=st.lists(BINDINGS, max_size=6))
def test_a_cache_that_was_changed_is_like_one_that_was_always_so(
    before: list[AclBinding], after: list[AclBinding]
) -> None:
    changed, new = cache_of(before), cache_of(after)
    for pattern in {each.pattern for each in before} - {each.pattern for each in after}:
        changed.put(pattern, ())
        changed.put(pattern, ())
    for pattern in new.patterns():
        entries = tuple(each.entry for each in new if each.pattern == pattern)
        changed.put(pattern, entries)
    assert set(changed) == set(new)
    assert len(changed) == len(new)
    for name in ("a", "aa", "ab", "*", "b*a"):
        assert set(changed.of_name(TOPIC, name)) == set(new.of_name(TOPIC, name))
        assert changed.of_all(TOPIC) == new.of_all(TOPIC)


# Tokens of others


def token(owner: Principal, token_id: str = "id") -> Token:
    return Token(
        token_id=token_id,
        owner=owner,
        requester=owner,
        renewers=(),
        issue_timestamp_ms=0,
        max_timestamp_ms=1,
        expiry_timestamp_ms=1,
    )


async def test_tokens_are_made_for_oneself_and_for_whom_an_acl_says() -> None:
    allowing = authorizer(acl(USER, "User:bob", "alice", CREATE_TOKENS))
    assert await allowing.may_create_for(ALICE, ALICE.principal)
    assert await allowing.may_create_for(ALICE, BOB.principal)
    assert not await allowing.may_create_for(ALICE, Principal("Group", "bob"))
    assert not await allowing.may_create_for(BOB, ALICE.principal)
    assert await allowing.may_create_for(Caller(ADMIN, HOST), ALICE.principal)


async def test_a_decision_by_acls_waits_for_those_of_now_and_other_decisions_wait_for_nothing() -> None:
    cache = AclCache()

    async def catch_up() -> None:
        made = acl(USER, "User:bob", "alice", CREATE_TOKENS)
        cache.put(made.pattern, (made.entry,))

    async def fail() -> None:
        raise AclStoreUnavailable("no broker answers")

    properties = {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer", "super.users": f"{ADMIN}"}
    settings = from_properties(properties).settings
    current = Authorizer.from_settings(settings, cache, catch_up)
    assert await current.may_create_for(ALICE, BOB.principal)
    too_old = Authorizer.from_settings(settings, cache, fail)
    assert await too_old.may_create_for(ALICE, ALICE.principal)
    assert await too_old.may_create_for(Caller(ADMIN, HOST), BOB.principal)
    with pytest.raises(AclStoreUnavailable):
        await too_old.may_create_for(ALICE, BOB.principal)


def test_tokens_of_others_are_seen_by_their_owner_or_by_their_id() -> None:
    seeing = authorizer(
        acl(USER, "User:bob", "alice", AclOperation.DESCRIBE_TOKENS),
        acl(TOKEN, "mine", "alice", DESCRIBE),
        acl(TOKEN, "my-", "alice", DESCRIBE, pattern=PatternType.PREFIXED),
    ).visible_to(ALICE)
    carol = Principal.user("carol")
    assert seeing(token(BOB.principal))
    assert not seeing(token(carol))
    assert seeing(token(carol, "mine"))
    assert seeing(token(carol, "my-token"))
    assert not seeing(token(carol, "mine-too"))


def test_a_describe_asks_once_for_each_owner() -> None:
    class Counted(AclCache):
        asked = 0

        def of_name(self, resource_type: ResourceType, name: str) -> Sequence[tuple[AccessControlEntry, ...]]:
            self.asked += resource_type is USER
            return super().of_name(resource_type, name)

    cache = Counted()
    cache.put(ResourcePattern(USER, "User:", PatternType.PREFIXED), (acl(USER, "", "alice", AclOperation.ALL).entry,))
    strict = Authorizer(cache, enabled=True, super_users=frozenset(), allow_everyone=False, super_users_revoke_any=True)
    visible = strict.visible_to(ALICE)
    owners = [Principal.user(f"owner-{number}") for number in range(10)]
    assert all(visible(token(owners[number % 10], f"id-{number}")) for number in range(1_000))
    assert cache.asked == 10


def test_a_hundred_thousand_tokens_are_judged_quickly_whatever_the_acls() -> None:
    acls = [acl(TOKEN, f"prefix-{number}", "alice", DESCRIBE, pattern=PatternType.PREFIXED) for number in range(1_000)]
    acls += [acl(TOKEN, f"id-{number}", "alice", DESCRIBE, permission=DENY) for number in range(1_000)]
    acls += [acl(USER, f"User:owner-{number}", "alice", AclOperation.DESCRIBE_TOKENS) for number in range(1_000)]
    visible = authorizer(*acls).visible_to(ALICE)
    tokens = [token(Principal.user(f"owner-{number % 2_000}"), f"id-{number}") for number in range(2_000)]
    begun = time.process_time()
    seen = sum(visible(each) for _ in range(50) for each in tokens)
    assert time.process_time() - begun < 5
    assert seen == 50_000


@pytest.mark.parametrize(("revoke_any", "allowed"), [(True, True), (False, False)])
def test_super_users_revoke_any_token_unless_a_setting_says_otherwise(revoke_any: bool, allowed: bool) -> None:
    made = authorizer(acl(USER, "*", "alice", ALL), acl(TOKEN, "*", "alice", ALL), revoke_any=revoke_any)
    assert made.may_revoke_any(Caller(ADMIN, HOST)) is allowed
    assert not made.may_revoke_any(ALICE)


# What is told


def test_the_operations_that_are_allowed_are_told_as_bits() -> None:
    made = authorizer(
        acl(CLUSTER, "kafka-cluster", "alice", ALTER), acl(CLUSTER, "kafka-cluster", "alice", DESCRIBE, permission=DENY)
    )
    assert made.authorized_operations(ALICE, CLUSTER, "kafka-cluster") == 1 << ALTER
    assert made.authorized_operations(BOB, CLUSTER, "kafka-cluster") == 0
    assert made.authorized_operations(Caller(ADMIN, HOST), USER, "User:bob") == 1 << 13 | 1 << 14


async def test_a_refusal_is_logged_and_a_selection_is_not(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    strict = authorizer()
    strict.visible_to(ALICE)(token(BOB.principal))
    strict.authorized_operations(ALICE, CLUSTER, "kafka-cluster")
    assert not caplog.records
    odd = replace(ALICE, principal=Principal.user("a\nb"))
    assert not await strict.may_create_for(odd, Principal.user("c\nd"))
    assert [record.getMessage() for record in caplog.records] == [
        r"Denied: 'User:a\nb' from 10.0.0.7 may not CREATE_TOKENS User 'User:c\nd'"
    ]


# Settings


def test_the_settings_are_those_of_a_broker() -> None:
    properties = {
        "zookeeper.connect": "localhost:2181",
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:admin; User:CN=ops,O=x ;",
        "allow.everyone.if.no.acl.found": "true",
        "kafka.dt.super.users.revoke.any": "false",
    }
    made = Authorizer.from_settings(from_properties(properties).settings, cache_of([rule(READ, user="bob")]))
    assert made.enabled
    assert made.allows(ALICE, READ, TOPIC, "u")
    assert not made.allows(ALICE, READ, TOPIC, "t")
    assert made.allows(Caller(Principal.user("CN=ops,O=x"), HOST), READ, TOPIC, "t")
    assert not made.may_revoke_any(Caller(ADMIN, HOST))


def test_a_super_user_without_type_is_an_error_of_the_configuration() -> None:
    settings = from_properties({"zookeeper.connect": "localhost:2181", "super.users": "admin"}).settings
    with pytest.raises(ConfigError, match=r"super\.users"):
        Authorizer.from_settings(settings, AclCache())
