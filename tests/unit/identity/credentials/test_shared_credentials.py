"""The workers find what one of them has derived, by what it was derived from, until its token ends."""

from __future__ import annotations

import mmap
import os
from dataclasses import replace
from itertools import product

import pytest

from kafka_dt.identity.credentials import shared
from kafka_dt.identity.credentials.shared import MEMORY_BYTES, SharedCredentials
from kafka_dt.processes.node_memory import node_memory
from kafka_dt.tokens import Token
from kafka_dt_protocol.sasl import ScramCredential, ScramMechanism
from tests.support.tokens.store_contract import new_token

SHA_256, SHA_512 = ScramMechanism
HMAC, SALT, ROUNDS = b"\x01" * 64, b"salt of the token", 4096


def credential(mechanism: ScramMechanism = SHA_256, *, fill: bytes = b"k") -> ScramCredential:
    return ScramCredential(SALT, fill * mechanism.hash_bytes, fill.upper() * mechanism.hash_bytes, ROUNDS)


@pytest.fixture
def memory() -> bytearray:
    return bytearray(MEMORY_BYTES)


@pytest.fixture
def credentials(memory: bytearray) -> SharedCredentials:
    return SharedCredentials(memory)


def find(credentials: SharedCredentials, token: Token, mechanism: ScramMechanism = SHA_256) -> ScramCredential | None:
    return credentials.find(mechanism, token.token_id, HMAC, SALT, ROUNDS)


@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_another_worker_finds_it(mechanism: ScramMechanism) -> None:
    token = new_token()
    with node_memory(credentials=MEMORY_BYTES) as files:
        here, there = (SharedCredentials.shared(files["credentials"]) for _ in range(2))
        here.keep(mechanism, token, HMAC, credential(mechanism))
        assert find(there, token, mechanism) == credential(mechanism)


def test_only_what_it_was_derived_from_finds_it(credentials: SharedCredentials) -> None:
    token = new_token()
    credentials.keep(SHA_256, token, HMAC, credential())
    token_id = token.token_id
    assert credentials.find(SHA_256, token_id, HMAC, SALT, ROUNDS) is not None
    assert credentials.find(SHA_512, token_id, HMAC, SALT, ROUNDS) is None
    assert credentials.find(SHA_256, token_id + "x", HMAC, SALT, ROUNDS) is None
    assert credentials.find(SHA_256, token_id, b"\x02" * 64, SALT, ROUNDS) is None
    assert credentials.find(SHA_256, token_id, HMAC, b"another salt", ROUNDS) is None
    assert credentials.find(SHA_256, token_id, HMAC + SALT[:1], SALT[1:], ROUNDS) is None
    assert credentials.find(SHA_256, token_id, HMAC, SALT, ROUNDS + 1) is None


def test_an_entry_that_is_half_written_is_none_and_its_place_is_free(
    memory: bytearray, credentials: SharedCredentials
) -> None:
    token = new_token()
    credentials.keep(SHA_256, token, HMAC, credential())
    start = next(number for number, byte in enumerate(memory) if byte) // shared._SLOT_BYTES * shared._SLOT_BYTES
    whole = bytes(memory[start : start + shared._SLOT_BYTES])
    other = SharedCredentials(other_memory := bytearray(MEMORY_BYTES))
    other.keep(SHA_256, token, HMAC, credential(fill=b"n"))
    newer = bytes(other_memory[start : start + shared._SLOT_BYTES])
    for written in range(1, shared._SLOT_BYTES):
        memory[start : start + shared._SLOT_BYTES] = newer[:written] + whole[written:]
        assert find(credentials, token) in (None, credential(), credential(fill=b"n"))
        torn = bytearray(whole)
        torn[written] ^= 1
        memory[start : start + shared._SLOT_BYTES] = torn
        assert find(credentials, token) is None
    credentials.keep(SHA_256, token, HMAC, credential())
    assert bytes(memory[start : start + shared._SLOT_BYTES]) == whole


def test_nothing_is_left_of_a_token_that_is_forgotten(memory: bytearray, credentials: SharedCredentials) -> None:
    token, stays = new_token(), new_token()
    for hmac, mechanism in product((HMAC, b"\x02" * 64), ScramMechanism):
        credentials.keep(mechanism, token, hmac, credential(mechanism))
    credentials.forget(token.token_id)
    assert not any(memory)
    credentials.keep(SHA_256, stays, HMAC, credential())
    credentials.forget(token.token_id)
    assert find(credentials, stays) is not None


def test_the_same_entry_takes_one_place(memory: bytearray, credentials: SharedCredentials) -> None:
    token = new_token()
    for _ in range(2):
        credentials.keep(SHA_256, token, HMAC, credential())
    assert memory.count(b"k" * SHA_256.hash_bytes) == 1


def test_the_newest_tokens_keep_their_places(
    memory: bytearray, credentials: SharedCredentials, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared, "_ROWS", 1)  # all belong to the same rows
    room = shared._TABLES * shared._PLACES
    tokens = [replace(new_token(), issue_timestamp_ms=number) for number in range(room + 2)]
    middle, oldest, *others = tokens[1], tokens[0], *tokens[2:]
    for token in (middle, *others, oldest):
        credentials.keep(SHA_256, token, HMAC, credential())
    found = [token.issue_timestamp_ms for token in tokens if find(credentials, token)]
    assert found == list(range(2, room + 2))
    for token in tokens:
        credentials.forget(token.token_id)
    assert not any(memory[: shared._IN_USE])


def test_few_tokens_take_few_pages_of_the_memory(memory: bytearray, credentials: SharedCredentials) -> None:
    tokens = [new_token() for _ in range(shared.SLOTS // shared._TABLES // 2)]
    for token in tokens:
        credentials.keep(SHA_256, token, HMAC, credential())
    assert all(find(credentials, token) for token in tokens)
    pages = [memory[start : start + mmap.PAGESIZE] for start in range(0, MEMORY_BYTES, mmap.PAGESIZE)]
    assert sum(any(page) for page in pages) * mmap.PAGESIZE < MEMORY_BYTES / 3


def test_a_look_takes_no_memory_of_tables_that_are_not_in_use() -> None:
    with node_memory(credentials=MEMORY_BYTES) as files:
        credentials = SharedCredentials.shared(files["credentials"])
        for _ in range(shared.SLOTS // shared._TABLES):
            token = new_token()
            assert find(credentials, token) is None
            credentials.forget(token.token_id)
        assert os.fstat(files["credentials"]).st_blocks * 512 < MEMORY_BYTES / 4
