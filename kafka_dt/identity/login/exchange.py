"""One login by one SASL mechanism: the shape that every mechanism has for `Login`.

`Login` passes each message of the client to `Exchange.evaluate`. The exchange drives its machine of
`kafka_dt_protocol.sasl` and finds what the machine asks for. `Login` reads the three attributes when the exchange ends.

Source: RFC 4422 section 3; KIP-48.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Coroutine
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final

from kafka_dt.identity.login.tokens import LoginTokens
from kafka_dt.tokens import DelegationToken, Principal, has_token_id_form
from kafka_dt_protocol.sasl import StepResult


@dataclass(slots=True, unsafe_hash=True)
class Account:
    """The principal and the token that a name stands for."""

    principal: Final[Principal | None]
    """The principal that a correct proof leads to; None for an unknown name, for which there is no correct proof."""
    token: Final[DelegationToken | None] = None
    """The token of a login by token, with the HMACs that its credential is made of, in the same order."""
    ends_timestamp_ms: Final[int | None] = None
    """When a login without one of our tokens has to end, milliseconds since the epoch; None for no end."""


class Exchange(ABC):
    """One login by one mechanism, from its first message to its end."""

    name: str = ""
    """The user name or token id that the client has sent; empty as long as it has sent none."""
    account: Account | None = None
    """What the name stands for; there is one at the latest when `evaluate` gives Success."""
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

    def is_unknown(self) -> bool:
        """Say whether neither a user nor a live token has the name."""
        return self.account is not None and self.account.principal is None

    def is_undecided(self) -> bool:
        """Say whether a wrong proof may be due to a token that the store has and this node does not know."""
        return False

    def is_by_token(self) -> bool:
        """Say whether the name is meant to be a token id."""
        return False


class Claim(Enum):
    """What the client says its user name is."""

    TOKEN = auto()
    """A token id: SCRAM's `tokenauth=true`, or a mechanism that takes nothing else."""
    USER = auto()
    """A user: `tokenauth` with another value."""
    UNSAID = auto()
    """It did not send `tokenauth`, where it could have."""


class TokenExchange(Exchange):
    """A login by a mechanism that takes tokens."""

    _tokens: LoginTokens
    _claim: Claim = Claim.USER
    _may_be_token: bool = False
    """Whether the name can be a token's, as far as the name and the claim tell."""
    _store_was_there: bool = True
    """Whether the store of tokens could be asked when the client gave its name."""

    def is_undecided(self) -> bool:
        """Say whether the store may have a token of that name, and could not be asked all the time."""
        return self._may_be_token and not (self._store_was_there and self._tokens.can_ask(self.name))

    def is_by_token(self) -> bool:
        """Say whether the client calls the name a token id, or the name looks like one and is no user's."""
        if self._claim is Claim.UNSAID:
            account = self.account
            if account is None or account.principal is None:
                return has_token_id_form(self.name)
            return account.token is not None
        return self._claim is Claim.TOKEN
