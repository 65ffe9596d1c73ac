"""The messages of DIGEST-MD5 (initial authentication, quality of protection `auth`) and what is hashed of them.

    digest-challenge   realm="kafka",nonce="...",qop="auth",charset=utf-8,algorithm=md5-sess
    digest-response    username="...",realm="kafka",nonce="...",nc=00000001,cnonce="...",digest-uri="kafka/host",
                       response=<32 hex digits>[,qop=auth][,charset=utf-8][,authzid="..."][,...]
    response-auth      rspauth=<32 hex digits>

The client proves that it knows the password by `response`, the server by `rspauth`. Both are made of the values as they
were sent, so a `DigestResponse` keeps those as bytes.

Source: RFC 2831 sections 2.1.1 to 2.1.3.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kafka_dt_protocol.sasl.digest_md5_directives import parse_directives, quoted
from kafka_dt_protocol.sasl.errors import MalformedDigestMessage

MAX_MESSAGE_BYTES: Final = 4095
"""A digest-response has less than 4096 bytes; real ones have 250 to 400."""
NONCE_COUNT: Final = b"00000001"
"""The only one there is without subsequent authentication."""
QOP: Final = b"auth"
"""Authentication alone: what follows is neither signed nor encrypted."""

_RESPONSE: Final = "digest-response"
_UTF_8: Final = b"utf-8"
_REQUIRED: Final = (b"username", b"realm", b"nonce", b"nc", b"cnonce", b"digest-uri", b"response")
_KNOWN: Final = frozenset({*_REQUIRED, b"qop", b"charset", b"authzid", b"maxbuf", b"cipher"})
_HEX: Final = re.compile(rb"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class DigestResponse:
    """What a client answers to the challenge."""

    username: str
    realm: bytes
    nonce: bytes
    """The server's."""
    nonce_count: bytes
    cnonce: bytes
    """The client's."""
    qop: bytes
    """As sent, in its letter case; `auth` if it was not."""
    digest_uri: bytes
    authorization_id: bytes | None
    """In UTF-8; None if the client does not say whom it wants to act as."""
    response: bytes = field(repr=False)
    """The proof, 32 hex digits."""

    def expected_response(self, password: str) -> bytes:
        """Give what `response` is if the client knows the password."""
        return self._response_value(password, b"AUTHENTICATE")

    def rspauth(self, password: str) -> bytes:
        """Give the proof of the server."""
        return self._response_value(password, b"")

    def _response_value(self, password: str, method: bytes) -> bytes:
        """Hash what section 2.1.2.1 calls A1 (who) and A2 (what for)."""
        secret = _md5(_octets(self.username), self.realm, _octets(password))
        authorization_id = () if self.authorization_id is None else (self.authorization_id,)
        who = _hex(secret, self.nonce, self.cnonce, *authorization_id)
        what_for = _hex(method, self.digest_uri)
        return _hex(who, self.nonce, self.nonce_count, self.cnonce, self.qop, what_for)


def digest_challenge(realm: str, nonce: str) -> bytes:
    """Return the challenge: exactly one realm, because Kafka's Java client has no answer to none or several."""
    text = f"realm={quoted(realm)},nonce={quoted(nonce)},qop={quoted(QOP.decode())},charset=utf-8,algorithm=md5-sess"
    return text.encode("ascii")


def parse_response(message: bytes) -> DigestResponse:
    """Parse a digest-response; what its values should be is for the server to say.

    Raises:
        MalformedDigestMessage: it does not follow the grammar
    """
    if len(message) > MAX_MESSAGE_BYTES:
        raise MalformedDigestMessage(_RESPONSE, "it is too long")
    directives = parse_directives(_RESPONSE, message, _KNOWN)
    for name in _REQUIRED:
        if name not in directives:
            raise MalformedDigestMessage(_RESPONSE, f"no {name.decode()}")
    if not _HEX.fullmatch(directives[b"response"]):
        raise MalformedDigestMessage(_RESPONSE, "response is not 32 hex digits")
    return DigestResponse(
        username=_username(directives),
        realm=directives[b"realm"],
        nonce=directives[b"nonce"],
        nonce_count=directives[b"nc"],
        cnonce=directives[b"cnonce"],
        qop=directives.get(b"qop", QOP),
        digest_uri=directives[b"digest-uri"],
        authorization_id=directives.get(b"authzid"),
        response=directives[b"response"],
    )


def _username(directives: Mapping[bytes, bytes]) -> str:
    """Decode the user name: ISO 8859-1 unless the client says UTF-8, which is all that it may say."""
    charset = directives.get(b"charset")
    if charset is None:
        return directives[b"username"].decode("latin-1")
    if charset.lower() != _UTF_8:
        raise MalformedDigestMessage(_RESPONSE, "charset is not utf-8")
    try:
        return directives[b"username"].decode()
    except UnicodeDecodeError:
        pass  # raised outside: the codec's error holds the name
    raise MalformedDigestMessage(_RESPONSE, "username is not UTF-8")


def _octets(text: str) -> bytes:
    """Encode a name or password for the hash (2.1.2.1): in ISO 8859-1 if that has all its characters, else in UTF-8."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode()


def _hex(*parts: bytes) -> bytes:
    return _md5(*parts).hex().encode("ascii")


def _md5(*parts: bytes) -> bytes:
    # RFC 6331 says what that is worth; the mechanism is made of it.
    return hashlib.md5(b":".join(parts)).digest()  # noqa: S324
