"""The secret keys of a node: the current one makes tokens, and the tokens of all of them are accepted.

    keyring = Keyring(current, algorithm, previous=[older, oldest])
    token_key = keyring.current                     # makes a token: its id is written beside it
    keyring.hmacs(token_id, key_id)                 # what its holder may have

A token says which key made it. One that a broker has made or rewritten says nothing, and then may be of any key of the
ring; that of the oldest is shown, because brokers get a new key last. The oldest is the last of the previous keys:
while a rotation is prepared they begin with the key to come, and the current one is among them once more.

`replace` changes the ring while the node runs. All nodes must accept a key before one of them makes tokens with it;
how that is done is the operator's command's matter (`keys rotate`). The HMAC of an id and a key never changes, so it is
computed once, when a token enters the cache (about a microsecond). For one event loop; the keys are for any thread.

Source: kafka.server.DelegationTokenManager.createHmac; KIP-48 "Token acquisition", "Delegation Token Master Key"
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kafka_dt.tokens.secret_key import HmacAlgorithm, SecretKey


class Keyring:
    """The keys and the algorithm; its repr shows only the second.

    Args:
        current: makes the new tokens; a text is made a key.
        algorithm: how HMACs are computed, the same for all keys.
        previous: the others, newest first; one that is there twice counts once, where it is first.

    Raises:
        ValueError: a key is empty; a server without a key has no keyring, and no tokens.
    """

    __slots__ = ("_algorithm", "_by_id", "_keys", "_listeners", "_oldest_first")

    def __init__(
        self,
        current: SecretKey | str,
        algorithm: HmacAlgorithm = HmacAlgorithm.HMAC_SHA512,
        previous: Sequence[SecretKey | str] = (),
    ) -> None:
        self._algorithm = algorithm
        keys = _made(current, previous)
        self._keys = tuple(dict.fromkeys(keys))
        self._oldest_first = tuple(dict.fromkeys(reversed(keys)))
        self._by_id: Mapping[str, SecretKey] = {}
        self._listeners: tuple[Callable[[], None], ...] = ()

    def __repr__(self) -> str:
        return f"Keyring({self._algorithm.value})"

    @property
    def algorithm(self) -> HmacAlgorithm:
        """How HMACs are computed."""
        return self._algorithm

    @property
    def current(self) -> SecretKey:
        """The key that makes new tokens."""
        return self._keys[0]

    @property
    def keys(self) -> tuple[SecretKey, ...]:
        """All keys, the current one first, then from newest to oldest."""
        return self._keys

    @property
    def oldest(self) -> SecretKey:
        """The key that a token is taken to be of which does not say its key."""
        return self._oldest_first[0]

    @property
    def hmac_bytes(self) -> int:
        """The length of every HMAC of this keyring; anything else matches no token."""
        return self._algorithm.hmac_bytes

    def get(self, key_id: str) -> SecretKey | None:
        """Return the key with that id; None if it is not in the ring."""
        if not self._by_id:
            self._by_id = {key.id: key for key in self._keys}
        return self._by_id.get(key_id)

    def hmacs(self, token_id: str, key_id: str | None) -> tuple[bytes, ...]:
        """Return every HMAC by which the holder of a token may be known, the one to be shown first.

        Args:
            token_id: of the token.
            key_id: of the key that made it; None if that is not known, then there is an HMAC of each key.

        Returns:
            Raw HMACs, all different; none if the key is not in the ring.
        """
        if key_id is None:
            if len(self._keys) == 1:
                return (self.current.hmac(token_id, self._algorithm),)
            return tuple(key.hmac(token_id, self._algorithm) for key in self._oldest_first)
        key = self.get(key_id)
        return () if key is None else (key.hmac(token_id, self._algorithm),)

    def replace(self, current: SecretKey | str, previous: Sequence[SecretKey | str] = ()) -> bool:
        """Change the keys, and call the listeners if that makes a difference.

        Returns:
            Whether there is another current key, another key, one less, or another order.

        Raises:
            ValueError: a key is empty; nothing has changed.
        """
        known = {key: key for key in self._keys}
        # A key that stays remains the same object, so that its id is not computed again.
        made = [known.get(key, key) for key in _made(current, previous)]
        keys, oldest_first = tuple(dict.fromkeys(made)), tuple(dict.fromkeys(reversed(made)))
        if (keys, oldest_first) == (self._keys, self._oldest_first):
            return False
        self._keys, self._oldest_first = keys, oldest_first
        self._by_id = {}
        for listener in self._listeners:
            listener()
        return True

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener` after every change, in the order in which they were added; it must not raise."""
        self._listeners = (*self._listeners, listener)


def _made(current: SecretKey | str, previous: Sequence[SecretKey | str]) -> list[SecretKey]:
    return [key if isinstance(key, SecretKey) else SecretKey(key) for key in (current, *previous)]
