"""Read a `server.properties` into `Settings`.

An operator can start kafka-dt on the file of a broker. kafka-dt ignores a broker's key that has no meaning here, and a
key that neither a broker nor kafka-dt knows, and logs the names of both. It warns of a broker's security settings that
it does not support, unless the value is Kafka's default: the operator may rely on their protection. A value that cannot
be used is a `ConfigError` that names the key, before any port opens. `listener.name.<name>.<key>`,
with or without a mechanism before the key, counts as the key.

Source: docs/configuration.md; Java's Properties format; kafka.server.KafkaConfig,
org.apache.kafka.server.config.ZkConfigs, org.apache.kafka.common.config.internals.BrokerSecurityConfigs,
org.apache.kafka.network.SocketServerConfigs, org.apache.kafka.common.config.SslConfigs.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from kafka_dt.config.options.option import ConfigError, Kind, Option
from kafka_dt.config.settings import Settings, options
from kafka_dt.config_providers import PLACES, PROVIDERS, Provided, ProviderError, is_of_providers, with_values
from kafka_dt.properties_file import MALFORMED, parse, read_otherwise_by_kafka

LISTENER_PREFIX: Final = "listener.name."
DEFAULTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "principal.builder.class": "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
        "sasl.server.callback.handler.class": "",
        "security.providers": "",
        "ssl.engine.factory.class": "",
        "ssl.provider": "",
        "ssl.trustmanager.algorithm": "PKIX",
        "zookeeper.ssl.cipher.suites": "",
        "zookeeper.ssl.crl.enable": "false",
        "zookeeper.ssl.enabled.protocols": "",
        "zookeeper.ssl.ocsp.enable": "false",
        "zookeeper.ssl.protocol": "TLSv1.2",
    }
)
"""Security settings of a broker that kafka-dt does not support, and Kafka's default of each; empty for null."""
_READ_FOR_OAUTHBEARER: Final = ".oauthbearer.sasl.server.callback.handler.class"
"""OAUTHBEARER reads this key itself, and refuses a class that kafka-dt cannot stand for."""
_KEY_NAME: Final = "delegation.token.secret.key"
_OLDER_KEY_NAME: Final = "delegation.token.master.key"
_ACLS_ELSEWHERE: Final = "authorizer.zookeeper.url"
_FREE_KEYS: Final = (PROVIDERS, "authorizer.zookeeper.")
"""The beginnings of keys that a broker knows beside its own table: of its providers, and of AclAuthorizer."""
_NO_TEXT: Final = re.compile("[\\0\\ud800-\\udfff]")
"""Characters that Java's escapes can put into a file, and no path, name or password has."""
_OWN: Final = "kafka.dt."
"""The beginning of keys that no broker reads."""
OUR_PREFIXES: Final = (_OWN, "delegation.token.")
"""A key that starts like this and is unknown is a mistake of the operator, not a setting of another program."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings, and the keys that were left out of them."""

    settings: Settings
    properties: Mapping[str, str] = field(repr=False)
    """The keys and texts that the settings were made of, secrets included: what a worker makes the same settings of.

    The values of `config.providers` stand in them, so that all workers have the same ones.
    """
    ignored: tuple[str, ...]
    """Keys of a broker that have no meaning here."""
    unprotected: tuple[str, ...]
    """Security settings of a broker that kafka-dt does not support."""
    unknown: tuple[str, ...]
    """Keys that neither a broker nor kafka-dt has."""
    read_otherwise: tuple[str, ...]
    """Keys of a broker whose texts it reads otherwise in the same file."""


