"""The header of the PROXY protocol: the specification's examples, and whatever else stands in front of a connection."""

from __future__ import annotations

import struct
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_dt_protocol.errors import MalformedProxyHeader
from kafka_dt_protocol.wire.proxy_header import (
    LONGEST_V1,
    LONGEST_V2,
    V2_START,
    ProxyHeader,
    may_be_proxy_header,
    parse_proxy_header,
    proxy_header,
)

INET = bytes([192, 0, 2, 7, 198, 51, 100, 1]) + struct.pack(">HH", 51234, 9092)
INET6 = IPv6Address("2001:db8::7").packed + IPv6Address("2001:db8::1").packed + struct.pack(">HH", 51234, 9092)
UNIX = b"/run/client".ljust(108, b"\0") + b"/run/server".ljust(108, b"\0")
TLV_UNIQUE_ID = b"\x05\x00\x04abcd"
TLV_OF_AMAZON = b"\xea\x00\x17\x01vpce-08d2bf15fac5001c9"
ALICE, FRONT = ("192.0.2.7", 51234), ("198.51.100.1", 9092)
ALICE_6, FRONT_6 = ("2001:db8::7", 51234), ("2001:db8::1", 9092)


def v2(content: bytes, *, command: int = 0x21, family: int = 0x11) -> bytes:
    return V2_START + bytes([command, family]) + struct.pack(">H", len(content)) + content


