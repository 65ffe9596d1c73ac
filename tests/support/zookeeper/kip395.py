"""Sealed znodes by the text of the format alone, to check ours against: it shares no line with kafka_dt.

The text: base64 (standard alphabet, padded) of: bytes 0-2 `DTE`, byte 3 version 0x01, bytes 4-19 random salt, which is
also the AES-CBC IV, bytes 20-51 HMAC-SHA256, bytes 52-N ciphertext. PBKDF2-HMAC-SHA512 (password = secret key in UTF-8,
salt, 1,000 iterations, 64 bytes): the first 32 are the AES-256 key, the last 32 the HMAC key. The MAC covers bytes 0-19
and the ciphertext. Padding is PKCS#7.

By hand it makes the vectors of tests/vectors/sealed:

    python -m tests.support.zookeeper.kip395 > tests/vectors/sealed/vectors.json
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import sys
from typing import Any

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes


class NotSealed(Exception):
    """The bytes are not what the key sealed."""


def decode(znode: bytes, secret_key: str) -> bytes:
    """Open a znode; raises NotSealed with the reason."""
    try:
        content = base64.b64decode(znode, validate=True)
    except ValueError as error:
        raise NotSealed("base64") from error
    if content[0:3] != b"DTE":
        raise NotSealed("tag")
    if content[3:4] != b"\x01":
        raise NotSealed("version")
    salt, mac, ciphertext = content[4:20], content[20:52], content[52:]
    aes_key, mac_key = _keys(secret_key, salt)
    if not hmac.compare_digest(hmac.new(mac_key, content[0:20] + ciphertext, hashlib.sha256).digest(), mac):
        raise NotSealed("MAC")
    decryptor = Cipher(algorithms.AES(aes_key), modes.CBC(salt)).decryptor()
    padded = decryptor.update(ciphertext) + decryptor.finalize()
    count = padded[-1]
    if not 1 <= count <= 16 or padded[-count:] != bytes([count]) * count:
        raise NotSealed("padding")
    return padded[:-count]


def encode(plaintext: bytes, secret_key: str, salt: bytes) -> bytes:
    """Seal a plaintext as the text says."""
    count = 16 - len(plaintext) % 16
    return encode_padded(plaintext + bytes([count]) * count, secret_key, salt)


def encode_padded(padded: bytes, secret_key: str, salt: bytes, head: bytes = b"DTE\x01") -> bytes:
    """Seal whole blocks, behind a tag and a version that may be wrong, with a MAC that fits."""
    aes_key, mac_key = _keys(secret_key, salt)
    encryptor = Cipher(algorithms.AES(aes_key), modes.CBC(salt)).encryptor()
    ciphertext = encryptor.update(padded) + encryptor.finalize()
    mac = hmac.new(mac_key, head + salt + ciphertext, hashlib.sha256).digest()
    return base64.b64encode(head + salt + mac + ciphertext)


def _keys(secret_key: str, salt: bytes) -> tuple[bytes, bytes]:
    derived = hashlib.pbkdf2_hmac("sha512", secret_key.encode("utf-8"), salt, 1000, 64)
    return derived[:32], derived[32:]


def vectors() -> list[dict[str, Any]]:
    """Plaintexts of all lengths around a block, keys of all kinds, and a token as a broker writes it."""
    token = (
        '{"issueTimestamp":1700000000000,"renewers":["User%3Abob"],"tokenRequester":"User%3Aalice",'
        '"tokenId":"dGhpcyBpcyBhIHRva2VuIQ","owner":"User%3AZo%C3%AB","expiryTimestamp":1700086400000,'
        '"maxTimestamp":1700604800000,"version":3}'
    )
    cases = [
        ("a token", "the secret key of the cluster", token),
        ("nothing", "k", ""),
        ("one byte less than a block", "a key of\ttwo words", "fifteen bytes.."),
        ("a block", "a key that is longer than a block of SHA-512, " * 4, "sixteen bytes..."),
        ("one byte more than a block", "Schlüssel €", "seventeen bytes.."),
        ("not ASCII", "ключ", "Zoë"),
    ]
    made = []
    for number, (name, secret_key, plaintext) in enumerate(cases):
        salt = bytes(range(number, number + 16))
        znode = encode(plaintext.encode(), secret_key, salt).decode()
        case = {"name": name, "secret_key": secret_key, "salt": salt.hex(), "plaintext": plaintext, "znode": znode}
        made.append(case)
    return made


if __name__ == "__main__":
    json.dump(vectors(), sys.stdout, indent=2, ensure_ascii=False)
    sys.stdout.write("\n")
