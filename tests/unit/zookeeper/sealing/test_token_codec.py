"""Tokens and the bytes of their znodes: either form is read always, and only where it belongs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_dt.processes.node_memory import node_memory
from kafka_dt.tokens import Keyring, Principal, Token
from kafka_dt.zookeeper.errors import InvalidZnode, UnknownKey
from kafka_dt.zookeeper.sealing.derivations import MEMORY_BYTES, Derivations
from kafka_dt.zookeeper.sealing.sealed import is_sealed, seal
from kafka_dt.zookeeper.sealing.token_codec import BATCHES_A_THREAD, LARGEST, Batches, TokenCodec
from kafka_dt.zookeeper.znodes.kafka import TokenZnode
from tests.support.zookeeper.token_codecs import CURRENT, FOREIGN, OLDER, HeldExecutor, codec_of, derivations_counted

ALICE = Principal.user("alice")
TOKEN = Token("a-token", ALICE, ALICE, (), 1_700_000_000_000, 1_700_604_800_000, 1_700_086_400_000, CURRENT.id)
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
PRINCIPALS = st.builds(Principal, TEXT.filter(lambda text: ":" not in text), TEXT)
TIMESTAMPS = st.integers(-(2**63), 2**63 - 1)
KEY_IDS = st.sampled_from([None, CURRENT.id])
TOKENS = st.builds(
    Token, TEXT, PRINCIPALS, PRINCIPALS, st.lists(PRINCIPALS).map(tuple), TIMESTAMPS, TIMESTAMPS, TIMESTAMPS, KEY_IDS
)


@pytest.mark.parametrize("seals", [True, False])
async def test_the_switch_says_how_a_token_is_written_and_either_form_is_read(*, seals: bool) -> None:
    data = await codec_of(seal=seals).encode(TOKEN)
    assert is_sealed(data) is seals
    for reader in (codec_of(seal=True), codec_of(seal=False)):
        decoded = await reader.decode(TOKEN.token_id, data)
        assert decoded.token == TOKEN
        assert decoded.sealed_by is (CURRENT if seals else None)


async def test_a_plain_token_is_what_a_broker_writes() -> None:
    assert await codec_of(seal=False).encode(TOKEN) == TokenZnode.encode(TOKEN)


async def test_every_write_has_a_salt_of_its_own() -> None:
    codec = codec_of(seal=True)
    written = await asyncio.gather(*(codec.encode(TOKEN) for _ in range(20)))
    assert len({data[:24] for data in written}) == 20


@settings(max_examples=20)
@given(token=TOKENS)
def test_every_token_comes_back(token: Token) -> None:
    async def there_and_back() -> Token:
        codec = codec_of(seal=True)
        return (await codec.decode(token.token_id, await codec.encode(token))).token

    assert asyncio.run(there_and_back()) == token


async def test_what_older_keys_have_sealed_is_read() -> None:
    data = await codec_of(Keyring(OLDER), seal=True).encode(replace(TOKEN, key_id=OLDER.id))
    decoded = await codec_of(Keyring(CURRENT, previous=[OLDER])).decode(TOKEN.token_id, data)
    assert decoded.sealed_by is OLDER


async def test_the_key_that_opened_the_last_znode_is_tried_first(monkeypatch: pytest.MonkeyPatch) -> None:
    old = await codec_of(Keyring(OLDER), seal=True).encode(replace(TOKEN, key_id=None))
    codec = codec_of(Keyring(CURRENT, previous=[OLDER]))
    derivations = derivations_counted(monkeypatch)
    for costs in ([CURRENT, OLDER], [OLDER]):
        derivations.clear()
        assert (await codec.decode(TOKEN.token_id, old)).sealed_by is OLDER
        assert derivations == costs


async def test_what_is_written_is_sealed_with_the_current_key() -> None:
    keyring = Keyring(OLDER)
    codec = codec_of(keyring, seal=True)
    keyring.replace(CURRENT, [OLDER])
    decoded = await codec.decode(TOKEN.token_id, await codec.encode(TOKEN))
    assert decoded.sealed_by is CURRENT


@pytest.mark.parametrize("seals", [True, False])
async def test_a_token_in_the_place_of_another_is_refused(*, seals: bool) -> None:
    codec = codec_of(seal=seals)
    data = await codec.encode(TOKEN)
    with pytest.raises(InvalidZnode, match="it names another token"):
        await codec.decode("another-token", data)


@pytest.mark.parametrize("seals", [True, False])
async def test_a_token_of_a_key_that_is_not_in_the_ring_is_refused(*, seals: bool) -> None:
    codec = codec_of(seal=seals)
    data = await codec.encode(replace(TOKEN, key_id=FOREIGN.id))
    with pytest.raises(UnknownKey, match=f"^the key {FOREIGN.id} that made it is none of the secret keys$"):
        await codec.decode(TOKEN.token_id, data)


async def test_a_token_without_key_id_is_of_any_key() -> None:
    codec = codec_of(seal=True)
    brokers = replace(TOKEN, key_id=None)
    assert (await codec.decode(TOKEN.token_id, await codec.encode(brokers))).token == brokers


@pytest.mark.parametrize("plaintext", [b"", b"{", b"[]", b'{"version":4}', b"\xff"])
async def test_what_is_sealed_and_no_token_is_refused(plaintext: bytes) -> None:
    with pytest.raises(InvalidZnode):
        await codec_of().decode(TOKEN.token_id, seal(CURRENT, plaintext, bytes(16)))


async def _opening(codec: TokenCodec, executor: HeldExecutor, data: bytes) -> asyncio.Task[Token]:
    """An opening that a thread has begun."""

    async def decode() -> Token:
        return (await codec.decode(TOKEN.token_id, data)).token

    task = asyncio.create_task(decode())
    await executor.given()
    return task


async def test_what_could_not_be_opened_is_tried_again_with_keys_that_came_meanwhile() -> None:
    data = await codec_of(Keyring(OLDER), seal=True).encode(TOKEN)
    keyring, executor = Keyring(CURRENT), HeldExecutor()
    task = await _opening(codec_of(keyring, executor=executor), executor, data)
    keyring.replace(CURRENT, [OLDER])
    executor.release()
    await executor.given()
    executor.release()
    assert await task == TOKEN


async def test_what_was_opened_counts_by_the_keys_of_now() -> None:
    data = await codec_of(seal=True).encode(TOKEN)
    keyring, executor = Keyring(CURRENT), HeldExecutor()
    task = await _opening(codec_of(keyring, executor=executor), executor, data)
    keyring.replace(OLDER)
    executor.release()
    with pytest.raises(UnknownKey):
        await task


@pytest.fixture
def shared() -> Iterator[Derivations]:
    with node_memory(derivations=MEMORY_BYTES) as memory:
        yield Derivations.shared(memory["derivations"])


async def test_what_another_worker_has_sealed_or_opened_is_read_at_once(shared: Derivations) -> None:
    data = await codec_of(seal=True, derivations=shared).encode(TOKEN)
    here = codec_of(executor=HeldExecutor(), derivations=shared)
    assert here.decode_shared(TOKEN.token_id, data) == TOKEN
    foreign = await codec_of(seal=True).encode(TOKEN)
    assert here.decode_shared(TOKEN.token_id, foreign) is None
    await codec_of(derivations=shared).decode(TOKEN.token_id, foreign)
    assert here.decode_shared(TOKEN.token_id, foreign) == TOKEN
    assert codec_of().decode_shared(TOKEN.token_id, data) is None


async def test_what_is_read_at_once_is_checked_like_everything(shared: Derivations) -> None:
    codec = codec_of(seal=True, derivations=shared)
    data = await codec.encode(TOKEN)
    with pytest.raises(InvalidZnode, match="names another"):
        codec.decode_shared("another-token", data)
    spoilt = data[:-8] + (b"A" if data[-8:-7] != b"A" else b"B") + data[-7:]
    with pytest.raises(UnknownKey, match="its MAC fits none of the secret keys"):
        codec.decode_shared(TOKEN.token_id, spoilt)
    with pytest.raises(UnknownKey, match="that made it"):
        codec.decode_shared(TOKEN.token_id, await codec.encode(replace(TOKEN, key_id=FOREIGN.id)))


async def test_without_a_secret_key_plain_tokens_of_nobodys_key_are_read_and_nothing_is_sealed() -> None:
    executor = HeldExecutor()
    codec = TokenCodec(None, seal=True, executor=executor, random_bytes=bytes)
    brokers = replace(TOKEN, key_id=None)
    assert (await codec.decode(TOKEN.token_id, TokenZnode.encode(brokers))).token == brokers
    with pytest.raises(UnknownKey):
        await codec.decode(TOKEN.token_id, TokenZnode.encode(TOKEN))
    with pytest.raises(ValueError, match="nothing can be sealed"):
        await codec.encode(TOKEN)


async def turn() -> None:
    """Let everything happen that does not wait for a thread."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_single_piece_is_handed_over_in_the_next_turn() -> None:
    executor = HeldExecutor()
    result = Batches(executor, threads=2).submit(lambda: "done")
    await asyncio.sleep(0)
    assert len(executor) == 1
    executor.release()
    assert await result == "done"


