"""What takes the bytes of one client: it has a connection serve them, or forwards them to another server.

A `ClientConnection` makes an intake for itself and hands it everything that the client sends. `ServedHere` has the
connection serve all of it. A gateway's intake (`kafka_dt/gateway/forwarding.py`) has it serve some requests and
forwards the others.

`Intake` is what a connection tells its intake, and what it asks of it; `Serving` is what an intake may ask of its
connection. Neither side touches anything else of the other.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final, Protocol

from kafka_dt.server.connections.logins import ConnectionLogins
from kafka_dt.server.connections.reading import Reading
from kafka_dt.server.connections.requests import ConnectionRequests
from kafka_dt_protocol import ConnectionClosed, ServerConnection

READ_AHEAD_BYTES: Final = 64 * 1024
"""How much may wait behind a request that is under way before reading stops."""


class Intake(Protocol):
    """What a connection tells its intake, and what it asks of it."""

    @property
    def owes_answers(self) -> bool:
        """Whether the intake has yet to bring answers that the connection knows nothing of."""

    @property
    def idle(self) -> bool:
        """Whether the intake is between two requests and holds no part of one."""

    @property
    def held_bytes(self) -> int:
        """How much the intake holds until the client sends more, in bytes."""

    @property
    def frames_given(self) -> int:
        """How many frames the intake has taken whole out of what was received and served or forwarded."""

    def connected(self, transport: asyncio.BaseTransport) -> None:
        """Take note of the socket, before anything else happens."""

    def receive(self, data: bytes) -> None:
        """Take bytes of the client; not called once the connection is closing."""

    def receive_eof(self) -> None:
        """Take note that the client sends no more; `Serving.serve_rest` answers what is left and closes."""

    def served(self) -> None:
        """Go on: the connection has answered everything that it was to serve."""

    def client_reads_not(self) -> None:
        """Bring no more answers until `client_reads`."""

    def client_reads(self) -> None:
        """Bring answers again."""

    def closing(self) -> None:
        """Bring to an end what was forwarded: the connection closes when the client has read what is left."""

    def aborting(self) -> None:
        """Break off what was forwarded: the connection closes at once."""

    def revoked(self) -> None:
        """Break off what was forwarded: the client's token has ended."""

    def lost(self) -> None:
        """Forget everything: the connection is closed."""


class Serving(Protocol):
    """What an intake may ask of its connection."""

    machine: ServerConnection
    """The state of the conversation with the client; only `serve` feeds it."""
    logins: ConnectionLogins
    """Who the client is."""
    requests: ConnectionRequests
    """What it asks here, and where it reaches this node."""
    reading: Reading
    """Starts and stops the reading of the client's socket."""
    last_received: float
    """When something was received last, by the loop's clock in seconds; an intake sets it when answers come."""
    closing: bool
    """Whether the connection is closed, except that the client has not read all answers yet."""
    finishing: bool
    """Whether the connection closes as soon as what is under way has been answered."""
    retiring: bool
    """Whether the connection closes as soon as no request is under way."""
    writable: bool
    """Whether the client reads what is written."""
    goes_on: bool
    """Whether the connection goes on serving by itself, when others have had their turn."""

    @property
    def owes_answers(self) -> bool:
        """Whether a request waits for its answer, here or at the intake."""

    def held_up(self) -> bool:
        """Whether nothing can be served now: a request is under way, or the client does not read."""

    def serve(self, data: bytes = b"") -> None:
        """Serve what these bytes complete, as far as possible now; `Intake.served` tells when all of it is done."""

    def serve_rest(self) -> None:
        """Serve the bytes that have arrived, and then close: the client sends no more."""

    def settle(self) -> None:
        """Count anew what is held; call it when bytes were taken that were not to be served."""

    def write(self, pieces: Sequence[bytes]) -> None:
        """Write answers of the intake to the client, all at once."""

    def reject(self, reason: str) -> None:
        """Close, because the client sent what makes no sense; the reason is one line for the log."""

    def end(self, event: ConnectionClosed, level: int = logging.INFO, delay_s: float | None = None) -> None:
        """Close, with one line in the log."""

    def fail(self, error: BaseException) -> None:
        """Close at once because of an error that is not the client's, and log it whole."""

    def close(self) -> None:
        """Write what is left to be written and close."""

    def abort(self) -> None:
        """Close without writing what the client has not read."""


class ServedHere:
    """The intake of a node that answers every request itself."""

    __slots__ = ("_connection",)

    owes_answers: bool = False
    idle: bool = True
    held_bytes: int = 0
    frames_given: int = 0

    def __init__(self, connection: Serving) -> None:
        self._connection = connection

    def receive(self, data: bytes) -> None:
        """Have it served; while a request is under way, take little more."""
        connection = self._connection
        connection.serve(data)
        if connection.machine.buffered > READ_AHEAD_BYTES and (connection.goes_on or connection.held_up()):
            connection.reading.pause()

    def receive_eof(self) -> None:
        """Have the rest served."""
        self._connection.serve_rest()

    def connected(self, transport: asyncio.BaseTransport) -> None:
        """Need nothing of the socket."""

    def _has_nothing_to_do(self) -> None:
        """Leave it to the connection, which has all there is."""

    served = client_reads_not = client_reads = closing = aborting = revoked = lost = _has_nothing_to_do
