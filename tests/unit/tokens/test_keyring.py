from __future__ import annotations

import hashlib

import pytest

from kafka_dt.tokens import HmacAlgorithm, Keyring, SecretKey

OLDEST, OLD, NEW = (SecretKey(text) for text in ("oldest", "old", "new"))
# The key "Jefe" of RFC 2202 (SHA-1) and RFC 4231 (SHA-2), test case 2.
VECTORS = {
    HmacAlgorithm.HMAC_SHA1: "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79",
    HmacAlgorithm.HMAC_SHA256: "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
    HmacAlgorithm.HMAC_SHA512: (
        "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554"
        "9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737"
    ),
}


def test_the_current_key_is_first_and_the_oldest_is_last() -> None:
    keyring = Keyring(NEW, previous=[OLD, OLDEST])
    assert keyring.current is NEW
    assert keyring.keys == (NEW, OLD, OLDEST)


def test_a_text_is_a_key() -> None:
    assert Keyring("new", HmacAlgorithm.HMAC_SHA1, ["old"]).keys == (NEW, OLD)


def test_a_key_that_is_there_twice_counts_once() -> None:
    assert Keyring(NEW, previous=[OLD, "new", "old", OLDEST]).keys == (NEW, OLD, OLDEST)


def test_a_key_is_found_by_its_id() -> None:
    keyring = Keyring(NEW, previous=[OLD])
    assert keyring.get(NEW.id) is NEW
    assert keyring.get(OLD.id) is OLD
    assert keyring.get(OLDEST.id) is None


def test_a_token_of_a_known_key_has_one_hmac() -> None:
    keyring = Keyring(NEW, previous=[OLD])
    assert keyring.hmacs("x", OLD.id) == (OLD.hmac("x"),)


def test_a_token_of_an_unknown_key_may_be_of_each_of_them_and_that_of_the_oldest_is_shown() -> None:
    keyring = Keyring(NEW, previous=[OLD, OLDEST])
    assert keyring.hmacs("x", None) == (OLDEST.hmac("x"), OLD.hmac("x"), NEW.hmac("x"))


def test_a_key_that_is_yet_to_come_is_not_the_oldest() -> None:
    keyring = Keyring(OLD)
    assert keyring.oldest is OLD
    assert keyring.replace(OLD, [NEW, OLD])
    assert keyring.keys == (OLD, NEW)
    assert keyring.oldest is OLD
    assert keyring.hmacs("x", None) == (OLD.hmac("x"), NEW.hmac("x"))
    assert keyring.replace(OLD, [NEW])
    assert keyring.hmacs("x", None) == (NEW.hmac("x"), OLD.hmac("x"))


def test_a_token_of_a_key_that_is_not_in_the_ring_has_no_hmac() -> None:
    assert Keyring(NEW).hmacs("x", OLD.id) == ()


@pytest.mark.parametrize("algorithm", HmacAlgorithm)
def test_all_keys_use_one_algorithm(algorithm: HmacAlgorithm) -> None:
    keyring = Keyring(NEW, algorithm, [OLD])
    assert keyring.hmacs("x", None) == (OLD.hmac("x", algorithm), NEW.hmac("x", algorithm))
    assert {len(hmac) for hmac in keyring.hmacs("x", None)} == {keyring.hmac_bytes}


def test_another_ring_takes_effect_before_the_listeners_hear_of_it() -> None:
    keyring = Keyring(OLD)
    assert keyring.get(OLD.id) is OLD
    heard: list[tuple[SecretKey, ...]] = []
    keyring.on_change(lambda: heard.append(keyring.keys))
    keyring.on_change(lambda: heard.append((keyring.current,)))

    assert keyring.replace(NEW, [OLD])

    assert heard == [(NEW, OLD), (NEW,)]
    assert keyring.get(NEW.id) is NEW
    assert keyring.replace("new")
    assert keyring.get(OLD.id) is None


def test_the_same_ring_again_is_no_change() -> None:
    keyring = Keyring(NEW, previous=[OLD])
    keyring.on_change(lambda: pytest.fail("nothing has changed"))
    assert not keyring.replace("new", ["new", "old"])


def test_another_order_is_a_change() -> None:
    assert Keyring(NEW, previous=[OLD]).replace(OLD, [NEW])


def test_a_key_that_stays_is_not_derived_again() -> None:
    keyring = Keyring(NEW)
    keyring.replace("other", ["new"])
    assert keyring.keys[1] is NEW


def test_an_empty_key_changes_nothing() -> None:
    keyring = Keyring(NEW)
    with pytest.raises(ValueError, match="empty"):
        keyring.replace(NEW, [""])
    assert keyring.keys == (NEW,)


def test_there_is_no_keyring_without_a_key() -> None:
    with pytest.raises(ValueError, match="empty"):
        Keyring("")


def test_the_keys_are_not_shown() -> None:
    assert repr(Keyring("sesame")) == "Keyring(HmacSHA512)"


@pytest.mark.parametrize("algorithm", HmacAlgorithm)
def test_the_hmac_is_that_of_the_rfcs(algorithm: HmacAlgorithm) -> None:
    hmac = SecretKey("Jefe").hmac("what do ya want for nothing?", algorithm)
    assert hmac.hex() == VECTORS[algorithm]
    assert len(hmac) == algorithm.hmac_bytes


def test_brokers_use_sha_512() -> None:
    assert SecretKey("Jefe").hmac("x") == SecretKey("Jefe").hmac("x", HmacAlgorithm("HmacSHA512"))


def test_the_key_is_used_as_utf_8() -> None:
    assert SecretKey("schlüssel").hmac("x") != SecretKey("schl?ssel").hmac("x")


def test_an_id_that_is_not_utf_8_is_hashed_as_a_broker_does() -> None:
    assert SecretKey("key").hmac("\ud800") == SecretKey("key").hmac("?")


def test_the_key_id_is_the_documented_derivation() -> None:
    expected = hashlib.pbkdf2_hmac("sha512", "schlüssel".encode(), b"kafka-dt key id", 10_000, 8).hex()
    assert SecretKey("schlüssel").id == expected
    assert len(expected) == 16


def test_a_derivation_is_pbkdf2() -> None:
    expected = hashlib.pbkdf2_hmac("sha512", b"key", b"salt", 1_000, 64)
    assert SecretKey("key").derive(b"salt", 1_000, 64) == expected


def test_keys_are_equal_by_their_text() -> None:
    assert SecretKey("a") == SecretKey("a")
    assert len({SecretKey("a"), SecretKey("a"), SecretKey("b")}) == 2
    assert SecretKey("a") != "a"


def test_the_key_is_not_shown() -> None:
    key = SecretKey("sesame")
    assert repr(key) == f"SecretKey({key.id})"


@pytest.mark.parametrize(("length", "short"), [(1, True), (31, True), (32, False)])
def test_a_key_with_fewer_than_32_characters_is_short(length: int, short: bool) -> None:
    assert SecretKey("ä" * length).is_short == short


def test_there_is_no_empty_key() -> None:
    with pytest.raises(ValueError, match="empty"):
        SecretKey("")
