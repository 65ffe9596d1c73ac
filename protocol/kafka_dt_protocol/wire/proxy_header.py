"""The PROXY protocol, versions 1 and 2: a load balancer says in front of a connection whose connection it is.

    if not may_be_proxy_header(received): ...          # the first byte that does not fit decides
    header = parse_proxy_header(received)              # None: more has to come
    rest = received[header.size:]

Versions are told apart by their first bytes, which begin no Kafka request and no TLS handshake. What follows the
addresses in version 2 (TLVs) is skipped.

Limits: only addresses of TCP count. For others (UNKNOWN, UNSPEC, Unix sockets, datagrams) the connection keeps its own,
as the specification wants. The checksum TLV is not checked: TCP has one.

Source: The PROXY protocol, versions 1 & 2 (https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt), 2.1 and 2.2.
"""

import struct
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from kafka_dt_protocol.errors import MalformedProxyHeader

Endpoint = tuple[str, int]
"""An IP address as text and a port."""

V1_START = b"PROXY "
V2_START = b"\r\n\r\n\x00\r\nQUIT\n"
LONGEST_V1 = 107
"""Of a header of version 1, its line end included."""
LONGEST_V2 = 4096
"""Of one of version 2: real ones have a few hundred bytes at most."""

_V2_FIXED = struct.Struct(">12sBBH")
_VERSION_2 = 2
_LOCAL, _PROXY = 0, 1
_STREAM, _DATAGRAM = 1, 2
_INET, _INET6, _UNIX = 1, 2, 3
_ADDRESS_BYTES = {0: 0, _INET: 12, _INET6: 36, _UNIX: 216}
_LARGEST_PORT = 65535
_V1_FIELDS = 6


@dataclass(frozen=True, slots=True)
class ProxyHeader:
    """What a proxy says of a connection."""

    size: int
    """How many bytes the header has."""
    source: Endpoint | None = None
    """Where the client is; None if the proxy speaks for itself, as in a health check, or names no address of TCP."""
    destination: Endpoint | None = None
    """Where the client has connected to; None as `source`."""


def may_be_proxy_header(received: bytes) -> bool:
    """Say whether the first bytes of a connection are a header's, or can become one's."""
    return any(received.startswith(start[: len(received)]) for start in (V1_START, V2_START))


def parse_proxy_header(received: bytes) -> ProxyHeader | None:
    """Read a header; None if it is not complete yet.

    Args:
        received: all bytes of the connection so far, for which `may_be_proxy_header` is true.

    Raises:
        MalformedProxyHeader: it is none, or is longer than any that there is.
    """
    if received.startswith(V2_START[: len(received)]):
        return _parse_v2(received)
    end = received.find(b"\r\n", 0, LONGEST_V1)
    if end >= 0:
        return _parse_v1(received[:end])
    if len(received) >= LONGEST_V1:
        raise MalformedProxyHeader("its line has no end")
    return None


def proxy_header(source: Endpoint | None, destination: Endpoint | None) -> bytes:
    """Write a header of version 2.

    Args:
        source: where the client is; None for a connection of the proxy's own.
        destination: where the client has connected to; None as `source`.
    """
    if source is None or destination is None:
        return _V2_FIXED.pack(V2_START, _VERSION_2 << 4 | _LOCAL, 0, 0)
    addresses = [_address(source[0]), _address(destination[0])]
    family = _INET
    if not all(isinstance(each, IPv4Address) for each in addresses):
        addresses = [each if isinstance(each, IPv6Address) else _mapped(each) for each in addresses]
        family = _INET6
    content = addresses[0].packed + addresses[1].packed + struct.pack(">HH", source[1], destination[1])
    return _V2_FIXED.pack(V2_START, _VERSION_2 << 4 | _PROXY, family << 4 | _STREAM, len(content)) + content


def _parse_v1(line: bytes) -> ProxyHeader:
    size = len(line) + 2
    fields = line.split(b" ")
    if fields[1] == b"UNKNOWN":
        return ProxyHeader(size)
    if len(fields) != _V1_FIELDS or fields[1] not in (b"TCP4", b"TCP6"):
        raise MalformedProxyHeader("its line is not of the form PROXY TCP4|TCP6 source destination port port")
    ipv4 = fields[1] == b"TCP4"
    source = _v1_address(fields[2], ipv4), _v1_port(fields[4])
    return ProxyHeader(size, source, (_v1_address(fields[3], ipv4), _v1_port(fields[5])))


def _v1_address(field: bytes, ipv4: bool) -> str:
    text = field.decode("latin-1")
    try:
        if ipv4:
            return str(IPv4Address(text))
        if "%" not in text:
            return str(IPv6Address(text))
    except AddressValueError:
        pass
    raise MalformedProxyHeader("an address is none of its family")


def _v1_port(field: bytes) -> int:
    # int() would take blanks, signs and underscores.
    if field.isdigit() and str(int(field)).encode() == field and int(field) <= _LARGEST_PORT:
        return int(field)
    raise MalformedProxyHeader("a port is no number from 0 to 65535")


def _parse_v2(received: bytes) -> ProxyHeader | None:
    if len(received) < _V2_FIXED.size:
        return None
    _, version_and_command, family_and_kind, length = _V2_FIXED.unpack_from(received)
    size = _V2_FIXED.size + length
    version, command = version_and_command >> 4, version_and_command & 0xF
    family, kind = family_and_kind >> 4, family_and_kind & 0xF
    if version != _VERSION_2:
        raise MalformedProxyHeader(f"version {version} is unknown")
    if command not in (_LOCAL, _PROXY):
        raise MalformedProxyHeader(f"command {command} is unknown")
    if family not in _ADDRESS_BYTES or kind > _DATAGRAM:
        raise MalformedProxyHeader(f"address family {family} with transport {kind} is unknown")
    if size > LONGEST_V2:
        raise MalformedProxyHeader(f"{size} bytes are more than {LONGEST_V2}")
    if command == _PROXY and length < _ADDRESS_BYTES[family]:
        raise MalformedProxyHeader(f"{length} bytes are too few for its addresses")
    if len(received) < size:
        return None
    if command == _LOCAL or kind != _STREAM or family not in (_INET, _INET6):
        return ProxyHeader(size)
    return _with_addresses(received[_V2_FIXED.size : size], family, size)


def _with_addresses(content: bytes, family: int, size: int) -> ProxyHeader:
    each = 4 if family == _INET else 16
    source_port, destination_port = struct.unpack_from(">HH", content, 2 * each)
    source, destination = (_text(content[start : start + each]) for start in (0, each))
    return ProxyHeader(size, (source, source_port), (destination, destination_port))


def _text(packed: bytes) -> str:
    return str(IPv4Address(packed) if len(packed) == 4 else IPv6Address(packed))  # noqa: PLR2004 - of RFC 791


def _address(host: str) -> IPv4Address | IPv6Address:
    """Read an address as sockets give it; an IPv4 one of a socket for IPv6 is the IPv4 one that it is."""
    if ":" not in host:
        return IPv4Address(host)
    address = IPv6Address(host)
    return address.ipv4_mapped or address


def _mapped(address: IPv4Address) -> IPv6Address:
    """Write an IPv4 address as one of IPv6 (RFC 4291, 2.5.5.2)."""
    return IPv6Address(b"\0" * 10 + b"\xff\xff" + address.packed)
