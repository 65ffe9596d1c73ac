"""Report ZooKeeper's answers about tokens to the listener of a store: in the same order, opened or not.

A plain znode is decoded as its answer arrives. A sealed one is opened by threads, which takes a while, and whatever
arrives for the same token meanwhile is newer: it supersedes the opening, whose result is dropped then. So there is
one opening a token at most, an old state never follows a newer one, and what has been deleted stays deleted. A task
that waits for an opening that is superseded gets the newer state.

What was last reported of each token is remembered (its mzxid, not the token), so that a look at everything opens only
what has changed.

A token that cannot be read is kept apart with the reason: it is not served, it is one line in the log for each time it
was written, and no node deletes it. Another ring of keys may open it: `untried` says which tokens to read again, and a
read for another reason tries them as well. When a key leaves the ring, the tokens that it made are kept apart in the
same way.

All methods belong to the event loop's thread; they do no I/O.

Source: KIP-395; `kafka_dt.tokens.store`, points 1-3 and 5 of the contract, and `KeyedTokens`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafka_dt.tokens.store import ChangeListener, StoredToken
from kafka_dt.zookeeper.errors import InvalidZnode, UnknownKey
from kafka_dt.zookeeper.sealing.sealed import is_sealed
from kafka_dt.zookeeper.znodes.kafka import TokenZnode

if TYPE_CHECKING:
    from kafka_dt.tokens.token import Token
    from kafka_dt.zookeeper.connection.operations import Stat, Znode
    from kafka_dt.zookeeper.sealing.token_codec import TokenCodec

_LOG = logging.getLogger(__name__)

Opening = asyncio.Future[StoredToken | None]
"""The state that will have been reported of a token whose znode is being opened."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """Which state of a token's znode has been reported."""

    revision: int
    """The mzxid; 0 for what was created here and has not been seen again."""
    written: int
    """For what was created here, the hash of the znode's bytes; no two sealed ones are alike."""

    def is_of(self, znode: Znode) -> bool:
        """Say whether it is this one."""
        return self.revision == znode.stat.modified_zxid or (
            self.revision == znode.stat.version == 0 and self.written == hash(znode.data)
        )


@dataclass(frozen=True, slots=True)
class _Reported(_Seen):
    """The memory of a token that is served."""

    key_id: str | None


@dataclass(frozen=True, slots=True)
class _Unreadable(_Seen):
    """The memory of a token that cannot be served."""

    reason: str


_DENIED: Final = _Unreadable(-1, 0, "its ACL in ZooKeeper does not let this node read it")
"""The memory of a token whose content was not seen; no znode has this mzxid."""


@dataclass(slots=True)
class _Pending:
    """A token that is being opened."""

    revision: int
    outcome: Opening
    task: asyncio.Task[None]


