r"""Both sides of DIGEST-MD5, which the first draft of KIP-48 meant for tokens; historic by RFC 6331.

    server = DigestServer(nonce)
    server.step(b"")               -> Challenge(digest-challenge)
    server.step(digest_response)   -> CredentialRequest(name, token=True)   or Failure
    server.resume(passwords)       -> Success(b"rspauth=...", name)         or Failure

The messages, which consist of directives (`1#( name "=" (token | quoted-string) )`):

    digest-challenge   realm="kafka",nonce="...",qop="auth",charset=utf-8,algorithm=md5-sess
    digest-response    username="...",realm="kafka",nonce="...",nc=00000001,cnonce="...",digest-uri="kafka/host",
                       response=<32 hex digits>[,qop=auth][,charset=utf-8][,authzid="..."][,...]
    response-auth      rspauth=<32 hex digits>

    client = DigestClient(username, password, cnonce, host)
    client.respond(challenge)      -> digest-response, to be sent
    client.verify(response_auth)

The driver supplies passwords for every name: for one that it does not know a decoy that no client can have. So known
and unknown names take one path and fail at its end with the same words. Several passwords are for a token whose secret
key is one of several.

Only quality of protection `auth` and initial authentication (not section 2.2). The realm is one for all nodes, since a
token is good at all of them. Of `digest-uri` the service is checked and the host is not: a node does not know all names
that lead to it, and the other servers that know our tokens are our own nodes.

White space may stand around every part of a directive and may be folded (CR LF and a blank), elements of the list may
be empty, names are read in any case, and any value may be quoted. Every repetition in the patterns is possessive, so
the time is linear in the message.

Source: RFC 2831; RFC 2616 section 2.1 for `#rule` and implied LWS; RFC 6331; KIP-48, first draft;
com.sun.security.sasl.digest.DigestMD5Server.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from kafka_dt_protocol.errors import LocalProtocolError
from kafka_dt_protocol.sasl.errors import MalformedDigestMessage
from kafka_dt_protocol.sasl.mechanism import Challenge, CredentialRequest, Failure, Fault, StepResult, Success
from kafka_dt_protocol.sasl.scram_messages import is_nonce
from kafka_dt_protocol.sasl.text import encode_text

DIGEST_MD5: Final = "DIGEST-MD5"
"""The name of the mechanism in SaslHandshake."""

_KAFKA: Final = "kafka"
"""The realm of the tokens, and the service that Kafka's Java clients name."""
# More than the letters, digits, `-` and `.` of the RFC: addresses of IPv6 and names of containers are hosts as well.
_DIGEST_URI: Final = re.compile(rb"(?P<service>[A-Za-z]+)/[-.\w:%\[\]]+(?:/[-.\w]+)?", re.ASCII)

MAX_MESSAGE_BYTES: Final = 4095
"""A digest-response has less than 4096 bytes; real ones have 250 to 400."""
NONCE_COUNT: Final = b"00000001"
"""The only one there is without subsequent authentication."""
QOP: Final = b"auth"
"""Authentication alone: what follows is neither signed nor encrypted."""

_CHALLENGE: Final = "digest-challenge"
_RESPONSE: Final = "digest-response"
_RESPONSE_AUTH: Final = "response-auth"
_UTF_8: Final = b"utf-8"
_REQUIRED: Final = (b"username", b"realm", b"nonce", b"nc", b"cnonce", b"digest-uri", b"response")
_KNOWN: Final = frozenset({*_REQUIRED, b"qop", b"charset", b"authzid", b"maxbuf", b"cipher"})
_HEX: Final = re.compile(rb"[0-9a-f]{32}")

_LWS: Final = rb"(?:\r\n[ \t]|[ \t])*+"
_TOKEN: Final = rb"[!#$%&'*+\-.0-9A-Z^_`a-z|~]++"
# TEXT is any octet but the control characters; white space is part of it, folded or not.
_QUOTED: Final = rb'"(?P<text>(?:[^"\\\x00-\x1F\x7F]|\t|\r\n[ \t]|\\[\x00-\x7F])*+)"'
_DIRECTIVE: Final = re.compile(
    rb"(?P<name>" + _TOKEN + rb")" + _LWS + rb"=" + _LWS + rb"(?:(?P<token>" + _TOKEN + rb")|" + _QUOTED + rb")" + _LWS
)
_GAP: Final = re.compile(rb"(?:,|\r\n[ \t]|[ \t])*+")
_FOLD: Final = re.compile(rb"\r\n[ \t]++")
_ESCAPE: Final = re.compile(rb"\\(.)", re.DOTALL)


