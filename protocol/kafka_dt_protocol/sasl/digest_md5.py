"""The server side of DIGEST-MD5, which the first draft of KIP-48 meant for tokens; historic by RFC 6331.

    server = DigestServer(nonce)
    server.step(b"")               -> Challenge(digest-challenge)
    server.step(digest_response)   -> CredentialRequest(name, token=True)   or Failure
    server.resume(passwords)       -> Success(b"rspauth=...", name)         or Failure

The driver supplies passwords for every name: for one that it does not know a decoy that nobody can have. So known and
unknown names take one path and fail at its end with the same words; all that is wrong with a message apart from its
`response` is found before the name is looked up. Several passwords are for a token whose secret key is one of several.

Only quality of protection `auth` and initial authentication: a client that tries to go on with an older nonce
(section 2.2) is refused. The realm is one for all nodes, since a token is good at all of them. Of `digest-uri` the
service is checked and the host is not: the client names the host that it connected to, and nobody here knows all names
that lead to a node, through load balancers, `advertised.listeners` or /etc/hosts. Checking it would keep another server
of the same realm from passing a login on, and the other servers that know our tokens are our own nodes.

Source: RFC 2831; RFC 6331; KIP-48, first draft; com.sun.security.sasl.digest.DigestMD5Server.
"""

import hmac
import re
from collections.abc import Sequence
from enum import Enum, auto
from typing import Final

from kafka_dt_protocol.errors import LocalProtocolError
from kafka_dt_protocol.sasl.digest_md5_messages import (
    NONCE_COUNT,
    QOP,
    DigestResponse,
    digest_challenge,
    parse_response,
)
from kafka_dt_protocol.sasl.errors import MalformedDigestMessage
from kafka_dt_protocol.sasl.mechanism import Challenge, CredentialRequest, Failure, Fault, Outcome, Success
from kafka_dt_protocol.sasl.scram_attributes import is_nonce

DIGEST_MD5: Final = "DIGEST-MD5"
"""The name of the mechanism in SaslHandshake."""

_KAFKA: Final = "kafka"
"""The realm of the tokens, and the service that Kafka's Java clients name."""
# More than the letters, digits, `-` and `.` of the RFC: addresses of IPv6 and names of containers are hosts as well.
_DIGEST_URI: Final = re.compile(rb"(?P<service>[A-Za-z]+)/[-.\w:%\[\]]+(?:/[-.\w]+)?", re.ASCII)


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

    def step(self, response: bytes) -> Outcome:
        """Take the client's empty first message, or its digest-response.

        Args:
            response: the message as it came

        Returns:
            Challenge after the empty one, CredentialRequest after a digest-response, Failure after either

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

    def resume(self, credential: Sequence[str]) -> Outcome:
        """Take the passwords of the name, or a decoy, and compare what they make with the client's response.

        Args:
            credential: each of them logs in

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

    def _challenge(self, response: bytes) -> Outcome:
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
