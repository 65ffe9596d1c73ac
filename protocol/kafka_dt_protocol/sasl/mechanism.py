"""The one shape of every server side SASL mechanism: what goes in, and what can come out.

A mechanism is a machine without I/O, clock or randomness. Its driver passes each message of the client to `step` and
does what the outcome says:

    Challenge          send `message`, pass the next message of the client to `step`
    CredentialRequest  find the credential of `name` (this may take a while), pass it to `resume`
    VerdictRequest     judge `bearer_token` (this may take a while), pass the verdict to `resume`
    Success            send `message`, if there is one; the client is `identity`
    Failure            send nothing of the mechanism; tell the client `message`, the log `detail`

Bytes of a client never make a machine raise: whatever it sends is one of these outcomes. `LocalProtocolError` is
raised when the driver calls what is not due, for instance after Success or Failure. A machine serves one login.

Source: RFC 4422 section 3; javax.security.sasl.SaslServer, as org.apache.kafka.common.security.scram drives it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from types import MappingProxyType
from typing import Final, Protocol, TypeAlias, TypeVar

Credential_contra = TypeVar("Credential_contra", contravariant=True)

NO_EXTENSIONS: Mapping[str, str] = MappingProxyType({})
"""The SASL extensions of a client that sent none."""


@dataclass(slots=True, init=False, unsafe_hash=True)
class Challenge:
    """The login goes on: the client has to answer this message."""

    message: Final[bytes]
    """The mechanism's next message to the client."""

    def __init__(self, message: bytes) -> None:
        self.message = message


@dataclass(slots=True, init=False, unsafe_hash=True)
class CredentialRequest:
    """The driver has to find a credential and pass it to `resume`."""

    name: Final[str]
    """The authentication id: a user name or a token id. Up to 16 KiB, perhaps with control characters."""
    token: Final[bool]
    """True if the client asked for a login by delegation token (`tokenauth=true`)."""
    extensions: Final[Mapping[str, str]]
    """All SASL extensions as sent, `tokenauth` included."""

    def __init__(self, name: str, token: bool = False, extensions: Mapping[str, str] = NO_EXTENSIONS) -> None:
        self.name = name
        self.token = token
        self.extensions = extensions


@dataclass(frozen=True, slots=True)
class VerdictRequest:
    """The driver has to judge a bearer token and pass its verdict to `resume`."""

    bearer_token: str = field(repr=False)
    """The token as the client sent it; a holder of the token can log in, so it is a secret."""


@dataclass(slots=True, init=False, unsafe_hash=True)
class Success:
    """The client has proved that it is `identity`."""

    message: Final[bytes | None]
    """The mechanism's last message to the client, may be empty; None if it has none, as GSSAPI, whose client has the
    last word. (SaslAuthenticate is answered all the same; for bare tokens it makes a difference.)"""
    identity: Final[str]
    """The authentication id: a user name or a token id. The principal is the driver's decision."""
    extensions: Final[Mapping[str, str]]
    """The SASL extensions that the client sent, such as `tokenauth`; the client's proof covers them."""
    proved: Final[int]
    """Which of several passwords the client has, as the driver supplied them; 0 is the first."""

    def __init__(
        self, message: bytes | None, identity: str, extensions: Mapping[str, str] = NO_EXTENSIONS, proved: int = 0
    ) -> None:
        self.message = message
        self.identity = identity
        self.extensions = extensions
        self.proved = proved


class Fault(Enum):
    """What was wrong with a login."""

    PROOF = auto()
    """The client's proof is wrong."""
    GRAMMAR = auto()
    """The client's message is not one that was due."""
    IDENTITY = auto()
    """The authorization id is not the identity that the client has proved."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The login has failed and the machine has ended."""

    detail: str
    """Why, for our log: one line without any secret and without the client's text."""
    message: str | None = None
    """The words for the client; None stands for the mechanism's generic words, which tell a guesser nothing."""
    fault: Fault = Fault.PROOF
    """For those who count; no client is told."""


StepResult: TypeAlias = Challenge | CredentialRequest | VerdictRequest | Success | Failure


class ServerMechanism(Protocol[Credential_contra]):
    """The server side of one login by one SASL mechanism."""

    def step(self, response: bytes) -> StepResult:
        """Take the client's next message as it came, without framing.

        Raises:
            LocalProtocolError: no message is due (a credential or a verdict is, or the machine has ended)
        """
        ...

    def resume(self, credential: Credential_contra) -> StepResult:
        """Take the credential or the verdict that the last outcome asked for.

        Raises:
            LocalProtocolError: nothing was asked for
        """
        ...
