"""The settings that a running node can take over, and those that need a restart.

    running = pinned(load(path))
    found = changes(running, pinned(load(path)))       # later
    found.applied, found.later                         # keys
    found.settings                                     # what the node is to run on

Options say of themselves whether a running node takes them over (`Option.reloads`). It also takes over the users of
PLAIN, in the JAAS line of a listener.

Secrets that are taken over are read from their files once (`pinned`): a worker that is replaced has the same users as
the others, whatever their file holds by then. The files of secret keys, certificates and upstream identities are not
looked at here: a node follows them by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from kafka_dt.config.gateway import BOOTSTRAP, JAAS, uses_own_user_for_clients
from kafka_dt.config.listener_keys import JAAS_KEY
from kafka_dt.config.load import LISTENER_PREFIX, Loaded, from_properties
from kafka_dt.config.options.option import ConfigError, Secret, resolve_secret
from kafka_dt.config.settings import Settings, options
from kafka_dt.jaas import JaasError, parse_login_module

_RELOADED: Final = frozenset(declared.key for _, declared in options() if declared.reloads)
_PLAIN_USERS: Final = f".plain.{JAAS_KEY}"
_FOLLOWED: Final = ("delegation.token.secret.key", "kafka.dt.secret.keys.previous")
"""Secrets whose files a node follows by itself."""
_NEEDED: Final = (BOOTSTRAP, JAAS)
"""A running node can change them, and neither begin nor end to have them."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What differs."""

    settings: Loaded
    """The running settings, with those changes that a running node takes over."""
    applied: tuple[str, ...]
    """Their keys."""
    later: tuple[str, ...]
    """The keys that hold after a restart."""


def pinned(loaded: Loaded) -> Loaded:
    """Put the texts of secrets in the place of the files that they are in, where a running node takes them over.

    Raises:
        ConfigError: a file cannot be read.
    """
    properties = {
        key: resolve_secret(key, text).value if key == JAAS or _is_plain_users(key) else text
        for key, text in loaded.properties.items()
    }
    return replace(loaded, settings=from_properties(properties).settings, properties=properties)


def changes(running: Loaded, wanted: Loaded) -> Changes:
    """Compare what a node runs on with what its file says now; both are `pinned`.

    Raises:
        ConfigError: the changes that a running node takes over contradict what it runs on.
    """
    before, after = dict(_values(running.settings)), dict(_values(wanted.settings))
    changed = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
    applied = tuple(key for key in changed if _is_taken_over(key, before, after, running.settings))
    properties = {key: text for key, text in running.properties.items() if key not in applied}
    properties |= {key: wanted.properties[key] for key in applied if key in wanted.properties}
    later = tuple(key for key in changed if key not in applied)
    return Changes(from_properties(properties), applied, later)


def _values(settings: Settings) -> Iterator[tuple[str, Any]]:
    for name, declared in options():
        value = getattr(settings, name)
        followed = declared.key in _FOLLOWED and isinstance(value, Secret) and value.file is not None
        yield declared.key, value.file if followed else value
    yield from settings.overrides.items()


def _is_taken_over(key: str, before: Mapping[str, Any], after: Mapping[str, Any], running: Settings) -> bool:
    if _is_plain_users(key):
        return key in before and key in after
    if key in _NEEDED and not (before[key] and after[key]):
        return False
    if key == JAAS and uses_own_user_for_clients(running):
        return _user(before[key]) == _user(after[key])
    return key in _RELOADED


def _is_plain_users(key: str) -> bool:
    return key.startswith(LISTENER_PREFIX) and key.endswith(_PLAIN_USERS)


def _user(jaas: Secret) -> str | None:
    try:
        return parse_login_module(jaas.value).username
    except JaasError as error:
        raise ConfigError(JAAS, str(error)) from None
