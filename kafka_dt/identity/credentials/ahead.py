"""Derive the SCRAM credentials of new tokens before their first logins, in idle time, the newest token first.

    ahead = CredentialsAhead(credentials, cache.get, mechanisms, idle, number=0, workers=2)
    cache.on_change(ahead.token_changed)        # when the cache has been filled
    ahead.close()

A job often logs in a second after its token was made, from hundreds of executors at once, and PBKDF2 would be most of
what these logins cost. The tokens that were there before the node started are derived when they are first needed: a
start with 100,000 of them would otherwise cost minutes of CPU time.

Every worker of a node hears of each token, and the id decides which worker derives it: the newest of its own tokens
first. A worker that has finished its own tokens goes on with those of the others, because the other workers may be busy
or being replaced. It leaves each token for `HEAD_START_S` to the worker that the token belongs to, then for as long to
the next worker, and so on until its own turn. It takes any of the oldest, because the worker that they belong to begins
with the newest, and so that two idle workers rarely derive the same token at the same time. The workers share the
memory of what has been derived.
"""

from __future__ import annotations

import asyncio
import random
import zlib
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from itertools import islice
from typing import Final

from kafka_dt.identity.credentials.derivation import TokenCredentials
from kafka_dt.idle import IdleTime
from kafka_dt.tokens import DelegationToken, Token
from kafka_dt_protocol.sasl import ScramMechanism

MOST_WAITING: Final = 8_192
"""How many tokens wait in a worker; older ones are derived when they first log in."""
HEAD_START_S: Final = 0.1
"""How long a worker leaves a token to each worker whose turn is before its own."""
OLDEST: Final = 64
"""How many of the oldest tokens of other workers a worker chooses from."""


class CredentialsAhead:
    """What a worker derives ahead of logins.

    Args:
        credentials: derives and shares.
        known: the token with an id, None if there is none any more.
        mechanisms: that clients can log in with.
        idle: when it derives.
        number: which worker of the node this is, from 0.
        workers: how many the node has.
    """

    def __init__(
        self,
        credentials: TokenCredentials,
        known: Callable[[str], DelegationToken | None],
        mechanisms: Collection[ScramMechanism],
        idle: IdleTime,
        *,
        number: int,
        workers: int,
    ) -> None:
        self._credentials = credentials
        self._known = known
        self._mechanisms = mechanisms
        self._idle = idle
        self._number = number
        self._workers = workers
        self._own: OrderedDict[str, None] = OrderedDict()
        self._others: OrderedDict[str, float] = OrderedDict()
        """The tokens of the other workers, and from when on this one may derive them."""
        self._deriving: asyncio.Task[None] | None = None
        self._is_closed = False

    @property
    def waiting(self) -> int:
        """How many tokens wait that belong to this worker."""
        return len(self._own)

    def token_changed(self, token_id: str, before: Token | None, after: Token | None) -> None:
        """Note a token that is new, forget one that has ended: a listener of the cache."""
        if after is None:
            self._own.pop(token_id, None)
            self._others.pop(token_id, None)
            self._credentials.forget(token_id)
        elif before is None and self._mechanisms and not self._is_closed:
            self._note(token_id)

    def close(self) -> None:
        """Derive no more, also of tokens that are still to come."""
        self._is_closed = True
        if self._deriving is not None:
            self._deriving.cancel()

    def _note(self, token_id: str) -> None:
        loop = asyncio.get_running_loop()
        if turn := self._turn(token_id):
            self._others[token_id] = loop.time() + turn * HEAD_START_S
        else:
            self._own[token_id] = None
        for waiting in (self._own, self._others):
            if len(waiting) > MOST_WAITING:
                waiting.popitem(last=False)
        if self._deriving is None or self._deriving.done():
            self._deriving = loop.create_task(self._derive())

    def _turn(self, token_id: str) -> int:
        """Count the workers whose turn with a token is before that of this one; with none, it is its own token."""
        return (self._number - zlib.crc32(token_id.encode("utf-8", "surrogatepass"))) % self._workers

    async def _derive(self) -> None:
        while self._own or self._others:
            if (wait_s := self._wait_s()) > 0:
                await asyncio.sleep(min(wait_s, HEAD_START_S))  # a token of its own may come meanwhile
                continue
            async with self._idle.turn():
                await self._derive_next()
            # Where another worker has derived it, nothing has been waited for.
            await asyncio.sleep(0)

    def _wait_s(self) -> float:
        """Say how long it is to the first turn of this worker, in seconds, if a token waits."""
        if self._own:
            return 0.0
        return min(islice(self._others.values(), OLDEST)) - asyncio.get_running_loop().time()

    async def _derive_next(self) -> None:
        """Derive the credentials of a token, if one still waits."""
        if self._own:
            token_id, _ = self._own.popitem()
        elif others := self._others_in_turn():
            token_id = random.choice(others)  # noqa: S311 - nothing secret depends on it
            del self._others[token_id]
        else:
            return
        if token := self._known(token_id):
            for mechanism in self._mechanisms:
                await self._credentials.derive_ahead(mechanism, token, self._idle)

    def _others_in_turn(self) -> Sequence[str]:
        now_s = asyncio.get_running_loop().time()
        return [token_id for token_id, from_s in islice(self._others.items(), OLDEST) if from_s <= now_s]
