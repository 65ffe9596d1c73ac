"""Follow the tokens of a cluster: a TokenSource.

The cluster tells of no change and finds no token by its id. So a worker looks at all tokens again and again,
`refresh_s` after the last look began; looks take at most a fifth of its time, unless a proof is due sooner. What has to
be known for certain waits for a proof, which all that wait share: a token that is not known, a describe of a client, a
revocation that another worker has seen. A change of this worker is followed by a proof, too, since until then its token
is hidden from looks. A proof may wait for a second and more until the broker has caught up with the controllers, so
the worker goes on looking beside it.

A revocation that passes through another node is known sooner, by the news that nodes tell each other (`news/`).

The staleness counts from the last proof. Without a reason for one, a worker proves three times in the time after which
it would refuse logins by token.

Source: docs/decisions/0025-the-clusters-own-tokens.md.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from kafka_dt.client import LoginFailed
from kafka_dt.tokens import StoredToken, StoreUnavailable
from kafka_dt.tokens.sharing import SharedRun
from kafka_dt.tokens.staleness import Staleness

if TYPE_CHECKING:
    from kafka_dt.kraft.knowledge import Knowledge
    from kafka_dt.kraft.news.exchange import NewsExchange
    from kafka_dt.kraft.reader import ClusterReader
    from kafka_dt.tokens import ChangeListener, KnownTokens
    from kafka_dt.tokens.staleness import Moment

_LOG = logging.getLogger(__name__)

PAUSE: Final = 4
"""How much longer than a describe the pause after it is, at least."""
CUT_OFF_S: Final = 3.0
"""After this time without a broker nothing waits for one any more."""
REFUSED_S: Final = 10.0
"""The pause after the cluster has refused the gateway's login: it may lock out who guesses."""