@dataclass(frozen=True, slots=True)
class Given:
    """Settings as they were given."""

    properties: Mapping[str, str] = field(repr=False)
    """Keys and texts."""
    read_otherwise: Set[str] = frozenset()
    """The keys whose texts Kafka reads otherwise in the same file."""
    in_file: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The keys and texts of the file, whether they were replaced or not."""


def load(path: Path | None, overrides: Iterable[str] = ()) -> Loaded:
    """Read the settings of a node.

    :param path: a Java properties file, or None for the defaults
    :param overrides: `key=value` each; they win over the file
    :raises ConfigError: naming the key (or the file) that cannot be used
    """
    given = given_properties(path, overrides)
    return from_properties(given.properties, given.read_otherwise)


def given_properties(path: Path | None, overrides: Iterable[str] = ()) -> Given:
    """Return keys and texts as they were given, the arguments being those of `load`; no secret is looked up.

    :raises ConfigError: if the file cannot be read, or an override is malformed
    """
    given = _read(path) if path else Given({})
    replaced: dict[str, str] = {}
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals or not key.strip():
            raise ConfigError("--override", f"{key.strip()!r} is not of the form key=value")
        replaced[key.strip()] = value
    settings = {_setting(key) for key in replaced}
    kept = {key: text for key, text in given.properties.items() if _setting(key) not in settings}
    return Given(kept | replaced, given.read_otherwise & kept.keys(), given.properties)


def read_properties(path: Path) -> Mapping[str, str]:
    """Read a Java properties file.

    :raises ConfigError: if it cannot be read or is malformed
    """
    return _read(path).properties


def _read(path: Path) -> Given:
    try:
        content = path.read_bytes()
        return Given(parse(content), read_otherwise_by_kafka(content))
    except OSError as error:
        raise ConfigError(str(path), f"cannot be read: {error.strerror}") from None
    except ValueError:
        # Not chained: the error holds the escape.
        raise ConfigError(str(path), MALFORMED) from None


def from_properties(properties: Mapping[str, str], read_otherwise: Collection[str] = ()) -> Loaded:
    """Make settings of key and value texts; variables of `config.providers` are looked up.

    :param read_otherwise: the keys whose texts a broker reads otherwise in the same file
    :raises ConfigError: naming the key that cannot be used
    """
    values: dict[str, Any] = {}
    taken: dict[str, str] = {}
    listener_keys: dict[str, str] = {}
    ignored: list[str] = []
    unprotected: list[str] = []
    spellings = _spellings()
    if _has_both_key_names(properties):
        properties = {key: text for key, text in properties.items() if key != _OLDER_KEY_NAME}
        ignored.append(_OLDER_KEY_NAME)
    _refuse_other_secret_key(properties, read_otherwise)
    provided = _with_values(properties)
    properties = provided.properties
    for key, text in properties.items():
        if _NO_TEXT.search(key + text):
            raise ConfigError(key, "it has a NUL character, or half a surrogate pair")
        if key in spellings:
            name, declared = spellings[key]
            value = _value(declared, key, text, provided)
            if values.setdefault(name, value) != value:
                raise ConfigError(key, f"is given twice, also as {taken[name]}, with another value; keep one of them")
            taken[name] = key
        elif key.startswith(LISTENER_PREFIX):
            listener_keys[_lower_case(key)] = text
            _check_provided(key, text, provided)
            name = next((name for name in DEFAULTS if key.endswith(f".{name}")), "")
            if _protects(name, text) and not key.endswith(_READ_FOR_OAUTHBEARER):
                unprotected.append(key)
        elif key in broker_keys() or key.startswith(_FREE_KEYS):
            (unprotected if _protects(key, text) else ignored).append(key)
        elif key.startswith(OUR_PREFIXES):
            nearest = nearest_setting(key, _spellings())
            raise ConfigError(key, f"there is no such setting{f'; did you mean {nearest}?' if nearest else ''}")
    settings = Settings(overrides=listener_keys, **values)
    _refuse_acls_elsewhere(settings, properties.get(_ACLS_ELSEWHERE, "").strip())
    return Loaded(
        settings,
        properties,
        ignored=tuple(sorted(ignored)),
        unprotected=tuple(sorted(unprotected)),
        unknown=unknown_keys(properties),
        read_otherwise=tuple(sorted(key for key in read_otherwise if _is_used(key) and not key.startswith(_OWN))),
    )


def unknown_keys(keys: Iterable[str]) -> tuple[str, ...]:
    """Return the keys that neither a broker nor kafka-dt has, sorted; with a prefix of ours it is an error instead."""
    prefixes = (*_FREE_KEYS, *OUR_PREFIXES)
    return tuple(sorted(key for key in keys if not key.startswith(prefixes) and not _is_known(key)))


def _is_known(key: str) -> bool:
    """Say whether a broker or kafka-dt has a key, for one listener and mechanism as well; their names may have dots."""
    parts = key.removeprefix(LISTENER_PREFIX).split(".")
    keys = [".".join(parts[begin:]) for begin in range(1, len(parts))] if key.startswith(LISTENER_PREFIX) else [key]
    return any(each in _spellings() or each in broker_keys() for each in keys)


@cache
def broker_keys() -> frozenset[str]:
    """Return every key that a Kafka 3.9.1 broker knows."""
    text = files("kafka_dt.config").joinpath("broker_keys.txt").read_text(encoding="ascii")
    return frozenset(line for line in text.splitlines() if not line.startswith("#"))


def nearest_setting(key: str, known: Iterable[str] | None = None) -> str | None:
    """Return the setting that was probably meant by a key that there is not; None where none is near.

    :param key: for one listener as well, whose prefix is not part of what is returned
    :param known: what it could be; None means every setting of a broker and of kafka-dt
    """
    candidates = [*_spellings(), *broker_keys()] if known is None else list(known)
    name = key.removeprefix(LISTENER_PREFIX).partition(".")[2] if key.startswith(LISTENER_PREFIX) else key
    return next(iter(difflib.get_close_matches(name, candidates, n=1)), None)


def every_error(given: Given) -> list[ConfigError]:
    """Return what is wrong with each key; if each alone can be used, what is wrong with all of them together."""
    providers = {key: text for key, text in given.properties.items() if is_of_providers(key)}
    unused = {_OLDER_KEY_NAME} if _has_both_key_names(given.properties) else set()
    each = [
        Given(providers | {key: text}, given.read_otherwise & {key})
        for key, text in given.properties.items()
        if key not in unused
    ]
    alone = [error for one in each if (error := _error_of(one))]
    together = None if alone else _error_of(given)
    return alone or [error for error in (together,) if error]


def _error_of(given: Given) -> ConfigError | None:
    try:
        from_properties(given.properties, given.read_otherwise)
    except ConfigError as error:
        return error
    return None


def _lower_case(key: str) -> str:
    """Refuse upper case, with which Kafka would silently find nothing."""
    if key != key.lower():
        raise ConfigError(key, f"names of listeners and mechanisms are in lower case here: {key.lower()}")
    return key


def _with_values(properties: Mapping[str, str]) -> Provided:
    try:
        return with_values(
            properties, _is_used, ways_out="write the value itself, or for a secret file:/path or env:NAME"
        )
    except ProviderError as error:
        raise ConfigError(error.key, error.reason) from None


def _is_used(key: str) -> bool:
    return key in _spellings() or key.startswith(LISTENER_PREFIX) or key == _ACLS_ELSEWHERE


def _check_provided(key: str, text: str, provided: Provided) -> None:
    """Refuse a provider's value that a key of one listener cannot have, before another error shows it."""
    if key in provided.values:
        for _, declared in options():
            if declared.per_listener and key.endswith(f".{declared.key}"):
                _value(declared, key, text, provided)


