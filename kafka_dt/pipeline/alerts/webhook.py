"""A webhook: each message of an alert is the body of a POST; an answer of 2xx takes it.

The header Idempotency-Key has the message's id. An answer of 408, 425, 429 or 5xx, and a connection that breaks, is
tried again; another answer is final. Redirections are not followed: an alert, and a secret with it, is for the address
that was named. A proxy is that of the environment (`https_proxy`).

A server has TIMEOUT_S seconds for each step: to accept the connection, to take the message, and to answer, however
slowly it does so.

Source: RFC 9110, sections 10.2.3 and 15; draft-ietf-httpapi-idempotency-key-header
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from io import BufferedReader, RawIOBase
from ssl import SSLContext
from typing import TYPE_CHECKING, Any, Final
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPHandler, HTTPSHandler, Request, build_opener

from kafka_dt.pipeline.alerts.alert import Alert
from kafka_dt.pipeline.alerts.destination import TIMEOUT_S, AlertError, NotDelivered, key_of
from kafka_dt.pipeline.alerts.forms import Form, Message
from kafka_dt.urls import NoRedirects, usable_scheme

_AGAIN: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS})
_URL: Final = re.compile(r"[!-~]+")
"""Printable ASCII without blanks."""
_RETRY_AFTER: Final = "Retry-After"

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class Webhook:
    """Posts alerts.

    Args:
        url: http or https; it may be a secret.
        form: writes alerts.
        headers: go with each alert.
        tls: for https.

    Raises:
        AlertError: it is no such URL.
    """

    digest = False

    def __init__(self, url: str, form: Form, headers: Mapping[str, str], tls: SSLContext) -> None:
        if usable_scheme(url) not in {"http", "https"} or not _URL.fullmatch(url):
            raise AlertError("the URL of a webhook begins with https:// or http://, and has a host")
        self._url = url
        self._form = form
        self._headers = {"User-Agent": "kafka-dt", **headers}
        self._opener = build_opener(_Http(), _Https(tls), NoRedirects())
        self.name = f"webhook {urlsplit(url).hostname}"
        self.key = key_of("webhook", url)

    def send(self, alerts: Sequence[Alert]) -> None:
        """Post each message of alerts."""
        for alert in alerts:
            for message in self._form(alert):
                self._post(message)

    def _post(self, message: Message) -> None:
        own = {"Content-Type": message.content_type, "Idempotency-Key": f'"{message.id}"'}
        request = Request(self._url, message.text.encode(), own | self._headers)  # noqa: S310 - http or https, checked
        try:
            self._opener.open(request, timeout=TIMEOUT_S).close()
        except HTTPError as error:
            with error:
                again = error.code in _AGAIN or error.code >= HTTPStatus.INTERNAL_SERVER_ERROR
                after = error.headers.get(_RETRY_AFTER, "")
            reason = f"it answers {error.code} {error.reason}"
            raise NotDelivered(reason, again=again, after_s=float(after) if after.isdecimal() else 0) from None
        except (OSError, HTTPException) as error:
            raise NotDelivered(str(getattr(error, "reason", "") or error) or type(error).__name__) from None


class _InTime(RawIOBase):
    """Reads a socket until a deadline; a timeout of the socket would begin anew with each byte."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._deadline_s = time.monotonic() + TIMEOUT_S

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        left_s = self._deadline_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("timed out")
        self._connection.settimeout(left_s)
        return self._connection.recv_into(buffer)


class _Answer(HTTPResponse):
    """The head of an answer; its body is not read."""

    def __init__(self, sock: socket.socket, *arguments: Any, **named: Any) -> None:
        super().__init__(sock, *arguments, **named)
        self.fp.close()
        self.fp = BufferedReader(_InTime(sock))


class _HttpConnection(HTTPConnection):
    response_class = _Answer


class _HttpsConnection(HTTPSConnection):
    response_class = _Answer


class _Http(HTTPHandler):
    def http_open(self, request: Request) -> HTTPResponse:
        return self.do_open(_HttpConnection, request)


class _Https(HTTPSHandler):
    def __init__(self, tls: SSLContext) -> None:
        super().__init__(context=tls)
        self._tls = tls

    def https_open(self, request: Request) -> HTTPResponse:
        return self.do_open(_HttpsConnection, request, context=self._tls)
