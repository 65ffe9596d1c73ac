"""Sealed bytes: what a token's znode holds so that only a holder of the secret key reads and changes it.

Encrypt-then-MAC. A sealed znode is base64 (standard alphabet, padded) of

    0-2    the tag "DTE"
    3      the version, 1
    4-19   16 random bytes, new for each write: salt of the derivation and IV of AES-CBC
    20-51  HMAC-SHA256 of bytes 0-19 and 52-N
    52-N   AES-256-CBC with PKCS#7 padding

PBKDF2-HMAC-SHA512 (the secret key, the salt, 1,000 iterations) gives 64 bytes: the AES key, then the HMAC key. That
takes 0.45 ms, so callers do this in threads, and `derivations` lets them share it; here nothing is kept. What was
sealed does not say with which key: the MAC does, and until it fits nothing is decrypted.

Limit: a client that can write to ZooKeeper can put an older sealed state of the same token back.

Source: KIP-395 "Proposed Changes"; RFC 8018 (PBKDF2), RFC 5652 section 6.3 (padding); NIST SP 800-132 (iterations).
"""

from __future__ import annotations

import binascii
import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CBC
from cryptography.hazmat.primitives.padding import PKCS7

from kafka_dt.zookeeper.errors import InvalidZnode, UnknownKey

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_dt.tokens.keyring import SecretKey

TAG: Final = b"DTE"
VERSION: Final = 1
SALT_BYTES: Final = 16
MAC_BYTES: Final = 32
ITERATIONS: Final = 1_000

_START: Final = binascii.b2a_base64(TAG, newline=False)
DERIVED_BYTES: Final = 64
_KEY_BYTES: Final = DERIVED_BYTES // 2
_BLOCK_BYTES: Final = 16
_HEADER: Final = slice(0, len(TAG) + 1 + SALT_BYTES)
_SALT: Final = slice(len(TAG) + 1, _HEADER.stop)
_MAC: Final = slice(_HEADER.stop, _HEADER.stop + MAC_BYTES)
_CIPHERTEXT: Final = slice(_MAC.stop, None)
_SALT_CHARACTERS: Final = 28
"""How much base64 it takes to know the salt."""
_PADDING: Final = PKCS7(8 * _BLOCK_BYTES)


@dataclass(frozen=True, slots=True)
class Opened:
    """The plaintext, and the key that sealed it."""

    plaintext: bytes = field(repr=False)
    key: SecretKey


def derive(key: SecretKey, salt: bytes) -> bytes:
    """Return the bytes that the keys of one znode are: 32 for AES, then 32 for the MAC."""
    return key.derive(salt, ITERATIONS, DERIVED_BYTES)


Derive = Callable[["SecretKey", bytes], bytes]


def is_sealed(data: bytes) -> bool:
    """Tell whether bytes are meant to be sealed; no JSON begins like that."""
    return data.startswith(_START)


def salt_of(data: bytes) -> bytes | None:
    """Return the salt of bytes that are `is_sealed`, for callers that derive ahead; None if it cannot be told."""
    try:
        return binascii.a2b_base64(data[:_SALT_CHARACTERS])[_SALT]
    except binascii.Error:
        return None


def seal(key: SecretKey, plaintext: bytes, salt: bytes, derive: Derive = derive) -> bytes:
    """Encrypt and authenticate.

    Args:
        key: a holder of this key can open the result.
        plaintext: any bytes.
        salt: 16 random bytes, never used before.
        derive: does what the function of that name does.
    """
    derived = derive(key, salt)
    header = TAG + bytes([VERSION]) + salt
    padder, encryptor = _PADDING.padder(), Cipher(AES256(derived[:_KEY_BYTES]), CBC(salt)).encryptor()
    padded = padder.update(plaintext) + padder.finalize()
    ciphertext = encryptor.update(padded) + encryptor.finalize()
    return binascii.b2a_base64(header + _mac(derived, header, ciphertext) + ciphertext, newline=False)


def open_sealed(keys: Sequence[SecretKey], data: bytes, derive: Derive = derive) -> Opened:
    """Check and decrypt.

    Args:
        keys: tried in this order; each costs a derivation.
        data: a whole znode.
        derive: does what the function of that name does.

    Raises:
        UnknownKey: the MAC fits none of the keys: it was made with another one, or has been tampered with.
        InvalidZnode: it has not the form of something sealed.
    """
    raw = _decoded(data)
    header, salt, mac, ciphertext = raw[_HEADER], raw[_SALT], raw[_MAC], raw[_CIPHERTEXT]
    for key in keys:
        derived = derive(key, salt)
        if hmac.compare_digest(_mac(derived, header, ciphertext), mac):
            return Opened(_decrypted(derived, salt, ciphertext), key)
    raise UnknownKey("its MAC fits none of the secret keys")


def likely_first(keys: Sequence[SecretKey], likely: SecretKey | None) -> Sequence[SecretKey]:
    """Return the order in which `open_sealed` should try keys: a wrong one costs a derivation.

    Args:
        keys: those of a ring.
        likely: the key that opened the znode before, for what one key has sealed is often many; None = not known.
    """
    if likely is None or likely is keys[0] or likely not in keys:
        return keys
    return (likely, *(key for key in keys if key is not likely))


def _decoded(data: bytes) -> bytes:
    """Undo the base64, and see that all parts are there."""
    try:
        raw = binascii.a2b_base64(data)
    except binascii.Error:
        raw = b""
    # Python forgives foreign characters, and bits that no byte is made of; the way back does not.
    if binascii.b2a_base64(raw, newline=False) != data:
        raise InvalidZnode("it is not strict base64")
    if not raw.startswith(TAG) or len(raw) == len(TAG):
        raise InvalidZnode("it does not begin like something sealed")
    if raw[len(TAG)] != VERSION:
        raise InvalidZnode(f"version {raw[len(TAG)]} of sealed bytes is not known")
    length = len(raw) - _CIPHERTEXT.start
    if length <= 0 or length % _BLOCK_BYTES:
        raise InvalidZnode("it is cut off, or longer than it should be")
    return raw


def _mac(derived: bytes, header: bytes, ciphertext: bytes) -> bytes:
    return hmac.digest(derived[_KEY_BYTES:], header + ciphertext, "sha256")


def _decrypted(derived: bytes, salt: bytes, ciphertext: bytes) -> bytes:
    decryptor, unpadder = Cipher(AES256(derived[:_KEY_BYTES]), CBC(salt)).decryptor(), _PADDING.unpadder()
    padded = decryptor.update(ciphertext) + decryptor.finalize()
    try:
        return unpadder.update(padded) + unpadder.finalize()
    except ValueError:
        # The MAC fits, so the program that sealed it had the key and another idea of padding.
        raise InvalidZnode("its padding is wrong") from None
