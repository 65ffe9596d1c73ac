"""What a SASL peer can do wrong, as exceptions with fields.

    RemoteProtocolError
      SaslError                        the exchange of a mechanism cannot go on
        MalformedDigestMessage         a message of DIGEST-MD5 does not follow the grammar of RFC 2831
        GssRefused                     GSSAPI does not accept a token or a wrapped message
        ScramError                     ... of SCRAM
          MalformedScramMessage        a message does not follow the grammar of RFC 5802
          UnacceptableIterations       the server asks for too little or too much hashing
          ServerNonceMismatch          the server's nonce does not extend ours
          ServerSignatureMismatch      the server does not know the credential
          ServerRejected               the server says why it ends the exchange

The client machine and the parsers raise them, and so does a `gssapi.GssContext`. The server machines do not: a client's
mistake is a value there (`mechanism.Failure`), because every mistake gets the same answer. A machine that is driven in
the wrong order raises `kafka_dt_protocol.errors.LocalProtocolError`.

No text of the peer enters a message unless it went through `printable`, and no secret does at all.

Source: RFC 5802 sections 5.1 and 7.
"""

from kafka_dt_protocol.errors import RemoteProtocolError
from kafka_dt_protocol.sasl.text import printable


class SaslError(RemoteProtocolError):
    """The peer broke the rules of the SASL mechanism; the login has failed."""


class GssRefused(SaslError):
    """GSSAPI does not accept what the client sent; the text is for our log, one line without the client's words."""


class MalformedDigestMessage(SaslError):
    """A message of DIGEST-MD5 does not follow the grammar."""

    def __init__(self, message_name: str, reason: str) -> None:
        super().__init__(f"{message_name}: {reason}")
        self.message_name = message_name
        """`digest-response`."""
        self.reason = reason
        """What is wrong, without any of the peer's text."""


class ScramError(SaslError):
    """The SCRAM exchange has failed."""


class MalformedScramMessage(ScramError):
    """A SCRAM message does not follow the grammar."""

    def __init__(self, message_name: str, reason: str) -> None:
        super().__init__(f"{message_name}: {reason}")
        self.message_name = message_name
        """`client-first`, `server-first`, `client-final` or `server-final`."""
        self.reason = reason
        """What is wrong, without any of the peer's text."""


class UnacceptableIterations(ScramError):
    """The server asks for a number of iterations that is not safe, or not safe to compute."""

    def __init__(self, iterations: int, minimum: int, maximum: int) -> None:
        super().__init__(f"server-first: {iterations} iterations are not within {minimum} to {maximum}")
        self.iterations = iterations
        self.minimum = minimum
        self.maximum = maximum


class ServerNonceMismatch(ScramError):
    """The server's nonce does not start with the client's and go on: perhaps an answer of another exchange."""

    def __init__(self) -> None:
        super().__init__("server-first: the nonce does not extend the client's")


class ServerSignatureMismatch(ScramError):
    """The server did not prove that it knows the credential: it is not to be trusted."""

    def __init__(self) -> None:
        super().__init__("server-final: the server's signature is wrong")


class ServerRejected(ScramError):
    """The server ended the exchange with an `e=` attribute."""

    def __init__(self, error: str) -> None:
        self.error = printable(error)
        """The server's words, such as `invalid-proof`, fit for a log."""
        super().__init__(f"the server refused the login: {self.error}")
