"""Logins by tokens that may be of several secret keys, and logins during which the ring of keys changes."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from kafka_dt.identity.login.login import LoggedIn, LoginOutcome, LoginRefused
from kafka_dt_protocol.sasl import Challenge, ScramClient, ScramMechanism
from tests.unit.identity.login.test_login import BOTH, GENERIC, SCRAM, TOKEN_ID, World, evaluated, scram

OLD, NEW, OTHER = bytes(64), b"\x01" * 64, b"\x02" * 64


@pytest.fixture
def world() -> Iterator[World]:
    with ThreadPoolExecutor(2) as executor:
        world = World(executor)
        world.tokens.hmacs = (OLD, NEW)
        yield world


def password(hmac: bytes) -> str:
    return base64.b64encode(hmac).decode()


async def login_during(world: World, hmac: bytes, ring: tuple[bytes, ...]) -> LoginOutcome:
    """Log in by an HMAC while the keys are replaced by such as make `ring` of the token."""
    login = world.login()
    login.begin(ScramMechanism.SHA_256)
    client = ScramClient(SCRAM[ScramMechanism.SHA_256], TOKEN_ID, password(hmac), "clientnonce", token=True)
    challenge = await evaluated(login, client.first())
    assert isinstance(challenge, Challenge)
    world.tokens.hmacs = ring
    return await evaluated(login, client.challenge(challenge.message))


@pytest.mark.parametrize("mechanism", BOTH)
@pytest.mark.parametrize("extension", [True, False])
async def test_a_token_that_may_be_of_several_keys_logs_in_by_the_hmac_of_each(
    world: World, mechanism: ScramMechanism, extension: bool
) -> None:
    for hmac in (OLD, NEW, OLD):
        outcome = await scram(world.login(), mechanism, TOKEN_ID, password(hmac), extension=extension)
        assert isinstance(outcome, LoggedIn)
        assert outcome.identity.token_id == TOKEN_ID


async def test_another_key_logs_nobody_in(world: World) -> None:
    outcome = await scram(world.login(), ScramMechanism.SHA_256, TOKEN_ID, password(OTHER), extension=True)
    assert isinstance(outcome, LoginRefused)
    assert outcome.message == GENERIC + "SCRAM-SHA-256"


@pytest.mark.parametrize("hmac", [OLD, NEW], ids=["old", "new"])
async def test_a_key_that_comes_during_a_login_does_not_refuse_it(world: World, hmac: bytes) -> None:
    assert isinstance(await login_during(world, hmac, (OLD, NEW, OTHER)), LoggedIn)


async def test_a_key_that_leaves_during_a_login_refuses_those_of_that_key_only(world: World) -> None:
    assert isinstance(await login_during(world, NEW, (NEW,)), LoggedIn)
    world.tokens.hmacs = (OLD, NEW)
    outcome = await login_during(world, OLD, (NEW,))
    assert isinstance(outcome, LoginRefused)
    assert outcome.message == GENERIC + "SCRAM-SHA-256"
