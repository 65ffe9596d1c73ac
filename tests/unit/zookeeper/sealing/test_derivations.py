"""What one worker has derived the others find, and what they find is right."""

from __future__ import annotations

import asyncio
import hashlib
import mmap
import secrets
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress

import pytest

from kafka_dt.processes.node_memory import node_memory
from kafka_dt.tokens import Keyring, Principal, SecretKey, Token
from kafka_dt.zookeeper.sealing import derivations
from kafka_dt.zookeeper.sealing.derivations import AT_ONCE, MEMORY_BYTES, Derivations, DerivedAhead
from kafka_dt.zookeeper.sealing.sealed import DERIVED_BYTES, derive, open_sealed, seal
from kafka_dt.zookeeper.sealing.token_codec import TokenCodec
from tests.support.zookeeper.token_codecs import CURRENT, OLDER, HeldExecutor, codec_of

KEY, OTHER = SecretKey("the secret key of the derivations"), SecretKey("another one")
SALT = bytes(range(16))
SIZE = 3 * AT_ONCE
ALICE = Principal.user("alice")
TOKEN = Token("a-token", ALICE, ALICE, (), 1_700_000_000_000, 1_700_604_800_000, 1_700_086_400_000, CURRENT.id)


class Counting:
    """Derives, and counts how often."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, key: SecretKey, salt: bytes) -> bytes:
        self.count += 1
        return derive(key, salt)


@pytest.fixture
def derived(monkeypatch: pytest.MonkeyPatch) -> Counting:
    counting = Counting()
    monkeypatch.setattr(derivations, "derive", counting)
    return counting


def test_what_one_worker_has_sealed_another_opens_without_deriving(derived: Counting) -> None:
    with node_memory(derivations=MEMORY_BYTES) as memory:
        here, there = Derivations.shared(memory["derivations"]), Derivations.shared(memory["derivations"])
        data = seal(KEY, b"plaintext", SALT, here.derive)
        assert derived.count == 1
        assert open_sealed([KEY], data, there.derive).plaintext == b"plaintext"
        assert derived.count == 1


def test_what_nobody_has_derived_is_not_found(derived: Counting) -> None:
    shared = Derivations(bytearray(derivations.SLOTS * derivations._SLOT_BYTES))
    with pytest.raises(LookupError):
        shared.find(KEY, SALT)
    assert shared.derive(KEY, SALT) == shared.find(KEY, SALT)
    with pytest.raises(LookupError):
        shared.find(OTHER, SALT)
    assert derived.count == 1


def test_each_key_and_each_salt_has_its_own(derived: Counting) -> None:
    shared = Derivations(bytearray(derivations.SLOTS * derivations._SLOT_BYTES))
    wanted = [(key, salt) for key in (KEY, OTHER) for salt in (SALT, bytes(16), SALT[:15] + b"x")]
    for _ in range(2):
        for key, salt in wanted:
            assert shared.derive(key, salt) == derive(key, salt)
    assert derived.count == len(wanted)


def test_a_slot_that_is_half_written_is_not_believed(derived: Counting) -> None:
    memory = bytearray(derivations.SLOTS * derivations._SLOT_BYTES)
    shared = Derivations(memory)
    shared.derive(KEY, SALT)
    start = memory.index(SALT)
    places = slice(start, start + derivations._ROW_BYTES)
    whole = bytes(memory[places])
    for offset in range(derivations._SLOT_BYTES):
        memory[places] = whole
        memory[start + offset] ^= 1
        assert shared.derive(KEY, SALT) == derive(KEY, SALT)
    assert derived.count == 1 + derivations._SLOT_BYTES


def test_when_there_is_no_room_the_newest_is_kept() -> None:
    shared = Derivations(bytearray(MEMORY_BYTES))
    rows = derivations._ROWS.to_bytes(2)  # as a number of a row the same as zero, like the bytes of each salt below
    salts = [(rows * 8)[: 2 * number] + bytes(16 - 2 * number) for number in range(9)]
    kept = [SecretKey(f"key {number}") for number in range(derivations._TABLES * derivations._PLACES // len(salts) + 2)]
    names = [(key, salt) for key in kept for salt in salts]
    assert len(names) > derivations._TABLES * derivations._PLACES
    for number, (key, salt) in enumerate(names):
        shared.keep(key, salt, number.to_bytes(64))
        assert shared.find(key, salt) == number.to_bytes(64)


def test_however_long_the_memory_has_been_full_most_of_the_newest_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derivations, "_ROWS", 64)  # the first rows of the memory, which are soon full
    slots = derivations._TABLES * derivations._PLACES * 64
    shared = Derivations(bytearray(MEMORY_BYTES))
    hashes = [hashlib.sha512(number.to_bytes(4)).digest() for number in range(5 * slots)]
    for each in hashes:
        shared.keep(KEY, each[:16], each)

    def found(some: Sequence[bytes]) -> float:
        return sum(finds(shared, each[:16]) for each in some) / len(some)

    assert found(hashes[-slots // 2 :]) > 0.7
    assert found(hashes[:slots]) < 0.1


def finds(shared: Derivations, salt: bytes) -> bool:
    with suppress(LookupError):
        return bool(shared.find(KEY, salt))
    return False


def test_every_slot_of_the_memory_is_used_before_one_is_used_again() -> None:
    shared = Derivations(bytearray(MEMORY_BYTES))
    keys = [SecretKey(f"key {number}") for number in range(derivations._TABLES * derivations._PLACES)]
    for number, key in enumerate(keys):
        shared.keep(key, SALT, number.to_bytes(64))
    assert [shared.find(key, SALT) for key in keys] == [number.to_bytes(64) for number in range(len(keys))]


def test_few_entries_take_few_pages_of_the_memory() -> None:
    memory = bytearray(MEMORY_BYTES)
    shared, count = Derivations(memory), derivations.SLOTS // derivations._TABLES
    for number in range(count):
        salt = hashlib.sha256(number.to_bytes(4)).digest()[:16]
        shared.keep(KEY, salt, bytes(63) + b"x")
    pages = [memory[start : start + mmap.PAGESIZE] for start in range(0, MEMORY_BYTES, mmap.PAGESIZE)]
    used = sum(any(page) for page in pages)
    assert used * mmap.PAGESIZE <= MEMORY_BYTES // 4


async def test_what_is_taken_from_the_stock_other_workers_find() -> None:
    memory = bytearray(MEMORY_BYTES)
    with ThreadPoolExecutor(1) as executor:
        codec = TokenCodec(
            Keyring(CURRENT),
            seal=True,
            executor=executor,
            random_bytes=secrets.token_bytes,
            derivations=Derivations(memory),
            ahead=AT_ONCE,
        )
        codec.get_ready()
        await filled(codec._ahead)
        assert not any(memory)
        sealed = await codec.encode(TOKEN)
        codec.close()
    opened = open_sealed([CURRENT], sealed, Derivations(memory).find)
    assert opened.key == CURRENT


class Deriving:
    """Derives in no time, and remembers for what."""

    def __init__(self) -> None:
        self.made: list[tuple[SecretKey, bytes]] = []

    async def __call__(self, key: SecretKey, salt: bytes) -> bytes:
        self.made.append((key, salt))
        return derived_of(salt)


def derived_of(salt: bytes) -> bytes:
    return b"derived of ".ljust(DERIVED_BYTES - len(salt)) + salt


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
    assert all(ready and ready[1] == derived_of(ready[0]) for ready in taken)
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
    assert asyncio.get_running_loop().time() - taken_s >= derivations.QUIET_S


async def test_the_stock_is_filled_only_in_turns_of_idle_time() -> None:
    deriving = Deriving()
    turns = asyncio.Semaphore(0)

    @asynccontextmanager
    async def turn() -> AsyncIterator[None]:
        await turns.acquire()
        yield

    ahead = DerivedAhead(SIZE, deriving, secrets.token_bytes, turn)
    ahead.fill(CURRENT)
    for allowed in range(SIZE // AT_ONCE):
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(deriving.made) == allowed * AT_ONCE
        turns.release()
    await filled(ahead)
    assert len(deriving.made) == SIZE


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
