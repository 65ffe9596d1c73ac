"""Reads token znodes of either form in a thread, and remembers which key opened them.

The same checks as of a node that serves the token, in the order of their cost: what fails here is not served either.

Source: KIP-395; kafka_dt.zookeeper.token_codec.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kafka_dt.zookeeper.errors import InvalidZnode, UnknownKey
from kafka_dt.zookeeper.sealing import is_sealed, open_sealed
from kafka_dt.zookeeper.znodes import TokenZnode

if TYPE_CHECKING:
    from kafka_dt.tokens import Keyring, SecretKey, Token


@dataclass(frozen=True, slots=True)
class OpenedToken:
    """A token znode that was read."""

    token: Token
    plaintext: bytes = field(repr=False)
    """The JSON as it was written, of whatever version and with whatever else was in it."""
    sealed_by: SecretKey | None
    """The key that opened it; None if it was plain."""


class Opener:
    """Reads token znodes with the keys of a ring as they are now; from any thread.

    Args:
        keyring: its keys; a later change of it is not followed.
    """

    __slots__ = ("_key_ids", "_keys")

    def __init__(self, keyring: Keyring) -> None:
        self._keys = keyring.keys
        self._key_ids = frozenset(key.id for key in self._keys)

    def open(self, token_id: str, data: bytes) -> OpenedToken:
        """Read a token.

        Raises:
            InvalidZnode: it cannot be opened, is no token or another one.
        """
        if is_sealed(data):
            opened = open_sealed(self._keys, data)
            plaintext, sealed_by = opened.plaintext, opened.key
        else:
            plaintext, sealed_by = data, None
        token = TokenZnode.decode(plaintext)
        if token.token_id != token_id:
            raise InvalidZnode("it names another token")
        if token.key_id is not None and token.key_id not in self._key_ids:
            raise UnknownKey(f"the key {token.key_id} that made it is not in the ring", key_id=token.key_id)
        return OpenedToken(token, plaintext, sealed_by)
