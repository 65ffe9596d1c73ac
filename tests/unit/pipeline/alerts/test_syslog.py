"""Syslog on real sockets."""

from __future__ import annotations

import json
import re
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from kafka_dt.pipeline.alerts import Alert, AlertError, NotDelivered, destination
from kafka_dt.pipeline.alerts.forms import FORMS
from kafka_dt.pipeline.cases import form_cases
from kafka_dt.pipeline.report.signs import Severity
from tests.support.findings import sighting
from tests.unit.pipeline.alerts.conftest import NOON

MESSAGE = re.compile(rb"<(\d+)>1 (\S+) (\S+) kafka-dt (\d+) (\S+) - (\{.*\})", re.DOTALL)
"""RFC 5424: priority, version, time, host, program, process, message id, no structured data, message."""


def send(target: str, alert: Alert, settings: Mapping[str, str] | None = None) -> None:
    destination(f"syslog:{target}", settings or {}, lambda: NOON).send([alert])


def check(message: bytes, alert: Alert) -> None:
    match = MESSAGE.fullmatch(message)
    assert match is not None, message
    priority, at, _, _, name, text = match.groups()
    assert divmod(int(priority), 8) == (10, 2)
    assert at == b"2026-03-02T12:00:00.000+00:00"
    assert name.decode() == alert.id
    assert json.loads(text) == alert.as_document()


def test_a_datagram_has_one_alert(alert: Alert) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(10)
        send(f"udp://127.0.0.1:{server.getsockname()[1]}", alert)
        check(server.recv(65_536), alert)


def test_a_siem_gets_a_datagram_of_cef_for_each_finding() -> None:
    (case,) = form_cases([sighting("t1", severity=Severity.HIGH), sighting("t2", day=1)])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(10)
        target = f"syslog:udp://127.0.0.1:{server.getsockname()[1]}"
        destination(target, {}, lambda: NOON, FORMS["cef"]).send([Alert(case, case.sightings)])
        got = [server.recv(65_536).decode() for _ in case.sightings]
    assert [re.match(r"<(\d+)>1 .* (\w{16}) - CEF:0\|", each).groups() for each in got] == [  # type: ignore[union-attr]
        (str(10 * 8 + severity), one.id) for severity, one in zip((2, 4), case.sightings, strict=True)
    ]


def test_a_socket_of_this_machine_takes_it(alert: Alert, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(str(tmp_path / "log"))
        server.settimeout(10)
        send(str(tmp_path / "log"), alert)
        check(server.recv(65_536), alert)


def test_a_datagram_that_is_too_long_is_cut_and_a_warning_says_so(caplog: pytest.LogCaptureFixture) -> None:
    (case,) = form_cases([sighting(f"token-{number:022}") for number in range(300)])
    alert = Alert(case, case.sightings)
    assert len(alert.as_json()) > 65_535
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(10)
        send(f"udp://127.0.0.1:{server.getsockname()[1]}", alert)
        got = server.recv(65_536)
    assert len(got) == 65_000
    assert f" {alert.id} - {alert.as_json()}".encode().startswith(got[got.index(b" " + alert.id.encode()) :])
    (record,) = caplog.records
    assert f"alert {alert.id} was cut after 65000; send it over tcp:// or tls://" in record.getMessage()


def received(
    listener: socket.socket, wrap: Callable[[socket.socket], socket.socket], work: Callable[[], None]
) -> bytes:
    """Give what comes over one connection while work is done."""
    parts: list[bytes] = []

    def read() -> None:
        connection, _ = listener.accept()
        with wrap(connection) as wrapped:
            while data := wrapped.recv(65_536):
                parts.append(data)

    thread = threading.Thread(target=read)
    thread.start()
    work()
    thread.join(10)
    return b"".join(parts)


def test_over_tcp_a_message_has_its_length_in_front(alert: Alert) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        target = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
        got = received(listener, lambda connection: connection, lambda: send(target, alert))
    length, _, message = got.partition(b" ")
    assert int(length) == len(message)
    check(message, alert)


def test_over_tls_too(alert: Alert, server_tls: ssl.SSLContext, trust: Mapping[str, str]) -> None:
    settings = {f"syslog.{key}": value for key, value in trust.items()}
    with socket.create_server(("127.0.0.1", 0)) as listener:
        target = f"tls://localhost:{listener.getsockname()[1]}"
        got = received(
            listener,
            lambda connection: server_tls.wrap_socket(connection, server_side=True, suppress_ragged_eofs=True),
            lambda: send(target, alert, settings),
        )
    check(got.partition(b" ")[2], alert)


def test_a_server_that_is_away_is_tried_again(alert: Alert) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(NotDelivered, match="refused") as failed:
        send(f"tcp://127.0.0.1:{port}", alert)
    assert failed.value.again


@pytest.mark.parametrize("target", ["siem.example.com", "http://siem", "udp://", "udp://h:99999", "tcp://h:x"])
def test_another_target_is_wrong(target: str) -> None:
    with pytest.raises(AlertError, match="is no syslog server"):
        destination(f"syslog:{target}", {}, lambda: NOON)
