"""Who may do what: a real broker and kafka-dt are given the same ACLs, asked the same, and must answer the same.

`CASES` is the table: who asks, by which login and listener, under which ACLs, for what, and what comes of it. `{me}`
stands for a name that is new in each test, so that tests do not meet.
"""

from __future__ import annotations

import base64
import contextlib
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from kio.schema.create_delegation_token.v3.request import CreatableRenewers
from kio.schema.describe_delegation_token.v3.request import DescribeDelegationTokenOwner
from kio.schema.metadata.v12.request import MetadataRequestTopic
from kio.schema.types import TopicName

from kafka_dt.identity.acls.binding import AclOperation, AclPermissionType, PatternType, ResourceType
from tests.interop.conftest import BROKER_IN_SOAK, Authority
from tests.support.brokers.broker import USERS
from tests.support.identity.acl_client import (
    Acl,
    BareAcl,
    Filter,
    ask_to_create,
    create_acls,
    delete_acls,
    describe_acls,
    filter_of,
)
from tests.support.processes.waiting import eventually
from tests.support.protocol.raw import (
    CREATE,
    CREATE_ACLS,
    DESCRIBE,
    DESCRIBE_CLUSTER,
    EXPIRE,
    FIND_COORDINATOR,
    METADATA,
    RENEW,
    RawConnection,
    ms,
    request_type,
)

USER, CLUSTER, TOPIC = ResourceType.USER, ResourceType.CLUSTER, ResourceType.TOPIC
GROUP, TRANSACTIONAL_ID, TOKEN = ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID, ResourceType.DELEGATION_TOKEN
ALL, DESCRIBE_IT, ALTER = AclOperation.ALL, AclOperation.DESCRIBE, AclOperation.ALTER
CREATE_TOKENS, DESCRIBE_TOKENS = AclOperation.CREATE_TOKENS, AclOperation.DESCRIBE_TOKENS
READ, WRITE, DELETE = AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE
DENY, PREFIXED = AclPermissionType.DENY, PatternType.PREFIXED
KAFKA_CLUSTER = "kafka-cluster"
WITHIN_S = 5.0
NOT_TOLD = -(2**31)


@dataclass
class Stage:
    """What an action works with: the caller's connection, the super user's, and this test's own name."""

    caller: RawConnection
    admin: RawConnection
    me: str


Action = Callable[[Stage], object]


def create_for(owner: str) -> Action:
    """Create a token for an owner; its error."""

    def act(stage: Stage) -> object:
        return create(stage.caller, owner.format(me=stage.me)).error_code.value

    return act


def sees_tokens_of(owner: str) -> Action:
    """Whether the caller is shown a token of an owner that the super user has made."""

    def act(stage: Stage) -> object:
        return sees(stage.caller, known(stage.admin, create(stage.admin, owner.format(me=stage.me))))

    return act


def sees_by_token_acl(pattern: int, *, permission: int = AclPermissionType.ALLOW, cut: int = 22) -> Action:
    """Whether the caller is shown a token about whose id there is an ACL."""

    def act(stage: Stage) -> object:
        made = known(stage.admin, create(stage.admin, f"User:{stage.me}"))
        acl = Acl("alice", DESCRIBE_IT, TOKEN, made.token_id[:cut], permission, pattern)
        with granted(stage.admin, acl):
            return sees(stage.caller, made)

    return act


def revoke_of_other(stage: Stage) -> object:
    """Renew and expire a token of another owner; gives the errors."""
    made = known(stage.admin, create(stage.admin, f"User:{stage.me}"))
    renewed = stage.caller.ask(RENEW, 2, hmac=made.hmac, renew_period=ms(-1)).error_code.value
    return renewed, stage.caller.ask(EXPIRE, 2, hmac=made.hmac, expiry_time_period=ms(-1)).error_code.value


def list_acls(stage: Stage) -> object:
    """List ACLs; the error."""
    return describe_acls(stage.caller, Filter(USER, stage.me))[0]