class _State(Enum):
    NEW = auto()
    CHALLENGED = auto()
    ENDED = auto()


class DigestServer:
    """The server side of one DIGEST-MD5 login: a `ServerMechanism[Sequence[str]]`.

    Args:
        nonce: fresh and random: printable ASCII without blank and comma
        realm: whose users the names are
        service: what `digest-uri` has to begin with

    Raises:
        LocalProtocolError: the nonce has other characters
    """

    __slots__ = ("_nonce", "_realm", "_service", "_state")

    def __init__(self, nonce: str, *, realm: str = _KAFKA, service: str = _KAFKA) -> None:
        if not is_nonce(nonce):
            raise LocalProtocolError("a nonce is printable ASCII without blank and comma")
        self._nonce = nonce
        self._realm = realm
        self._service = service
        self._state: _State | DigestResponse = _State.NEW

    def step(self, response: bytes) -> StepResult:
        """Take the client's empty first message, or its digest-response.

        Raises:
            LocalProtocolError: a credential is due, or the machine has ended
        """
        state = self._state
        if state is _State.NEW:
            return self._challenge(response)
        if state is not _State.CHALLENGED:
            raise LocalProtocolError("DIGEST-MD5 expects no message of the client now")
        self._state = _State.ENDED
        try:
            message = parse_response(response)
        except MalformedDigestMessage as error:
            return Failure(str(error), fault=Fault.GRAMMAR)
        if wrong := self._wrong(message):
            return Failure(f"digest-response: {wrong}", fault=Fault.GRAMMAR)
        self._state = message
        return CredentialRequest(message.username, token=True)

    def resume(self, credential: Sequence[str]) -> StepResult:
        """Take the passwords of the name, or a decoy, and compare what each makes with the client's response.

        Raises:
            LocalProtocolError: no credential was asked for
        """
        message = self._state
        if not isinstance(message, DigestResponse):
            raise LocalProtocolError("DIGEST-MD5 has not asked for a credential")
        self._state = _State.ENDED
        for number, password in enumerate(credential):
            if hmac.compare_digest(message.expected_response(password), message.response):
                return Success(b"rspauth=" + message.rspauth(password), message.username, proved=number)
        return Failure("digest-response: response is wrong")

    def _challenge(self, response: bytes) -> StepResult:
        if response:
            self._state = _State.ENDED
            detail = "a message before the challenge; there is no subsequent authentication"
            return Failure(detail, fault=Fault.GRAMMAR)
        self._state = _State.CHALLENGED
        return Challenge(digest_challenge(self._realm, self._nonce))

    def _wrong(self, message: DigestResponse) -> str | None:
        """Say which value is not one of this exchange; of a mere word the letter case does not matter."""
        uri = _DIGEST_URI.fullmatch(message.digest_uri)
        right = {
            "nonce": message.nonce == self._nonce.encode("ascii"),
            "nc": message.nonce_count == NONCE_COUNT,
            "realm": message.realm == self._realm.encode("ascii"),
            "qop": message.qop.lower() == QOP,
            "digest-uri": uri is not None and uri["service"].lower() == self._service.encode("ascii"),
            "cnonce": message.cnonce != b"",
            "authzid": message.authorization_id in (None, message.username.encode()),
        }
        return next((f"{name} is not one of this exchange" for name, is_right in right.items() if not is_right), None)


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
    """In UTF-8; None if the client does not send one."""
    response: bytes = field(repr=False)
    """The proof, 32 hex digits."""

    def expected_response(self, password: str) -> bytes:
        """Give what `response` is if the client knows the password."""
        return self._response_value(password, b"AUTHENTICATE")

    def rspauth(self, password: str) -> bytes:
        """Give the proof of the server."""
        return self._response_value(password, b"")

    def _response_value(self, password: str, method: bytes) -> bytes:
        """Hash what section 2.1.2.1 calls A1 (the credential) and A2 (the service)."""
        secret = _md5(_octets(self.username), self.realm, _octets(password))
        authorization_id = () if self.authorization_id is None else (self.authorization_id,)
        who = _hex(secret, self.nonce, self.cnonce, *authorization_id)
        what_for = _hex(method, self.digest_uri)
        return _hex(who, self.nonce, self.nonce_count, self.cnonce, self.qop, what_for)


