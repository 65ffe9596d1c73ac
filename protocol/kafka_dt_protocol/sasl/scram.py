"""What both sides of SCRAM share: the mechanisms, the credential a server keeps, and the key arithmetic.

    credential = derive_credential(ScramMechanism.SHA_256, password, salt, iterations=4096)

`derive_credential` costs a PBKDF2 of `iterations` rounds (1 ms for 4096 of SHA-256, 2.5 ms for SHA-512), the rest some
microseconds. Passwords are hashed as their UTF-8 bytes, as Kafka does it, without the SASLprep of RFC 5802: a
password outside ASCII verifies here if and only if it does on a broker.

Source: RFC 5802 sections 2.2 and 3, RFC 7677; org.apache.kafka.common.security.scram.internals.ScramFormatter.
"""

import hashlib
import hmac
import string
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from kafka_dt_protocol.errors import LocalProtocolError
from kafka_dt_protocol.sasl.text import encode_text


class ScramMechanism(StrEnum):
    """The SCRAM mechanisms of Kafka; the value is the name in SaslHandshake."""

    SHA_256 = "SCRAM-SHA-256"
    SHA_512 = "SCRAM-SHA-512"

    @property
    def hash_name(self) -> str:
        """The name of the hash function for `hashlib`."""
        return _HASH_NAMES[self]

    @property
    def hash_bytes(self) -> int:
        """The length of a hash, and so of every key, proof and signature."""
        return _HASH_BYTES[self]

    @property
    def min_iterations(self) -> int:
        """The rounds of PBKDF2 that a client wants and a server offers at least."""
        return _MIN_ITERATIONS

    def hash(self, data: bytes) -> bytes:
        """Return H(data)."""
        return hashlib.new(self.hash_name, data).digest()

    def hmac(self, key: bytes, data: bytes) -> bytes:
        """Return HMAC(key, data)."""
        return hmac.digest(key, data, self.hash_name)


_HASH_NAMES = MappingProxyType({ScramMechanism.SHA_256: "sha256", ScramMechanism.SHA_512: "sha512"})
_HASH_BYTES = MappingProxyType({ScramMechanism.SHA_256: 32, ScramMechanism.SHA_512: 64})
_MIN_ITERATIONS = 4096

_SALTS: Final = 2**130
"""How many salts there are: `ScramFormatter.secureRandomString` draws 130 bits."""
_DIGITS: Final = string.digits + string.ascii_lowercase
_PAIRS: Final = [f"{first}{second}".encode() for first in _DIGITS for second in _DIGITS]
"""Two digits of base 36 by their value."""
_WORD_PAIRS: Final = 5
_WORD: Final = 36 ** (2 * _WORD_PAIRS)
"""What so many pairs can tell fits into a machine word."""
_WORDS: Final = 3
"""How many of these a salt needs."""


@dataclass(slots=True, init=False, unsafe_hash=True)
class ScramParameters:
    """What a server tells a client that names a user: all of a credential that the challenge needs."""

    salt: Final[bytes]
    iterations: Final[int]
    """The rounds of PBKDF2."""

    def __init__(self, salt: bytes, iterations: int) -> None:
        self.salt = salt
        self.iterations = iterations


@dataclass(slots=True, init=False, repr=False, unsafe_hash=True)
class ScramCredential:
    """What a server keeps of a password: enough to check a proof, not enough to make one."""

    salt: Final[bytes]
    """Random bytes, told to every client that names the user."""
    stored_key: Final[bytes]
    """H(ClientKey), `hash_bytes` long."""
    server_key: Final[bytes]
    """HMAC(SaltedPassword, "Server Key"), `hash_bytes` long."""
    iterations: Final[int]
    """The rounds of PBKDF2."""
    alternatives: "Final[tuple[ScramCredential, ...]]"
    """Credentials of other passwords that are as good, with the same salt and iterations; they have none themselves."""

    def __init__(
        self,
        salt: bytes,
        stored_key: bytes,
        server_key: bytes,
        iterations: int,
        alternatives: "tuple[ScramCredential, ...]" = (),
    ) -> None:
        self.salt = salt
        self.stored_key = stored_key
        self.server_key = server_key
        self.iterations = iterations
        self.alternatives = alternatives

    def __repr__(self) -> str:
        return f"ScramCredential(salt={self.salt!r}, iterations={self.iterations})"


