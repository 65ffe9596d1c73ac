"""Read the keys of one listener, and of one SASL mechanism on it.

`listener.name.<lower-case name>.<key>` overrides a key for one listener, and
`listener.name.<name>.<lower-case mechanism>.<key>` for one SASL mechanism of it, as in Kafka.

Source: org.apache.kafka.common.network.ListenerName, org.apache.kafka.common.security.JaasContext.loadServerContext.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from kafka_dt.config.load import LISTENER_PREFIX
from kafka_dt.config.options.option import ConfigError, Option, Secret, resolve_secret
from kafka_dt.config.settings import Settings, options
from kafka_dt.jaas import JaasError, LoginModule, parse_login_module

JAAS_KEY: Final = "sasl.jaas.config"

_PER_LISTENER: Final[Mapping[str, tuple[str, Option]]] = {
    declared.key: (name, declared) for name, declared in options() if declared.per_listener
}


@dataclass(frozen=True, slots=True)
class ListenerKeys:
    """The keys of one listener; it remembers the overrides that were used."""

    settings: Settings
    listener: str
    """The listener's name."""
    used: set[str]
    """The full keys of the overrides that were asked for."""

    def text(self, key: str) -> tuple[str, str] | None:
        """Return the full key and the text of an override, if there is one."""
        full = self.full(key)
        if full not in self.settings.overrides:
            return None
        self.used.add(full)
        return full, self.settings.overrides[full]

    def value(self, key: str, prefixes: tuple[str, ...] = ("",)) -> Any:
        """Return the value of an option, from the most special key that sets it."""
        name, declared = _PER_LISTENER[key]
        for prefix in prefixes:
            if found := self.text(prefix + key):
                return declared.parse(*found)
        return getattr(self.settings, name)

    def full(self, key: str) -> str:
        """Return the full key of an override."""
        return f"{LISTENER_PREFIX}{self.listener.lower()}.{key}"


class MechanismDeclaration(Protocol):
    """The part of a SASL mechanism that the configuration needs; `kafka_dt.identity.mechanisms` declares them."""

    @property
    def name(self) -> str:
        """Its name in `sasl.enabled.mechanisms`."""

    @property
    def login_module(self) -> str:
        """The login module that its JAAS line must name."""

    @property
    def settings(self) -> Callable[[MechanismKeys], Any]:
        """The function that reads its settings; raises ConfigError."""


@dataclass(frozen=True, slots=True)
class MechanismSettings:
    """The settings of a mechanism that a listener offers."""

    settings: Any = field(default=None, repr=False)
    """The result of the mechanism's own function; it may hold passwords."""
    max_reauth_ms: int = 0
    """`connections.max.reauth.ms` for this mechanism; 0 is never."""


@dataclass(frozen=True, slots=True)
class MechanismKeys:
    """The keys of one mechanism on one listener."""

    keys: ListenerKeys
    declaration: MechanismDeclaration
    login_module: LoginModule | None
    """The module of the JAAS line, None without one. A broker wants a line for each mechanism, also for SCRAM."""

    @property
    def mechanism(self) -> str:
        """The mechanism's name."""
        return self.declaration.name

    @property
    def listener(self) -> str:
        """The listener's name."""
        return self.keys.listener

    @property
    def jaas_key(self) -> str:
        """The key of the JAAS line, for errors."""
        return self.keys.full(f"{self.mechanism.lower()}.{JAAS_KEY}")

    def value(self, key: str) -> Any:
        """Return the value of an option, from the most special key that sets it."""
        return self.keys.value(key, (f"{self.mechanism.lower()}.", ""))

    def text(self, key: str) -> tuple[str, str] | None:
        """Return the full key and the text of a key of this mechanism on this listener, if it is set."""
        return self.keys.text(f"{self.mechanism.lower()}.{key}")

    def required_login_module(self, example: str, besides: str = "") -> LoginModule:
        """Return the module of the JAAS line; raise ConfigError if there is none.

        Args:
            example: the options of a possible line, for the error.
            besides: what else would help, for the error; it follows `is needed for <mechanism>`.
        """
        if self.login_module is None:
            line = f"{self.declaration.login_module} required {example};"
            raise ConfigError(self.jaas_key, f"is needed for {self.mechanism}{besides}; for example: {line}")
        return self.login_module


def offered_mechanisms(
    keys: ListenerKeys, mechanisms: Mapping[str, MechanismDeclaration]
) -> dict[str, MechanismSettings]:
    """Read the mechanisms that a listener offers, in the order of `sasl.enabled.mechanisms`.

    Raises:
        ConfigError: naming the key whose value cannot be used.
    """
    return {name: _offered(keys, mechanisms[name]) for name in _enabled(keys, mechanisms)}


def refuse_leftovers(settings: Settings, names: Collection[str], used: set[str]) -> None:
    """Refuse a `listener.name.` key that ends like one of ours but was not used: a slip of the pen.

    Args:
        settings: of the node.
        names: of its listeners.
        used: the full keys that were asked for.
    """
    for key in settings.overrides:
        if key not in used and key.endswith((JAAS_KEY, *_PER_LISTENER)):
            raise ConfigError(key, f"it sets nothing: {_why_unused(key.removeprefix(LISTENER_PREFIX), names)}")


def _why_unused(rest: str, names: Collection[str]) -> str:
    name = next((name for name in names if rest.startswith(f"{name.lower()}.")), None)
    if name is None:
        return f"there is no listener {rest.partition('.')[0].upper()}"
    mechanism, jaas, _ = rest[len(name) + 1 :].partition(JAAS_KEY)
    if not jaas:
        return f"listener {name} has no use for it by its security protocol and mechanisms"
    if not mechanism:
        return f"write the mechanism before {JAAS_KEY}, such as plain.{JAAS_KEY}"
    return f"listener {name} does not offer {mechanism.rstrip('.').upper()}"


def _enabled(keys: ListenerKeys, mechanisms: Mapping[str, MechanismDeclaration]) -> tuple[str, ...]:
    key = "sasl.enabled.mechanisms"
    known = ", ".join(mechanisms)
    names = keys.value(key)
    if not names:
        raise ConfigError(key, f"listener {keys.listener} needs at least one of {known}")
    for name in names:
        if name not in mechanisms:
            raise ConfigError(key, f"{name!r} on listener {keys.listener} is not one of {known}")
    return tuple(names)


def _offered(keys: ListenerKeys, declaration: MechanismDeclaration) -> MechanismSettings:
    own = MechanismKeys(keys, declaration, _login_module(keys, declaration))
    return MechanismSettings(declaration.settings(own), own.value("connections.max.reauth.ms"))


def _login_module(keys: ListenerKeys, declaration: MechanismDeclaration) -> LoginModule | None:
    found = keys.text(f"{declaration.name.lower()}.{JAAS_KEY}")
    if found is None:
        return None
    full, text = found
    secret: Secret = resolve_secret(full, text)
    try:
        module = parse_login_module(secret.value)
    except JaasError as error:
        raise ConfigError(full, str(error)) from None
    if module.name != declaration.login_module:
        raise ConfigError(full, f"{declaration.name} needs {declaration.login_module}, not {module.name}")
    return module
