"""Request bodies byte by byte, for tests that send what no client would: odd lengths, nulls, texts that are no text.

Source: Kafka protocol guide, "Protocol Primitive Types"; CreateDelegationTokenRequest.json and its neighbours.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

Text = str | bytes | None
PrincipalTexts = tuple[Text, Text]

FIRST_FLEXIBLE = 2
"""The first flexible version of the token APIs and of SaslAuthenticate."""
NO_TAGS = b"\0"


def varint(value: int, size: int = 0) -> bytes:
    """An unsigned varint, in at least `size` bytes."""
    groups = [value & 0x7F]
    while value := value >> 7:
        groups.append(value & 0x7F)
    groups += [0] * (size - len(groups))
    return bytes([group | 0x80 for group in groups[:-1]] + groups[-1:])


def text(value: Text, *, flexible: bool) -> bytes:
    """A string; bytes are taken as they are."""
    content = value.encode() if isinstance(value, str) else value
    if flexible:
        return varint(0 if content is None else len(content) + 1) + (content or b"")
    return struct.pack(">h", -1 if content is None else len(content)) + (content or b"")


def blob(content: bytes, *, flexible: bool) -> bytes:
    """Bytes."""
    return (varint(len(content) + 1) if flexible else struct.pack(">i", len(content))) + content


def array(items: Sequence[bytes] | None, *, flexible: bool) -> bytes:
    """An array of items that are encoded already."""
    length = -1 if items is None else len(items)
    return (varint(length + 1) if flexible else struct.pack(">i", length)) + b"".join(items or ())


def principal(value: PrincipalTexts, *, flexible: bool) -> bytes:
    """An owner or renewer."""
    content = b"".join(text(part, flexible=flexible) for part in value)
    return content + NO_TAGS if flexible else content


def create(
    version: int,
    renewers: Sequence[PrincipalTexts] | None = (),
    lifetime_ms: int = -1,
    owner: PrincipalTexts = (None, None),
) -> bytes:
    """The body of a CreateDelegationToken; the owner is sent from version 3 on."""
    flexible = version >= FIRST_FLEXIBLE
    named_owner = b"".join(text(part, flexible=True) for part in owner) if version > FIRST_FLEXIBLE else b""
    items = None if renewers is None else [principal(each, flexible=flexible) for each in renewers]
    content = named_owner + array(items, flexible=flexible) + struct.pack(">q", lifetime_ms)
    return content + NO_TAGS if flexible else content


def change(version: int, hmac: bytes, period_ms: int) -> bytes:
    """The body of a RenewDelegationToken or ExpireDelegationToken."""
    flexible = version >= FIRST_FLEXIBLE
    content = blob(hmac, flexible=flexible) + struct.pack(">q", period_ms)
    return content + NO_TAGS if flexible else content


def describe(version: int, owners: Sequence[PrincipalTexts] | None) -> bytes:
    """The body of a DescribeDelegationToken."""
    flexible = version >= FIRST_FLEXIBLE
    items = None if owners is None else [principal(each, flexible=flexible) for each in owners]
    content = array(items, flexible=flexible)
    return content + NO_TAGS if flexible else content
