"""The secret keys of a worker: it follows their files, and announces them to the other workers of its cluster.

    membership = Membership(settings, files, keyring, cluster, tokens, place=place, broker_id=1001)
    await membership.join()          # when connected, before anything is served
    await membership.look()          # every second
    await membership.close()

A rotation needs no restart. A thread reads the files and computes the ids of new keys; then the ring is replaced. If a
file cannot be used, the keys stay as they are, and each look tries again. The same reason is logged once.

A new key may open tokens that could not be read. They are read again in the background: they may be many, and neither
the files nor a login that needs a key wait for them. What fails while the store is away is done at a later look.

Source: KIP-48, "Delegation Token Master Key Rotation" (which needs new brokers for it);
docs/design.md#keys-that-change.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from importlib.metadata import version

from kafka_dt.config import ConfigError, SecretKeyFiles, Settings
from kafka_dt.stores import ClusterState, WorkerPlace, WorkerState
from kafka_dt.tokens import KeyedTokens, Keyring, SecretKey, StoreUnavailable
from kafka_dt.tokens.keyring import SHORT_CHARACTERS
from kafka_dt.tokens.sharing import SharedRun

_LOG = logging.getLogger(__name__)


class Membership:
    """Announces a worker.

    Args:
        settings: of its node.
        files: where the keys come from.
        keyring: follows them; None where tokens are disabled.
        cluster: where it announces itself; started before `join`.
        tokens: reads again what a new key opens, and tells of keys that are missing; None where it needs no keys.
        place: which worker of its node it is.
        broker_id: the id that its node shows to clients.
    """

    def __init__(
        self,
        settings: Settings,
        files: SecretKeyFiles,
        keyring: Keyring | None,
        cluster: ClusterState,
        tokens: KeyedTokens | None,
        *,
        place: WorkerPlace,
        broker_id: int,
    ) -> None:
        self._seals = settings.metadata_encryption
        self._keyring = keyring
        self._cluster = cluster
        self._tokens = tokens
        self._number = place.number
        self._broker_id = broker_id
        self._reread: asyncio.Task[None] | None = None
        self._keys = NodeKeys(files, keyring, self._keys_changed) if keyring else None
        if self._keys and tokens:
            tokens.on_unknown_key(self._keys.refresh_soon)

    async def join(self) -> None:
        """Announce our keys, so that a rotation waits for us; then look whether one began before that.

        Raises:
            ClusterUnavailable: it does not work.
        """
        if self._number == 0 and self._keyring and self._seals:
            await self._warn_beside_brokers()
        await self._cluster.announce(self._state())
        await self.look()

    async def look(self) -> None:
        """Take over keys whose files have changed."""
        if self._keys:
            await self._keys.refresh()
            self._begin_reread()

    async def close(self) -> None:
        """Stop reading files and tokens; the announcement ends with the connection to the cluster."""
        if self._reread is not None:
            self._reread.cancel()
            await asyncio.gather(self._reread, return_exceptions=True)

    async def _warn_beside_brokers(self) -> None:
        if brokers := await self._cluster.brokers():
            _LOG.warning(
                "Brokers are live in the same ZooKeeper (ids %s) and cannot read the tokens that are sealed here: "
                "set delegation.token.metadata.encryption.enable=false, then `kafka-dt keys unseal`",
                ", ".join(brokers),
            )

    async def _keys_changed(self) -> None:
        await self._cluster.announce(self._state())
        self._begin_reread()

    def _begin_reread(self) -> None:
        """Try the present keys on unreadable tokens, if that is due and not under way."""
        if self._tokens and self._tokens.untried and (self._reread is None or self._reread.done()):
            self._reread = asyncio.get_running_loop().create_task(self._read_again(self._tokens))

    async def _read_again(self, tokens: KeyedTokens) -> None:
        try:
            await tokens.reread_unreadable()
        except StoreUnavailable:
            _LOG.debug("The store is away; the next look tries the unreadable tokens with the new keys")
        except Exception:  # noqa: BLE001 - what is due stays due
            _LOG.exception("The unreadable tokens could not be tried with the new keys; the next look tries them")

    def _state(self) -> WorkerState:
        keys = self._keyring.keys if self._keyring else ()
        return WorkerState(
            host=socket.gethostname(),
            pid=os.getpid(),
            worker=self._number,
            broker_id=self._broker_id,
            current_key=keys[0].id if keys else None,
            keys=tuple(key.id for key in keys),
            seals=self._seals,
            version=version("kafka-dt"),
        )


class NodeKeys:
    """Keeps a worker's ring of secret keys as its files are.

    Args:
        files: where they come from.
        keyring: follows them.
        changed: called after the ring has changed.
    """

    def __init__(self, files: SecretKeyFiles, keyring: Keyring, changed: Callable[[], Awaitable[None]]) -> None:
        self._files = files
        self._keyring = keyring
        self._changed = changed
        self._looks = SharedRun(self._look)
        self._soon: asyncio.Task[None] | None = None
        self._problem = ""

    async def refresh(self) -> None:
        """Take over what the files hold now, or held later than this call; many callers share the work."""
        await self._looks.join()

    def refresh_soon(self) -> None:
        """Refresh without waiting for it; calls that come before it has happened are one."""
        if self._soon is None or self._soon.done():
            self._soon = asyncio.get_running_loop().create_task(self.refresh())

    async def _look(self) -> None:
        try:
            read = await asyncio.to_thread(self._read)
        except ConfigError as error:
            if str(error) != self._problem:
                self._problem = str(error)
                _LOG.error("The secret keys stay as they are, the changed ones cannot be used: %s", error)
            return
        repaired, self._problem = bool(self._problem), ""
        known = self._keyring.keys
        if read is None or not self._keyring.replace(read[0], read[1:]):
            if repaired:
                _LOG.info("The files of the secret keys can be used again; the keys are the same as before")
            return
        older = ", ".join(key.id for key in self._keyring.keys[1:]) or "none"
        _LOG.info("The secret keys have changed: %s is current; others: %s", self._keyring.current.id, older)
        warn_of_short(key for key in self._keyring.keys if key not in known)
        await self._changed()

    def _read(self) -> Sequence[SecretKey] | None:
        """Read the keys, the current one first; None if there is nothing new."""
        if not self._files.refresh() or self._files.keys is None:
            return None
        keys = [SecretKey(text) for text in (self._files.keys.current, *self._files.keys.previous)]
        for key in keys:
            _ = key.id  # takes milliseconds, and is kept
        return keys


def warn_of_short(keys: Iterable[SecretKey]) -> None:
    """Log how many of these keys are short, if any is."""
    if short := sum(key.is_short for key in keys):
        _LOG.warning("Secret keys with fewer than %d characters, which could be guessed: %d", SHORT_CHARACTERS, short)
