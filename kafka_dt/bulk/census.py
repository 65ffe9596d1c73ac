"""Count the tokens by the key that made them and by the key that seals them.

    counted = await census(client, keyring, now_ms=now_ms)
    counted.live_by_key        # the id of a key, or None where a token does not say -> how many tokens live on it

Source: KIP-48 "Delegation Token Master Key"; kafka_dt.tokens.keyring.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from kafka_dt.bulk.decisions import Leave, ZnodeResult
from kafka_dt.bulk.engine import Report, process, token_ids
from kafka_dt.bulk.opening import OpenedToken, TokenTask
from kafka_dt.zookeeper.errors import UnknownKey

if TYPE_CHECKING:
    from kafka_dt.bulk.decisions import Decision, Result
    from kafka_dt.tokens import Keyring
    from kafka_dt.zookeeper.connection.client import ZooKeeperClient
    from kafka_dt.zookeeper.errors import InvalidZnode


@dataclass(frozen=True, slots=True)
class Census:
    """The number of tokens that each secret key made, and of znodes that each opens."""

    live_by_key: Mapping[str | None, int]
    """Tokens that have not expired, by the id of the key that made them; None = they do not say."""
    sealed_by_key: Mapping[str, int]
    """Znodes, also of expired tokens, by the id of the key that opens them."""
    plain: int
    """Znodes that are not sealed."""
    unreadable: Mapping[str, str] = field(repr=False)
    """Token ids that cannot be read, and why."""
    unknown_keys: Mapping[str, int] = field(default_factory=dict)
    """The ids of keys that are not in the ring and that tokens name, with how many do."""

    @property
    def sealed(self) -> int:
        """Znodes that are sealed and can be opened."""
        return sum(self.sealed_by_key.values())


async def census(
    client: ZooKeeperClient, keyring: Keyring, *, now_ms: Callable[[], int], progress: Report | None = None
) -> Census:
    """Read all tokens and count them.

    Args:
        client: a started client.
        keyring: opens what is sealed.
        now_ms: the wall clock, in milliseconds since 1970.
        progress: hears the results, a batch at a time.

    Raises:
        ZooKeeperError: they cannot be read.
    """
    live: Counter[str | None] = Counter()
    sealed: Counter[str] = Counter()
    plain = 0
    unreadable: dict[str, str] = {}
    unknown: Counter[str] = Counter()

    def count(results: Sequence[Result]) -> None:
        nonlocal plain
        for result in results:
            if isinstance(seen := result.note, _Seen):
                live[seen.made_by] += seen.lives
                plain += seen.sealed_by is None
                if seen.sealed_by is not None:
                    sealed[seen.sealed_by] += 1
            elif isinstance(needed := result.note, _Needs):
                unknown[needed.key_id] += 1
            elif result.outcome is ZnodeResult.FAILED:
                unreadable[result.token_id] = result.reason
        if progress is not None:
            progress(results)

    await process(client, await token_ids(client), _Look(keyring, now_ms()), report=count, now_ms=now_ms)
    return Census(+live, sealed, plain, unreadable, unknown)


class _Seen(NamedTuple):
    made_by: str | None
    sealed_by: str | None
    lives: bool


class _Needs(NamedTuple):
    key_id: str


class _Look(TokenTask):
    announces = False

    def __init__(self, keyring: Keyring, now_ms: int) -> None:
        super().__init__(keyring)
        self._now_ms = now_ms

    def decide(self, opened: OpenedToken) -> Decision:
        sealed_by = None if opened.sealed_by is None else opened.sealed_by.id
        return Leave(_Seen(opened.token.key_id, sealed_by, not opened.token.is_expired(self._now_ms)))

    def refuse(self, error: InvalidZnode) -> Decision:
        if isinstance(error, UnknownKey) and error.key_id is not None:
            return Leave(_Needs(error.key_id))
        return super().refuse(error)
