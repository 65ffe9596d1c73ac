"""The embedded mode's own files: a ZooKeeper, settings and a user, made once and kept in a data directory.

Everything secret in it (the secret key of tokens, the passwords of the user and of ZooKeeper) is random, and the
directory is its owner's alone.

Source: docs/tutorial.md.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kafka_dt.files import replace_file
from kafka_dt.jaas import PLAIN_LOGIN_MODULE, LoginModule
from kafka_dt.zookeeper.connection.configuration import DIGEST_LOGIN_MODULE
from kafka_dt.zookeeper.connection.settings import LoginScheme, ZooKeeperLogin
from kafka_dt.zookeeper.embedded.server import require_private

USER: Final = "alice"
HOST: Final = "127.0.0.1"
ZOOKEEPER_USER: Final = "kafka-dt"
_SECRETS: Final = {"password": 12, "secret_key": 32, "zookeeper_password": 32}
"""Random bytes of each secret, by its name in the file and in `EmbeddedNode`."""


@dataclass(frozen=True, slots=True)
class EmbeddedNode:
    """What a node of the embedded mode runs on."""

    data_dir: Path
    password: str = field(repr=False)
    """The password of `USER`."""
    secret_key: str = field(repr=False)
    """`delegation.token.secret.key`."""
    zookeeper_password: str = field(repr=False)
    """The password of the embedded ZooKeeper, which serves no client without it."""

    @property
    def zookeeper_dir(self) -> Path:
        """Where the embedded ZooKeeper keeps its data."""
        return self.data_dir / "zookeeper"

    @property
    def zookeeper_login(self) -> ZooKeeperLogin:
        """The login of the embedded ZooKeeper."""
        return ZooKeeperLogin(LoginScheme.SASL_DIGEST_MD5, ZOOKEEPER_USER, self.zookeeper_password)

    @property
    def configuration(self) -> Path:
        """The settings of the node as it runs, for `kafka-dt keys --config` and the like."""
        return self.data_dir / "server.properties"

    @property
    def client_properties(self) -> Path:
        """The client settings of the user, for Kafka's tools and `kafka-dt token --command-config`."""
        return self.data_dir / "client.properties"

    def server_properties(self, port: int, zookeeper: str) -> dict[str, str]:
        """Give the settings of the node.

        Args:
            port: of its one listener; 0 for a free one.
            zookeeper: `host:port` of the embedded ZooKeeper.
        """
        users = LoginModule(PLAIN_LOGIN_MODULE, {f"user_{USER}": self.password}).line
        return {
            "listeners": f"SASL_PLAINTEXT://{HOST}:{port}",
            "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512,PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": users,
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "delegation.token.secret.key": self.secret_key,
            "zookeeper.connect": zookeeper,
            "zookeeper.set.acl": "true",
            "kafka.dt.zookeeper.sasl.jaas.config": LoginModule(
                DIGEST_LOGIN_MODULE, {"username": ZOOKEEPER_USER, "password": self.zookeeper_password}
            ).line,
        }

    def login_properties(self, bootstrap_server: str) -> dict[str, str]:
        """Give the client settings with which the user logs in."""
        return {
            "bootstrap.servers": bootstrap_server,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": LoginModule(PLAIN_LOGIN_MODULE, {"username": USER, "password": self.password}).line,
        }

    def write_client_properties(self, bootstrap_server: str) -> None:
        """Write the user's client settings, readable by the owner alone."""
        _write(self.client_properties, self.login_properties(bootstrap_server))

    def write_configuration(self, properties: Mapping[str, str]) -> None:
        """Write the settings of the node, readable by the owner alone."""
        _write(self.configuration, properties)


def prepare(data_dir: Path) -> EmbeddedNode:
    """Make the data directory, or take the one that is there with the secrets that it holds.

    Raises:
        OSError: it cannot be made or read.
        DataDirOpen: other users of the machine could read it.
        ValueError: its secrets are not what was once written.
    """
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    require_private(data_dir)
    path = data_dir / "secrets.json"
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    missing = _SECRETS.keys() - kept.keys()  # all of them in a new directory, some in one of an older version
    if missing:
        kept |= {name: secrets.token_urlsafe(_SECRETS[name]) for name in missing}
        replace_file(path, json.dumps(kept))
    return EmbeddedNode(data_dir.absolute(), **{name: kept[name] for name in _SECRETS})


def _write(path: Path, properties: Mapping[str, str]) -> None:
    replace_file(path, "".join(f"{key}={value}\n" for key, value in properties.items()))


def default_data_dir() -> Path:
    """Say where the embedded mode keeps its data unless told otherwise (XDG base directories)."""
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "kafka-dt"
