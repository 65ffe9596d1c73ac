"""The attributes that SCRAM messages are made of: `name=value`, read strictly and written.

Each `parse_` function takes the name of the message (`client-first`, ...) for the MalformedScramMessage that it raises,
which repeats nothing of the message itself.

Source: RFC 5802 sections 5.1 and 7.
"""

import binascii
from collections.abc import Mapping, Sequence

from kafka_dt_protocol.sasl.errors import MalformedScramMessage
from kafka_dt_protocol.sasl.mechanism import NO_EXTENSIONS

MAX_MESSAGE_BYTES = 16_384
"""No message of either side may be longer; real ones have 30 to 200 bytes."""

_LONGEST_COUNT = 10


def encode_saslname(name: str) -> str:
    """Return a user name as a message carries it: `=3D` for `=`, `=2C` for `,`."""
    return name.replace("=", "=3D").replace(",", "=2C")


def encode_base64(data: bytes) -> str:
    """Return the base64 text of bytes, padded, without line ends."""
    return binascii.b2a_base64(data, newline=False).decode("ascii")


def is_nonce(text: str) -> bool:
    """Tell whether a text can be a nonce: printable ASCII without blank and comma, not empty (RFC 5802 section 7)."""
    return text.isascii() and text.isprintable() and bool(text) and " " not in text and "," not in text


def decode(what: str, message: bytes) -> str:
    """Return a message as text: ASCII without NUL, not too long, without a line end after it."""
    if len(message) > MAX_MESSAGE_BYTES:
        raise MalformedScramMessage(what, f"longer than {MAX_MESSAGE_BYTES} bytes")
    if not message.isascii() or b"\0" in message:
        raise MalformedScramMessage(what, "a character that is NUL or not ASCII")
    if message.endswith((b"\n", b"\r")):
        # The grammar would take it for a part of the last extension's value.
        raise MalformedScramMessage(what, "a line end after the message")
    return message.decode("ascii")


def parse_value(what: str, name: str, attribute: str) -> str:
    """Return the value of the attribute that has to stand in this place; it may be empty."""
    if not attribute.startswith(f"{name}="):
        if attribute.startswith("m="):
            raise MalformedScramMessage(what, "a mandatory extension (m=), and none is known")
        raise MalformedScramMessage(what, f"no attribute {name}= in its place")
    return attribute[len("x=") :]


def parse_saslname(what: str, name: str, attribute: str) -> str:
    """Return the name in `n=` or `a=`, unescaped."""
    value = parse_value(what, name, attribute)
    if not value:
        raise MalformedScramMessage(what, f"an empty name in {name}=")
    if "=" not in value:
        return value
    if value.count("=") != value.count("=2C") + value.count("=3D"):
        raise MalformedScramMessage(what, f"an unknown escape in {name}=")
    # In this order: `=3D2C` stands for `=2C`, not for a comma.
    return value.replace("=2C", ",").replace("=3D", "=")


def parse_nonce(what: str, attribute: str) -> str:
    """Return the nonce in `r=`."""
    value = parse_value(what, "r", attribute)
    if not is_nonce(value):
        raise MalformedScramMessage(what, "a nonce that is empty or does not print")
    return value


def parse_base64(what: str, name: str, value: str) -> bytes:
    """Return the bytes of a base64 value; `name` is for the error."""
    try:
        data = binascii.a2b_base64(value, strict_mode=True)
    except binascii.Error:
        data = b""
    # The last character of a text may hold bits that nobody decodes; only zeros are base64.
    if not data or encode_base64(data) != value:
        raise MalformedScramMessage(what, f"{name}= is not base64")
    return data


def parse_count(what: str, value: str) -> int:
    """Return the count in `i=`: digits without sign and leading zeros, ten at most."""
    if not value.isdigit() or value.startswith("0") or len(value) > _LONGEST_COUNT:
        raise MalformedScramMessage(what, "i= is not a count")
    return int(value)


def parse_extensions(what: str, attributes: Sequence[str], taken: str) -> Mapping[str, str]:
    """Parse `name=value` attributes; `taken` are the attributes (one letter each) that the message has already."""
    if not attributes:
        return NO_EXTENSIONS
    extensions: dict[str, str] = {}
    seen = set(taken)
    for attribute in attributes:
        name, _, value = attribute.partition("=")
        if not name.isalpha() or not value:
            raise MalformedScramMessage(what, "an extension is not name=value")
        if name == "m":
            raise MalformedScramMessage(what, "a mandatory extension (m=), and none is known")
        if name in seen:
            raise MalformedScramMessage(what, "an attribute comes twice")
        seen.add(name)
        extensions[name] = value
    return extensions
