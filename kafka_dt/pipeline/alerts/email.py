"""E-mail: one message for all alerts of a report, over SMTP.

The server is `email.server` (localhost:25). `email.security` is starttls, tls or none; a password is sent over TLS
only. The Message-ID is made of the alerts' ids, so that a mailbox can drop a second copy.

Mail that the server takes for one recipient at least is delivered: sent again, it would come to that one again.

Source: RFC 5321, RFC 5322, RFC 8314
"""

from __future__ import annotations

import hashlib
import logging
import smtplib
from collections.abc import Sequence
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.utils import format_datetime
from typing import TYPE_CHECKING

from kafka_dt.pipeline.alerts.destination import TIMEOUT_S, NotDelivered, key_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from ssl import SSLContext

    from kafka_dt.pipeline.alerts.alert import Alert

_LOG = logging.getLogger(__name__)
_TRANSIENT = range(400, 500)


@dataclass(frozen=True, slots=True, kw_only=True)
class MailServer:
    """How mail is sent."""

    host: str
    port: int
    security: str
    """starttls, tls or none."""
    tls: SSLContext
    sender: str
    username: str = ""
    password: str = field(default="", repr=False)


class Mail:
    """Sends alerts as mail."""

    digest = True

    def __init__(self, to: str, server: MailServer, clock: Callable[[], datetime]) -> None:
        self._to = to
        self._server = server
        self._clock = clock
        self.name = f"email {to}"
        self.key = key_of("email", to)

    def send(self, alerts: Sequence[Alert]) -> None:
        """Send all alerts."""
        message = self._message(alerts)
        try:
            with self._connected() as connection:
                refused = connection.send_message(message)
        except smtplib.SMTPResponseException as error:
            reason = error.smtp_error.decode(errors="replace") if isinstance(error.smtp_error, bytes) else ""
            again = error.smtp_code in _TRANSIENT
            raise NotDelivered(f"the server answers {error.smtp_code} {reason}".strip(), again=again) from None
        except smtplib.SMTPRecipientsRefused as error:
            codes = {code for code, _ in error.recipients.values()}
            raise NotDelivered(f"the server refuses {self._to}", again=any(c in _TRANSIENT for c in codes)) from None
        except (OSError, smtplib.SMTPException) as error:
            raise NotDelivered(str(error) or type(error).__name__) from None
        if refused:
            _LOG.warning("the mail server refuses %s; the other recipients have the alerts", ", ".join(refused))

    def _connected(self) -> smtplib.SMTP:
        server = self._server
        if server.security == "tls":
            connection: smtplib.SMTP = smtplib.SMTP_SSL(server.host, server.port, timeout=TIMEOUT_S, context=server.tls)
        else:
            connection = smtplib.SMTP(server.host, server.port, timeout=TIMEOUT_S)
        try:
            if server.security == "starttls":
                connection.starttls(context=server.tls)
            if server.username:
                connection.login(server.username, server.password)
        except (OSError, smtplib.SMTPException):
            connection.close()
            raise
        return connection

    def _message(self, alerts: Sequence[Alert]) -> EmailMessage:
        high = sum(alert.case.severity == "high" for alert in alerts)
        number = f"{len(alerts)} case{'s'[: len(alerts) != 1]}"
        message = EmailMessage()
        message["Subject"] = f"kafka-dt: {number}{f', {high} of severity high' if high else ''}"
        message["From"] = self._server.sender
        message["To"] = self._to
        message["Date"] = format_datetime(self._clock())
        name = hashlib.sha256("".join(alert.id for alert in alerts).encode()).hexdigest()[:32]
        message["Message-ID"] = f"<{name}@kafka-dt>"
        message.set_content("\n\n".join(alert.text for alert in alerts) + "\n")
        return message
