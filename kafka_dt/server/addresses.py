"""The address of a client: as Kafka's ACLs have it, and as the log and Metadata show it.

ACLs compare texts, so the text must be the one that a broker would make: Java writes an IPv6 address in eight groups
without leading zeros and without `::`, a link-local one with the number of its interface (`fe80:0:0:0:0:0:0:1%2`), and
an IPv4 address that came in by an IPv6 socket as the IPv4 address it is.

Source: java.net.Inet6Address.getHostAddress, java.net.InetAddress.getByAddress.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, Final

KNOWN_HOSTS: Final = 1024
"""How many hosts are kept in that form: clients come again."""


def client_host(peer: Any) -> str:
    """Give the host of a transport's peer name; empty, which no ACL names, where there is none."""
    if not isinstance(peer, tuple) or not peer:
        return ""
    return _canonical(str(peer[0]), *peer[3:4])


@lru_cache(KNOWN_HOSTS)
def _canonical(host: str, scope: int = 0) -> str:
    try:
        address = ip_address(host)
    except ValueError:
        return ""
    if isinstance(address, IPv4Address):
        return str(address)
    return str(address.ipv4_mapped) if address.ipv4_mapped else _java(address, scope)


def address_text(peer: Any) -> str:
    """Write an address as sockets give it."""
    return f"{as_ipv4(peer[0])}:{peer[1]}" if peer else "an unknown address"


def as_ipv4(host: str) -> str:
    """Undo the mapping by which a socket for IPv6 shows an IPv4 client (RFC 4291, 2.5.5.2)."""
    return host.removeprefix("::ffff:") if host.startswith("::ffff:") and "." in host else host


def _java(address: IPv6Address, scope: int) -> str:
    groups = struct.unpack(">8H", address.packed)
    return ":".join(f"{group:x}" for group in groups) + (f"%{scope}" if scope else "")
