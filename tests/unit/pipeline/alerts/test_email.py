"""Mail to a real SMTP server."""

from __future__ import annotations

import email
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from email.message import Message
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, Envelope

from kafka_dt.pipeline.alerts import Alert, AlertError, NotDelivered, destination
from kafka_dt.pipeline.cases import form_cases
from tests.support.findings import sighting
from tests.support.processes.ports import free_ports
from tests.unit.pipeline.alerts.conftest import NOON


class Mailbox:
    """Keeps mail; answers as it is told to."""

    def __init__(self) -> None:
        self.got: list[Message] = []
        self.recipients: list[str] = []
        self.answer = "250 OK"
        self.refused: frozenset[str] = frozenset()

    async def handle_RCPT(self, _server: Any, _session: Any, envelope: Envelope, address: str, _options: Any) -> str:  # noqa: N802
        if address in self.refused:
            return "550 no such mailbox"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Envelope) -> str:  # noqa: N802
        assert isinstance(envelope.content, bytes)
        if self.answer == "250 OK":
            self.got.append(email.message_from_bytes(envelope.content))
            self.recipients += envelope.rcpt_tos
        return self.answer


@contextmanager
def serving(mailbox: Mailbox, **options: Any) -> Iterator[int]:
    port = free_ports(1)  # the controller connects to it, so it has to know it
    controller = Controller(mailbox, hostname="127.0.0.1", port=port, **options)
    controller.start()
    try:
        yield port
    finally:
        controller.stop()


def send(
    port: int, alerts: list[Alert], settings: Mapping[str, str] | None = None, to: str = "soc@example.com"
) -> None:
    given = {"email.server": f"localhost:{port}", "email.security": "none", **(settings or {})}
    destination(f"email:{to}", given, lambda: NOON).send(alerts)


def test_all_alerts_are_one_mail(alert: Alert) -> None:
    (other,) = form_cases([sighting("t2", "User:bob", "10.0.0.2")])
    mailbox = Mailbox()
    with serving(mailbox) as port:
        send(
            port,
            [alert, Alert(other, other.sightings)],
            {"email.from": "dt@example.com"},
            "soc@example.com,b@example.com",
        )
    (mail,) = mailbox.got
    assert mailbox.recipients == ["soc@example.com", "b@example.com"]
    assert mail["Subject"] == "kafka-dt: 2 cases, 1 of severity high"
    assert mail["From"] == "dt@example.com"
    assert mail["Date"] == "Mon, 02 Mar 2026 12:00:00 +0000"
    text = mail.get_payload(decode=True).decode().replace("\r\n", "\n")  # type: ignore[union-attr]
    assert alert.text in text
    assert "User:bob" in text


def test_the_same_alerts_have_the_same_message_id(alert: Alert) -> None:
    mailbox = Mailbox()
    with serving(mailbox) as port:
        send(port, [alert])
        send(port, [alert])
    first, second = (mail["Message-ID"] for mail in mailbox.got)
    assert first == second


@pytest.mark.parametrize(("answer", "again"), [("451 try later", True), ("554 no", False)])
def test_a_server_says_whether_to_try_again(alert: Alert, answer: str, again: bool) -> None:
    mailbox = Mailbox()
    mailbox.answer = answer
    with serving(mailbox) as port, pytest.raises(NotDelivered, match=answer) as failed:
        send(port, [alert])
    assert failed.value.again is again


def test_a_mail_that_no_recipient_may_get_is_refused(alert: Alert) -> None:
    mailbox = Mailbox()
    mailbox.refused = frozenset({"soc@example.com", "b@example.com"})
    with serving(mailbox) as port, pytest.raises(NotDelivered, match=r"refuses .*b@example\.com") as failed:
        send(port, [alert], to="soc@example.com,b@example.com")
    assert not failed.value.again


def test_a_mail_that_one_recipient_got_is_delivered_and_the_other_is_named(
    alert: Alert, caplog: pytest.LogCaptureFixture
) -> None:
    mailbox = Mailbox()
    mailbox.refused = frozenset({"left@example.com"})
    with serving(mailbox) as port:
        send(port, [alert], to="soc@example.com,left@example.com")
    assert mailbox.recipients == ["soc@example.com"]
    warnings = [each.getMessage() for each in caplog.records if each.name.startswith("kafka_dt")]
    assert warnings == ["the mail server refuses left@example.com; the other recipients have the alerts"]


def accepts(name: bytes, password: bytes) -> Callable[..., AuthResult]:
    def check(_server: Any, _session: Any, _envelope: Any, _mechanism: str, given: Any) -> AuthResult:
        return AuthResult(success=(given.login, given.password) == (name, password), handled=False)

    return check


def test_a_login_goes_over_starttls(
    alert: Alert, server_tls: ssl.SSLContext, trust: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMTP_PASSWORD", "s3cret")
    settings = {
        "email.security": "starttls",
        "email.username": "dt",
        "email.password": "env:SMTP_PASSWORD",
        **{f"email.{key}": value for key, value in trust.items()},
    }
    mailbox = Mailbox()
    options = {"tls_context": server_tls, "auth_required": True, "authenticator": accepts(b"dt", b"s3cret")}
    with serving(mailbox, **options) as port:
        send(port, [alert], settings)
        with pytest.raises(NotDelivered, match="535"):
            send(port, [alert], settings | {"email.password": "wrong"})
    assert len(mailbox.got) == 1


def test_a_server_without_tls_gets_nothing(alert: Alert) -> None:
    mailbox = Mailbox()
    with serving(mailbox) as port, pytest.raises(NotDelivered, match="STARTTLS"):
        send(port, [alert], {"email.security": "starttls"})
    assert mailbox.got == []


@pytest.mark.parametrize(
    ("to", "settings", "says"),
    [
        ("nobody", {}, "no list of mail addresses"),
        ("a@b\r\nBcc: c@d", {}, "no list of mail addresses"),
        ("a@b", {"email.security": "ssl"}, "one of starttls, tls, none"),
        ("a@b", {"email.server": "host:port"}, "HOST:PORT"),
        ("a@b", {"email.from": "x@y\r\nBcc: c@d"}, "no mail address"),
        ("a@b", {"email.username": "dt"}, "needs email.security"),
        ("a@b", {"email.username": "dt", "email.security": "tls"}, "email.password is missing"),
        (
            "a@b",
            {"email.username": "d\u00fc", "email.security": "tls", "email.password": "x"},
            "email.username: .*ASCII",
        ),
    ],
)
def test_wrong_settings_are_named(to: str, settings: Mapping[str, str], says: str) -> None:
    with pytest.raises(AlertError, match=says):
        destination(f"email:{to}", settings, lambda: NOON)


def test_a_password_that_smtp_cannot_send_is_refused_and_not_shown() -> None:
    settings = {"email.username": "dt", "email.security": "tls", "email.password": "geheim-f\u00fcr-alle"}
    with pytest.raises(AlertError, match=r"email\.password: .*ASCII") as wrong:
        destination("email:a@b", settings, lambda: NOON)
    assert "geheim" not in str(wrong.value)
