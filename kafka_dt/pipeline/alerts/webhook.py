"""A webhook: each message of an alert is the body of a POST; an answer of 2xx takes it.

The header Idempotency-Key has the message's id. An answer of 408, 425, 429 or 5xx, and a connection that breaks, is
tried again; another answer is final. Redirections are not followed: an alert, and a secret with it, is for the address
that was named. A proxy is that of the environment (`https_proxy`).

Source: RFC 9110, sections 10.2.3 and 15; draft-ietf-httpapi-idempotency-key-header
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from http.client import HTTPException
from ssl import SSLContext
from typing import Final
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPSHandler, Request, build_opener

from kafka_dt.pipeline.alerts.alert import Alert
from kafka_dt.pipeline.alerts.destination import TIMEOUT_S, AlertError, NotDelivered, key_of
from kafka_dt.pipeline.alerts.forms import Form, Message
from kafka_dt.urls import NoRedirects, usable_scheme

_AGAIN: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS})
_URL: Final = re.compile(r"[!-~]+")
"""Printable ASCII without blanks."""
_RETRY_AFTER: Final = "Retry-After"


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
        self._opener = build_opener(HTTPSHandler(context=tls), NoRedirects())
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
            with self._opener.open(request, timeout=TIMEOUT_S) as answer:
                answer.read(1)
        except HTTPError as error:
            with error:
                again = error.code in _AGAIN or error.code >= HTTPStatus.INTERNAL_SERVER_ERROR
                after = error.headers.get(_RETRY_AFTER, "")
            reason = f"it answers {error.code} {error.reason}"
            raise NotDelivered(reason, again=again, after_s=float(after) if after.isdecimal() else 0) from None
        except (OSError, HTTPException) as error:
            raise NotDelivered(str(getattr(error, "reason", "") or error) or type(error).__name__) from None