def add_acl(stage: Stage) -> object:
    """Create an ACL; the error."""
    acl = Acl("bob", CREATE_TOKENS, USER, f"User:{stage.me}")
    error = create_acls(stage.caller, acl)
    delete_acls(stage.admin, filter_of(acl))
    return error


def remove_acl(stage: Stage) -> object:
    """Delete an ACL that there is; the error."""
    acl = Acl("bob", CREATE_TOKENS, USER, f"User:{stage.me}")
    with granted(stage.admin, acl):
        return delete_acls(stage.caller, filter_of(acl))[0][0]


def cluster_operations(stage: Stage) -> object:
    """What the caller may do to the cluster, by DescribeCluster and by Metadata."""
    described = stage.caller.ask(DESCRIBE_CLUSTER, 0, include_cluster_authorized_operations=True)
    known = stage.caller.ask(
        METADATA,
        8,
        topics=(),
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=True,
        include_topic_authorized_operations=False,
    )
    assert described.error_code.value == 0
    assert described.cluster_authorized_operations == known.cluster_authorized_operations
    return bits(described.cluster_authorized_operations)


def topic_error(stage: Stage) -> object:
    """Ask for a topic that does not exist; its error and what the caller may do to it."""
    (topic,) = stage.caller.ask(
        METADATA,
        12,
        topics=(MetadataRequestTopic(topic_id=None, name=TopicName(f"t-{stage.me}")),),
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
    ).topics
    return topic.error_code.value, bits(topic.topic_authorized_operations)


def may_ask_for_coordinator(key_type: int, version: int) -> Action:
    """Whether asking for a coordinator is refused because an ACL is missing (kafka-dt never has a coordinator)."""

    def act(stage: Stage) -> object:
        key = f"g-{stage.me}"
        values = {"key": key} if version < 4 else {"coordinator_keys": (key,)}
        answer = stage.caller.ask(FIND_COORDINATOR, version, key_type=key_type, **values)
        found = answer if version < 4 else answer.coordinators[0]
        return found.error_code.value if found.error_code.value in (30, 53) else "allowed"

    return act


@dataclass(frozen=True)
class Case:
    """One row of the table."""

    what: str
    acls: tuple[Acl, ...]
    action: Action
    expected: object
    caller: str = "alice"
    login: str = "PLAIN"
    """PLAIN; or SCRAM-SHA-256 or SCRAM-SHA-512, by a token that the caller owns; or none, on the PLAINTEXT listener."""


MAKE, SEE = create_for("User:{me}"), sees_tokens_of("User:{me}")


def allow(operation: int, name: str = "User:{me}", resource_type: int = USER, **changes: Any) -> Acl:
    return replace(Acl("alice", operation, resource_type, name), **changes)


