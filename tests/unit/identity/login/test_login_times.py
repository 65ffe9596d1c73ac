"""Measure logins: neither their time nor their steps tell a client which users and tokens exist.

Names of users and ids of tokens may take different times: which of the two a name is can be seen.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import secrets
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt.config import MechanismSettings, SecurityProtocol
from kafka_dt.server.listeners.rates import FailedLogins
from kafka_dt.tokens import DelegationToken
from kafka_dt_protocol import ApiKey
from kafka_dt_protocol.sasl import PLAIN, Challenge, ScramMechanism, plain_message
from tests.support.identity.timing import Took, in_turns, told_apart
from tests.support.server.fake_transport import Shell, listener
from tests.unit.identity.login.test_login import PASSWORD, TOKEN_ID, KnownTokens, World, scram, token
from tests.unit.protocol.sasl.test_scram_same_path import traced

ATTEMPTS = 500
"""Of each kind; chance alone then moves what is compared by 0.02 at most times."""
BEYOND = 0.2
"""How far from one half the chance may be that one kind of name takes longer than another.

In this process, where nothing else varies, 0.2 us of 18 are a chance of 0.55, and of 0.62 on a bad day: finding an
entry of a dict compares its key. The times that could be told apart over a network had chances below 0.01.
"""
TRIES = 3
BOTH = [ScramMechanism.SHA_256, pytest.param(ScramMechanism.SHA_512, marks=pytest.mark.soak)]
SHA_256 = ScramMechanism.SHA_256
UNKNOWN_ID = "AAAAAAAAAAAAAAAAAAAAAA"
SECONDS_TO_ASK = 0.003
SCRAM_LISTENER = replace(listener(SecurityProtocol.SASL_PLAINTEXT), mechanisms={SHA_256: MechanismSettings()})


@pytest.fixture
def world() -> Iterator[World]:
    with ThreadPoolExecutor(1) as executor:
        yield World(executor)


def user_names(count: int) -> list[str]:
    return [secrets.token_hex(11) for _ in range(count)]


def token_ids(count: int) -> list[str]:
    return [f"{secrets.token_urlsafe(15)}AA"[:22] for _ in range(count)]


def client_first(name: str, extension: str = "") -> bytes:
    return f"n,,n={name},r={secrets.token_urlsafe(16)}{extension}".encode()


async def populate(world: World, mechanism: ScramMechanism, count: int) -> dict[str, dict[str, list[str]]]:
    """Make users and tokens, and give names of all kinds, those that must be alike together."""
    users, warm, cold = user_names(count), token_ids(count), token_ids(count)
    world.users.users |= {(user, each): world.users.users["carol", each] for user in users for each in ScramMechanism}
    world.tokens.cached |= {each: token(token_id=each) for each in (*warm, *cold)}
    warm = warm[:50] * (count // 50)
    await asyncio.gather(*(scram(world.login(), mechanism, each, PASSWORD) for each in warm[:50]))
    return {
        "users": {"a user": users, "no user": user_names(count)},
        "tokens": {"a token": warm, "a token that is to be derived": cold, "no token": token_ids(count)},
    }


def first_steps(world: World, mechanism: ScramMechanism, names: list[str]) -> Callable[[], Awaitable[float]]:
    """Begin logins with these names, one at each call, which gives how long that took in seconds."""
    messages = itertools.cycle([client_first(name) for name in names])

    async def first_step() -> float:
        login = world.login()
        login.begin(mechanism)
        message = next(messages)
        began = time.perf_counter()
        outcome = login.evaluate(message)
        if isinstance(outcome, Coroutine):
            outcome = await outcome
        took = time.perf_counter() - began
        assert isinstance(outcome, Challenge)
        return took

    return first_step


async def told_each_time(measure: Callable[[], Awaitable[Took]]) -> Mapping[tuple[str, str], float]:
    """Measure until nothing can be told apart, a few times at most; gives what could be told the last time."""
    told: Mapping[tuple[str, str], float] = {}
    for _ in range(TRIES):
        told = told_apart(await measure(), beyond=BEYOND)
        if not told:
            break
    return told


@pytest.mark.parametrize("mechanism", BOTH)
async def test_the_challenge_takes_the_same_time_whether_or_not_the_name_is_known(
    world: World, mechanism: ScramMechanism
) -> None:
    for alike in (await populate(world, mechanism, ATTEMPTS)).values():
        kinds = {kind: first_steps(world, mechanism, names) for kind, names in alike.items()}
        assert await told_each_time(partial(in_turns, kinds, ATTEMPTS)) == {}


@pytest.mark.parametrize("extension", ["", ",tokenauth=true", ",tokenauth=false"])
@pytest.mark.parametrize("names", [("carol", "nobod"), (TOKEN_ID, UNKNOWN_ID)])
async def test_the_challenge_takes_the_same_work_whether_or_not_the_name_is_known(
    world: World, names: tuple[str, str], extension: str
) -> None:
    paths = []
    for name in ("mallory", *names):  # what only the first login does comes before
        login = world.login()
        login.begin(SHA_256)
        message = client_first(name, extension)
        with traced() as path:
            login.evaluate(message)
        paths.append(path)
    assert paths[1] == paths[2]
    assert "salt_text" in paths[0]


def test_a_wrong_password_is_the_same_path_for_a_user_and_for_nobody(world: World) -> None:
    paths = []
    for name in ("alice", "alice", "nobod"):  # the first fills caches
        login = world.login()
        login.begin(PLAIN)
        message = plain_message(name, "wrong")
        with traced() as path:
            login.evaluate(message)
        paths.append(path)
    assert paths[1] == paths[2]
    assert "compare_digest" in paths[0]


class SlowTokens(KnownTokens):
    """Tokens of a store that takes a while to ask."""

    async def lookup(self, token_id: str) -> DelegationToken | None:
        await asyncio.sleep(SECONDS_TO_ASK)
        return await super().lookup(token_id)


@pytest.mark.parametrize("name", [TOKEN_ID, UNKNOWN_ID])
async def test_the_search_for_a_token_is_part_of_the_delay_of_a_refusal(
    world: World, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both messages at once, so that nothing is found before the proof is there."""
    searched_s: list[float] = []

    def delay_s(_: FailedLogins, _address: str, took_s: float) -> float:
        searched_s.append(took_s)
        return 0.0

    monkeypatch.setattr(FailedLogins, "delay_s", delay_s)
    world.tokens = SlowTokens(stored=world.tokens.cached)
    shell = Shell(listener=SCRAM_LISTENER, new_login=lambda _: world.login())
    shell.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism=SHA_256)
    proof = base64.b64encode(bytes(32)).decode()
    messages = (f"n,,n={name},r=abc", f"c=biws,r=abcservernonce,p={proof}")
    shell.send(b"".join(shell.request(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=each.encode()) for each in messages))
    async with asyncio.timeout(60):
        while shell.opened:  # noqa: ASYNC110 - connections send no events
            await asyncio.sleep(SECONDS_TO_ASK)
    assert shell.answers()[-1].error_code is ErrorCode.sasl_authentication_failed
    (took_s,) = searched_s
    assert took_s >= SECONDS_TO_ASK
