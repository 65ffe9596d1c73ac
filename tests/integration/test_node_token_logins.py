"""What a connection that logged in with a token may do and may not, where other tests do not say it already.

docs/security.md has the whole list.
"""

from __future__ import annotations

import pytest

from kafka_dt.client import DelegationToken
from kafka_dt.identity.acls.binding import AclOperation, ResourceType
from tests.support.identity.acl_client import Acl, Filter, create_acls, delete_acls
from tests.support.identity.scram_changes import upsertion
from tests.support.nodes.node import Node
from tests.support.protocol.raw import CREATE, DESCRIBE, EXPIRE, RENEW, LoginRefused, RawConnection, ms

DESCRIBE_USERS = 50
ALTER_USERS = 51
REFUSED = 64
USER = "made by a thief"


@pytest.fixture
async def token(node: Node) -> DelegationToken:
    async with node.client() as client:
        return await client.create()


def refusal(connection: RawConnection, api: int) -> int:
    """The error of a request about tokens that the owner may make."""
    match api:
        case 38:
            owner: dict[str, object] = {"owner_principal_type": None, "owner_principal_name": None}
            answer = connection.ask(CREATE, 3, renewers=(), max_lifetime=ms(-1), **owner)
        case 39:
            answer = connection.ask(RENEW, 2, hmac=bytes(64), renew_period=ms(-1))
        case 40:
            answer = connection.ask(EXPIRE, 2, hmac=bytes(64), expiry_time_period=ms(-1))
        case _:
            answer = connection.ask(DESCRIBE, 3, owners=None)
    return int(answer.error_code.value)


def test_a_token_begets_prolongs_ends_and_shows_no_tokens(node: Node, token: DelegationToken) -> None:
    with node.connect_by_token(token) as connection:
        assert [refusal(connection, api) for api in (CREATE, RENEW, EXPIRE, DESCRIBE)] == [REFUSED] * 4


def test_a_token_makes_no_password_and_sees_which_there_are(node: Node, token: DelegationToken) -> None:
    with node.connect_by_token(token) as connection:
        altered = connection.ask(ALTER_USERS, 0, deletions=(), upsertions=(upsertion(USER),))
        assert [(each.user, each.error_code.value) for each in altered.results] == [(USER, REFUSED)]
        described = connection.ask(DESCRIBE_USERS, 0, users=None)
        assert described.error_code.value == 0
        assert USER not in {each.user for each in described.results}


def test_a_token_is_no_password_of_plain(node: Node, token: DelegationToken) -> None:
    with node.connect() as connection, pytest.raises(LoginRefused):
        connection.login_plain(token.token_id, token.hmac_base64)


def test_a_token_changes_acls_as_its_owner_may(node: Node, token: DelegationToken) -> None:
    acl = Acl("User:another", AclOperation.READ, ResourceType.TOPIC, "a-topic-of-a-token")
    with node.connect_by_token(token) as connection:
        assert create_acls(connection, acl) == [0]
        assert delete_acls(connection, Filter(name=acl.name)) == [(0, {acl})]
