"""Makes destinations of what a user writes: `webhook:URL`, `file:PATH`, `kafka:TOPIC`, `syslog:TARGET`, `email:TO`.

What is secret is not on the command line, where every user of the machine can read it. It is in the settings: a file
of properties, whose values may be `file:/path` or `env:NAME`, and whose keys begin with the kind of the destination.
The URL of a webhook is a secret for many services, so it may also be `webhook:file:/path` or `webhook:env:NAME`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from ssl import SSLContext
from typing import Final

from kafka_dt.config import ConfigError
from kafka_dt.config.options.option import resolve_secret
from kafka_dt.pipeline.alerts.destination import AlertError, Destination
from kafka_dt.pipeline.alerts.email import Mail, MailServer
from kafka_dt.pipeline.alerts.file import AlertFile
from kafka_dt.pipeline.alerts.forms import Form, as_case
from kafka_dt.pipeline.alerts.syslog import Syslog
from kafka_dt.pipeline.alerts.topic import PREFIX, AlertTopic
from kafka_dt.pipeline.alerts.webhook import Webhook
from kafka_dt.tls import TlsError, client_context

KINDS: Final = ("webhook", "file", "kafka", "syslog", "email")
_HEADER: Final = "webhook.header."
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_KNOWN: Final = re.compile(
    r"webhook\.header\..+|(webhook|syslog|email)\.ssl\..+|kafka\..+"
    r"|email\.(server|security|from|username|password)"
)
_SECURITY: Final = ("starttls", "tls", "none")
_SERVER: Final = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[^:\[\]]+)(:(?P<port>[0-9]{1,5}))?")
_SMTP_PORT: Final = 25
_ADDRESS: Final = re.compile(r"[^\s,@<>]+@[^\s,@<>]+")


def destination(
    given: str, settings: Mapping[str, str], clock: Callable[[], datetime], form: Form = as_case
) -> Destination:
    """Make a destination.

    Args:
        given: KIND:TARGET.
        settings: properties of all destinations; those of other kinds are not looked at.
        clock: gives the time, in UTC.
        form: writes alerts; mail is text for people in any form.

    Raises:
        AlertError: it cannot be used; the text has no secret.
    """
    kind, colon, target = given.partition(":")
    if kind not in KINDS or not colon or not target:
        raise AlertError(f"write one of {', '.join(f'{each}:...' for each in KINDS)}")
    try:
        match kind:
            case "webhook":
                return Webhook(
                    resolve_secret("--alert", target).value.strip(), form, _headers(settings), _tls(settings, kind)
                )
            case "file":
                return AlertFile(Path(target), form)
            case "kafka":
                own = {key.removeprefix(PREFIX): _value(settings, key) for key in settings if key.startswith(PREFIX)}
                return AlertTopic(target, form, own)
            case "syslog":
                return Syslog(target, form, _tls(settings, kind), clock)
            case _:
                return Mail(_recipients(target), _mail_server(settings), clock)
    except (ConfigError, TlsError) as error:
        raise AlertError(str(error)) from None


def check_settings(settings: Mapping[str, str]) -> None:
    """See that each setting is one of a destination.

    Raises:
        AlertError: naming one that is not.
    """
    for key in settings:
        if not _KNOWN.fullmatch(key):
            raise AlertError(f"{key} is no setting of alerts")


def _headers(settings: Mapping[str, str]) -> dict[str, str]:
    headers = {}
    for key in settings:
        if key.startswith(_HEADER):
            name, value = key.removeprefix(_HEADER), _value(settings, key)
            if not (_HEADER_NAME.fullmatch(name) and value.isascii() and value.isprintable()):
                raise AlertError(f"{key}: it is no header of HTTP")
            headers[name] = value
    return headers


def _mail_server(settings: Mapping[str, str]) -> MailServer:
    given = settings.get("email.server", "localhost")
    server = _SERVER.fullmatch(given)
    security = settings.get("email.security", "starttls" if "email.server" in settings else "none")
    if server is None:
        raise AlertError(f"email.server: {given!r} is not of the form HOST:PORT")
    if security not in _SECURITY:
        raise AlertError(f"email.security: it is one of {', '.join(_SECURITY)}")
    sender = settings.get("email.from", "kafka-dt@localhost")
    if not _ADDRESS.fullmatch(sender):
        raise AlertError(f"email.from: {sender!r} is no mail address")
    username = settings.get("email.username", "")
    if username and security == "none":
        raise AlertError("email.username: a login needs email.security=starttls or tls")
    password = _value(settings, "email.password") if username else ""
    for key, value in (("email.username", username), ("email.password", password)):
        if not value.isascii():  # smtplib encodes a login as ASCII
            raise AlertError(f"{key}: it has a character that is not ASCII; use a login without one")
    return MailServer(
        host=server["host"].strip("[]"),
        port=int(server["port"] or _SMTP_PORT),
        security=security,
        tls=_tls(settings, "email"),
        sender=sender,
        username=username,
        password=password,
    )


def _recipients(target: str) -> str:
    recipients = [each.strip() for each in target.split(",")]
    if not all(_ADDRESS.fullmatch(each) for each in recipients):
        raise AlertError(f"{target!r} is no list of mail addresses")
    return ", ".join(recipients)


def _tls(settings: Mapping[str, str], kind: str) -> SSLContext:
    own = {key.removeprefix(f"{kind}."): _value(settings, key) for key in settings if key.startswith(f"{kind}.ssl.")}
    return client_context(own)


def _value(settings: Mapping[str, str], key: str) -> str:
    if key not in settings:
        raise AlertError(f"{key} is missing")
    return resolve_secret(key, settings[key]).value
