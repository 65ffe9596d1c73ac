"""The server side of SASL GSSAPI, that is Kerberos, with the security layer "none"; and a client's choice of it.

    server = GssapiServer(context)
    server.step(context token)    -> Challenge(context token)      until the context is established
    server.step(b"")              -> Challenge(what is offered)    straight after the client's last token if there is
                                                                   nothing to answer it with
    server.step(client's choice)  -> Success(None, "alice@EXAMPLE.COM")

The `GssContext` does the Kerberos. It may block (it reads a keytab and writes a replay cache), so the driver calls
`step` where that does no harm. As in a broker the authorization id is not looked at: kafka-python and aiokafka send the
service's name in its place.

Source: RFC 4752 section 3.2; com.sun.security.sasl.gsskerb.GssKrb5Server;
org.apache.kafka.common.security.authenticator.SaslServerCallbackHandler.
"""

from enum import Enum, auto
from typing import Final, NoReturn, Protocol

from kafka_dt_protocol.errors import LocalProtocolError
from kafka_dt_protocol.sasl.errors import GssRefused
from kafka_dt_protocol.sasl.mechanism import Challenge, Failure, Fault, StepResult, Success

GSSAPI: Final = "GSSAPI"
"""The name of the mechanism in SaslHandshake."""

_NO_SECURITY_LAYER: Final = 1
_OFFER: Final = bytes((_NO_SECURITY_LAYER, 0, 0, 0))
"""The layers that we have (a bit each), and 0 for the longest wrapped message, since nothing will be wrapped."""


class GssContext(Protocol):
    """One security context, on the side that accepts it. Each call may block, and raise GssRefused."""

    @property
    def established(self) -> bool:
        """Whether both sides have proved their identities."""
        ...

    @property
    def initiator(self) -> str:
        """The client's Kerberos name, such as `alice@EXAMPLE.COM`; known once the context is established."""
        ...

    def accept(self, token: bytes) -> bytes:
        """Take the client's next context token; gives the one to answer with, empty if there is none."""
        ...

    def wrap(self, message: bytes) -> bytes:
        """Protect a message against changes, without hiding it."""
        ...

    def unwrap(self, message: bytes) -> bytes:
        """Check and unpack a message that the client has wrapped."""
        ...


class _State(Enum):
    ACCEPTING = auto()
    """The context is being established."""
    ANSWERED = auto()
    """It is, and the client has to say nothing to our last token."""
    OFFERED = auto()
    """The client has to choose a security layer."""
    ENDED = auto()


class GssapiServer:
    """The server side of one GSSAPI login, with a new context: a `ServerMechanism` that never asks for a credential."""

    __slots__ = ("_context", "_state")

    def __init__(self, context: GssContext) -> None:
        self._context = context
        self._state = _State.ACCEPTING

    def step(self, response: bytes) -> StepResult:
        """Take the client's next message; may block.

        Raises:
            LocalProtocolError: the machine has ended
        """
        state, self._state = self._state, _State.ENDED
        try:
            match state:
                case _State.ACCEPTING:
                    return self._accept(response)
                case _State.ANSWERED:
                    return _malformed("a message where none was due") if response else self._offer()
                case _State.OFFERED:
                    return self._take_choice(response)
                case _State.ENDED:
                    raise LocalProtocolError("GSSAPI expects no message of the client now")
        except GssRefused as error:
            return Failure(str(error))

    def resume(self, credential: object) -> NoReturn:  # noqa: ARG002 - of every ServerMechanism
        """Raise LocalProtocolError: GSSAPI asks for nothing."""
        raise LocalProtocolError("GSSAPI has not asked for a credential")

    def _accept(self, token: bytes) -> StepResult:
        answer = self._context.accept(token)
        if not self._context.established:
            self._state = _State.ACCEPTING
        elif answer:
            self._state = _State.ANSWERED
        else:
            return self._offer()
        return Challenge(answer)

    def _offer(self) -> StepResult:
        self._state = _State.OFFERED
        return Challenge(self._context.wrap(_OFFER))

    def _take_choice(self, response: bytes) -> StepResult:
        choice = self._context.unwrap(response)
        # One byte for the layer and three for a size; the authorization id is what follows.
        if len(choice) < len(_OFFER):
            return _malformed("the client's choice of a security layer is too short")
        if choice[0] != _NO_SECURITY_LAYER:
            return _malformed("the client chose a security layer that was not offered")
        return Success(None, self._context.initiator)


def choose_no_layer(offer: bytes) -> bytes:
    """Return a client's answer to the layers that a server offers, both unwrapped: no security layer.

    Raises:
        GssRefused: the server offers other layers alone
    """
    if len(offer) != len(_OFFER) or not offer[0] & _NO_SECURITY_LAYER:
        raise GssRefused("the server wants a security layer, which Kafka's protocol has not")
    return _OFFER


def _malformed(detail: str) -> Failure:
    return Failure(detail, fault=Fault.GRAMMAR)