@dataclass(frozen=True, slots=True)
class ScramKeys:
    """What a client makes of its password for one salt and count of iterations; as good as the password."""

    client_key: bytes = field(repr=False)
    """HMAC(SaltedPassword, "Client Key")."""
    stored_key: bytes = field(repr=False)
    """H(ClientKey)."""
    server_key: bytes = field(repr=False)
    """HMAC(SaltedPassword, "Server Key")."""


def derive_keys(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> ScramKeys:
    """Derive all keys of a password; costs a PBKDF2.

    Args:
        mechanism: which hash
        password: any text; for a delegation token the base64 text of its HMAC
        salt: as the server says
        iterations: rounds of PBKDF2, 1 or more

    Raises:
        LocalProtocolError: the password has no UTF-8 form, or the count of iterations is below 1
    """
    return keys_of(mechanism, salt_password(mechanism, password, salt, iterations))


def salt_password(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> bytes:
    """Return the salted password, as `derive_keys`; it is as good as the password."""
    if iterations < 1:
        raise LocalProtocolError(f"PBKDF2 cannot do {iterations} iterations")
    return hashlib.pbkdf2_hmac(mechanism.hash_name, encode_text(password), salt, iterations)


def keys_of(mechanism: ScramMechanism, salted_password: bytes) -> ScramKeys:
    """Derive all keys of a salted password, which is what PBKDF2 makes of a password, `hash_bytes` long."""
    client_key = mechanism.hmac(salted_password, b"Client Key")
    server_key = mechanism.hmac(salted_password, b"Server Key")
    return ScramKeys(client_key, mechanism.hash(client_key), server_key)


def derive_credential(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> ScramCredential:
    """Derive what a server keeps of a password, as `derive_keys`; costs a PBKDF2, so not on the event loop."""
    keys = derive_keys(mechanism, password, salt, iterations)
    return ScramCredential(salt, keys.stored_key, keys.server_key, iterations)


def client_proof(mechanism: ScramMechanism, keys: ScramKeys, auth_message: bytes) -> bytes:
    """Return the ClientProof: ClientKey XOR HMAC(StoredKey, AuthMessage)."""
    return _xor(keys.client_key, mechanism.hmac(keys.stored_key, auth_message))


def is_valid_proof(mechanism: ScramMechanism, stored_key: bytes, auth_message: bytes, proof: bytes) -> bool:
    """Tell whether a proof was made with the ClientKey of a StoredKey.

    A proof of another length than the hash is not valid; the length is no secret, so this is decided at once.
    """
    if len(proof) != mechanism.hash_bytes:
        return False
    client_key = _xor(proof, mechanism.hmac(stored_key, auth_message))
    return hmac.compare_digest(mechanism.hash(client_key), stored_key)


def _xor(left: bytes, right: bytes) -> bytes:
    return (int.from_bytes(left) ^ int.from_bytes(right)).to_bytes(len(left))


def salt_text(digest: bytes) -> bytes:
    """Make a salt of the last 130 bits of a digest: their number in base 36, as Kafka's tools write random bits.

    It takes the same time for all digests of a length.
    """
    number = int.from_bytes(digest) % _SALTS
    pairs: list[bytes] = []
    for _ in range(_WORDS):
        number, word = divmod(number, _WORD)
        for _ in range(_WORD_PAIRS):
            pairs.append(_PAIRS[word % len(_PAIRS)])
            word //= len(_PAIRS)
    pairs.reverse()
    return b"".join(pairs).lstrip(b"0") or b"0"
