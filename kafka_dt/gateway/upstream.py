"""One connection of one client to a broker behind the gateway: logged in, and then nothing but bytes.

    upstream = await Upstream.open(address, client_config, credentials, listener)
    upstream.write(data)         # whatever comes goes to listener.upstream_data

The client's login code makes the connection; then this is the asyncio.Protocol of its transport. No bytes are looked
at. When the session there has an end (KIP-368), the owner logs in again by `reauthenticate` before it.

Source: asyncio.Protocol; KIP-368.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from kafka_dt.client.config import Address, ClientConfig, Credentials

Exchange = Callable[[bytes], Awaitable[bytes]]
"""Sends the content of a request's frame and gives that of its answer; the correlation id is in bytes 4 to 8 of both
the request's content and, 0 to 4, the answer's."""


class UpstreamListener(Protocol):
    """Whom an upstream connection tells of itself; nothing is told after `upstream_lost`, nor after close or abort."""

    def upstream_data(self, data: bytes) -> None:
        """Bytes have come."""

    def upstream_lost(self, reason: str) -> None:
        """The broker has closed the connection, or it broke."""

    def upstream_full(self) -> None:
        """What was written waits; better write nothing more."""

    def upstream_writable(self) -> None:
        """There is room again."""


class Upstream(asyncio.Protocol):
    """A logged-in connection to a broker; made by `open`."""

    session_ends_ms: int | None
    """When the broker ends the session, milliseconds since 1970; None if it does not."""
    login_due_ms: int | None
    """When to log in again: a good while before the session ends."""

    @classmethod
    async def open(
        cls, address: Address, config: ClientConfig, credentials: Credentials | None, listener: UpstreamListener
    ) -> Self:
        """Connect to a broker and log in.

        Raises:
            ConnectionLost: it, or one of its kinds.
            LoginFailed: the broker refused the login.
            UnsupportedByServer: the broker has no login by SASL that we know.
        """
        raise NotImplementedError

    def write(self, data: bytes) -> None:
        """Send bytes; they are kept while the broker takes none (`upstream_full`)."""

    def pause_reading(self) -> None:
        """Take nothing from the broker until `resume_reading`."""

    def resume_reading(self) -> None:
        """Go on taking what the broker sends."""

    async def reauthenticate(self, credentials: Credentials, exchange: Exchange) -> None:
        """Log in again, with whatever the same principal has now, by the mechanism of before.

        Nothing else may be outstanding. Sets `session_ends_ms` and `login_due_ms` anew. Raises as `open`, and what
        `exchange` raises; after each the connection is of no more use.
        """

    def close(self) -> None:
        """End the connection when all was sent that was written."""

    def abort(self) -> None:
        """End the connection at once."""
