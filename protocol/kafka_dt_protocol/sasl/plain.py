"""SASL PLAIN: the password itself in one message, so only for listeners that are encrypted or trusted.

    PlainServer   step(message) -> CredentialRequest -> resume(password or None) -> Success or Failure
    plain_message the one message of a client

An unknown user takes the path of a wrong password and gets the same words. Text that is not UTF-8 is refused with
those words too; Kafka would put U+FFFD in its place and look that user up.

Source: RFC 4616; org.apache.kafka.common.security.plain.internals.PlainSaslServer.
"""

import hmac

from kafka_dt_protocol.errors import LocalProtocolError
from kafka_dt_protocol.sasl.mechanism import CredentialRequest, Failure, Fault, StepResult, Success
from kafka_dt_protocol.sasl.text import encode_text

PLAIN = "PLAIN"
"""The name of the mechanism in SaslHandshake."""

_TOKENS = 3
_INVALID = "Authentication failed: Invalid username or password"
_MISSING = "Authentication failed: {} not specified"
_OTHER_AUTHORIZATION_ID = "Authentication failed: Client requested an authorization id that is different from username"


class PlainServer:
    """The server side of one PLAIN login: a `ServerMechanism[str | None]`."""

    __slots__ = ("_claim", "_ended")

    def __init__(self) -> None:
        self._claim: tuple[str, str, bytes] | None = None
        self._ended = False

    def step(self, response: bytes) -> StepResult:
        """Take the client's only message: authorization id, NUL, user name, NUL, password.

        Raises:
            LocalProtocolError: the message was already taken
        """
        if self._ended or self._claim is not None:
            raise LocalProtocolError("PLAIN has a single message")
        tokens = response.split(b"\0", _TOKENS)
        if len(tokens) != _TOKENS:
            return self._malformed(f"Invalid SASL/PLAIN response: expected {_TOKENS} tokens, got {len(tokens)}")
        authorization_id, username, password = tokens
        if not username:
            return self._malformed(_MISSING.format("username"))
        if not password:
            return self._malformed(_MISSING.format("password"))
        try:
            self._claim = authorization_id.decode(), username.decode(), password
        except UnicodeDecodeError:
            return self._malformed(_INVALID, "the authorization id or the user name is not UTF-8")
        return CredentialRequest(self._claim[1])

    def resume(self, credential: str | None) -> StepResult:
        """Compare passwords; the credential is None for an unknown user.

        Raises:
            LocalProtocolError: no password was asked for
        """
        if self._claim is None:
            raise LocalProtocolError("PLAIN has not asked for a password")
        authorization_id, username, password = self._claim
        # An unknown user is compared too: the empty password equals none that `step` lets through.
        if not hmac.compare_digest((credential or "").encode(), password):
            return self._fail(Fault.PROOF, _INVALID, "the password is wrong")
        if authorization_id not in ("", username):
            return self._fail(Fault.IDENTITY, _OTHER_AUTHORIZATION_ID)
        self._end()
        return Success(b"", username)

    def _malformed(self, message: str, detail: str | None = None) -> Failure:
        return self._fail(Fault.GRAMMAR, message, detail)

    def _fail(self, fault: Fault, message: str, detail: str | None = None) -> Failure:
        self._end()
        return Failure(detail or message, message, fault)

    def _end(self) -> None:
        # The password is not kept longer than it is needed.
        self._claim = None
        self._ended = True


def plain_message(username: str, password: str, authorization_id: str = "") -> bytes:
    """Return the one message of a PLAIN client.

    Args:
        username: who logs in; neither empty nor with NUL
        password: neither empty nor with NUL
        authorization_id: who to act as; empty means the user, which is all that Kafka allows

    Raises:
        LocalProtocolError: a part cannot be sent
    """
    for what, part in (("user name", username), ("password", password)):
        if not part:
            raise LocalProtocolError(f"PLAIN needs a {what}")
    if any("\0" in part for part in (authorization_id, username, password)):
        raise LocalProtocolError("PLAIN cannot carry a NUL character")
    return b"\0".join(encode_text(part) for part in (authorization_id, username, password))
