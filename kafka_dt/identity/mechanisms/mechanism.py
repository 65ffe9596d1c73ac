"""What a SASL mechanism declares about itself, and the steps from its row in the table to a login.

listeners(settings, MECHANISMS)                     # `Mechanism.settings` checks and reads each listener's keys
open_mechanisms(listener, MECHANISMS, resources)    # `Mechanism.open` makes what the node keeps while it runs
Login(offers, subjects, now_ms)                     # `OpenMechanism.begin` makes the exchange of one login
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from kafka_dt.config import Listener, MechanismKeys
from kafka_dt.identity.credentials.scram import ScramSubjects
from kafka_dt.identity.login.exchange import Exchange
from kafka_dt.identity.login.tokens import LoginTokens

SettingsT = TypeVar("SettingsT")


@dataclass(frozen=True, slots=True)
class Subjects:
    """What exchanges find credentials in."""

    tokens: LoginTokens
    scram: ScramSubjects


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
    """Neither start nor close anything."""


@dataclass(frozen=True, slots=True)
class OpenMechanism:
    """A mechanism on one listener of a running node."""

    begin: Callable[[Subjects], Exchange]
    """Begins one login."""
    start: Callable[[], Awaitable[None]] = _nothing
    """Called once before the listener opens; raises ConfigError if a setting turns out to be of no use."""
    close: Callable[[], Awaitable[None]] = _nothing
    """Called once when the node stops."""


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
    """Whether a delegation token can log in by it."""
    login_module: str
    """The login module that its JAAS line must name."""
    settings: Callable[[MechanismKeys], SettingsT]
    """Reads what is set for it on a listener; raises ConfigError."""
    open: Callable[[SettingsT, str, Resources], OpenMechanism]
    """Makes what the node keeps while it runs of the settings, the listener's name and the resources."""
    warning: str = ""
    """What the log says at the start about a listener that offers it; empty for nothing."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A mechanism that a listener offers, as its logins need it."""

    mechanism: Mechanism[Any]
    opened: OpenMechanism
    max_reauth_ms: int = 0
    """`connections.max.reauth.ms` for this mechanism; 0 is no limit."""


def open_mechanisms(
    listener: Listener, mechanisms: Mapping[str, Mechanism[Any]], resources: Resources
) -> Mapping[str, Offer]:
    """Open the mechanisms that a listener offers.

    Args:
        listener: with its settings, as `listeners` made it of the same table.
        mechanisms: the table.
        resources: what they may use.

    Returns:
        An offer for each name, in the listener's order.

    Raises:
        ConfigError: a setting turns out to be of no use, such as a keytab without our key.
    """
    offers = {}
    for name, offered in listener.mechanisms.items():
        opened = mechanisms[name].open(offered.settings, listener.name, resources)
        offers[name] = Offer(mechanisms[name], opened, offered.max_reauth_ms)
    return offers