CASES = (
    Case("for oneself", (), create_for("User:alice"), 0),
    Case("for another without ACL", (), MAKE, 65),
    Case("super user for another", (), MAKE, 0, caller="admin"),
    Case("CreateTokens on the owner", (allow(CREATE_TOKENS),), MAKE, 0),
    Case("CreateTokens on another owner", (allow(CREATE_TOKENS, "User:{me}x"),), MAKE, 65),
    Case("CreateTokens for another user", (allow(CREATE_TOKENS, user="bob"),), MAKE, 65),
    Case("CreateTokens on the name without type", (allow(CREATE_TOKENS, "{me}"),), MAKE, 65),
    Case("CreateTokens on a topic of that name", (allow(CREATE_TOKENS, resource_type=TOPIC),), MAKE, 65),
    Case("CreateTokens on owner of another type", (allow(CREATE_TOKENS),), create_for("Group:{me}"), 65),
    Case("CreateTokens on a Group", (allow(CREATE_TOKENS, "Group:{me}"),), create_for("Group:{me}"), 0),
    Case("DescribeTokens does not create", (allow(DESCRIBE_TOKENS),), MAKE, 65),
    Case("All", (allow(ALL),), MAKE, 0),
    Case("Alter implies Describe only", (allow(ALTER),), MAKE, 65),
    Case("prefixed", (allow(CREATE_TOKENS, "User:{me}", pattern=PREFIXED),), create_for("User:{me}-1"), 0),
    Case("prefixed, not the prefix", (allow(CREATE_TOKENS, "User:{me}-", pattern=PREFIXED),), MAKE, 65),
    Case("prefixed, whole name", (allow(CREATE_TOKENS, pattern=PREFIXED),), MAKE, 0),
    Case("literal is no prefix", (allow(CREATE_TOKENS),), create_for("User:{me}-1"), 65),
    Case("prefixed * is no wildcard", (allow(CREATE_TOKENS, "*", pattern=PREFIXED),), MAKE, 65),
    Case("literal *", (allow(CREATE_TOKENS, "*"),), MAKE, 0),
    Case("literal * in a name is no wildcard", (allow(CREATE_TOKENS, "User:*"),), MAKE, 65),
    Case("everybody", (allow(CREATE_TOKENS, user="*"),), MAKE, 0),
    Case("everybody of another type", (allow(CREATE_TOKENS, user="Group:*"),), MAKE, 65),
    Case("same name of another type", (allow(CREATE_TOKENS, user="Group:alice"),), MAKE, 65),
    Case("from this host", (allow(CREATE_TOKENS, host="127.0.0.1"),), MAKE, 0),
    Case("from another host", (allow(CREATE_TOKENS, host="10.9.9.9"),), MAKE, 65),
    Case("from a host name", (allow(CREATE_TOKENS, host="localhost"),), MAKE, 65),
    Case("Deny before Allow", (allow(CREATE_TOKENS), allow(CREATE_TOKENS, permission=DENY)), MAKE, 65),
    Case("Deny of All", (allow(CREATE_TOKENS), allow(ALL, permission=DENY)), MAKE, 65),
    Case("Deny of another operation", (allow(ALL), allow(DESCRIBE_TOKENS, permission=DENY)), MAKE, 0),
    Case("Deny for another user", (allow(ALL), allow(ALL, permission=DENY, user="bob")), MAKE, 0),
    Case("Deny for everybody", (allow(ALL), allow(ALL, permission=DENY, user="*")), MAKE, 65),
    Case("Deny from another host", (allow(ALL), allow(ALL, permission=DENY, host="10.9.9.9")), MAKE, 0),
    Case("Deny by prefix", (allow(ALL), allow(ALL, "User:{me}", permission=DENY, pattern=PREFIXED)), MAKE, 65),
    Case("Deny by *", (allow(ALL), allow(CREATE_TOKENS, "*", permission=DENY)), MAKE, 65),
    Case("Deny for a super user", (allow(ALL, permission=DENY, user="admin"),), MAKE, 0, caller="admin"),
    Case("Deny for oneself", (allow(ALL, "User:alice", permission=DENY),), create_for("User:alice"), 0),
    Case("by token for oneself", (), create_for("User:alice"), 64, login="SCRAM-SHA-256"),
    Case("by token with ACL", (allow(ALL),), MAKE, 64, login="SCRAM-SHA-512"),
    Case("super user by token", (), MAKE, 64, caller="admin", login="SCRAM-SHA-256"),
    Case("without login", (allow(ALL, user="*"),), MAKE, 64, login="none"),
    Case("see without ACL", (), SEE, False),
    Case("see as super user", (), SEE, True, caller="admin"),
    Case("see as owner", (), sees_tokens_of("User:alice"), True),
    Case("see by DescribeTokens", (allow(DESCRIBE_TOKENS),), SEE, True),
    Case("see by DescribeTokens on *", (allow(DESCRIBE_TOKENS, "*"),), SEE, True),
    Case("see by prefix", (allow(DESCRIBE_TOKENS, "User:{me}", pattern=PREFIXED),), SEE, True),
    Case("CreateTokens does not show", (allow(CREATE_TOKENS),), SEE, False),
    Case("Describe on the User does not show", (allow(DESCRIBE_IT),), SEE, False),
    Case("see, denied", (allow(ALL), allow(DESCRIBE_TOKENS, permission=DENY)), SEE, False),
    Case("see by Describe on the token", (), sees_by_token_acl(PatternType.LITERAL), True),
    Case("see by Describe on a prefix of its id", (), sees_by_token_acl(PREFIXED, cut=9), True),
    Case("see by Describe on a part of its id", (), sees_by_token_acl(PatternType.LITERAL, cut=9), False),
    Case("see by Describe on every token", (allow(DESCRIBE_IT, "*", TOKEN),), SEE, True),
    Case("see by Read on every token", (allow(READ, "*", TOKEN),), SEE, True),
    Case(
        "see all but one",
        (allow(DESCRIBE_IT, "*", TOKEN),),
        sees_by_token_acl(PatternType.LITERAL, permission=DENY),
        False,
    ),
    Case(
        "a denied token is seen by its owner's name",
        (allow(DESCRIBE_TOKENS),),
        sees_by_token_acl(PatternType.LITERAL, permission=DENY),
        True,
    ),
    Case("ACLs do not let renew or expire", (allow(ALL), allow(ALL, "*", TOKEN)), revoke_of_other, (63, 63)),
    Case("list ACLs without ACL", (), list_acls, 31),
    Case("list ACLs by Describe", (allow(DESCRIBE_IT, KAFKA_CLUSTER, CLUSTER),), list_acls, 0),
    Case("list ACLs by Alter", (allow(ALTER, KAFKA_CLUSTER, CLUSTER),), list_acls, 0),
    Case("add ACL by Describe", (allow(DESCRIBE_IT, KAFKA_CLUSTER, CLUSTER),), add_acl, [31]),
    Case("add ACL by Alter", (allow(ALTER, KAFKA_CLUSTER, CLUSTER),), add_acl, [0]),
    Case("add ACL as super user", (), add_acl, [0], caller="admin"),
    Case("add ACL by token", (allow(ALTER, KAFKA_CLUSTER, CLUSTER),), add_acl, [0], login="SCRAM-SHA-256"),
    Case("remove ACL without ACL", (), remove_acl, 31),
    Case("remove ACL by Alter", (allow(ALTER, KAFKA_CLUSTER, CLUSTER),), remove_acl, 0),
    Case("cluster operations without ACL", (), cluster_operations, set()),
    Case("cluster operations by Alter", (allow(ALTER, KAFKA_CLUSTER, CLUSTER),), cluster_operations, {7, 8}),
    Case("cluster operations as super user", (), cluster_operations, {5, 7, 8, 9, 10, 11, 12}, caller="admin"),
    Case(
        "cluster operations but one",
        (allow(ALL, KAFKA_CLUSTER, CLUSTER), allow(ALTER, KAFKA_CLUSTER, CLUSTER, permission=DENY)),
        cluster_operations,
        {5, 8, 9, 10, 11, 12},
    ),
    Case("topic without ACL", (), topic_error, (29, None)),
    Case("topic by Describe", (allow(DESCRIBE_IT, "t-{me}", TOPIC),), topic_error, (3, {8})),
    Case("topic by Write", (allow(WRITE, "t-{me}", TOPIC),), topic_error, (3, {4, 8})),
    Case("topic by Delete", (allow(DELETE, "t-{me}", TOPIC),), topic_error, (3, {6, 8})),
    Case(
        "topic, Describe denied",
        (allow(READ, "t-", TOPIC, pattern=PREFIXED), allow(DESCRIBE_IT, "t-{me}", TOPIC, permission=DENY)),
        topic_error,
        (29, None),
    ),
    Case("group without ACL", (), may_ask_for_coordinator(0, 3), 30),
    Case("group without ACL, v4", (), may_ask_for_coordinator(0, 4), 30),
    Case("group by Read", (allow(READ, "g-{me}", GROUP),), may_ask_for_coordinator(0, 4), "allowed"),
    Case("transactional id without ACL", (), may_ask_for_coordinator(1, 4), 53),
    Case("transactional id", (allow(WRITE, "g-{me}", TRANSACTIONAL_ID),), may_ask_for_coordinator(1, 4), "allowed"),
)