class DigestClient:
    """The client side of one DIGEST-MD5 login; its first message is empty.

    Args:
        username: a user name, or the id of a token
        password: of the user, or the HMAC of the token in base64
        cnonce: fresh and random: printable ASCII without blank and comma
        host: the server's name

    Raises:
        LocalProtocolError: the nonce has other characters
    """

    __slots__ = ("_cnonce", "_password", "_response", "_uri", "_username")

    def __init__(self, username: str, password: str, cnonce: str, host: str) -> None:
        if not is_nonce(cnonce):
            raise LocalProtocolError("a nonce is printable ASCII without blank and comma")
        self._username = username
        self._password = password
        self._cnonce = cnonce.encode("ascii")
        self._uri = f"{_KAFKA}/{host}".encode()
        self._response: DigestResponse | None = None

    def respond(self, challenge: bytes) -> bytes:
        """Return the digest-response to a digest-challenge.

        Raises:
            MalformedDigestMessage: it does not follow the grammar, or offers nothing that is known here
        """
        directives = parse_directives(_CHALLENGE, challenge, (b"nonce", b"charset", b"algorithm"))
        if b"nonce" not in directives:
            raise MalformedDigestMessage(_CHALLENGE, "no nonce")
        if QOP not in directives.get(b"qop", QOP).replace(b" ", b"").split(b","):
            raise MalformedDigestMessage(_CHALLENGE, "qop has no auth")
        realm, nonce = directives.get(b"realm", b""), directives[b"nonce"]
        made = DigestResponse(
            username=self._username,
            realm=realm,
            nonce=nonce,
            nonce_count=NONCE_COUNT,
            cnonce=self._cnonce,
            qop=QOP,
            digest_uri=self._uri,
            authorization_id=None,
            response=b"",
        )
        self._response = made
        quotes = {
            b"username": encode_text(self._username),
            b"realm": realm,
            b"nonce": nonce,
            b"cnonce": self._cnonce,
            b"digest-uri": self._uri,
        }
        parts = [b"charset=utf-8", *(name + b"=" + _quoted_bytes(value) for name, value in quotes.items())]
        parts += [b"nc=" + NONCE_COUNT, b"qop=" + QOP, b"response=" + made.expected_response(self._password)]
        return b",".join(parts)

    def verify(self, response_auth: bytes) -> None:
        """Check the server's last message: it knows the password as well.

        Raises:
            MalformedDigestMessage: it does not follow the grammar, or the proof is wrong
            LocalProtocolError: no response was made
        """
        if self._response is None:
            raise LocalProtocolError("DIGEST-MD5 has not answered a challenge")
        proof = parse_directives(_RESPONSE_AUTH, response_auth, (b"rspauth",)).get(b"rspauth", b"")
        if not hmac.compare_digest(proof, self._response.rspauth(self._password)):
            raise MalformedDigestMessage(_RESPONSE_AUTH, "the server does not know the password")


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


def parse_directives(what: str, message: bytes, once: Collection[bytes]) -> Mapping[bytes, bytes]:
    """Parse a message into its directives: names in lower case, values without quotes and escapes.

    Args:
        what: the name of the message, for the error
        message: the message as it came
        once: the names, in lower case, that may not come twice; of others the last one counts

    Raises:
        MalformedDigestMessage: it does not follow the grammar, or a directive comes twice
    """
    directives: dict[bytes, bytes] = {}
    position = _end_of_gap(message, 0)
    while position < len(message):
        found = _DIRECTIVE.match(message, position)
        if found is None:
            raise MalformedDigestMessage(what, "an element is not name=value")
        name = found["name"].lower()
        if name in once and name in directives:
            raise MalformedDigestMessage(what, "a directive comes twice")
        directives[name] = _unquoted(found["text"]) if found["token"] is None else found["token"]
        if message[found.end() : found.end() + 1] not in {b"", b","}:
            raise MalformedDigestMessage(what, "no comma after an element")
        position = _end_of_gap(message, found.end())
    return directives


def quoted(text: str) -> str:
    """Return a text as quoted-string."""
    return _quoted_bytes(text.encode()).decode()


def _quoted_bytes(value: bytes) -> bytes:
    return b'"' + value.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'


def _end_of_gap(message: bytes, position: int) -> int:
    gap = _GAP.match(message, position)
    return gap.end() if gap else position


def _unquoted(text: bytes) -> bytes:
    # A fold never begins with an escaped CR: outside of folds the grammar has no LF.
    return _ESCAPE.sub(rb"\1", _FOLD.sub(b" ", text))
