"""Addresses of clients: as Java writes them and ACLs therefore have them, and as the log shows them."""

from __future__ import annotations

import pytest

from kafka_dt.server.addresses import address_text, client_host


@pytest.mark.parametrize(
    ("peer", "host"),
    [
        (("127.0.0.1", 4711), "127.0.0.1"),
        (("::1", 4711, 0, 0), "0:0:0:0:0:0:0:1"),
        (("2001:db8::ff00:42:8329", 4711, 0, 0), "2001:db8:0:0:0:ff00:42:8329"),
        (("::ffff:10.0.0.7", 4711, 0, 0), "10.0.0.7"),
        (("fe80::1", 4711, 0, 2), "fe80:0:0:0:0:0:0:1%2"),
        (("fe80::1%eth0", 4711, 0, 2), "fe80:0:0:0:0:0:0:1%2"),
        (("::", 4711, 0, 0), "0:0:0:0:0:0:0:0"),
        (("", 0), ""),
        ("/run/socket", ""),
        ((), ""),
        (None, ""),
    ],
)
def test_an_address_is_written_as_java_does(peer: object, host: str) -> None:
    assert client_host(peer) == host


@pytest.mark.parametrize(
    ("peer", "text"),
    [
        (("192.0.2.1", 5), "192.0.2.1:5"),
        (("::ffff:192.0.2.1", 5, 0, 0), "192.0.2.1:5"),
        (("2001:db8::1", 5, 0, 0), "2001:db8::1:5"),
        (("::ffff:0:1", 5, 0, 0), "::ffff:0:1:5"),
        (None, "an unknown address"),
    ],
)
def test_an_ipv4_client_on_an_ipv6_socket_is_shown_as_what_it_is(peer: tuple[object, ...] | None, text: str) -> None:
    assert address_text(peer) == text