@pytest.fixture
def me() -> str:
    """A name that is this test's own."""
    return f"o-{uuid.uuid4().hex}"


@pytest.fixture
def admin(guarded: Authority) -> Iterator[RawConnection]:
    """A connection of the super user, once the authority has heard that the ACLs of other tests are gone.

    They may have been deleted at the other authority a moment ago, and one about every resource means this test, too.
    """
    with logged_in(guarded, "admin") as connection:
        eventually(lambda: describe_acls(connection, Filter()) == (0, set()), within_s=WITHIN_S)
        yield connection


@pytest.mark.parametrize("guarded", BROKER_IN_SOAK, indirect=True)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.what)
def test_the_same_is_allowed_and_refused(guarded: Authority, admin: RawConnection, me: str, case: Case) -> None:
    acls = [replace(acl, name=acl.name.format(me=me)) for acl in case.acls]
    with logged_in(guarded, case.caller, case.login) as caller, granted(admin, *acls):
        assert case.action(Stage(caller, admin, me)) == case.expected


# What an ACL may be, and which ones a filter means


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"name": ""}, 42),
        ({"name": "a/b"}, 42),
        ({"resource_type": CLUSTER, "name": "other"}, 42),
        ({"resource_type": CLUSTER, "name": "kafka-", "pattern": PREFIXED}, 42),
        ({"resource_type": 100}, 42),
        ({"operation": 100}, 42),
        ({"permission": 100}, 42),
        ({"pattern": 100}, 42),
    ],
    ids=lambda value: str(value).replace("/", "-"),
)
def test_an_acl_that_cannot_be_is_refused_and_the_others_are_made(
    admin: RawConnection, me: str, wrong: dict[str, Any], error: int
) -> None:
    good = Acl("alice", CREATE_TOKENS, USER, me)
    with removed_afterwards(admin, good):
        answer = ask_to_create(admin, good, replace(good, **wrong), good)
        assert [each.error_code.value for each in answer.results] == [0, error, 0]
        assert answer.results[1].error_message
        assert describe_acls(admin, Filter(name=me)) == (0, {replace(good, user="User:alice")})


