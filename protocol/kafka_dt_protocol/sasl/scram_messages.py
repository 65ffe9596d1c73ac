"""The four messages of SCRAM: bytes -> values, strictly by the grammar of RFC 5802 as Kafka narrows it.

    client-first   n,[a=authzid],n=name,r=nonce[,extension=value]...
    server-first   r=nonce,s=salt,i=iterations[,extension=value]...
    client-final   c=channel-binding,r=nonce[,extension=value]...,p=proof
    server-final   v=signature[,extension=value]...   or   e=error

Kafka takes names and values in ASCII only, extension names of one or more letters, and no channel binding. Where
its parser is laxer than the RFC the RFC wins: a mandatory extension (`m=`) ends the exchange, base64 has one form
only (so that no bit of a message can change unseen), and no attribute comes twice.

The `parse_` functions of an attribute take the name of the message for the MalformedScramMessage that they raise, which
repeats nothing of the message itself. Each parser works in time linear in the message.

Source: RFC 5802 sections 5.1 and 7; org.apache.kafka.common.security.scram.internals.ScramMessages.
"""

import binascii
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kafka_dt_protocol.sasl.errors import MalformedScramMessage, ServerRejected
from kafka_dt_protocol.sasl.mechanism import NO_EXTENSIONS

MAX_MESSAGE_BYTES = 16_384
"""No message of either side may be longer; real ones have 30 to 200 bytes."""

_LONGEST_COUNT = 10


@dataclass(slots=True, init=False, unsafe_hash=True)
class ClientFirst:
    """The client names its user or its token."""

    gs2_header: Final[str]
    """`n,,` or `n,a=...,` as sent: what `c=` of the client-final has to repeat."""
    authorization_id: Final[str | None]
    """Who the client wants to act as, None if it does not say."""
    name: Final[str]
    """The authentication id, unescaped."""
    nonce: Final[str]
    """The client's part of the nonce."""
    extensions: Final[Mapping[str, str]]
    """In the order of the message."""
    bare: Final[str]
    """The message without the gs2 header, as sent: the first part of the AuthMessage."""

    def __init__(
        self,
        *,
        gs2_header: str,
        authorization_id: str | None,
        name: str,
        nonce: str,
        extensions: Mapping[str, str],
        bare: str,
    ) -> None:
        self.gs2_header = gs2_header
        self.authorization_id = authorization_id
        self.name = name
        self.nonce = nonce
        self.extensions = extensions
        self.bare = bare


@dataclass(frozen=True, slots=True)
class ServerFirst:
    """The server says how to hash the password."""

    nonce: str
    """Both parts of the nonce."""
    salt: bytes
    iterations: int


@dataclass(slots=True, init=False, repr=False, unsafe_hash=True)
class ClientFinal:
    """The client proves that it knows the password."""

    without_proof: Final[str]
    """The message up to the proof, as sent: the last part of the AuthMessage."""
    proof: Final[bytes]

    def __init__(self, without_proof: str, proof: bytes) -> None:
        self.without_proof = without_proof
        self.proof = proof

    def __repr__(self) -> str:
        return f"ClientFinal(without_proof={self.without_proof!r})"


def parse_client_first(message: bytes) -> ClientFirst:
    """Parse a client-first message, or raise MalformedScramMessage."""
    what = "client-first"
    text = decode(what, message)
    flag, *rest = text.split(",")
    if flag != "n":
        raise MalformedScramMessage(what, "no gs2 header without channel binding (n,,)")
    if len(rest) < len(("authzid", "n", "r")):
        raise MalformedScramMessage(what, "an attribute is missing")
    authzid, name, nonce, *extensions = rest
    gs2_header = f"n,{authzid},"
    return ClientFirst(
        gs2_header=gs2_header,
        authorization_id=parse_saslname(what, "a", authzid) if authzid else None,
        name=parse_saslname(what, "n", name),
        nonce=parse_nonce(what, nonce),
        extensions=parse_extensions(what, extensions, "nr"),
        bare=text[len(gs2_header) :],
    )


def parse_server_first(message: bytes) -> ServerFirst:
    """Parse a server-first message, or raise MalformedScramMessage or ServerRejected."""
    what = "server-first"
    _refuse_error(message)
    nonce, *rest = decode(what, message).split(",")
    if len(rest) < len(("s", "i")):
        raise MalformedScramMessage(what, "an attribute is missing")
    salt, iterations, *extensions = rest
    parse_extensions(what, extensions, "rsi")
    return ServerFirst(
        nonce=parse_nonce(what, nonce),
        salt=parse_base64(what, "s", parse_value(what, "s", salt)),
        iterations=parse_count(what, parse_value(what, "i", iterations)),
    )


def client_final_start(gs2_header: str, nonce: str) -> str:
    """Return how every client-final of an exchange begins: channel binding and nonce."""
    return f"c={encode_base64(gs2_header.encode('ascii'))},r={nonce}"


def parse_client_final(message: bytes, *starts: str) -> ClientFinal:
    """Parse a client-final message that begins with one of `starts`, or raise MalformedScramMessage."""
    what = "client-final"
    text = decode(what, message)
    without_proof, _, proof = text.rpartition(",p=")
    if not without_proof:
        raise MalformedScramMessage(what, "no proof at its end")
    # One comparison in constant time for both c= and r=.
    start = next((each for each in starts if hmac.compare_digest(without_proof[: len(each)], each)), None)
    if start is None:
        raise MalformedScramMessage(what, "c= or r= is not that of this exchange")
    if len(without_proof) > len(start):
        after, *extensions = without_proof[len(start) :].split(",")
        if after:
            raise MalformedScramMessage(what, "characters after the nonce")
        parse_extensions(what, extensions, "crp")
    return ClientFinal(without_proof, parse_base64(what, "p", proof))


def parse_server_final(message: bytes) -> bytes:
    """Parse a server-final message into the server's signature, or raise MalformedScramMessage or ServerRejected."""
    what = "server-final"
    _refuse_error(message)
    signature, *extensions = decode(what, message).split(",")
    parse_extensions(what, extensions, "ve")
    return parse_base64(what, "v", parse_value(what, "v", signature))


def _refuse_error(message: bytes) -> None:
    """Raise what a server says in place of its message; RFC 5802 has it in server-final, some send it first."""
    if message.startswith(b"e=") and len(message) <= MAX_MESSAGE_BYTES:
        raise ServerRejected(message[len(b"e=") :].split(b",", 1)[0].decode(errors="replace"))


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
    # The last character of a text may hold bits that decoding ignores; in base64 they are zeros.
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
