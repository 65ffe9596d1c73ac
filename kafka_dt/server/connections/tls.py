"""TLS between a socket and a connection: asyncio's transport and protocol, with OpenSSL in memory between them.

`TlsConnection` is the protocol of the socket. When the handshake is complete the protocol inside gets a `TlsTransport`
as if it were a socket's, with `ssl_object` among its extra info, and `server_name` (SNI) if `TlsServices` asks for it.

asyncio's own TLS is not used: there a failed handshake ends in a reset without an alert and without a word to us, a
client that has said all it will say would lose the answers that it waits for, and the certificate could not change
while the port is open.

A client of TLS 1.3 may send as many updates of its key (KeyUpdate) as it likes, each of which costs ten times as much
as a small record with data. So a connection is closed whose records carry hardly any.

Limits: a context must refuse renegotiation (`kafka_dt.tls` does), so that writing never has to wait for reading. A
server name that is not ASCII fails the handshake, and Python itself writes that to standard error.

Source: RFC 8446 (4.6.3: KeyUpdate), RFC 5246 (alerts, close_notify), RFC 6066, 3 (server names);
org.apache.kafka.common.network.SslTransportLayer.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final, cast

from kafka_dt.log import of_peer
from kafka_dt.server.addresses import address_text, client_host
from kafka_dt.server.connections.over_transport import OverTransport
from kafka_dt.server.listeners.deadlines import LoginConnection

_LOG = logging.getLogger(__name__)

LINGER_SECONDS: Final = 1.0
"""How long the client of a failed handshake has to read why and to close."""
_READ_BYTES: Final = 256 * 1024
_SLICE_BYTES: Final = 16 * 1024
"""How much OpenSSL takes at once."""
_MOST_OVERHEAD: Final = 4
"""How many encrypted bytes may come for each byte of data: twice what a client needs that sends each length of a small
request in a record of its own."""
_MOST_WITHOUT_DATA_BYTES: Final = 48 * 1024
"""How much may come beyond that: nothing of a record can be decrypted before all of its up to 16 KiB are here."""
_NO_CERTIFICATE: Final = "PEER_DID_NOT_RETURN_A_CERTIFICATE"
"""What OpenSSL calls it that the client had to show one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsServices:
    """What the encrypted connections of one listener share."""

    context: Callable[[], ssl.SSLContext]
    """Gives the context of a new connection."""
    failed: Callable[[Any, str], None]
    """Told the address and the reason of a failed handshake, one line."""
    not_accepted: Callable[[Any], None] | None = None
    """Told the address of a client whose certificate is refused, or that has shown none and had to."""
    server_names: bool = False
    """Whether connections are to know by which name the client came."""


class _State(Enum):
    HANDSHAKE = auto()
    OPEN = auto()
    ENDED = auto()


class _NamedSSLObject(ssl.SSLObject):
    """One end of a TLS connection that remembers the name in the client's hello."""

    server_name: str | None = None