GOOD = [
    # Version 1: the specification's longest lines of each kind (section 2.1).
    (
        b"PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n",
        (("255.255.255.255", 65535), ("255.255.255.255", 65535)),
    ),
    (
        b"PROXY TCP6 ffff:f...f:ffff ffff:f...f:ffff 65535 65535\r\n".replace(
            b"ffff:f...f:ffff", b":".join([b"ffff"] * 8)
        ),
        (("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 65535),) * 2,
    ),
    (b"PROXY UNKNOWN\r\n", (None, None)),
    (b"PROXY UNKNOWN ffff:f...f:ffff ffff:f...f:ffff 65535 65535\r\n", (None, None)),
    (b"PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\n", (("192.168.0.1", 56324), ("192.168.0.11", 443))),
    # Version 2 (section 2.2).
    (v2(INET), (ALICE, FRONT)),
    (v2(INET6, family=0x21), (ALICE_6, FRONT_6)),
    (v2(INET + TLV_UNIQUE_ID + TLV_OF_AMAZON), (ALICE, FRONT)),
    (v2(b"", command=0x20, family=0x00), (None, None)),
    (v2(INET, command=0x20), (None, None)),
    (v2(b"too short", command=0x20), (None, None)),
    (v2(b"", family=0x00), (None, None)),
    (v2(UNIX, family=0x31), (None, None)),
    (v2(INET, family=0x12), (None, None)),
    (v2(INET, family=0x10), (None, None)),
]

BAD = [
    (b"PROXY TCP4 192.0.2.7 198.51.100.1 51234\r\n", "not of the form"),
    (b"PROXY TCP4  192.0.2.7 198.51.100.1 51234 9092\r\n", "not of the form"),
    (b"PROXY tcp4 192.0.2.7 198.51.100.1 51234 9092\r\n", "not of the form"),
    (b"PROXY UNKNOWNS\r\n", "not of the form"),
    (b"PROXY \r\n", "not of the form"),
    (b"PROXY TCP4 192.0.2.007 198.51.100.1 51234 9092\r\n", "an address is none of its family"),
    (b"PROXY TCP4 2001:db8::7 2001:db8::1 51234 9092\r\n", "an address is none of its family"),
    (b"PROXY TCP6 192.0.2.7 198.51.100.1 51234 9092\r\n", "an address is none of its family"),
    (b"PROXY TCP6 fe80::1%eth0 fe80::2 51234 9092\r\n", "an address is none of its family"),
    (b"PROXY TCP4 host.example 198.51.100.1 51234 9092\r\n", "an address is none of its family"),
    (b"PROXY TCP4 192.0.2.7 198.51.100.1 65536 9092\r\n", "a port is no number"),
    (b"PROXY TCP4 192.0.2.7 198.51.100.1 051 9092\r\n", "a port is no number"),
    (b"PROXY TCP4 192.0.2.7 198.51.100.1 +1 9092\r\n", "a port is no number"),
    (b"PROXY TCP4 192.0.2.7 198.51.100.1 1_0 9092\r\n", "a port is no number"),
    (b"PROXY TCP4 192.0.2.7 198.51.100.1 51234 \r\n", "a port is no number"),
    (b"PROXY ".ljust(LONGEST_V1, b"x") + b"\r\n", "its line has no end"),
    (v2(INET, command=0x11), "version 1 is unknown"),
    (v2(INET, command=0x22), "command 2 is unknown"),
    (v2(INET, family=0x41), "address family 4 with transport 1 is unknown"),
    (v2(INET, family=0x13), "address family 1 with transport 3 is unknown"),
    (v2(INET[:-1]), "11 bytes are too few for its addresses"),
    (v2(INET6[:-1], family=0x21), "35 bytes are too few for its addresses"),
    (v2(UNIX[:-1], family=0x31), "215 bytes are too few for its addresses"),
    (v2(INET.ljust(LONGEST_V2, b"\0")), f"{LONGEST_V2 + 16} bytes are more than {LONGEST_V2}"),
]


@pytest.mark.parametrize(("header", "addresses"), GOOD)
@pytest.mark.parametrize("rest", [b"", b"\x16\x03\x01 a handshake of TLS"])
def test_a_header_names_both_ends_and_its_own_size(
    header: bytes, addresses: tuple[tuple[str, int] | None, ...], rest: bytes
) -> None:
    assert may_be_proxy_header(header + rest)
    assert parse_proxy_header(header + rest) == ProxyHeader(len(header), *addresses)


@pytest.mark.parametrize("header", [header for header, _ in GOOD])
def test_a_header_that_comes_byte_by_byte_is_waited_for(header: bytes) -> None:
    for size in range(len(header)):
        assert may_be_proxy_header(header[:size])
        assert parse_proxy_header(header[:size]) is None


@pytest.mark.parametrize(("header", "reason"), BAD)
def test_a_header_that_is_none_says_why(header: bytes, reason: str) -> None:
    assert may_be_proxy_header(header)
    with pytest.raises(MalformedProxyHeader, match=reason):
        parse_proxy_header(header)


def test_a_header_that_is_too_long_is_refused_before_it_is_there() -> None:
    with pytest.raises(MalformedProxyHeader, match="more than"):
        parse_proxy_header(v2(INET.ljust(LONGEST_V2, b"\0"))[:16])


@pytest.mark.parametrize(
    "first", [b"\x00\x00\x00\x2a\x00\x12", b"\x16\x03\x01", b"GET /", b"PROXY\t", b"\r\n\r\n\x00\r\nQUIT\r", b"proxy "]
)
def test_what_begins_otherwise_is_no_header(first: bytes) -> None:
    assert not may_be_proxy_header(first)


@given(
    st.sampled_from([header for header, _ in GOOD + BAD]) | st.just(b""), st.binary(max_size=300), st.integers(0, 300)
)
def test_any_bytes_are_a_header_or_wait_or_are_refused(header: bytes, more: bytes, cut: int) -> None:
    received = (header + more)[:cut]
    if not may_be_proxy_header(received):
        return
    try:
        found = parse_proxy_header(received)
    except MalformedProxyHeader:
        return
    if found is None:
        assert len(received) < LONGEST_V2
        return
    assert 0 < found.size <= min(len(received), LONGEST_V2)
    for each in (found.source, found.destination):
        assert each is None or (str(ip_address(each[0])) == each[0] and 0 <= each[1] <= 65535)


hosts = st.ip_addresses()
ports = st.integers(0, 65535)


@given(hosts, ports, hosts, ports)
def test_what_is_written_is_read_again(
    source: IPv4Address | IPv6Address, port: int, destination: IPv4Address | IPv6Address, own_port: int
) -> None:
    written = proxy_header((str(source), port), (str(destination), own_port))
    found = parse_proxy_header(written)
    assert found is not None
    assert found.size == len(written)
    for sent, read in (((source, port), found.source), ((destination, own_port), found.destination)):
        assert read is not None
        assert (_unmapped(ip_address(read[0])), read[1]) == (_unmapped(sent[0]), sent[1])


def test_a_client_of_ipv4_at_a_socket_for_ipv6_is_written_as_one_of_ipv4() -> None:
    assert proxy_header(("::ffff:192.0.2.7", 51234), ("::ffff:198.51.100.1", 9092)) == v2(INET)


def test_a_connection_of_the_proxys_own_is_local() -> None:
    assert proxy_header(None, FRONT) == v2(b"", command=0x20, family=0x00)


def _unmapped(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    return getattr(address, "ipv4_mapped", None) or address