@pytest.mark.parametrize("field", ["resource_type", "operation", "permission_type", "resource_pattern_type"])
def test_a_code_of_0_is_answered_by_the_end_of_the_connection(guarded: Authority, field: str) -> None:
    creation = request_type(CREATE_ACLS, 3).__dataclass_fields__["creations"].type.__args__[0]
    values = {"resource_type": 7, "resource_pattern_type": 3, "operation": 13, "permission_type": 3, field: 0}
    with logged_in(guarded, "admin") as connection:
        connection.request(
            CREATE_ACLS, 3, creations=(creation(resource_name="x", principal="User:a", host="*", **values),)
        )
        assert connection.closed()


def test_filters_mean_the_same(admin: RawConnection, me: str) -> None:
    literal = Acl("User:alice", CREATE_TOKENS, USER, f"{me}-a")
    other = replace(literal, user="User:bob", host="10.0.0.7", permission=int(DENY))
    prefixed = replace(literal, name=f"{me}-", pattern=int(PREFIXED), operation=int(ALL))
    topic = Acl("User:alice", READ, TOPIC, f"{me}-a")
    filters = {
        "name": (Filter(name=f"{me}-a"), {literal, other, topic}),
        "type and name": (Filter(USER, f"{me}-a"), {literal, other}),
        "match": (Filter(USER, f"{me}-a", PatternType.MATCH), {literal, other, prefixed}),
        "match below": (Filter(USER, f"{me}-zzz", PatternType.MATCH), {prefixed}),
        "prefixed": (Filter(USER, f"{me}-", PREFIXED), {prefixed}),
        "any pattern of a name": (Filter(USER, f"{me}-"), {prefixed}),
        "literal": (Filter(name=f"{me}-", pattern=PatternType.LITERAL), set()),
        "principal": (Filter(USER, f"{me}-a", principal="User:bob"), {other}),
        "host": (Filter(USER, f"{me}-a", host="10.0.0.7"), {other}),
        "any host is not every host": (Filter(USER, f"{me}-a", host="*"), {literal}),
        "operation": (Filter(USER, f"{me}-", operation=ALL), {prefixed}),
        "operation, not implied": (Filter(USER, f"{me}-", operation=CREATE_TOKENS), set()),
        "permission": (Filter(USER, f"{me}-a", permission=DENY), {other}),
        "unknown codes": (Filter(100, f"{me}-a"), set()),
    }
    with granted(admin, literal, other, prefixed, topic):
        for what, (wanted, found) in filters.items():
            assert (what, describe_acls(admin, wanted)) == (what, (0, found))
        # One that two filters match stands with the first.
        assert delete_acls(
            admin, Filter(USER, f"{me}-a", principal="User:bob"), Filter(name=f"{me}-a"), Filter(name=me)
        ) == [(0, {other}), (0, {literal, topic}), (0, set())]
        assert delete_acls(admin, Filter(USER, f"{me}-x", PatternType.MATCH)) == [(0, {prefixed})]
        assert describe_acls(admin, Filter(USER, f"{me}-", PatternType.MATCH)) == (0, set())


