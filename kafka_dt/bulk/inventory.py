"""List what is known of each token, also of those that no node would serve, with the reason.

    rows = await inventory(client, names, keys)

A readable token is listed in any case; if it has a fault (it names a missing secret key), the reason stands beside it.
A znode that is not readable has a reason and nothing else. No HMAC is made.

Source: kafka_dt.zookeeper.sealing.token_codec (the checks of a node).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafka_dt.bulk.decisions import Leave, ZnodeResult
from kafka_dt.bulk.engine import ALWAYS_CHANGED, UNREACHABLE, BulkLimits, process
from kafka_dt.bulk.opening import TokenOpener
from kafka_dt.zookeeper.errors import ConnectionLost, InvalidZnode, UnknownKey
from kafka_dt.zookeeper.sealing.sealed import is_sealed
from kafka_dt.zookeeper.sealing.token_codec import require_key

if TYPE_CHECKING:
    from kafka_dt.bulk.decisions import Decision, Found, Result
    from kafka_dt.tokens import SecretKey, Token
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
    token: Token | None
    """None if it is not readable."""
    sealed: bool | None
    """Whether its znode is sealed; None if ZooKeeper does not let us read it."""
    sealed_by: str | None
    """The id of the key that opened it."""
    version: int | None
    """Of the znode's data."""
    reason: str | None
    """Why no node with these keys would serve it; None if one would."""


class Inventory:
    """Notes the facts of each token, and changes nothing.

    Args:
        keys: open what is sealed; without any, only plain tokens are read, and whose key made them is not checked.
    """

    announces = False

    def __init__(self, keys: Sequence[SecretKey]) -> None:
        self._opener = TokenOpener(keys)
        self._key_ids = frozenset(key.id for key in keys)

    def __call__(self, found: Sequence[Found]) -> list[Decision]:
        """Note about each znode of a batch."""
        ahead = self._opener.ahead(found)
        return [Leave(self._seen(token_id, data, ahead)) for token_id, data in found]

    def _seen(self, token_id: str, data: bytes, ahead: Derive) -> _Seen:
        sealed = is_sealed(data)
        if sealed and not self._key_ids:
            return _Seen(None, sealed, None, NO_KEY_GIVEN)
        try:
            opened = self._opener.open(token_id, data, ahead)
        except InvalidZnode as error:
            return _Seen(None, sealed, None, error.reason)
        reason = None
        if self._key_ids:
            try:
                require_key(opened.token, self._key_ids.__contains__)
            except UnknownKey as error:
                reason = error.reason
        return _Seen(opened.token, sealed, None if opened.sealed_by is None else opened.sealed_by.id, reason)


async def inventory(
    client: ZooKeeperClient, names: Sequence[str], keys: Sequence[SecretKey], *, limits: BulkLimits | None = None
) -> list[Row]:
    """Read the tokens of these names; those that are gone meanwhile are left out.

    Args:
        client: a started client.
        names: token ids.
        keys: as for `Inventory`.
        limits: how much at once.

    Raises:
        ConnectionLost: the connection broke again and again.
        ZooKeeperError: they cannot be read.
    """
    rows: list[Row] = []

    def note(results: Sequence[Result]) -> None:
        rows.extend(_row(result) for result in results if result.outcome is not ZnodeResult.GONE)

    await process(client, names, Inventory(keys), report=note, now_ms=_no_clock, dry_run=True, limits=limits)
    return rows


@dataclass(frozen=True, slots=True)
class _Seen:
    token: Token | None
    sealed: bool
    sealed_by: str | None
    reason: str | None


def _row(result: Result) -> Row:
    if isinstance(seen := result.note, _Seen):
        return Row(result.token_id, seen.token, seen.sealed, seen.sealed_by, result.version, seen.reason)
    if result.reason in _NOT_OF_THE_ZNODE:
        raise ConnectionLost(f"{result.token_id} could not be read: {result.reason}", sent=False)
    return Row(result.token_id, None, None, None, result.version, result.reason)


def _no_clock() -> int:
    raise AssertionError("nothing is announced, so no caller asks for the time")