class TokenReports:
    """Tells a listener what a codec opens and decodes."""

    def __init__(self, codec: TokenCodec) -> None:
        self._codec = codec
        self._known: dict[str, _Reported] = {}
        self._unreadable: dict[str, _Unreadable] = {}
        self._untried: set[str] = set()
        self._pending: dict[str, _Pending] = {}
        self.listener: ChangeListener = _nobody
        """Hears every state."""
        self.on_unknown_key: Callable[[], None] = _nothing
        """Called when a token needs a key that is not in the ring; under load often, so it should be quick."""
        if codec.keyring is not None:
            codec.keyring.on_change(self._ring_changed)

    @property
    def unreadable(self) -> Mapping[str, str]:
        """The ids of the tokens that are there and cannot be served, each with the reason."""
        return {token_id: each.reason for token_id, each in self._unreadable.items()}

    @property
    def unreadable_tokens(self) -> int:
        """How many these are."""
        return len(self._unreadable)

    @property
    def untried(self) -> Collection[str]:
        """The ids of those that have not been tried with the keys of now."""
        return self._untried

    def close(self) -> None:
        """Give up all openings."""
        for pending in self._pending.values():
            pending.task.cancel()
            pending.outcome.cancel()
        self._pending.clear()

    def tell(self, token_id: str, stored: StoredToken | None, written: bytes = b"") -> None:
        """Report a state that is known, and is the newest.

        Args:
            token_id: whose.
            stored: the state; None = it is gone, or not readable.
            written: the bytes of the znode, if it has just been created.
        """
        known = self._known.pop(token_id, None)
        if stored is not None:
            token = stored.token
            # A broker that renews a token drops the key's id, but it remains the key that made the token.
            key_id = token.key_id or (known.key_id if known else None)
            self._known[token.token_id] = _Reported(stored.revision or 0, hash(written) if written else 0, key_id)
        self._unreadable.pop(token_id, None)
        self._untried.discard(token_id)
        self._report(token_id, stored)

    def listed(self, token_ids: Iterable[str]) -> None:
        """Report which tokens are gone, given the ids of those that there are now."""
        there = set(token_ids)
        for known in (self._known, self._pending, self._unreadable):
            for token_id in known.keys() - there:
                self.tell(token_id, None)

    def read(self, token_id: str, znode: Znode, *, if_changed: bool = False) -> _Read:
        """Report the content of a znode, now or when it has been opened.

        Args:
            token_id: its name.
            znode: what has been read.
            if_changed: whether what has been reported already need not be opened again; it is None then.

        Returns:
            The state that has been reported; or the opening that will tell it.
        """
        if not is_sealed(znode.data):
            return self._read_plain(token_id, znode)
        pending = self._pending.get(token_id)
        if pending is None:
            if self._is_unreadable(token_id, znode) and token_id not in self._untried:
                return None
            if if_changed and self._is_reported(token_id, znode):
                return None
        elif pending.revision == znode.stat.modified_zxid:
            return pending.outcome
        try:
            token = self._codec.decode_shared(token_id, znode.data)
        except InvalidZnode as error:
            self._keep_apart(token_id, znode, error)
            return None
        return self._open(token_id, znode) if token is None else self._told(token_id, znode.stat, token)

    def denied(self, token_id: str) -> None:
        """Report that ZooKeeper does not let us read a token; each later read tries it again."""
        told = self._unreadable.get(token_id) is _DENIED
        self._set_apart(token_id, _DENIED)
        if not told:
            _LOG.error("the delegation token %s is not readable: %s", TokenZnode.path(token_id), _DENIED.reason)

    def _read_plain(self, token_id: str, znode: Znode) -> StoredToken | None:
        try:
            token = self._codec.decode_plain(token_id, znode.data)
        except InvalidZnode as error:
            self._keep_apart(token_id, znode, error)
            return None
        return self._told(token_id, znode.stat, token)

    def _told(self, token_id: str, stat: Stat, token: Token) -> StoredToken:
        stored = StoredToken(token, stat.version, stat.modified_zxid)
        self.tell(token_id, stored)
        return stored

    def _open(self, token_id: str, znode: Znode) -> Opening:
        """Begin to open a znode, in place of an opening under way; the tasks that wait for that one get this one."""
        loop = asyncio.get_running_loop()
        superseded = self._pending.get(token_id)
        if superseded is not None:
            superseded.task.cancel()
        outcome = loop.create_future() if superseded is None else superseded.outcome
        task = loop.create_task(self._opened(token_id, znode))
        self._pending[token_id] = _Pending(znode.stat.modified_zxid, outcome, task)
        return outcome

    async def _opened(self, token_id: str, znode: Znode) -> None:
        """Report the content of a sealed znode; a newer state cancels this, and then it reports nothing."""
        try:
            decoded = await self._codec.decode(token_id, znode.data)
        except InvalidZnode as error:
            self._keep_apart(token_id, znode, error)
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to those who wait
            self._pending.pop(token_id).outcome.set_exception(error)
        else:
            self._told(token_id, znode.stat, decoded.token)

    def _keep_apart(self, token_id: str, znode: Znode, error: InvalidZnode) -> None:
        """Report that a token cannot be read, and log it, once for each time it was written."""
        told = self._is_unreadable(token_id, znode)
        self._set_apart(token_id, _Unreadable(znode.stat.modified_zxid, 0, error.reason))
        if not told:
            _LOG.error("the delegation token %s is not readable: %s", TokenZnode.path(token_id), error)
            if isinstance(error, UnknownKey):
                self.on_unknown_key()

    def _set_apart(self, token_id: str, unreadable: _Unreadable) -> None:
        self._known.pop(token_id, None)
        self._unreadable[token_id] = unreadable
        self._untried.discard(token_id)
        self._report(token_id, None)

    def _ring_changed(self) -> None:
        """Have everything that is kept apart tried again, and keep apart the tokens of keys that have left the ring."""
        self._untried = set(self._unreadable)
        keyring = self._codec.keyring
        ring = {None} if keyring is None else {None, *(key.id for key in keyring.keys)}
        lost = [(token_id, known) for token_id, known in self._known.items() if known.key_id not in ring]
        for token_id, known in lost:
            del self._known[token_id]
            self._unreadable[token_id] = _Unreadable(
                known.revision, known.written, f"the key {known.key_id} has left the ring"
            )
            self._report(token_id, None)
        if lost:
            _LOG.warning("Delegation tokens that are not served, because their keys have left the ring: %d", len(lost))

    def _report(self, token_id: str, stored: StoredToken | None) -> None:
        """Tell the listener, and the tasks that wait for an opening: it is over, or superseded by this."""
        self.listener(token_id, stored)
        pending = self._pending.pop(token_id, None)
        if pending is not None:
            pending.task.cancel()  # without effect on an opening that has just come to its end
            pending.outcome.set_result(stored)

    def _is_unreadable(self, token_id: str, znode: Znode) -> bool:
        unreadable = self._unreadable.get(token_id)
        return unreadable is not None and unreadable.is_of(znode)

    def _is_reported(self, token_id: str, znode: Znode) -> bool:
        known = self._known.get(token_id)
        return known is not None and known.is_of(znode)


def _nobody(token_id: str, stored: StoredToken | None) -> None:
    """Take changes before a listener has asked for them."""


def _nothing() -> None:
    """Do nothing about a missing key before a listener has asked for it."""


_Read = StoredToken | Opening | None