class TlsConnection(asyncio.Protocol):
    """The server's end of one encrypted connection; the one inside hears of it once the handshake is complete."""

    def __init__(self, services: TlsServices, inner: LoginConnection) -> None:
        self._services = services
        self._inner = inner
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        context = services.context()
        if services.server_names:
            _remember_server_names(context)
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._state = _State.HANDSHAKE
        self._silent = True
        self._without_data = 0
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the socket and wait for the client's hello."""
        # uvloop's transports are asyncio's in all but their class.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Take encrypted bytes."""
        self._silent = False
        encrypted = memoryview(data)
        for start in range(0, len(encrypted), _SLICE_BYTES):
            if self._state is _State.ENDED or self._socket.is_closing():
                return
            self._incoming.write(encrypted[start : start + _SLICE_BYTES])
            if self._state is _State.HANDSHAKE:
                self._shake_hands()
            if self._state is _State.OPEN:
                self._read(min(_SLICE_BYTES, len(encrypted) - start))

    def eof_received(self) -> bool:
        """Serve what has been received; a Kafka frame tells its length, so nothing can be cut off unnoticed."""
        match self._state:
            case _State.HANDSHAKE if not self._silent:
                self._fail("the client closed the connection")
            case _State.OPEN:
                return bool(self._inner.eof_received())
            case _:
                pass
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Pass the end on."""
        before, self._state = self._state, _State.ENDED
        if before is _State.OPEN:
            self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        """Pass it on that the client does not read."""
        if self._state is _State.OPEN:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Pass it on that the client reads again."""
        if self._state is _State.OPEN:
            self._inner.resume_writing()

    def login_overdue(self) -> None:
        """Give up a handshake that has not been completed; else pass it on."""
        match self._state:
            case _State.HANDSHAKE:
                self._fail("it took too long (kafka.dt.login.timeout.ms)")
            case _State.OPEN:
                self._inner.login_overdue()
            case _State.ENDED:
                pass

    def write(self, data: bytes) -> None:
        """Encrypt and send."""
        left = memoryview(data)
        try:
            while left:
                left = left[self._tls.write(left) :]
        except ssl.SSLError:
            self._socket.abort()
            return
        self._flush()

    def close(self) -> None:
        """Tell the client that nothing follows, and close; its own goodbye is not waited for."""
        if not self._socket.is_closing():
            with suppress(ssl.SSLError):
                self._tls.unwrap()
            self._flush()
            self._socket.close()

    def _shake_hands(self) -> None:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
        except ssl.SSLError as error:
            if self._services.not_accepted is not None and _about_certificate(error):
                self._services.not_accepted(self._socket.get_extra_info("peername"))
            self._fail(_reason(error))
        else:
            self._flush()
            self._state = _State.OPEN
            self._inner.connection_made(TlsTransport(self, self._socket, self._tls))

    def _read(self, encrypted_bytes: int) -> None:
        plain, ended = self._decrypt()
        self._without_data = max(0, self._without_data + encrypted_bytes - _MOST_OVERHEAD * len(plain))
        if self._without_data > _MOST_WITHOUT_DATA_BYTES:
            peer = self._socket.get_extra_info("peername")
            text = "Closing the connection of %s: its TLS records carry hardly any data"
            _LOG.info(text, address_text(peer), extra=of_peer(client_host(peer)))
            self._socket.abort()
            return
        self._flush()
        if plain:
            self._inner.data_received(plain)
        if ended and self._state is _State.OPEN and not self._inner.eof_received():
            self.close()

    def _decrypt(self) -> tuple[bytes, bool]:
        """Give what can be decrypted now, and whether the client has said goodbye or broken the protocol."""
        parts = []
        try:
            while part := self._tls.read(_READ_BYTES):
                parts.append(part)
        except ssl.SSLWantReadError:
            return b"".join(parts), False
        except ssl.SSLError:
            self._socket.close()
        return b"".join(parts), True

    def _fail(self, reason: str) -> None:
        """Give up a handshake.

        What the client still sends is read and dropped for a while: closing with unread bytes would reset the
        connection, and the client might never see the alert.
        """
        self._state = _State.ENDED
        self._services.failed(self._socket.get_extra_info("peername"), reason)
        self._flush()
        if not self._socket.is_closing():
            self._socket.write_eof()
            asyncio.get_running_loop().call_later(LINGER_SECONDS, self._socket.close)

    def _flush(self) -> None:
        data = self._outgoing.read()
        if data and not self._socket.is_closing():
            self._socket.write(data)

    @property
    def _socket(self) -> asyncio.Transport:
        assert self._transport is not None  # noqa: S101 - nothing happens before connection_made
        return self._transport


class TlsTransport(OverTransport):
    """What the protocol inside takes for its socket."""

    def __init__(self, connection: TlsConnection, transport: asyncio.Transport, ssl_object: ssl.SSLObject) -> None:
        super().__init__(transport, {"ssl_object": ssl_object, "server_name": getattr(ssl_object, "server_name", None)})
        self._connection = connection

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Encrypt and send."""
        if data and not self.is_closing():
            self._connection.write(bytes(data))

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        """Encrypt and send."""
        self.write(b"".join(list_of_data))

    def close(self) -> None:
        """Send what is left and close."""
        self._connection.close()


def _remember_server_names(context: ssl.SSLContext) -> None:
    """Let each connection of a context keep the name of its own hello; no work where that is so already."""
    if context.sslobject_class is not _NamedSSLObject:
        context.sslobject_class = _NamedSSLObject
        context.sni_callback = _remember


def _remember(connection: ssl.SSLSocket | ssl.SSLObject, name: str | None, _context: ssl.SSLContext) -> None:
    if isinstance(connection, _NamedSSLObject):
        connection.server_name = name


def _about_certificate(error: ssl.SSLError) -> bool:
    return isinstance(error, ssl.SSLCertVerificationError) or error.reason == _NO_CERTIFICATE


def _reason(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the client's certificate is refused: {error.verify_message}"
    return (error.reason or str(error)).replace("_", " ").lower()
