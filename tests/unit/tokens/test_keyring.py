import pytest

from kafka_dt.tokens import HmacAlgorithm, Keyring

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
    keyring = Keyring("Jefe", algorithm)
    hmac = keyring.hmac("what do ya want for nothing?")
    assert hmac.hex() == VECTORS[algorithm]
    assert len(hmac) == keyring.hmac_bytes


def test_brokers_use_sha_512() -> None:
    assert Keyring("Jefe").hmac("x") == Keyring("Jefe", HmacAlgorithm("HmacSHA512")).hmac("x")


def test_the_key_is_used_as_utf_8() -> None:
    assert Keyring("schlüssel").hmac("x") != Keyring("schl?ssel").hmac("x")


def test_an_id_that_is_not_utf_8_is_hashed_as_a_broker_does() -> None:
    assert Keyring("key").hmac("\ud800") == Keyring("key").hmac("?")


def test_there_is_no_keyring_without_a_key() -> None:
    with pytest.raises(ValueError, match="empty"):
        Keyring("")


def test_the_key_is_not_shown() -> None:
    assert repr(Keyring("sesame")) == "Keyring(HmacSHA512)"
