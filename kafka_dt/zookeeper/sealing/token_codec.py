"""Tokens and the bytes of their znodes: plain as brokers write them, or sealed; read in either form, always.

    codec = TokenCodec(keyring, seal=True, executor=executor, random_bytes=secrets.token_bytes)
    data = await codec.encode(token)
    decoded = await codec.decode(token_id, data)

The codec writes a token sealed with the current key, or plain where sealing is off. PBKDF2 runs in threads, so a sealed
token needs an await; `decode_plain` needs none. Work for the threads is handed over many at a time (`Batches`): one
hand-over costs the event loop a tenth of a millisecond, which is much beside half a millisecond of work.

The keyring may change while a thread is at work. A token that was opened is checked against the keys of the moment in
which the thread returns. One that could not be opened is tried again if the keys have changed by then.

The codec refuses a token whose id is not the name of its znode: otherwise a client that can write to ZooKeeper could
put the bytes of one token in the place of another. It also refuses a token that names a secret key which is not in the
ring: this node cannot know its HMAC.

Source: KIP-395; kafka_dt.zookeeper.sealing.sealed (the format), kafka_dt.zookeeper.znodes.kafka (the JSON).
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kafka_dt.zookeeper.errors import InvalidZnode, UnknownKey
from kafka_dt.zookeeper.sealing.derivations import DerivedAhead
from kafka_dt.zookeeper.sealing.sealed import SALT_BYTES, Derive, derive, is_sealed, likely_first, open_sealed, seal
from kafka_dt.zookeeper.znodes.kafka import TokenZnode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor

    from kafka_dt.idle import IdleTime
    from kafka_dt.tokens.keyring import Keyring, SecretKey
    from kafka_dt.tokens.token import Token
    from kafka_dt.zookeeper.sealing.derivations import Derivations

Result = TypeVar("Result")
LARGEST: Final = 16
"""How many pieces a thread gets at once: of half a millisecond each, so that what comes later soon has its turn."""
BATCHES_A_THREAD: Final = 2
"""One at work, and the next one, so that a thread need not wait for the event loop."""
_Outcome = tuple[Any, Exception | None]


@dataclass(frozen=True, slots=True)
class Decoded:
    """The token of a znode, and the key that opened it."""

    token: Token
    sealed_by: SecretKey | None
    """The key that opened it; None if it was plain."""


class TokenCodec:
    """Writes and reads tokens.

    Args:
        keyring: seals with its current key and opens with all; None where tokens are disabled, then nothing is
            written, and only plain tokens are read.
        seal: whether to write sealed znodes (`delegation.token.metadata.encryption.enable`).
        executor: threads for PBKDF2, as many as there are cores.
        random_bytes: cryptographically strong, for salts.
        derivations: what the workers of a node share; None = nothing is shared.
        ahead: how many derivations are kept ready for what will be sealed, so that it need not wait for them.
        idle: when they are derived; None = also while other work is to be done.
    """

    __slots__ = ("_ahead", "_batches", "_derivations", "_derive", "_likely", "_random_bytes", "keyring", "seals")

    def __init__(
        self,
        keyring: Keyring | None,
        *,
        seal: bool,
        executor: Executor,
        random_bytes: Callable[[int], bytes],
        derivations: Derivations | None = None,
        ahead: int = 0,
        idle: IdleTime | None = None,
    ) -> None:
        self.keyring = keyring
        self.seals = seal
        self._random_bytes = random_bytes
        self._likely: SecretKey | None = None
        self._derivations = derivations
        self._derive = derive if derivations is None else derivations.derive
        self._batches = Batches(executor, os.cpu_count() or 1)
        self._ahead = DerivedAhead(
            ahead,
            lambda key, salt: self._batches.submit(partial(derive, key, salt)),
            random_bytes,
            nullcontext if idle is None else idle.turn,
        )

    async def encode(self, token: Token) -> bytes:
        """Write a token in the form that is switched on."""
        data = TokenZnode.encode(token)
        if not self.seals:
            return data
        if self.keyring is None:
            raise ValueError("without a secret key nothing can be sealed")
        key = self.keyring.current
        if ready := self._ahead.take(key):
            salt, derived = ready
            if self._derivations is not None:
                self._derivations.keep(key, salt, derived)
            return seal(key, data, salt, lambda *_: derived)
        salt = self._random_bytes(SALT_BYTES)
        return await self._batches.submit(partial(seal, key, data, salt, self._derive))

    def get_ready(self) -> None:
        """Begin to derive ahead, if that is wanted."""
        if self.seals and self.keyring is not None:
            self._ahead.fill(self.keyring.current)

    def close(self) -> None:
        """Stop deriving ahead."""
        self._ahead.close()

    async def decode(self, token_id: str, data: bytes) -> Decoded:
        """Read a token in either form.

        Args:
            token_id: the name of its znode.
            data: the content of its znode.

        Raises:
            UnknownKey: it needs a key that is not in the ring, or has been tampered with.
            InvalidZnode: it is not the token that should be there, or none.
        """
        if not is_sealed(data):
            return Decoded(self.decode_plain(token_id, data), None)
        while True:
            keys = self._keys
            try:
                in_order = likely_first(keys, self._likely)
                opened = await self._batches.submit(partial(_open, in_order, token_id, data, self._derive))
            except UnknownKey:
                if keys == self._keys:
                    raise
            else:
                self._likely = opened.sealed_by
                self._require_key(opened.token)
                return opened

    def decode_shared(self, token_id: str, data: bytes) -> Token | None:
        """Read a sealed token at once if another worker has derived its keys, else None; raises as `decode`."""
        if self._derivations is None:
            return None
        try:
            in_order = likely_first(self._keys, self._likely)
            token = _open(in_order, token_id, data, self._derivations.find).token
        except LookupError:
            return None
        self._require_key(token)
        return token

    def decode_plain(self, token_id: str, data: bytes) -> Token:
        """Read a token that is not sealed; raises as `decode`."""
        token = named(token_id, TokenZnode.decode(data))
        self._require_key(token)
        return token

    @property
    def _keys(self) -> tuple[SecretKey, ...]:
        return () if self.keyring is None else self.keyring.keys

    def _require_key(self, token: Token) -> None:
        require_key(token, lambda key_id: self.keyring is not None and self.keyring.get(key_id) is not None)


def named(token_id: str, token: Token) -> Token:
    """Return a token that was read from the znode of that name; InvalidZnode if it is another one."""
    if token.token_id != token_id:
        raise InvalidZnode("it names another token")
    return token


def require_key(token: Token, is_in_ring: Callable[[str], bool]) -> None:
    """See that the key is there which made a token, if the token names it; UnknownKey if it is not."""
    if token.key_id is not None and not is_in_ring(token.key_id):
        raise UnknownKey(f"the key {token.key_id} that made it is none of the secret keys", key_id=token.key_id)


def _open(keys: Sequence[SecretKey], token_id: str, data: bytes, derive: Derive) -> Decoded:
    """Open and read a token, in a thread."""
    opened = open_sealed(keys, data, derive)
    return Decoded(named(token_id, TokenZnode.decode(opened.plaintext)), opened.key)


class Batches:
    """Runs work on the threads of an executor, handed over in equal shares, in the order in which it was submitted.

    Nothing waits for a batch to be full: a single piece goes to a thread in the next turn of the loop. The work must
    not touch what belongs to the event loop, and only pays if it releases the interpreter's lock.
    """

    __slots__ = ("_executor", "_most", "_scheduled", "_under_way", "_waiting")

    def __init__(self, executor: Executor, threads: int) -> None:
        self._executor = executor
        self._most = threads * BATCHES_A_THREAD
        self._under_way = 0
        self._waiting: deque[tuple[Callable[[], Any], asyncio.Future[Any]]] = deque()
        self._scheduled = False

    def submit(self, work: Callable[[], Result]) -> asyncio.Future[Result]:
        """Have `work` called in a thread; what it returns or raises is the outcome of the future."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()
        self._waiting.append((work, future))
        if not self._scheduled:
            self._scheduled = True
            loop.call_soon(self._hand_over_soon)
        return future

    def _hand_over_soon(self) -> None:
        self._scheduled = False
        self._hand_over()

    def _hand_over(self) -> None:
        """Give the waiting work to the free threads, in equal shares."""
        while self._waiting and self._under_way < self._most:
            share = min(LARGEST, ceil(len(self._waiting) / (self._most - self._under_way)))
            # Work whose caller has gone is not begun.
            batch = [each for each in (self._waiting.popleft() for _ in range(share)) if not each[1].done()]
            futures = [future for _, future in batch]
            try:
                done = asyncio.get_running_loop().run_in_executor(self._executor, _run, [work for work, _ in batch])
            except RuntimeError as closed:  # the executor has been shut down
                _tell(futures, [(None, closed)] * len(futures))
                continue
            self._under_way += 1
            done.add_done_callback(partial(self._finished, futures))

    def _finished(self, futures: Sequence[asyncio.Future[Any]], done: asyncio.Future[list[_Outcome]]) -> None:
        self._under_way -= 1
        self._hand_over()  # first of all, so that no thread waits
        if done.cancelled():  # the executor was shut down before it began
            _tell(futures, [(None, RuntimeError("the threads have been stopped"))] * len(futures))
        else:
            _tell(futures, done.result())


def _run(batch: Sequence[Callable[[], Any]]) -> list[_Outcome]:
    return [_outcome(work) for work in batch]


def _outcome(work: Callable[[], Any]) -> _Outcome:
    try:
        return work(), None
    except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to the caller that submitted the work
        return None, error


def _tell(futures: Sequence[asyncio.Future[Any]], outcomes: Sequence[_Outcome]) -> None:
    for future, (value, error) in zip(futures, outcomes, strict=True):
        if future.done():  # the task that waited has been cancelled
            continue
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)
