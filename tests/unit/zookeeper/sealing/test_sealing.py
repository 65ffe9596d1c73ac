"""Seal bytes: to the byte as the format says, so that no reader without the key can read or change them."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_dt.tokens import SecretKey
from kafka_dt.zookeeper.errors import InvalidZnode, UnknownKey
from kafka_dt.zookeeper.sealing import sealed as sealing
from kafka_dt.zookeeper.sealing.sealed import is_sealed, open_sealed, seal
from tests.support.zookeeper import kip395

SECRET = "the secret key of the sealing tests"
KEY, OLDER, OTHER = SecretKey(SECRET), SecretKey("an older one"), SecretKey("one of another cluster")
SALT = bytes(range(16))
PLAINTEXT = b'{"owner":"User%3Aalice"}'
SEALED = seal(KEY, PLAINTEXT, SALT)
VECTORS = json.loads((Path(__file__).parents[3] / "vectors" / "sealed" / "vectors.json").read_text())


def _with(**parts: bytes) -> bytes:
    """The sealed bytes with other bytes in some places, and base64 as it should be."""
    raw = base64.b64decode(SEALED)
    whole = {"tag": raw[:3], "version": raw[3:4], "salt": raw[4:20], "mac": raw[20:52], "ciphertext": raw[52:]} | parts
    return base64.b64encode(b"".join(whole.values()))


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["name"] for vector in VECTORS])
def test_the_bytes_are_those_of_the_format(vector: dict[str, str]) -> None:
    key, salt = SecretKey(vector["secret_key"]), bytes.fromhex(vector["salt"])
    assert seal(key, vector["plaintext"].encode(), salt) == vector["znode"].encode()
    assert open_sealed([key], vector["znode"].encode()).plaintext == vector["plaintext"].encode()


def test_the_vectors_are_those_of_the_independent_program() -> None:
    assert kip395.vectors() == VECTORS


@settings(max_examples=30)
@given(plaintext=st.binary(max_size=200), secret=st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_what_is_sealed_is_opened_by_us_and_by_the_independent_decoder(plaintext: bytes, secret: str) -> None:
    key = SecretKey(secret)
    data = seal(key, plaintext, SALT)
    assert is_sealed(data)
    assert open_sealed([key], data).plaintext == plaintext
    assert kip395.decode(data, secret) == plaintext


def test_flipping_any_single_bit_is_detected() -> None:
    for position in range(8 * len(SEALED)):
        flipped = bytearray(SEALED)
        flipped[position // 8] ^= 1 << position % 8
        with pytest.raises(InvalidZnode):
            open_sealed([KEY], bytes(flipped))


def test_cutting_off_or_adding_anything_is_detected() -> None:
    for length in range(len(SEALED)):
        with pytest.raises(InvalidZnode):
            open_sealed([KEY], SEALED[:length])
    for more in (b"\n", b"=", b"A", b" ", SEALED, base64.b64encode(b"x" * 48)):
        with pytest.raises(InvalidZnode):
            open_sealed([KEY], SEALED + more)


def test_parts_of_two_znodes_do_not_fit_together() -> None:
    other = base64.b64decode(seal(KEY, b"{}", bytes(16)))
    for name, part in {"salt": other[4:20], "mac": other[20:52], "ciphertext": other[52:]}.items():
        with pytest.raises(UnknownKey):
            open_sealed([KEY], _with(**{name: part}))


def test_the_key_that_fits_is_found_and_named() -> None:
    assert open_sealed([KEY, OLDER], SEALED).key is KEY
    assert open_sealed([OTHER, OLDER, KEY], SEALED).key is KEY


@pytest.mark.parametrize("keys", [[], [OTHER], [OTHER, OLDER]])
def test_without_the_key_nothing_is_opened(keys: list[SecretKey]) -> None:
    with pytest.raises(UnknownKey, match="its MAC fits none of the secret keys"):
        open_sealed(keys, SEALED)


def test_nothing_is_decrypted_before_the_mac_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("decrypted")

    monkeypatch.setattr(sealing, "Cipher", refuse)
    with pytest.raises(UnknownKey):
        open_sealed([KEY], _with(mac=bytes(32)))
    with pytest.raises(AssertionError, match="decrypted"):
        open_sealed([KEY], SEALED)


SECRET_TEXT = b"no reader of a log may see this"
MALFORMED = {
    "it is not strict base64": [
        b"RFRFA",
        b"RFRFAR==",  # bits that no byte is made of
        b"RFRFAQ",
        SEALED + b"=",
        SEALED + b"\n",
        SEALED[:4] + b"\n" + SEALED[4:],
        SEALED[:-1] + b"-",
        SEALED[:-1] + b"\xff",
    ],
    "it does not begin like something sealed": [
        b"",
        b"RFRF",
        base64.b64encode(SECRET_TEXT),
        _with(tag=b"dte"),
    ],
    "version 0 of sealed bytes is not known": [_with(version=b"\x00")],
    "version 2 of sealed bytes is not known": [_with(version=b"\x02"), b"RFRFAg=="],
    "it is cut off, or longer than it should be": [
        _with(ciphertext=b""),
        _with(ciphertext=bytes(15)),
        _with(ciphertext=bytes(33)),
        b"RFRFAQ==",
    ],
    "its padding is wrong": [
        kip395.encode_padded(padded, SECRET, SALT)
        for padded in (bytes(16), SECRET_TEXT[:15] + b"\x11", SECRET_TEXT[:14] + b"\x01\x02")
    ],
}


@pytest.mark.parametrize(("reason", "data"), [(reason, data) for reason, all_ in MALFORMED.items() for data in all_])
def test_what_is_malformed_is_refused_with_the_reason_and_without_the_content(reason: str, data: bytes) -> None:
    with pytest.raises(InvalidZnode) as caught:
        open_sealed([KEY], data)
    assert str(caught.value) == caught.value.reason == reason
    assert caught.value.__cause__ is None


def test_a_mac_that_fits_does_not_excuse_another_version() -> None:
    with pytest.raises(InvalidZnode, match="version 2"):
        open_sealed([KEY], kip395.encode_padded(bytes([16]) * 16, SECRET, SALT, head=b"DTE\x02"))


@pytest.mark.parametrize("data", [b"", b"{}", b'{"version":3}', b" RFRF", b"rfrf", "{}".encode("utf-16")])
def test_what_is_plain_is_not_taken_for_sealed(data: bytes) -> None:
    assert not is_sealed(data)


@given(st.binary())
def test_any_bytes_are_opened_or_refused(data: bytes) -> None:
    with pytest.raises(InvalidZnode):
        open_sealed([KEY], data)
    with pytest.raises(InvalidZnode):
        open_sealed([KEY], b"RFRF" + data)


def test_the_plaintext_is_not_shown() -> None:
    assert "alice" not in repr(open_sealed([KEY], SEALED))