async def test_few_pieces_are_shared_among_the_threads() -> None:
    executor = HeldExecutor()
    batches = Batches(executor, threads=2)
    results = [batches.submit(partial(int, number)) for number in range(4)]
    await turn()
    assert len(executor) == 4
    executor.release()
    assert await asyncio.gather(*results) == [0, 1, 2, 3]


async def test_many_pieces_go_in_batches_and_the_threads_get_no_more_than_keeps_them_busy() -> None:
    executor = HeldExecutor()
    batches = Batches(executor, threads=2)
    done: list[int] = []
    results = [batches.submit(partial(done.append, number)) for number in range(100)]
    handed_over = []
    while len(done) < 100:
        await turn()
        handed_over.append(len(executor))
        before = len(done)
        executor.release()
        assert len(done) - before <= LARGEST * 2 * BATCHES_A_THREAD
    assert max(handed_over) == 2 * BATCHES_A_THREAD
    assert handed_over == [4, 3]
    assert done == list(range(100))
    await asyncio.gather(*results)


async def test_what_one_piece_raises_does_not_concern_the_others() -> None:
    executor = HeldExecutor()
    batches = Batches(executor, threads=1)
    results = [batches.submit(partial(divmod, 7, divisor)) for divisor in (2, 0, 3, 0, 4)]
    await turn()
    executor.release()
    outcomes = await asyncio.gather(*results[:2], return_exceptions=True)
    await turn()
    executor.release()
    outcomes += await asyncio.gather(*results[2:], return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [tuple, ZeroDivisionError] * 2 + [tuple]


async def test_what_nobody_waits_for_is_not_begun() -> None:
    executor = HeldExecutor()
    batches = Batches(executor, threads=1)
    done: list[int] = []
    results = [batches.submit(partial(done.append, number)) for number in range(3)]
    results[1].cancel()
    await turn()
    executor.release()
    await turn()
    executor.release()
    await asyncio.gather(results[0], results[2])
    assert done == [0, 2]


async def test_who_gives_up_while_a_thread_is_at_it_disturbs_nobody() -> None:
    executor = HeldExecutor()
    batches = Batches(executor, threads=1)
    results = [batches.submit(partial(int, number)) for number in range(2)]
    await turn()
    results[0].cancel()
    executor.release()
    assert await results[1] == 1


async def test_when_the_threads_have_been_stopped_whoever_waits_hears_of_it() -> None:
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    with pytest.raises(RuntimeError, match="shutdown"):
        await Batches(executor, threads=1).submit(int)


class _Cancelling(Executor):
    """Is shut down before it begins anything."""

    def submit(self, _: Any, /, *__: Any, **___: Any) -> Future[Any]:
        future: Future[Any] = Future()
        asyncio.get_running_loop().call_soon(future.cancel)
        return future


async def test_when_the_threads_are_stopped_meanwhile_whoever_waits_hears_of_it() -> None:
    with pytest.raises(RuntimeError, match="stopped"):
        await Batches(_Cancelling(), threads=1).submit(int)
