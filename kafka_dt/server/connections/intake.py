"""What takes the bytes of one client: it has the connection serve them, or forwards them to another server.

`ServedHere` has the connection serve all of them. A gateway's intake (`kafka_dt/gateway/forwarding.py`) has it serve
some requests and forwards the others. A connection and its intake call each other: `__init__.py` of this folder says
when.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from kafka_dt.server.connections.connection import ClientConnection
    from kafka_dt.server.handlers import AskCluster
    from kafka_dt.tokens import OwnConnection

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

    @property
    def own_upstream(self) -> OwnConnection | None:
        """The client's own connection to the cluster whose tokens the node serves; None if it has none."""

    @property
    def ask_cluster(self) -> AskCluster | None:
        """What sends the request under way to the cluster behind a gateway; None where the node decides itself."""

    def connected(self, transport: asyncio.BaseTransport) -> None:
        """Take note of the socket, before anything else happens."""

    def receive(self, data: bytes) -> None:
        """Take bytes of the client; not called once the connection is closing."""

    def receive_eof(self) -> None:
        """Take note that the client sends no more; `ClientConnection.serve_rest` answers what is left and closes."""

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


class ServedHere:
    """The intake of a node that answers every request itself."""

    __slots__ = ("_connection",)

    owes_answers: bool = False
    idle: bool = True
    held_bytes: int = 0
    frames_given: int = 0
    own_upstream: OwnConnection | None = None
    ask_cluster: AskCluster | None = None

    def __init__(self, connection: ClientConnection) -> None:
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