@pytest.mark.parametrize("version", range(4))
def test_every_version_creates_lists_and_deletes(admin: RawConnection, me: str, version: int) -> None:
    acl = Acl("User:alice", READ, TOPIC, me)
    wanted = Filter(TOPIC, me, PatternType.LITERAL)
    with removed_afterwards(admin, acl):
        assert create_acls(admin, acl, version=version) == [0]
        assert describe_acls(admin, wanted, version=version) == (0, {acl})
        assert delete_acls(admin, wanted, version=version) == [(0, {acl})]
        assert delete_acls(admin, wanted, version=version) == [(0, set())]


def test_an_acl_that_is_there_is_created_again_without_effect(admin: RawConnection, me: str) -> None:
    acl = Acl("User:alice", READ, TOPIC, me)
    with granted(admin, acl):
        assert create_acls(admin, acl, acl) == [0, 0]
        assert describe_acls(admin, Filter(name=me)) == (0, {acl})


def test_what_a_broker_calls_an_unknown_error_has_a_reason_here(
    guarded: Authority, guarded_broker: Authority, admin: RawConnection, me: str
) -> None:
    good = Acl("alice", CREATE_TOKENS, USER, me)
    bare, any_operation = BareAcl("bob", CREATE_TOKENS, USER, f"{me}-2"), replace(good, operation=AclOperation.ANY)
    at_broker = guarded is guarded_broker
    with removed_afterwards(admin, good):
        assert create_acls(admin, good, any_operation) == ([-1, -1] if at_broker else [0, 42])
        answer = ask_to_create(admin, good, bare)
        assert [each.error_code.value for each in answer.results] == ([0, -1] if at_broker else [0, 42])
        assert (answer.results[1].error_message is None) == at_broker


def test_the_requester_is_kept_and_shown_and_sees_the_token_but_does_not_renew_it(
    guarded: Authority, admin: RawConnection, me: str
) -> None:
    with granted(admin, Acl("alice", CREATE_TOKENS, USER, f"User:{me}")), logged_in(guarded, "alice") as alice:
        made = known(admin, create(alice, f"User:{me}"))
        assert sees(alice, made)
        assert made.token_id in described_of(alice, "alice")
        assert made.token_id in described_of(admin, "alice")
        assert made.token_id not in described_of(admin, "bob")
        assert alice.ask(RENEW, 2, hmac=made.hmac, renew_period=ms(-1)).error_code.value == 63
    (described,) = (each for each in admin.ask(DESCRIBE, 3, owners=None).tokens if each.token_id == made.token_id)
    assert (described.principal_name, described.token_requester_principal_name) == (me, "alice")


