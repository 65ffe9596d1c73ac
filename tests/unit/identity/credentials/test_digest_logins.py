"""Logins with DIGEST-MD5 by an independent client; only the store of tokens is a test double."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from puresasl.client import SASLClient

from kafka_dt.audit import RefusalReason
from kafka_dt.identity.login.login import LoggedIn, Login, LoginOutcome, LoginRefused
from kafka_dt.tokens import Principal
from kafka_dt_protocol.sasl import DIGEST_MD5, Challenge
from tests.unit.identity.login.test_login import GENERIC, HMAC, HOUR, NOW, PASSWORD, TOKEN_ID, World, evaluated, token

OLDER = bytes(64)
UNKNOWN_ID = "AAAAAAAAAAAAAAAAAAAAAA"
OTHER_ID = "BBBBBBBBBBBBBBBBBBBBBA"
NOBODY = "there is no such user, and no live token with that id"


@pytest.fixture
def world() -> Iterator[World]:
    with ThreadPoolExecutor(1) as executor:
        yield World(executor)


async def challenged(login: Login, name: str, password: str) -> tuple[SASLClient, bytes]:
    """Begin to log in; gives the client and its response."""
    login.begin(DIGEST_MD5)
    challenge = await evaluated(login, b"")
    assert isinstance(challenge, Challenge)
    client = SASLClient("localhost", "kafka", mechanism="DIGEST-MD5", username=name, password=password)
    return client, client.process(challenge.message)


async def digest(login: Login, name: str = TOKEN_ID, password: str = PASSWORD) -> LoginOutcome:
    client, response = await challenged(login, name, password)
    outcome = await evaluated(login, response)
    if isinstance(outcome, LoggedIn):
        client.process(outcome.message)
        assert client.complete
    return outcome


async def test_a_token_logs_in_as_its_owner_until_it_ends(world: World) -> None:
    login = world.login()
    outcome = await digest(login)
    assert isinstance(outcome, LoggedIn)
    assert outcome.identity.principal == Principal("Group", "ops")
    assert outcome.identity.token_id == TOKEN_ID
    assert outcome.session_lifetime_ms == HOUR
    assert login.identity == outcome.identity


async def test_a_token_that_only_the_store_knows_logs_in(world: World) -> None:
    world.tokens.stored, world.tokens.cached = world.tokens.cached, {}
    assert isinstance(await digest(world.login()), LoggedIn)


async def test_a_session_ends_when_the_setting_says_so(world: World) -> None:
    world.max_reauth_ms = {DIGEST_MD5: 1_000}
    outcome = await digest(world.login())
    assert isinstance(outcome, LoggedIn)
    assert outcome.session_lifetime_ms == 1_000


async def test_a_token_that_may_be_of_several_keys_logs_in_with_any(
    world: World,
) -> None:
    world.tokens.hmacs = (HMAC, OLDER)
    for hmac in (HMAC, OLDER):
        assert isinstance(await digest(world.login(), password=base64.b64encode(hmac).decode()), LoggedIn)
    assert isinstance(await digest(world.login(), password=base64.b64encode(HMAC[::-1]).decode()), LoginRefused)


@pytest.mark.parametrize(
    ("name", "password", "detail", "reason"),
    [
        pytest.param(
            TOKEN_ID,
            "wrong",
            "digest-response: response is wrong",
            RefusalReason.WRONG_CREDENTIALS,
            id="wrong HMAC",
        ),
        pytest.param(UNKNOWN_ID, PASSWORD, NOBODY, RefusalReason.UNKNOWN_TOKEN, id="unknown id"),
        pytest.param("carol", "carol's", NOBODY, RefusalReason.UNKNOWN_TOKEN, id="SCRAM user"),
        pytest.param("alice", "alice's", NOBODY, RefusalReason.UNKNOWN_TOKEN, id="PLAIN user"),
    ],
)
async def test_whoever_has_no_token_is_refused_at_the_same_step_with_the_same_words(
    world: World, name: str, password: str, detail: str, reason: RefusalReason
) -> None:
    outcome = await digest(world.login(), name, password)
    known = world.tokens.cached.get(name)
    assert outcome == LoginRefused(GENERIC + "DIGEST-MD5", detail, name, DIGEST_MD5, reason, by_token=True, token=known)


async def test_an_expired_token_and_one_of_a_silent_store_are_nobodys(world: World) -> None:
    world.tokens.stale = True
    assert isinstance(await digest(world.login()), LoginRefused)
    world.tokens.stale = False
    world.tokens.cached[TOKEN_ID] = token(expiry_timestamp_ms=NOW - 1)
    assert isinstance(await digest(world.login()), LoginRefused)


@pytest.mark.parametrize("cached", [True, False])
async def test_a_revocation_on_another_worker_counts_before_its_news_is_here(world: World, cached: bool) -> None:
    if not cached:
        world.tokens.stored, world.tokens.cached = world.tokens.cached, {}
    login = world.login()
    _, response = await challenged(login, TOKEN_ID, PASSWORD)
    world.news.append(TOKEN_ID)
    world.other_worker.post(TOKEN_ID)
    assert isinstance(await evaluated(login, response), LoginRefused)


async def test_a_second_login_may_use_another_token_but_not_change_the_principal(world: World) -> None:
    for token_id, owner in ((UNKNOWN_ID, Principal("Group", "ops")), (OTHER_ID, Principal.user("bob"))):
        world.tokens.cached[token_id] = token(token_id=token_id, owner=owner)
    login = world.login()
    assert isinstance(await digest(login), LoggedIn)
    assert isinstance(await digest(login, UNKNOWN_ID), LoggedIn)
    outcome = await digest(login, OTHER_ID)
    assert isinstance(outcome, LoginRefused)
    assert outcome.message == "Cannot change principals during re-authentication from Group.ops: User.bob"


async def test_a_response_is_good_for_its_own_exchange_alone(world: World) -> None:
    login = world.login()
    _, response = await challenged(login, TOKEN_ID, PASSWORD)
    assert isinstance(await evaluated(login, response), LoggedIn)
    replayed = response.replace(b"servernonce", b"anothernonce")
    await challenged(login, TOKEN_ID, PASSWORD)
    outcome = await evaluated(login, replayed)
    assert isinstance(outcome, LoginRefused)
    assert outcome.detail == "digest-response: nonce is not one of this exchange"
