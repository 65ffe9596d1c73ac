"""Syslog: each message of an alert is one of RFC 5424, over UDP, TCP, TLS or a socket of this machine.

    syslog:udp://siem.example.com:514     syslog:tcp://siem.example.com:514
    syslog:tls://siem.example.com:6514    syslog:/dev/log

Over TCP and TLS a message has its length in front. Syslog acknowledges nothing: a message counts as delivered when the
system has taken it, and over UDP it can be lost on the way. A datagram that is too long is cut, and a warning says so:
its receiver gets the id of the alert and its beginning, which is for people.

Source: RFC 5424, RFC 5425, RFC 5426, RFC 6587 section 3.4.1
"""

from __future__ import annotations

import errno
import logging
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from datetime import datetime
from ssl import SSLContext
from typing import Final
from urllib.parse import urlsplit

from kafka_dt.pipeline.alerts.alert import Alert
from kafka_dt.pipeline.alerts.destination import TIMEOUT_S, AlertError, NotDelivered, key_of
from kafka_dt.pipeline.alerts.forms import Form, Message

_LOG = logging.getLogger(__name__)
_FACILITY: Final = 10
"""Security and authorization messages."""
_SEVERITIES: Final[Mapping[str, int]] = {"high": 2, "medium": 4, "low": 5}
"""Critical, warning, notice."""
_LONGEST_DATAGRAM: Final = 65_000
"""Bytes, below what UDP carries (65,507 over IPv4). A path takes more, as its system is set up."""
_PORTS: Final[Mapping[str, int]] = {"udp": 514, "tcp": 514, "tls": 6514}


class Syslog:
    """Sends alerts to a syslog server.

    Args:
        target: as the module says.
        form: writes alerts.
        tls: for `tls://`.
        clock: gives the time, in UTC.

    Raises:
        AlertError: it is no such target.
    """

    digest = False

    def __init__(self, target: str, form: Form, tls: SSLContext, clock: Callable[[], datetime]) -> None:
        self._transport, self._place = _read(target)
        self._form = form
        self._tls = tls
        self._clock = clock
        self.name = f"syslog {target}"
        self.key = key_of("syslog", target)

    def send(self, alerts: Sequence[Alert]) -> None:
        """Send each message of alerts, over one connection."""
        try:
            with closing(self._connected()) as connection:
                for alert in alerts:
                    for message in self._form(alert):
                        self._send(connection, message)
        except OSError as error:
            again = error.errno != errno.EMSGSIZE
            raise NotDelivered(str(error.strerror or error), again=again) from None

    def _send(self, connection: socket.socket, message: Message) -> None:
        written = self._written(message)
        if self._transport in {"tcp", "tls"}:
            connection.sendall(b"%d %s" % (len(written), written))
            return
        try:
            connection.sendall(written)
        except OSError as error:
            if error.errno != errno.EMSGSIZE:
                raise
            connection.sendall(written[:_LONGEST_DATAGRAM].decode(errors="ignore").encode())
            text = "%s takes no %d bytes at once: alert %s was cut after %d; send it over tcp:// or tls://"
            _LOG.warning(text, self.name, len(written), message.id, _LONGEST_DATAGRAM)

    def _written(self, message: Message) -> bytes:
        priority = _FACILITY * 8 + _SEVERITIES[message.severity]
        at = self._clock().isoformat(timespec="milliseconds")
        host = socket.gethostname() or "-"
        return f"<{priority}>1 {at} {host} kafka-dt {os.getpid()} {message.id} - {message.text}".encode()

    def _connected(self) -> socket.socket:
        if self._transport == "path":
            return _opened(socket.AF_UNIX, self._place[0])
        if self._transport == "udp":
            family, _, _, _, address = socket.getaddrinfo(*self._place, type=socket.SOCK_DGRAM)[0]
            return _opened(family, address)
        connection = socket.create_connection(self._place, TIMEOUT_S)
        if self._transport == "tls":
            return self._tls.wrap_socket(connection, server_hostname=self._place[0])
        return connection


def _read(target: str) -> tuple[str, tuple[str, int]]:
    """Give the transport, and the host with its port or the path."""
    if target.startswith("/"):
        return "path", (target, 0)
    with suppress(ValueError, KeyError):
        split = urlsplit(target)
        if split.hostname:
            return split.scheme, (split.hostname, split.port or _PORTS[split.scheme])
    raise AlertError(f"{target!r} is no syslog server: write udp://HOST:PORT, tcp://..., tls://... or a path")


def _opened(family: int, address: object) -> socket.socket:
    datagrams = socket.socket(family, socket.SOCK_DGRAM)
    try:
        datagrams.settimeout(TIMEOUT_S)
        datagrams.connect(address)  # type: ignore[arg-type]
    except OSError:
        datagrams.close()
        raise
    return datagrams