class ClusterTokens:
    """Tells which tokens there are.

    Args:
        reader: asks the brokers.
        knowledge: has what is known.
        cache: as the listener keeps it.
        refresh_s: how often to look, in seconds.
        max_staleness_ms: how old what is known may be, in milliseconds.
        clocks: tells this instant; the first of the clocks never goes back.
        news: what nodes tell each other; None if they do not.
    """

    def __init__(
        self,
        reader: ClusterReader,
        knowledge: Knowledge,
        cache: KnownTokens,
        *,
        refresh_s: float,
        max_staleness_ms: int,
        clocks: Callable[[], Moment],
        news: NewsExchange | None = None,
    ) -> None:
        self._reader = reader
        self._knowledge = knowledge
        self._cache = cache
        self._refresh_s = refresh_s
        self.max_staleness_ms: Final = max_staleness_ms
        self._staleness = Staleness(max_staleness_ms, clocks)
        self._news = news
        self._proofs = SharedRun(self._prove)
        self._following: asyncio.Task[None] | None = None
        self._proof: asyncio.Task[None] | None = None
        """The proof that goes on beside the looks."""
        self._proof_begun_s = 0.0
        self._failing_since_s: float | None = None

    @property
    def connected(self) -> bool:
        """Whether a broker answers, or did until some seconds ago: while a broker restarts another one answers."""
        return self._reader.connected or (self._following is not None and self._failing_s() <= CUT_OFF_S)

    def source_of(self, token_id: str | None) -> ClusterTokens:  # noqa: ARG002 - there is no other
        """Return this source, for any token."""
        return self

    def staleness_ms(self) -> int:
        """Return the time since the moment until which everything acknowledged is known, in milliseconds."""
        return self._staleness.ms()

    def on_change(self, listener: ChangeListener) -> None:
        """Set the one listener."""
        self._knowledge.on_change(listener)

    async def load(self) -> None:
        """Read all tokens, and follow them from now on; waits for a broker that can prove them, as long as it takes.

        Raises:
            StoreUnavailable: the cluster refuses the gateway's login.
        """
        while True:
            try:
                await self._proofs.join()
                break
            except StoreUnavailable as error:
                if isinstance(error.__cause__, LoginFailed):
                    raise
                # This broker may be cut off from the controllers; the next proof asks another.
                self._note_failure(error)
                await asyncio.sleep(self._refresh_s)
        self._note_answer()
        if self._following is None:
            self._following = asyncio.create_task(self._follow())
        if self._news is not None:
            self._news.start()

    async def read(self, token_id: str) -> StoredToken | None:
        """Return a token with everything that was acknowledged before this call."""
        await self.catch_up()
        held = self._cache.get(token_id)
        return None if held is None else StoredToken(held.token, hmac=held.hmac)

    async def catch_up(self) -> None:
        """Return when everything is known that was acknowledged anywhere before this call."""
        if not self._reader.connected and self._failing_s() > CUT_OFF_S:
            raise StoreUnavailable("no broker of the upstream cluster answers")
        try:
            await self._proofs.join()
        except StoreUnavailable:
            # The broker may have ended. The next proof asks another.
            await self._proofs.join()

    async def prove(self) -> None:
        """Do as `catch_up`, which is a proof here."""
        await self.catch_up()

    async def time_ms(self) -> int:
        """Refuse: it is for removing expired tokens, which the cluster does by itself.

        Raises:
            StoreUnavailable: always.
        """
        raise StoreUnavailable("the cluster removes expired tokens by itself")

    async def close(self) -> None:
        """Follow no more."""
        if self._news is not None:
            await self._news.close()
        tasks = [each for each in (self._following, self._proof) if each is not None]
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._reader.close()

    async def _prove(self) -> None:
        self._staleness.proved(await self._reader.prove())

    async def _follow(self) -> None:
        pause_s = self._refresh_s
        while True:
            await self._rest(pause_s)
            begun_s = self._now_s()
            pause_s = 0.0
            try:
                await self._look()
                self._note_answer()
            except StoreUnavailable as error:
                self._note_failure(error)
                if isinstance(error.__cause__, LoginFailed):
                    pause_s = REFUSED_S
            except Exception:  # noqa: BLE001 - the tokens must be followed
                _LOG.exception("The tokens of the upstream cluster could not be read; the worker tries again")
            rest_s = begun_s + self._refresh_s - self._now_s()
            pause_s = max(pause_s, rest_s, self._spared_s())

    async def _look(self) -> None:
        """Look, and have a proof begun if that is due; over a new connection, wait for a proof."""
        has_looked = await self._reader.look()
        if self._proof is not None and self._proof.done():
            proof, self._proof = self._proof, None
            proof.result()
        if not has_looked:
            await self._proofs.join()
        elif self._proof is None and self._wants_proof():
            self._proof, self._proof_begun_s = asyncio.create_task(self._prove_beside()), self._now_s()

    async def _prove_beside(self) -> None:
        """Prove; a failure closes the connection, which the next look tells."""
        with suppress(StoreUnavailable):
            await self._proofs.join()

    async def _rest(self, pause_s: float) -> None:
        """Pause before the next look; for less time if a long proof ends and the next one is wanted already."""
        if self._proof is not None and self._proving:
            until_s = self._now_s() + pause_s
            await asyncio.wait([self._proof], timeout=pause_s)
            pause_s = max(0.0, until_s - self._now_s())
            if self._reader.connected and self._wants_proof():
                rest_s = self._proof_begun_s + self._refresh_s - self._now_s()
                pause_s = min(pause_s, max(rest_s, self._spared_s()))
        await asyncio.sleep(pause_s)

    @property
    def _proving(self) -> bool:
        return self._proof is not None and not self._proof.done()

    def _wants_proof(self) -> bool:
        return self._staleness.is_proof_due() or self._knowledge.unproved

    def _spared_s(self) -> float:
        """Return for how long looks leave the broker alone, in seconds, so that they take a fifth of the time."""
        # Slow answers must not put off a proof until every login by token is refused: the next look begins it.
        next_proof_s = self._staleness.interval_s if self._proving else self._staleness.proof_due_in_s()
        return min(PAUSE * self._reader.describe_s, next_proof_s)

    def _now_s(self) -> float:
        """Return the present on the clock that never goes back, in seconds."""
        return self._staleness.now()[0]

    def _failing_s(self) -> float:
        """Return for how long the looks have failed, in seconds."""
        return 0.0 if self._failing_since_s is None else self._now_s() - self._failing_since_s

    def _note_failure(self, error: StoreUnavailable) -> None:
        if self._failing_since_s is None:
            self._failing_since_s = self._now_s()
            _LOG.warning("The worker cannot follow the tokens of the upstream cluster and tries again: %s", error)

    def _note_answer(self) -> None:
        if self._failing_since_s is not None:
            self._failing_since_s = None
            _LOG.warning("The worker follows the tokens of the upstream cluster again")