def test_a_super_user_ends_any_token_here_and_renews_none(
    guarded: Authority, guarded_broker: Authority, admin: RawConnection
) -> None:
    with logged_in(guarded, "alice") as alice:
        made = known(admin, create(alice, "User:alice"))
    allowed = 63 if guarded is guarded_broker else 0
    assert admin.ask(RENEW, 2, hmac=made.hmac, renew_period=ms(-1)).error_code.value == 63
    assert admin.ask(EXPIRE, 2, hmac=made.hmac, expiry_time_period=ms(60_000)).error_code.value == allowed
    assert admin.ask(EXPIRE, 2, hmac=made.hmac, expiry_time_period=ms(-1)).error_code.value == allowed


# allow.everyone.if.no.acl.found=true, on the authorities without super users


def test_what_no_acl_is_about_is_allowed_to_everybody_and_all_else_only_to_whom_it_says(
    authority: Authority, me: str
) -> None:
    with logged_in(authority, "alice") as alice, logged_in(authority, "bob") as bob:
        assert create(alice, f"User:{me}").error_code.value == 0
        with granted(alice, Acl("bob", CREATE_TOKENS, USER, f"User:{me}")):
            assert eventual_error(alice, f"User:{me}", 65) == 65
            assert create(bob, f"User:{me}").error_code.value == 0
            assert create(alice, f"User:{me}-").error_code.value == 0
        assert eventual_error(alice, f"User:{me}", 0) == 0


# Helpers


def eventual_error(connection: RawConnection, owner: str, expected: int) -> int:
    """The error of a create, asked again for a while: another worker hears of an ACL a little later."""
    error = -1
    for _ in range(200):
        error = create(connection, owner).error_code.value
        if error == expected:
            break
    return error


def logged_in(authority: Authority, user: str, login: str = "PLAIN") -> RawConnection:
    if login == "none":
        return RawConnection(authority.plaintext)
    connection = RawConnection(authority.sasl)
    if login == "PLAIN":
        connection.login_plain(user, USERS[user])
        return connection
    with logged_in(authority, user) as owner:
        made = known(owner, create(owner, f"User:{user}"))
    connection.login_scram(made.token_id, base64.b64encode(made.hmac).decode(), login, token=True)
    return connection


def create(connection: RawConnection, owner: str, *renewers: str) -> Any:
    kind, _, name = owner.partition(":")
    return connection.ask(
        CREATE,
        3,
        owner_principal_type=kind,
        owner_principal_name=name,
        renewers=tuple(CreatableRenewers(principal_type="User", principal_name=each) for each in renewers),
        max_lifetime=ms(-1),
    )


def known(connection: RawConnection, made: Any) -> Any:
    """A token, once the authority shows it: a broker knows what it made when it has heard of it from ZooKeeper."""
    eventually(lambda: sees(connection, made), within_s=WITHIN_S)
    return made


def sees(connection: RawConnection, made: Any) -> bool:
    """Whether a token is described, among those of its owner and among all."""
    owner = DescribeDelegationTokenOwner(principal_type=made.principal_type, principal_name=made.principal_name)
    seen = {
        any(each.token_id == made.token_id for each in connection.ask(DESCRIBE, 3, owners=owners).tokens)
        for owners in ((owner,), None)
    }
    return seen == {True}


def described_of(connection: RawConnection, user: str) -> set[str]:
    """The tokens that are described when those of a user are asked for."""
    owner = DescribeDelegationTokenOwner(principal_type="User", principal_name=user)
    return {each.token_id for each in connection.ask(DESCRIBE, 3, owners=(owner,)).tokens}


def bits(field: int) -> set[int] | None:
    return None if field == NOT_TOLD else {bit for bit in range(31) if field >> bit & 1}


@contextlib.contextmanager
def granted(connection: RawConnection, *acls: Acl) -> Iterator[None]:
    """ACLs that are there while the block runs."""
    with removed_afterwards(connection, *acls):
        assert create_acls(connection, *acls) == [0] * len(acls)
        yield


@contextlib.contextmanager
def removed_afterwards(connection: RawConnection, *acls: Acl) -> Iterator[None]:
    try:
        yield
    finally:
        delete_acls(connection, *map(filter_of, acls))
