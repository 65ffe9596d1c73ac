"""Derive keys before they are needed: each salt for one write, for the right key, only while no create runs."""

from __future__ import annotations

import asyncio
import secrets

from kafka_dt.tokens import Keyring, Principal, SecretKey, Token
from kafka_dt.zookeeper.sealing import derived_ahead
from kafka_dt.zookeeper.sealing.derived_ahead import AT_ONCE, DerivedAhead
from kafka_dt.zookeeper.sealing.token_codec import TokenCodec
from tests.support.token_codecs import CURRENT, OLDER, HeldExecutor, codec_of

SIZE = 3 * AT_ONCE
ALICE = Principal.user("alice")
TOKEN = Token("a-token", ALICE, ALICE, (), 1_700_000_000_000, 1_700_604_800_000, 1_700_086_400_000, CURRENT.id)


class Deriving:
    """Derives in no time, and remembers for what."""

    def __init__(self) -> None:
        self.made: list[tuple[SecretKey, bytes]] = []

    async def __call__(self, key: SecretKey, salt: bytes) -> bytes:
        self.made.append((key, salt))
        return b"derived of " + salt


def stock(deriving: Deriving, size: int = SIZE) -> DerivedAhead:
    return DerivedAhead(size, deriving, secrets.token_bytes)


async def filled(ahead: DerivedAhead) -> None:
    assert ahead._filling is not None
    await ahead._filling


async def test_each_salt_is_given_out_once_with_what_belongs_to_it() -> None:
    ahead = stock(Deriving())
    ahead.fill(CURRENT)
    await filled(ahead)
    taken = [ahead.take(CURRENT) for _ in range(SIZE)]
    assert len({ready[0] for ready in taken if ready}) == SIZE
    assert all(ready and ready[1] == b"derived of " + ready[0] for ready in taken)
    assert ahead.take(CURRENT) is None
    ahead.close()


async def test_the_stock_is_filled_up_when_nothing_has_been_taken_for_a_moment() -> None:
    deriving = Deriving()
    ahead = stock(deriving)
    ahead.fill(CURRENT)
    await filled(ahead)
    taken_s = asyncio.get_running_loop().time()
    ahead.take(CURRENT)
    await asyncio.sleep(0)
    assert len(deriving.made) == SIZE
    await filled(ahead)
    assert len(deriving.made) == SIZE + AT_ONCE
    assert asyncio.get_running_loop().time() - taken_s >= derived_ahead.QUIET_S


async def test_what_was_made_for_another_key_is_not_given_out() -> None:
    deriving = Deriving()
    ahead = stock(deriving)
    ahead.fill(OLDER)
    await filled(ahead)
    assert ahead.take(CURRENT) is None
    await filled(ahead)
    ready = ahead.take(CURRENT)
    assert ready is not None
    assert (CURRENT, ready[0]) in deriving.made
    ahead.close()


async def test_another_key_ends_the_filling_for_the_one_before() -> None:
    deriving = Deriving()
    ahead = stock(deriving)
    ahead.fill(OLDER)
    while not ahead._ready:  # noqa: ASYNC110 - no event to wait for
        await asyncio.sleep(0)
    made_before = len(deriving.made)
    ahead.fill(CURRENT)
    await filled(ahead)
    assert {key for key, _ in deriving.made[made_before:]} == {CURRENT}
    assert all((ready := ahead.take(CURRENT)) and (CURRENT, ready[0]) in deriving.made for _ in range(SIZE))
    ahead.close()


async def test_after_the_end_nothing_is_made() -> None:
    deriving = Deriving()
    ahead = stock(deriving)
    ahead.take(CURRENT)
    ahead.close()
    await asyncio.wait([ahead._filling] if ahead._filling else [])
    assert deriving.made == []


async def test_without_a_stock_nothing_is_made() -> None:
    ahead = stock(Deriving(), size=0)
    assert ahead.take(CURRENT) is None
    assert ahead._filling is None
    ahead.close()


async def test_a_token_is_sealed_with_what_is_ready_and_no_thread() -> None:
    executor = HeldExecutor()
    codec = TokenCodec(Keyring(CURRENT), seal=True, executor=executor, random_bytes=secrets.token_bytes, ahead=AT_ONCE)
    codec.get_ready()
    while not codec._ahead._ready:
        await asyncio.sleep(0)
        executor.release()
    sealed = await codec.encode(TOKEN)
    assert len(executor) == 0
    assert (await codec_of().decode(TOKEN.token_id, sealed)).token == TOKEN
    codec.close()


async def test_without_sealing_nothing_is_derived_ahead() -> None:
    executor = HeldExecutor()
    codec = TokenCodec(Keyring(CURRENT), seal=False, executor=executor, random_bytes=secrets.token_bytes, ahead=8)
    codec.get_ready()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert len(executor) == 0
    codec.close()
