"""Why a login was refused, for those who count: one reason of a closed set, and the token that was meant."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from kafka_dt.audit import RefusalReason
from kafka_dt.identity.login.login import LoggedIn, Login, LoginOutcome, LoginRefused
from kafka_dt_protocol.sasl import DIGEST_MD5, OAUTHBEARER, PLAIN, ScramMechanism, plain_message
from tests.unit.identity.login.test_login import HOUR, NOW, PASSWORD, TOKEN_ID, World, evaluated, scram, token

SHA_256 = ScramMechanism.SHA_256
UNKNOWN_ID = "AAAAAAAAAAAAAAAAAAAAAA"


@pytest.fixture
def world() -> Iterator[World]:
    with ThreadPoolExecutor(1) as executor:
        yield World(executor)


async def plain(login: Login, user: str, password: str, authorization_id: str = "") -> LoginOutcome:
    login.begin(PLAIN)
    return await evaluated(login, plain_message(user, password, authorization_id))


def refused(outcome: LoginOutcome) -> LoginRefused:
    assert isinstance(outcome, LoginRefused), outcome
    return outcome


async def test_a_login_by_token_says_which_token_it_was(world: World) -> None:
    outcome = await scram(world.login(), SHA_256, TOKEN_ID, PASSWORD, extension=True)
    assert isinstance(outcome, LoggedIn)
    assert outcome.token == token()


async def test_a_login_of_a_user_is_by_no_token(world: World) -> None:
    outcome = await scram(world.login(), SHA_256, "carol", "carol's")
    assert isinstance(outcome, LoggedIn)
    assert outcome.token is None


@pytest.mark.parametrize("extension", [True, False])
async def test_a_wrong_password_of_a_token_tells_which_token(world: World, extension: bool) -> None:
    outcome = refused(await scram(world.login(), SHA_256, TOKEN_ID, "wrong", extension=extension))
    assert (outcome.reason, outcome.by_token, outcome.token) == (RefusalReason.WRONG_CREDENTIALS, True, token())


@pytest.mark.parametrize(
    ("name", "extension", "by_token", "reason"),
    [
        pytest.param(UNKNOWN_ID, True, True, RefusalReason.UNKNOWN_TOKEN, id="it says so"),
        pytest.param(UNKNOWN_ID, False, True, RefusalReason.UNKNOWN_TOKEN, id="it looks like one"),
        pytest.param("mallory", True, True, RefusalReason.UNKNOWN_TOKEN, id="it says so and looks like none"),
        pytest.param("carol", True, True, RefusalReason.UNKNOWN_TOKEN, id="a user that says so"),
        pytest.param("mallory", False, False, RefusalReason.UNKNOWN_USER, id="a user's name"),
    ],
)
async def test_a_name_that_nobody_has_is_a_token_id_or_a_users(
    world: World, name: str, extension: bool, by_token: bool, reason: RefusalReason
) -> None:
    outcome = refused(await scram(world.login(), SHA_256, name, "any", extension=extension))
    assert (outcome.reason, outcome.by_token, outcome.token) == (reason, by_token, None)


async def test_where_token_ids_are_no_user_names_a_name_is_a_users(world: World) -> None:
    world.without_extension = False
    outcome = refused(await scram(world.login(), SHA_256, TOKEN_ID, PASSWORD))
    # It has the form of an id all the same: an operator who looks for stolen tokens wants to see it.
    assert (outcome.reason, outcome.by_token) == (RefusalReason.UNKNOWN_TOKEN, True)


async def test_an_expired_token_is_told_from_one_that_never_was(world: World) -> None:
    expired = token(expiry_timestamp_ms=NOW - 1)
    world.tokens.cached[TOKEN_ID] = expired
    outcome = refused(await scram(world.login(), SHA_256, TOKEN_ID, PASSWORD, extension=True))
    assert (outcome.reason, outcome.by_token, outcome.token) == (RefusalReason.EXPIRED_TOKEN, True, expired)
    assert outcome.detail == "the token has expired"


async def test_a_silent_store_is_no_fault_of_the_client(world: World) -> None:
    world.tokens.stale = True
    outcome = refused(await scram(world.login(), SHA_256, TOKEN_ID, PASSWORD, extension=True))
    assert (outcome.reason, outcome.by_token, outcome.token) == (RefusalReason.UNAVAILABLE, True, None)


async def test_a_revocation_that_cannot_be_heard_of_is_no_fault_of_the_client(world: World) -> None:
    login = world.login()
    world.other_worker.post(TOKEN_ID)
    world.cut_off = True
    outcome = refused(await scram(login, SHA_256, TOKEN_ID, PASSWORD, extension=True))
    assert outcome.reason is RefusalReason.UNAVAILABLE


@pytest.mark.parametrize(
    ("user", "password", "authorization_id", "reason"),
    [
        ("alice", "wrong", "", RefusalReason.WRONG_CREDENTIALS),
        ("mallory", "any", "", RefusalReason.UNKNOWN_USER),
        (UNKNOWN_ID, "any", "", RefusalReason.UNKNOWN_USER),
        ("alice", "alice's", "bob", RefusalReason.NOT_ALLOWED),
    ],
)
async def test_plain_is_for_users(
    world: World, user: str, password: str, authorization_id: str, reason: RefusalReason
) -> None:
    outcome = refused(await plain(world.login(), user, password, authorization_id))
    assert (outcome.reason, outcome.by_token) == (reason, False)


@pytest.mark.parametrize("mechanism", [PLAIN, SHA_256, OAUTHBEARER, DIGEST_MD5])
async def test_what_is_no_message_of_the_mechanism_breaks_the_exchange(world: World, mechanism: str) -> None:
    login = world.login()
    login.begin(mechanism)
    outcome = refused(await evaluated(login, b"\xff\xfe nonsense"))
    assert (outcome.reason, outcome.by_token, outcome.name) == (RefusalReason.BROKEN_EXCHANGE, False, "")


async def test_another_principal_at_a_re_authentication_is_not_allowed(world: World) -> None:
    world.max_reauth_ms = {PLAIN: HOUR}
    login = world.login()
    assert isinstance(await scram(login, SHA_256, "carol", "carol's"), LoggedIn)
    outcome = refused(await plain(login, "alice", "alice's"))
    assert (outcome.reason, outcome.name) == (RefusalReason.NOT_ALLOWED, "alice")
