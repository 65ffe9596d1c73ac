import hashlib

import pytest

from kafka_dt.tokens import HmacAlgorithm, SecretKey

# The key "Jefe" of RFC 2202 (SHA-1) and RFC 4231 (SHA-2), test case 2.
VECTORS = {
    HmacAlgorithm.HMAC_SHA1: "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79",
    HmacAlgorithm.HMAC_SHA256: "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
    HmacAlgorithm.HMAC_SHA512: (
        "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554"
        "9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737"
    ),
}


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
