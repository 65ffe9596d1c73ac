"""One login by one SASL mechanism: the shape that every mechanism has for `Login`, and what it finds out.

`Login` passes each message of the client to `Exchange.evaluate`. The exchange drives its machine of
`kafka_dt_protocol.sasl`, finds what the machine asks for, and writes down in its attributes which client it talks to.
`Login` reads these attributes when the exchange ends.

Source: RFC 4422 section 3; KIP-48.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Coroutine
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Generic, TypeVar

from kafka_dt.tokens import DelegationToken, Principal
from kafka_dt_protocol.sasl import StepResult

CredentialT = TypeVar("CredentialT")


class Claim(Enum):
    """What the client says its user name is."""

    TOKEN = auto()
    """A token id: SCRAM's `tokenauth=true`, or a mechanism that takes nothing else."""
    USER = auto()
    """A user: `tokenauth` with another value, or a mechanism that takes no tokens."""
    UNSAID = auto()
    """It did not send `tokenauth`, where it could have."""


@dataclass(frozen=True, slots=True)
class Subject(Generic[CredentialT]):
    """The principal that a login is for, and the credential that the client has to prove."""

    credential: CredentialT = field(repr=False)
    """What the machine compares the client's proof with."""
    principal: Principal | None
    """The principal that a correct proof leads to; None with a decoy, for which there is no correct proof."""
    token: DelegationToken | None = None
    """The token of a login by token, with the HMACs that the credential is made of, in the same order."""
    ends_timestamp_ms: int | None = None
    """When a login without one of our tokens has to end, milliseconds since the epoch; None for no end."""


class Exchange(ABC):
    """One login by one mechanism, from its first message to its end."""

    name: str = ""
    """The user name or token id that the client has sent; empty as long as it has sent none."""
    claim: Claim = Claim.USER
    """What the client says the name is."""
    may_be_token: bool = False
    """Whether the name can be a token's, as far as the name and the claim tell."""
    store_was_there: bool = True
    """Whether the store of tokens could be asked when the client gave its name."""
    subject: Subject[Any] | None = None
    """What was found for the name; there is one at the latest when `evaluate` gives Success."""
    foregone: str | None = None
    """Why the login can only fail, for the log, although the client still has a message to send."""

    @abstractmethod
    def evaluate(self, message: bytes) -> StepResult | Coroutine[Any, Any, StepResult]:
        """Take the client's next message.

        Returns:
            Challenge, Success or Failure; or a coroutine that gives one of them when the exchange has to wait. The
            coroutine raises StoreUnavailable or TooMuchWaits if the login cannot be decided now.
        """

    def prepare(self) -> None:  # noqa: B027 - most mechanisms have nothing to prepare
        """Look for what the next message is checked against, now that the challenge is on its way."""

    def abandon(self) -> None:  # noqa: B027 - as above
        """End what `prepare` has begun."""
