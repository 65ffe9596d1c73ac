"""Logins that are checked against the passwords of a listener's JAAS line (`user_<name>="<password>"`).

Source: org.apache.kafka.common.security.plain.internals.PlainServerCallbackHandler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from kafka_dt.config import MechanismKeys
from kafka_dt.identity.login.exchange import Account, Exchange
from kafka_dt.identity.mechanisms.mechanism import OpenMechanism, Resources
from kafka_dt.tokens import Principal
from kafka_dt_protocol.sasl import CredentialRequest, ServerMechanism, StepResult

NewMachine = Callable[[Resources], ServerMechanism[str | None]]
"""Makes the server's side of one login, which asks for the password of a name; None stands for an unknown name."""


def jaas_users(keys: MechanismKeys) -> Mapping[str, str]:
    """Read the users of a listener: name to password.

    Raises:
        ConfigError: there is no JAAS line.
    """
    module = keys.required_login_module('user_alice="alice\'s password"')
    return MappingProxyType(dict(module.plain_users))


def open_passwords(
    new_machine: NewMachine, users: Mapping[str, str], _listener: str, resources: Resources
) -> OpenMechanism:
    """Check the logins of a mechanism against passwords: `users` is name to password."""
    return OpenMechanism(lambda _: PasswordExchange(new_machine(resources), users))


class PasswordExchange(Exchange):
    """One login by a user name and a password."""

    def __init__(self, machine: ServerMechanism[str | None], users: Mapping[str, str]) -> None:
        self._machine = machine
        self._users = users

    def evaluate(self, message: bytes) -> StepResult:
        """Take the client's next message."""
        outcome = self._machine.step(message)
        if not isinstance(outcome, CredentialRequest):
            return outcome
        self.name = outcome.name
        password = self._users.get(outcome.name)
        principal = Principal.user(outcome.name)  # made for unknown names as well, so that both take as long
        self.account = Account(None if password is None else principal)
        return self._machine.resume(password)
