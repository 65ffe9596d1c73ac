"""Connect the driver and the executors of a job to a ZooKeeper, and give executors the secret keys.

    access = ClusterAccess.of_options({"zookeeper.connect": "zk1:2181", "delegation.token.secret.key": "file:/..."})
    async with access.connected() as client: ...       # on the driver and on executors
    keyring = access.keyring()                         # on executors

The keys and meanings are those of a node's `server.properties`. A secret is a reference, `file:/path` or `env:NAME`,
which each process reads for itself: what travels through Spark (plans, tasks, event logs, its web page) never holds
a secret, and a secret in plain text is refused. The driver needs the secrets of the login at ZooKeeper; only executors
need the secret keys of tokens.

Source: docs/configuration.md; kafka_dt.config.
"""

from __future__ import annotations

import difflib
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from kafka_dt.config import ConfigError, SecretKeyFiles, Section, from_properties, options
from kafka_dt.config.secret_keys import CURRENT, PREVIOUS
from kafka_dt.config_providers import ProviderError, with_values
from kafka_dt.tokens import Keyring
from kafka_dt.zookeeper.connection.client import ZooKeeperClient
from kafka_dt.zookeeper.connection.settings import zookeeper_settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping

    from kafka_dt.config import Option

ALIASES: Final = {"secret.key": CURRENT, "secret.keys.previous": PREVIOUS}
"""Shorter names for options of a data source."""
REFERENCES: Final = ("file:", "env:")
_CONNECT: Final = "zookeeper.connect"
_OF_ZOOKEEPER: Final = frozenset(option.key for _, option in options(Section.ZOOKEEPER))


class PlainSecret(ConfigError):
    """A secret was given in plain text, where Spark would show it."""

    def __init__(self, key: str) -> None:
        super().__init__(
            key,
            "is a secret, which Spark would show in its plans and logs: put it into a file that driver and executors "
            "can read and write file:/path/to/it, or env:NAME for a variable of their environments",
        )


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """Settings that may travel."""

    properties: Mapping[str, str]
    """Those of ZooKeeper and of the secret keys, by their full names; no secret is among the values."""

    @classmethod
    def of_options(cls, given: Mapping[str, str]) -> ClusterAccess:
        """Read options, and refuse an option that has no meaning here.

        Raises:
            ConfigError: naming the option that cannot be used.
        """
        properties: dict[str, str] = {}
        for key, text in given.items():
            name = ALIASES.get(key, key)
            if name not in _TRAVELLING:
                raise ConfigError(key, f"there is no such option{_suggestion(key)}")
            if name in properties:
                raise ConfigError(key, f"is given twice, also as {name}; keep one of them")
            properties[name] = text
        return cls._checked(properties)

    @classmethod
    def of_properties(cls, properties: Mapping[str, str]) -> ClusterAccess:
        """Read the settings that a job needs from the `server.properties` of a node.

        Values of `config.providers` are looked up here, except secrets, which do not travel.

        Raises:
            ConfigError: naming the setting that cannot be used.
        """

        def travels(key: str) -> bool:
            option = _TRAVELLING.get(key)
            return option is not None and (not option.secret or properties[key].startswith(REFERENCES))

        try:
            found = with_values(properties, travels, ways_out="write the value itself").properties
        except ProviderError as error:
            raise ConfigError(error.key, error.reason) from None
        return cls._checked({key: text for key, text in found.items() if key in _TRAVELLING})

    @classmethod
    def _checked(cls, properties: Mapping[str, str]) -> ClusterAccess:
        for key, text in properties.items():
            if _TRAVELLING[key].secret and text and not text.startswith(REFERENCES):
                raise PlainSecret(key)
        if not properties.get(_CONNECT):
            raise ConfigError(_CONNECT, "is needed, for example zk1:2181,zk2:2181/kafka")
        return cls(dict(properties))

    @property
    def zookeeper(self) -> str:
        """The addresses of ZooKeeper."""
        return self.properties[_CONNECT]

    @property
    def has_key(self) -> bool:
        """Whether it says where the secret key is."""
        return any(self.properties.get(key) for key in _spellings(CURRENT))

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[ZooKeeperClient]:
        """Give a client that is connected as a node would be, but makes no chroot.

        Raises:
            ConfigError: the settings cannot be used here.
            NoChroot: the one of the settings does not exist.
            ZooKeeperError: ZooKeeper cannot be reached.
        """
        # Without the secret keys, which this does not need.
        mine = {key: text for key, text in self.properties.items() if _TRAVELLING[key].key in _OF_ZOOKEEPER}
        settings = zookeeper_settings(from_properties(mine).settings)
        client = ZooKeeperClient(replace(settings, makes_chroot=False))
        await client.start()
        try:
            yield client
        finally:
            await client.close()

    def keyring(self) -> Keyring | None:
        """Make the ring of the keys that this process finds; None if there is no key.

        Raises:
            ConfigError: a file or a variable cannot be used here.
        """
        keys = SecretKeyFiles(from_properties(self.properties).settings).keys
        return None if keys is None else Keyring(keys.current, previous=keys.previous)


def _travelling() -> Iterable[tuple[str, Option]]:
    for _, option in options():
        if option.key in _OF_ZOOKEEPER or option.key in (CURRENT, PREVIOUS):
            for spelling in (option.key, *option.aliases):
                yield spelling, option


_TRAVELLING: Final[Mapping[str, Option]] = dict(_travelling())


def _spellings(key: str) -> Iterable[str]:
    option = _TRAVELLING[key]
    return (option.key, *option.aliases)


def _suggestion(key: str) -> str:
    close = difflib.get_close_matches(key, [*_TRAVELLING, *ALIASES], n=1)
    return f"; did you mean {close[0]}?" if close else ""
