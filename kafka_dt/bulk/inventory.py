"""List what is known of each token, also of those that no node would serve, or count the tokens by their keys.

    rows = await inventory(client, names, keys)
    counted = await census(client, keyring, now_ms=now_ms)

A readable token is listed in any case; if it has a fault (it names a missing secret key), the reason stands beside it.
A znode that is not readable has a reason and nothing else. No HMAC is made.

Source: kafka_dt.zookeeper.sealing.token_codec (the checks of a node); KIP-48, "Delegation Token Master Key".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from kafka_dt.bulk.decisions import Leave, ZnodeResult
from kafka_dt.bulk.engine import ALWAYS_CHANGED, UNREACHABLE, BulkLimits, process, token_ids
from kafka_dt.bulk.opening import TokenOpener
from kafka_dt.zookeeper.errors import InvalidZnode, UnknownKey, ZooKeeperConnectionLost
from kafka_dt.zookeeper.sealing.sealed import is_sealed
from kafka_dt.zookeeper.sealing.token_codec import require_key

if TYPE_CHECKING:
    from kafka_dt.bulk.decisions import Decision, Found, Result
    from kafka_dt.tokens import Keyring, SecretKey, Token
    from kafka_dt.zookeeper.connection.client import ZooKeeperClient
    from kafka_dt.zookeeper.sealing.sealed import Derive

NO_KEY_GIVEN: Final = "it is sealed, and no secret key is given"
"""Why a sealed znode is not read where there are no keys."""
_NOT_OF_THE_ZNODE: Final = (ALWAYS_CHANGED, UNREACHABLE)


@dataclass(frozen=True, slots=True)
class Row:
    """What is known of one token."""

    token_id: str
    """The name of its znode."""
    token: Token | None = None
    """None if it is not readable."""
    sealed: bool | None = None
    """Whether its znode is sealed; None if ZooKeeper does not let us read it."""
    sealed_by: str | None = None
    """The id of the key that opened it."""
    version: int | None = None
    """Of the znode's data."""
    reason: str | None = None
    """Why no node with these keys would serve it; None if one would."""
    unknown_key: str | None = field(default=None, compare=False)
    """The id of the missing key, if that is the reason and the token names it."""


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


async def inventory(
    client: ZooKeeperClient, names: Sequence[str], keys: Sequence[SecretKey], *, limits: BulkLimits | None = None
) -> list[Row]:
    """Read the tokens of these names; those that are gone meanwhile are left out.

    Args:
        client: a started client.
        names: token ids.
        keys: open what is sealed; without any, only plain tokens are read, and whose key made them is not checked.
        limits: how much at once.

    Raises:
        ZooKeeperConnectionLost: the connection broke again and again.
        ZooKeeperError: they cannot be read.
    """
    rows: list[Row] = []

    def note(results: Sequence[Result]) -> None:
        rows.extend(_row(result) for result in results if result.outcome is not ZnodeResult.GONE)

    await process(client, names, _Look(keys), report=note, now_ms=_no_clock, dry_run=True, limits=limits)
    return rows


async def census(client: ZooKeeperClient, keyring: Keyring, *, now_ms: Callable[[], int]) -> Census:
    """Read all tokens and count them; the wall clock tells which have expired.

    Raises:
        ZooKeeperError: they cannot be read.
    """
    now = now_ms()
    live: Counter[str | None] = Counter()
    sealed: Counter[str] = Counter()
    unknown: Counter[str] = Counter()
    plain = 0
    unreadable: dict[str, str] = {}

    def count(results: Sequence[Result]) -> None:
        nonlocal plain
        for result in results:
            row = result.note
            if not isinstance(row, Row):
                if result.outcome is ZnodeResult.FAILED:
                    unreadable[result.token_id] = result.reason
            elif row.unknown_key is not None:
                unknown[row.unknown_key] += 1
            elif row.token is None or row.reason is not None:
                unreadable[row.token_id] = row.reason or ""
            else:
                live[row.token.key_id] += not row.token.is_expired(now)
                if row.sealed_by is None:
                    plain += 1
                else:
                    sealed[row.sealed_by] += 1

    names = await token_ids(client)
    await process(client, names, _Look(keyring.keys), report=count, now_ms=_no_clock, dry_run=True)
    return Census(+live, sealed, plain, unreadable, unknown)


class _Look:
    """Notes a row for each token, and changes nothing."""

    announces = False

    def __init__(self, keys: Sequence[SecretKey]) -> None:
        self._opener = TokenOpener(keys)
        self._key_ids = frozenset(key.id for key in keys)

    def __call__(self, found: Sequence[Found]) -> list[Decision]:
        ahead = self._opener.ahead(found)
        return [Leave(self._seen(token_id, data, ahead)) for token_id, data in found]

    def _seen(self, token_id: str, data: bytes, ahead: Derive) -> Row:
        row = Row(token_id, sealed=is_sealed(data))
        if row.sealed and not self._key_ids:
            return replace(row, reason=NO_KEY_GIVEN)
        try:
            opened = self._opener.open(token_id, data, ahead)
            row = replace(row, token=opened.token, sealed_by=opened.sealed_by.id if opened.sealed_by else None)
            if self._key_ids:
                require_key(opened.token, self._key_ids.__contains__)
        except InvalidZnode as error:
            return replace(
                row, reason=error.reason, unknown_key=error.key_id if isinstance(error, UnknownKey) else None
            )
        return row


def _row(result: Result) -> Row:
    if isinstance(row := result.note, Row):
        return replace(row, version=result.version)
    if result.reason in _NOT_OF_THE_ZNODE:
        raise ZooKeeperConnectionLost(f"{result.token_id} could not be read: {result.reason}", sent=False)
    return Row(result.token_id, version=result.version, reason=result.reason)


def _no_clock() -> int:
    raise AssertionError("nothing is announced, so no caller asks for the time")
