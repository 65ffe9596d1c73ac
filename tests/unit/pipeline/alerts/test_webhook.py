"""A webhook on a real HTTP server."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from kafka_dt.pipeline.alerts import Alert, AlertError, Destination, NotDelivered, destination
from tests.unit.pipeline.alerts.conftest import NOON


class Hook(ThreadingHTTPServer):
    """Answers as it is told to, then 204; notes what it got."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), Receiver)
        self.answers: list[tuple[int, Mapping[str, str]]] = []
        self.got: list[tuple[str, Mapping[str, str], bytes]] = []
        self.url = f"http{'s' if tls else ''}://localhost:{self.server_port}/hook?key=s3cret"
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True)


class Receiver(BaseHTTPRequestHandler):
    server: Hook

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.got.append((self.path, dict(self.headers), body))
        status, headers = self.server.answers.pop(0) if self.server.answers else (204, {})
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self.do_POST()  # a redirection that was followed would be noted

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(tls: ssl.SSLContext | None = None) -> Iterator[Hook]:
    with Hook(tls) as hook:
        thread = threading.Thread(target=hook.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield hook
        hook.shutdown()
        thread.join()


@pytest.fixture
def hook() -> Iterator[Hook]:
    with serving() as hook:
        yield hook


def webhook(url: str, settings: Mapping[str, str] | None = None) -> Destination:
    return destination(f"webhook:{url}", settings or {}, lambda: NOON)


def test_an_alert_is_the_body_of_a_post_with_its_id(hook: Hook, alert: Alert, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOC_TOKEN", "Bearer abc")
    webhook(hook.url, {"webhook.header.Authorization": "env:SOC_TOKEN"}).send([alert])
    ((path, headers, body),) = hook.got
    assert path == "/hook?key=s3cret"
    assert headers["Authorization"] == "Bearer abc"
    assert headers["Idempotency-Key"] == f'"{alert.id}"'
    assert headers["Content-Type"] == "application/json"
    document = json.loads(body)
    assert document["id"] == alert.id
    assert document["case"]["owners"] == ["User:alice"]
    assert document["text"] == alert.text


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_a_server_that_is_busy_is_tried_again(hook: Hook, alert: Alert, status: int) -> None:
    hook.answers = [(status, {"Retry-After": "7"})]
    with pytest.raises(NotDelivered, match=str(status)) as failed:
        webhook(hook.url).send([alert])
    assert failed.value.again
    assert failed.value.after_s == 7


@pytest.mark.parametrize("status", [400, 401, 404, 410])
def test_a_refusal_is_final(hook: Hook, alert: Alert, status: int) -> None:
    hook.answers = [(status, {})]
    with pytest.raises(NotDelivered, match=str(status)) as failed:
        webhook(hook.url).send([alert])
    assert not failed.value.again


def test_a_redirection_is_not_followed(hook: Hook, alert: Alert) -> None:
    hook.answers = [(302, {"Location": "/elsewhere"})]
    with pytest.raises(NotDelivered, match="302"):
        webhook(hook.url).send([alert])
    assert len(hook.got) == 1


def test_a_server_that_is_away_is_tried_again(alert: Alert) -> None:
    with serving() as gone:
        url = gone.url
    with pytest.raises(NotDelivered, match="refused") as failed:
        webhook(url).send([alert])
    assert failed.value.again


@pytest.mark.parametrize("begin", [b"HTTP/1.1 ", b"HTTP/1.1 200 OK\r\nX-Long: ", b"HTTP/1.1 503 Away\r\nX-Long: "])
def test_an_answer_that_comes_byte_by_byte_is_waited_for_no_longer_than_another(
    alert: Alert, monkeypatch: pytest.MonkeyPatch, begin: bytes
) -> None:
    monkeypatch.setattr("kafka_dt.pipeline.alerts.webhook.TIMEOUT_S", 0.3)
    ended = threading.Event()

    def drip(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, suppress(OSError):
            connection.recv(65_536)
            connection.sendall(begin)
            while not ended.wait(0.05):
                connection.sendall(b"1")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip, args=(listener,))
        thread.start()
        sender = threading.Timer(5, ended.set)
        sender.start()
        with pytest.raises(NotDelivered, match="timed out") as failed:
            webhook(f"http://127.0.0.1:{listener.getsockname()[1]}/").send([alert])
        in_time = not ended.is_set()
        sender.cancel()
        ended.set()
        thread.join()
    assert in_time
    assert failed.value.again


def test_the_body_of_an_answer_is_not_waited_for(alert: Alert) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
                connection.recv(1)

        thread = threading.Thread(target=answer)
        thread.start()
        webhook(f"http://127.0.0.1:{listener.getsockname()[1]}/").send([alert])
        thread.join()


def test_tls_trusts_the_authority_that_the_settings_name(
    alert: Alert, server_tls: ssl.SSLContext, trust: Mapping[str, str]
) -> None:
    with serving(server_tls) as hook:
        with pytest.raises(NotDelivered, match="certificate verify failed"):
            webhook(hook.url).send([alert])
        webhook(hook.url, {f"webhook.{key}": value for key, value in trust.items()}).send([alert])
        assert len(hook.got) == 1


def test_the_url_can_be_a_secret(hook: Hook, alert: Alert, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK", hook.url)
    made = destination("webhook:env:HOOK", {}, lambda: NOON)
    made.send([alert])
    assert len(hook.got) == 1
    assert "s3cret" not in made.name + made.key


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.com/s3cret",
        "example.com/s3cret",
        "https:///s3cret",
        "http://[s3cret",
        "https://h/s3cret x",
        "https://h/s3cret\u00e9",
    ],
)
def test_another_url_is_wrong_and_not_shown(url: str) -> None:
    with pytest.raises(AlertError, match="begins with https://") as wrong:
        destination(f"webhook:{url}", {}, lambda: NOON)
    assert "s3cret" not in str(wrong.value)


@pytest.mark.parametrize(("name", "value"), [("X", "a\r\nb"), ("X", "\u00e9"), ("a b", "c")])
def test_a_header_that_http_does_not_have_is_named(name: str, value: str) -> None:
    with pytest.raises(AlertError, match=f"webhook.header.{name}: it is no header"):
        destination("webhook:https://example.com", {f"webhook.header.{name}": value}, lambda: NOON)
