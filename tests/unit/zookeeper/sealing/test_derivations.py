"""What one worker has derived the others find, and what they find is right."""

from __future__ import annotations

import pytest

from kafka_dt.processes.node_memory import node_memory
from kafka_dt.tokens import SecretKey
from kafka_dt.zookeeper.sealing import derivations
from kafka_dt.zookeeper.sealing.derivations import MEMORY_BYTES, Derivations
from kafka_dt.zookeeper.sealing.sealed import derive, open_sealed, seal

KEY, OTHER = SecretKey("the secret key of the derivations"), SecretKey("another one")
SALT = bytes(range(16))


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
    places = slice(start, start + derivations._PLACES * derivations._SLOT_BYTES)
    whole = bytes(memory[places])
    for offset in range(derivations._SLOT_BYTES):
        memory[places] = whole
        memory[start + offset] ^= 1
        assert shared.derive(KEY, SALT) == derive(KEY, SALT)
    assert derived.count == 1 + derivations._SLOT_BYTES


def test_when_there_is_no_room_the_newest_is_kept(derived: Counting) -> None:
    shared = Derivations(bytearray(derivations.SLOTS * derivations._SLOT_BYTES))
    salts = [bytes(8) + number.to_bytes(8) for number in range(20)]  # all belong to the same places
    for salt in salts:
        shared.derive(KEY, salt)
    derived.count = 0
    assert shared.derive(KEY, salts[-1]) == derive(KEY, salts[-1])
    assert derived.count == 0