def _has_both_key_names(properties: Mapping[str, str]) -> bool:
    """Say whether the secret key is there by both of its names: the newer one counts, even if it is empty."""
    return _KEY_NAME in properties and _OLDER_KEY_NAME in properties


def _refuse_other_secret_key(properties: Mapping[str, str], read_otherwise: Collection[str]) -> None:
    """Refuse a secret key that is another one to a broker: each side would refuse the tokens of the other."""
    for key in (_KEY_NAME, _OLDER_KEY_NAME):
        if key in read_otherwise and key in properties and not properties[key].lstrip().startswith(PLACES):
            raise ConfigError(
                key,
                "it has characters that are not ASCII, and the file is UTF-8: a broker reads a file as ISO-8859-1, and "
                r"would have another key; write them as \uXXXX, which both read alike",
            )


def _refuse_acls_elsewhere(settings: Settings, zookeeper: str) -> None:
    """Refuse ACLs in a ZooKeeper of their own: a node would decide without them, against every Deny among them."""
    if settings.authorizer_class_name and zookeeper and _place(zookeeper) != _place(settings.zookeeper_connect):
        raise ConfigError(_ACLS_ELSEWHERE, "kafka-dt reads ACLs in the ZooKeeper of zookeeper.connect only")


def _place(connect: str) -> tuple[frozenset[str], str]:
    """Return the servers of a ZooKeeper, in no order, and the chroot."""
    servers, _, chroot = connect.partition("/")
    return frozenset(each.strip() for each in servers.split(",")) - {""}, chroot


def _value(declared: Option, key: str, text: str, provided: Provided) -> Any:
    try:
        value = declared.parse(key, text)
    except ConfigError as error:
        if provided.shown_by(key, error.reason):
            raise ConfigError(key, "the value of its provider is not one of this setting") from None
        raise
    if key == declared.seconds_alias:
        return value * 1000
    if declared.kind is Kind.PASSWORD and not value.value and value.file is None:
        return None
    return value


def _setting(key: str) -> str:
    """Return the name of the setting that a key sets; a key that kafka-dt does not use has its own."""
    name, _ = _spellings().get(key, (key, None))
    return name


@cache
def _spellings() -> Mapping[str, tuple[str, Option]]:
    return {
        spelling: (name, declared)
        for name, declared in options()
        for spelling in (declared.key, *declared.aliases, declared.seconds_alias)
        if spelling
    }


def _protects(name: str, text: str) -> bool:
    """Say whether a setting that kafka-dt does not support would protect something."""
    return name in DEFAULTS and text.strip().lower() not in {"", DEFAULTS[name].lower()}
