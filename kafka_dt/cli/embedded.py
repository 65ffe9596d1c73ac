"""The embedded mode's own files: a ZooKeeper, settings and a user, made once and kept in a data directory.

Everything secret in it (the secret key of tokens, the user's password) is random and readable by its owner alone.

Source: DESIGN.md, "Who runs it, and how": embedded.
"""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kafka_dt.files import replace_file
from kafka_dt.jaas import PLAIN_LOGIN_MODULE, LoginModule

USER: Final = "alice"
HOST: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class EmbeddedNode:
    """What a node of the embedded mode runs on."""

    data_dir: Path
    password: str = field(repr=False)
    """The password of `USER`."""
    secret_key: str = field(repr=False)
    """`delegation.token.secret.key`."""

    @property
    def zookeeper_dir(self) -> Path:
        """Where the embedded ZooKeeper keeps its data."""
        return self.data_dir / "zookeeper"

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
        lines = (f"{key}={value}\n" for key, value in self.login_properties(bootstrap_server).items())
        replace_file(self.client_properties, "".join(lines))


def prepare(data_dir: Path) -> EmbeddedNode:
    """Make the data directory, or take the one that is there with the secrets that it holds.

    Raises:
        OSError: it cannot be made or read.
        ValueError: its secrets are not what was once written.
    """
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = data_dir / "secrets.json"
    if not path.exists():
        made = {"password": secrets.token_urlsafe(12), "secret_key": secrets.token_urlsafe(32)}
        replace_file(path, json.dumps(made))
    kept = json.loads(path.read_text(encoding="utf-8"))
    return EmbeddedNode(data_dir.absolute(), password=kept["password"], secret_key=kept["secret_key"])


def default_data_dir() -> Path:
    """Say where the embedded mode keeps its data unless told otherwise (XDG base directories)."""
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "kafka-dt"
