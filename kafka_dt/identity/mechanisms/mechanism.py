"""The row that declares a SASL mechanism, and the mechanism opened on a listener: see `__init__.py`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

from kafka_dt.config import Listener, MechanismKeys
from kafka_dt.identity.credentials.scram import ScramAccounts
from kafka_dt.identity.login.exchange import Exchange
from kafka_dt.identity.login.tokens import LoginTokens

SettingsT = TypeVar("SettingsT")


@dataclass(frozen=True, slots=True)
class RelayedAnswer:
    """The cluster's answer to a message of a login."""

    message: bytes
    """What the mechanism of the cluster says."""
    refusal: str | None = None
    """The cluster's words for the client, if it has refused the login."""
    ends_timestamp_ms: int | None = None
    """When the cluster ends the session, milliseconds since the epoch; None if it does not."""


class RelayFailed(Exception):
    """The cluster cannot be asked about a login; the text is half a sentence for the log, without secrets."""


class Relay(Protocol):
    """The cluster behind a gateway, for the logins of one connection."""

    async def begin(self, mechanism: str) -> None:
        """Ask the cluster for a login by a mechanism, on the connection upstream that is the client's from then on.

        Raises:
            RelayFailed: the cluster cannot be asked, or does not offer the mechanism.
        """
        ...

    async def pass_on(self, message: bytes) -> RelayedAnswer:
        """Pass on a message of the client.

        Raises:
            RelayFailed: the connection upstream is lost, or the cluster takes too long.
        """
        ...


@dataclass(frozen=True, slots=True)
class Accounts:
    """Where exchanges look for users and tokens of the cluster."""

    tokens: LoginTokens
    scram: ScramAccounts
    relay: Relay | None = None
    """Decides about logins where a gateway relays them."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What a mechanism may use as long as the node runs."""

    threads: Executor
    """For work that blocks."""
    now_ms: Callable[[], int]
    """The clock, milliseconds since the epoch."""
    nonce: Callable[[], str]
    """Makes a fresh and random text: printable ASCII without blank and comma."""


async def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True)
class OpenMechanism:
    """A mechanism on one listener of a running node."""

    begin: Callable[[Accounts], Exchange]
    """Begins one login."""
    start: Callable[[], Awaitable[None]] = _nothing
    """Called once before the listener opens; raises ConfigError if a setting turns out to be of no use."""
    close: Callable[[], Awaitable[None]] = _nothing
    """Called once when the node stops."""
    max_reauth_ms: int = 0
    """`connections.max.reauth.ms` for this mechanism; 0 is no limit."""


def no_settings(keys: MechanismKeys) -> None:
    """Have no settings but the JAAS line that a broker wants for each mechanism, which says nothing more here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mechanism(Generic[SettingsT]):
    """A SASL mechanism: a row of the table."""

    name: str
    """As in SaslHandshake, in `sasl.enabled.mechanisms`, in the log and in audit events."""
    users: str
    """For the manual: which users log in by it, and where they are."""
    takes_tokens: bool
    """For the manual: whether a delegation token can log in by it."""
    login_module: str
    """The login module that its JAAS line must name."""
    settings: Callable[[MechanismKeys], SettingsT]
    """Reads what is set for it on a listener; raises ConfigError."""
    open: Callable[[SettingsT, str, Resources], OpenMechanism]
    """Opens it on a listener with these settings and this name."""
    warning: str = ""
    """What the log says at the start about a listener that offers it; empty for nothing."""


def open_mechanisms(
    listener: Listener, mechanisms: Mapping[str, Mechanism[Any]], resources: Resources
) -> Mapping[str, OpenMechanism]:
    """Open the mechanisms that a listener offers; `mechanisms` is the table with which `listeners` made it.

    Raises:
        ConfigError: a setting turns out to be of no use, such as a keytab without our key.
    """
    opened = {}
    for name, offered in listener.mechanisms.items():
        one = mechanisms[name].open(offered.settings, listener.name, resources)
        opened[name] = replace(one, max_reauth_ms=offered.max_reauth_ms)
    return opened
