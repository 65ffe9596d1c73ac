"""A login by token while the store cannot be asked: what cannot be decided is no refusal, and tells nothing of ids."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from kafka_dt.audit import RefusalReason
from kafka_dt.identity.login.login import LoggedIn, LoginOutcome, LoginRefused
from kafka_dt.tokens import StoreUnavailable
from kafka_dt_protocol.sasl import DIGEST_MD5, Challenge, ScramClient, ScramMechanism
from tests.unit.identity.login.test_login import PASSWORD, TOKEN_ID, World, evaluated, scram

UNKNOWN_ID = "AAAAAAAAAAAAAAAAAAAAAA"
SHA_256 = ScramMechanism.SHA_256


@pytest.fixture
def world() -> Iterator[World]:
    with ThreadPoolExecutor(1) as executor:
        yield World(executor)


async def guess(
    world: World, name: str, *, extension: bool = False, first: str = "up", last: str = "up"
) -> LoginOutcome:
    """Log in with a wrong password, while the store is as said at the first and at the last message."""
    login = world.login()
    login.begin(SHA_256)
    client = ScramClient(ScramMechanism.SHA_256, name, "wrong", "clientnonce", token=extension)
    set_store(world, first)
    challenge = await evaluated(login, client.first())
    assert isinstance(challenge, Challenge)
    set_store(world, last)
    return await evaluated(login, client.challenge(challenge.message))


def set_store(world: World, state: str) -> None:
    world.tokens.stale, world.tokens.down = state == "silent", state in {"silent", "down"}


def reason(outcome: LoginOutcome) -> RefusalReason:
    assert isinstance(outcome, LoginRefused)
    return outcome.reason


@pytest.mark.parametrize("extension", [True, False])
@pytest.mark.parametrize("name", [TOKEN_ID, UNKNOWN_ID])
@pytest.mark.parametrize(
    ("first", "last"), [("down", "down"), ("silent", "silent"), ("down", "up"), ("up", "down"), ("up", "silent")]
)
async def test_a_wrong_proof_is_undecided_whether_or_not_there_is_such_a_token(
    world: World, name: str, first: str, last: str, extension: bool
) -> None:
    outcome = await guess(world, name, extension=extension, first=first, last=last)
    assert reason(outcome) is RefusalReason.UNAVAILABLE
    assert isinstance(outcome, LoginRefused)
    assert outcome.by_token


@pytest.mark.parametrize("name", [TOKEN_ID, UNKNOWN_ID])
async def test_a_wrong_proof_is_refused_when_the_store_is_back(world: World, name: str) -> None:
    await guess(world, name, first="down", last="down")
    assert reason(await guess(world, name)) in {RefusalReason.WRONG_CREDENTIALS, RefusalReason.UNKNOWN_TOKEN}


@pytest.mark.parametrize("extension", [True, False])
@pytest.mark.parametrize("name", ["carol", "nobody"])
async def test_what_can_be_no_token_is_refused_at_once(world: World, name: str, extension: bool) -> None:
    outcome = await guess(world, name, extension=extension, first="silent", last="silent")
    assert reason(outcome) is not RefusalReason.UNAVAILABLE


async def test_a_token_that_is_known_logs_in_until_what_is_known_is_too_old(world: World) -> None:
    set_store(world, "down")
    assert isinstance(await scram(world.login(), SHA_256, TOKEN_ID, PASSWORD), LoggedIn)
    set_store(world, "silent")
    assert reason(await scram(world.login(), SHA_256, TOKEN_ID, PASSWORD)) is RefusalReason.UNAVAILABLE


async def test_a_token_that_only_the_store_knows_is_undecided(world: World) -> None:
    world.tokens.stored, world.tokens.cached = world.tokens.cached, {}
    set_store(world, "down")
    assert reason(await scram(world.login(), SHA_256, TOKEN_ID, PASSWORD)) is RefusalReason.UNAVAILABLE
    set_store(world, "up")
    assert isinstance(await scram(world.login(), SHA_256, TOKEN_ID, PASSWORD), LoggedIn)


@pytest.mark.parametrize("name", [TOKEN_ID, UNKNOWN_ID])
async def test_a_wrong_response_of_digest_md5_is_undecided_as_well(world: World, name: str) -> None:
    set_store(world, "silent")
    login = world.login()
    login.begin(DIGEST_MD5)
    assert isinstance(await evaluated(login, b""), Challenge)
    response = (
        f'username="{name}",realm="kafka",nonce="servernonce",cnonce="c",nc=00000001,qop=auth,'
        f'digest-uri="kafka/localhost",response={"0" * 32},charset=utf-8'
    )
    assert reason(await evaluated(login, response.encode())) is RefusalReason.UNAVAILABLE


async def test_an_outage_is_logged_once_whatever_logs_in_meanwhile(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    tokens = world.login_tokens()
    for _ in range(2):
        for state in ("down", "silent", "down"):
            set_store(world, state)
            for name in (UNKNOWN_ID, TOKEN_ID, UNKNOWN_ID):
                if tokens.find(name) is None:
                    with pytest.raises(StoreUnavailable):
                        await tokens.lookup(name)
        set_store(world, "up")
        for _ in range(2):
            assert tokens.find(TOKEN_ID)
    lines = [record.getMessage() for record in caplog.records if record.name.endswith("login.tokens")]
    assert [line.partition(" log in")[0] for line in lines] == [
        "Tokens that this worker has not met yet cannot",
        "No token can",
        "All tokens can",
    ] * 2
