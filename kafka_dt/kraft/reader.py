"""Read all tokens of a cluster, from one broker at a time.

    await reader.prove()     # when it returns, everything acknowledged before is known
    await reader.look()      # what the broker knows now

The image of a running broker never goes back, so the answers over one connection are in order. The first answer over a
new connection is used only with a proof, because another broker may be behind.

A look costs little: only tokens that have changed are decoded, and some neighbours of theirs (`listing.py`).

Source: docs/decisions/0025-the-clusters-own-tokens.md.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from kafka_dt.client import TokenClientError
from kafka_dt.kraft.listing import Listing
from kafka_dt.kraft.offsets import ImageProof
from kafka_dt.kraft.requests import image_offset, log_end
from kafka_dt.metrics import Counts
from kafka_dt.tokens import StoreUnavailable
from kafka_dt_protocol import ApiKey, RemoteProtocolError

if TYPE_CHECKING:
    from kafka_dt.client.connection import Connection
    from kafka_dt.client.session import ClientSession
    from kafka_dt.kraft.acls import KnownAcls
    from kafka_dt.kraft.knowledge import Knowledge
    from kafka_dt.tokens import Principal
    from kafka_dt.tokens.staleness import Moment

_T = TypeVar("_T")

POLL_S: Final = 0.05
"""How often a proof looks at the broker's image."""
MOST_PATIENCE: Final = 4
SHORT_BYTES: Final = 65_536
"""An answer as short as this is read at once, a longer one in a thread."""


class ClusterReader:
    """Reads the tokens.

    Args:
        session: connects to one of the brokers, as the gateway's own user.
        knowledge: takes what is read.
        gateway: that user's principal.
        clocks: tells this instant; the first of the clocks never goes back.
        proof_s: how long a proof may take before another broker is asked, in seconds. The controllers write a record
            every half second. Where one broker after the other takes longer, each next one gets twice the time, up to
            `MOST_PATIENCE` times this: all are behind.
        counts: where connections and the times of requests are counted.
        acls: reads the ACLs with each proof; None if the node decides by others.
    """

    describe_s: float = 0.0
    """How long the last describe took, with all that came of it, in seconds."""

    def __init__(
        self,
        session: ClientSession,
        knowledge: Knowledge,
        gateway: Principal,
        *,
        clocks: Callable[[], Moment],
        proof_s: float,
        counts: Counts | None = None,
        acls: KnownAcls | None = None,
    ) -> None:
        self._counts = counts or Counts.alone()
        self._acls = acls
        self._session = session
        self._knowledge = knowledge
        self._gateway = gateway
        self._clocks = clocks
        self._proof_s = proof_s
        self._patience_s = proof_s
        """How long the next proof may take."""
        self._turn = asyncio.Lock()
        """Held for one request, until what it tells is known."""
        self._trusted: Connection | None = None
        """The connection over which an answer has been proved."""
        self._listing = Listing()
        """The answer that was taken last."""
        self._closed = False

    @property
    def connected(self) -> bool:
        """Whether a broker answers, as far as is known."""
        return self._trusted is not None and self._trusted.usable

    async def look(self) -> bool:
        """Read the tokens as the broker has them; False if that would need a proof, since the connection is new.

        Raises:
            StoreUnavailable: the broker cannot be asked; the next call asks another.
        """
        connection = await self._ready()
        if connection is not self._trusted:
            return False
        with _failing(connection):
            await self._describe(connection)
        return True

    async def prove(self) -> Moment:
        """Read the tokens and ACLs, with everything that was acknowledged anywhere before this call.

        Returns:
            The moment until which everything acknowledged is known now.

        Raises:
            StoreUnavailable: as `look`; or the broker has not caught up with the controllers in time.
        """
        connection = await self._ready()
        with _failing(connection):
            try:
                async with asyncio.timeout(self._patience_s):
                    asked = await self._wait_for_image(connection)
            except TimeoutError:
                self._patience_s = min(2 * self._patience_s, MOST_PATIENCE * self._proof_s)
                raise
            self._patience_s = self._proof_s
            await self._describe(connection, asked[0])
            if self._acls is not None:
                await self._ask(self._acls.read, connection)
        if connection is not self._trusted:
            self._counts.store_connections.add()
        self._trusted = connection
        return asked

    async def close(self) -> None:
        """Ask no more."""
        self._closed = True
        await self._session.close()

    async def _wait_for_image(self, connection: Connection) -> Moment:
        """Return the moment until which everything acknowledged will be in the next describe."""
        while True:
            asked = self._clocks()
            proof = ImageProof(await self._ask(log_end, connection))
            if not proof.can_be_made:
                await asyncio.sleep(POLL_S)
                continue
            await self._pass(proof, connection)
            if proof.confirmed_by(await self._ask(log_end, connection)):
                return asked

    async def _pass(self, proof: ImageProof, connection: Connection) -> None:
        while True:
            if proof.passed_by(await self._ask(image_offset, connection)):
                return
            await asyncio.sleep(POLL_S)

    async def _ready(self) -> Connection:
        async with self._turn:
            if self._closed:
                raise StoreUnavailable("the node ends")
            try:
                return await self._session.ready()
            except TokenClientError as error:
                raise StoreUnavailable(str(error)) from error

    async def _ask(self, request: Callable[[Connection], Awaitable[_T]], connection: Connection) -> _T:
        async with self._turn:
            begun_s = time.perf_counter()
            answer = await request(connection)
            self._counts.store_request_seconds.observe(time.perf_counter() - begun_s)
            return answer

    async def _describe(self, connection: Connection, asked_s: float | None = None) -> None:
        api = ApiKey.DESCRIBE_DELEGATION_TOKEN
        async with self._turn:
            begun_s, asked_at_s = self._clocks()[0], time.perf_counter()
            body = await connection.request_undecoded(api, owners=None)
            self._counts.store_request_seconds.observe(time.perf_counter() - asked_at_s)
            arguments = (body, connection.version(api), self._gateway)
            if len(body) <= SHORT_BYTES:
                listing, fresh = self._listing.read(*arguments)
            else:
                listing, fresh = await asyncio.to_thread(self._listing.read, *arguments)
            if listing is not self._listing or self._knowledge.unproved:
                await self._knowledge.take(listing.tokens, fresh, asked_s)
                self._listing = listing
            self.describe_s = self._clocks()[0] - begun_s


@contextmanager
def _failing(connection: Connection) -> Iterator[None]:
    """Leave a broker that does not answer as it should: another one may."""
    try:
        yield
    except TimeoutError as error:
        connection.abort()
        raise StoreUnavailable(f"{connection.server} has not caught up with the controllers in time") from error
    except (TokenClientError, RemoteProtocolError) as error:
        connection.abort()
        raise StoreUnavailable(str(error)) from error
