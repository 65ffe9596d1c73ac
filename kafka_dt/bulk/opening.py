"""Read token znodes of either form in a thread, a batch at a time, and have a task decide about each.

The checks are those of a node that serves tokens: a node does not serve a token that fails here.

PBKDF2 is nearly all of the work, and Python that runs between two derivations takes three times as long as in a loop
of its own, because nothing of it is in the processor's caches. So what a batch needs is derived first.

Source: KIP-395; kafka_dt.zookeeper.sealing.token_codec.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kafka_dt.bulk.decisions import Decision, Fail
from kafka_dt.zookeeper.errors import InvalidZnode
from kafka_dt.zookeeper.sealing.sealed import Derive, derive, is_sealed, likely_first, open_sealed, salt_of
from kafka_dt.zookeeper.sealing.token_codec import named, require_key
from kafka_dt.zookeeper.znodes.kafka import TokenZnode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_dt.bulk.decisions import Found
    from kafka_dt.tokens import Keyring, SecretKey, Token


@dataclass(frozen=True, slots=True)
class OpenedToken:
    """A token znode that was read."""

    token: Token
    plaintext: bytes = field(repr=False)
    """The JSON as it was written, of whatever version and with whatever else was in it."""
    sealed_by: SecretKey | None
    """The key that opened it; None if it was plain."""


class DerivedForBatch:
    """Derives as `sealed.derive` does; the bytes of these salts and the key are derived at the start."""

    __slots__ = ("_derived", "_key")

    def __init__(self, key: SecretKey, salts: Sequence[bytes]) -> None:
        self._key = key
        self._derived = {salt: derive(key, salt) for salt in salts}

    def __call__(self, key: SecretKey, salt: bytes) -> bytes:
        """Return the bytes derived for one znode."""
        found = self._derived.get(salt) if key is self._key else None
        return derive(key, salt) if found is None else found


class TokenOpener:
    """Reads token znodes of either form; without any key only plain ones."""

    def __init__(self, keys: Sequence[SecretKey]) -> None:
        self._keys = tuple(keys)
        self._likely = self._keys[0] if self._keys else None

    def ahead(self, found: Sequence[Found]) -> Derive:
        """Derive the bytes that the sealed znodes of a batch will most likely need."""
        if self._likely is None:
            return derive
        salts = [salt_of(data) for _, data in found if is_sealed(data)]
        return DerivedForBatch(self._likely, [salt for salt in salts if salt])

    def open(self, token_id: str, data: bytes, ahead: Derive) -> OpenedToken:
        """Read one znode, with the bytes that were derived for its batch; which key made the token is not looked at.

        Raises:
            UnknownKey: none of the keys has sealed it.
            InvalidZnode: it is not the token that should be there, or none.
        """
        plaintext, sealed_by = data, None
        if is_sealed(data):
            opened = open_sealed(likely_first(self._keys, self._likely), data, ahead)
            plaintext, sealed_by = opened.plaintext, opened.key
            self._likely = opened.key
        return OpenedToken(named(token_id, TokenZnode.decode(plaintext)), plaintext, sealed_by)


class TokenTask(ABC):
    """A task that decides about readable tokens; a znode that is not readable fails.

    Args:
        keyring: its keys are those of the cluster; a later change of it is not followed. None = there is no key.
    """

    announces: bool
    """Whether change znodes tell brokers and nodes of its changes."""

    def __init__(self, keyring: Keyring | None) -> None:
        keys = keyring.keys if keyring else ()
        self._opener = TokenOpener(keys)
        self._key_ids = frozenset(key.id for key in keys)

    def __call__(self, found: Sequence[Found]) -> list[Decision]:
        """Decide about each znode of a batch."""
        ahead = self._opener.ahead(found)
        return [self._decision(token_id, data, ahead) for token_id, data in found]

    @abstractmethod
    def decide(self, opened: OpenedToken) -> Decision:
        """Decide about one token."""

    def refuse(self, error: InvalidZnode) -> Decision:
        """Decide about a znode that is not readable."""
        return Fail(error.reason)

    def _decision(self, token_id: str, data: bytes, ahead: Derive) -> Decision:
        try:
            opened = self._opener.open(token_id, data, ahead)
            require_key(opened.token, self._key_ids.__contains__)
        except InvalidZnode as error:
            return self.refuse(error)
        return self.decide(opened)
