"""The znodes of a Kafka cluster that matter to tokens: where each is, and what its bytes mean.

One class a znode, with its path, `encode` and `decode` and nothing else. `decode` raises InvalidZnode, whose text never
repeats the content.

Source: kafka.zk.ZkData, kafka.server.DelegationTokenManagerZk.
"""

from __future__ import annotations

import base64
import binascii
import functools
import re
import sys
from typing import TYPE_CHECKING, Any, Final

from kafka_dt.tokens.principal import InvalidPrincipal, Principal
from kafka_dt.tokens.token import Token
from kafka_dt.zookeeper.errors import InvalidZnode
from kafka_dt.zookeeper.znodes import documents
from kafka_dt.zookeeper.znodes.documents import desanitize, sanitize
from kafka_dt_protocol.sasl.scram import ScramCredential, ScramMechanism

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_NAME_LENGTH: Final = 1024
MAX_REMEMBERED_LENGTH: Final = 128
_SENSITIVE: Final = ("/config/users", "/config/brokers", "/delegation_token/tokens", "/kafka_dt")
_KEY_ID_TEXT: Final = re.compile("[0-9a-f]{16}")
# What ZooKeeper refuses in a path (PathUtils.validatePath), and the slash. Java sees a character above U+FFFF as two
# surrogates, which are in the third range.
_NOT_IN_A_NAME: Final = re.compile(r"[/\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\U0010ffff]")


def is_sensitive(path: str) -> bool:
    """Tell whether a znode is for brokers' eyes only when `zookeeper.set.acl` is on.

    Source: kafka.zk.ZkData.SensitiveRootPaths; `/kafka_dt` is ours.
    """
    return path.startswith(_SENSITIVE)


def is_node_name(text: str, max_length: int = MAX_NAME_LENGTH) -> bool:
    """Tell whether a text, which may come from any client, can be the name of one znode."""
    return 0 < len(text) <= max_length and text not in {".", ".."} and not _NOT_IN_A_NAME.search(text)


class TokenZnode:
    """`/delegation_token/tokens/<token id>`: a token without its secret."""

    PARENT: Final = "/delegation_token/tokens"
    VERSION: Final = 3
    KEY_ID: Final = "keyId"
    """Our own field: the id of the secret key that made the token, 16 hex characters."""

    @classmethod
    def path(cls, token_id: str) -> str:
        """Return the path of a token; `is_node_name` must hold for the id."""
        return f"{cls.PARENT}/{token_id}"

    @classmethod
    def encode(cls, token: Token) -> bytes:
        """Write a token as version 3, byte for byte as a broker does, whose order of keys is a Scala HashMap's.

        Which key made it stands behind all that, where it is known; a broker ignores what it does not know.
        """
        document: documents.Document = {
            "issueTimestamp": token.issue_timestamp_ms,
            "renewers": [sanitize(str(renewer)) for renewer in token.renewers],
            "tokenRequester": sanitize(str(token.requester)),
            "tokenId": token.token_id,
            "owner": sanitize(str(token.owner)),
            "expiryTimestamp": token.expiry_timestamp_ms,
            "maxTimestamp": token.max_timestamp_ms,
            "version": cls.VERSION,
        }
        if token.key_id is not None:
            document[cls.KEY_ID] = token.key_id
        return documents.write(document)

    @classmethod
    def decode(cls, data: bytes) -> Token:
        """Read a token of version 1 or 2 (whose requester is the owner) or 3."""
        document = documents.read(data)
        version = documents.integer(document, "version")
        if not 1 <= version <= cls.VERSION:
            raise InvalidZnode(f"version {version} of a token is not known")
        owner = _principal(documents.text(document, "owner"))
        has_requester = version >= cls.VERSION
        return Token(
            token_id=documents.text(document, "tokenId"),
            owner=owner,
            requester=_principal(documents.text(document, "tokenRequester")) if has_requester else owner,
            renewers=tuple(_principal(renewer) for renewer in documents.texts(document, "renewers")),
            issue_timestamp_ms=documents.integer(document, "issueTimestamp"),
            max_timestamp_ms=documents.integer(document, "maxTimestamp"),
            expiry_timestamp_ms=documents.integer(document, "expiryTimestamp"),
            key_id=cls._key_id(document),
        )

    @classmethod
    def _key_id(cls, document: documents.Document) -> str | None:
        """Read which key made a token; what brokers write does not say it."""
        if cls.KEY_ID not in document:
            return None
        key_id = documents.text(document, cls.KEY_ID)
        if not _KEY_ID_TEXT.fullmatch(key_id):
            raise InvalidZnode(f"{cls.KEY_ID} is not 16 hex characters")
        return sys.intern(key_id)  # few keys make all tokens


class TokenChangeZnode:
    """`/delegation_token/token_changes/token_change_<number>`: which token was changed."""

    PARENT: Final = "/delegation_token/token_changes"
    PREFIX: Final = f"{PARENT}/token_change_"

    @staticmethod
    def encode(token_id: str) -> bytes:
        """Write the bare id."""
        return token_id.encode()

    @staticmethod
    def decode(data: bytes) -> str:
        """Read an id; anything is one, if only of a token that does not exist."""
        return data.decode("utf-8", errors="replace")


class UserZnode:
    """`/config/users/<user>`: the SCRAM credentials (and quotas, which are ignored here) of a user."""

    PARENT: Final = "/config/users"
    VERSION: Final = 1
    DEFAULT: Final = "<default>"
    """The name under which defaults of quotas are kept; no user."""

    @classmethod
    def path(cls, sanitized_user: str) -> str:
        """Return the path of a user, given the name as it stands in the path."""
        return f"{cls.PARENT}/{sanitized_user}"

    @classmethod
    def encode(cls, credentials: Mapping[ScramMechanism, ScramCredential]) -> bytes:
        """Write a user's credentials."""
        return cls.encode_config(cls.texts(credentials))

    @classmethod
    def encode_config(cls, config: Mapping[str, Any]) -> bytes:
        """Write a user's whole configuration, credentials as `texts` gives them."""
        return documents.write({"version": cls.VERSION, "config": dict(config)})

    @classmethod
    def decode_config(cls, data: bytes) -> dict[str, Any]:
        """Read a user's whole configuration, of any keys; what is not readable is none, as for a broker."""
        try:
            config = documents.read(data).get("config")
        except InvalidZnode:
            return {}
        return config if isinstance(config, dict) else {}

    @staticmethod
    def texts(credentials: Mapping[ScramMechanism, ScramCredential]) -> dict[str, str]:
        """Write credentials as they stand in a configuration."""
        return {mechanism.value: _credential_to_text(credential) for mechanism, credential in credentials.items()}

    @classmethod
    def decode(cls, data: bytes) -> dict[ScramMechanism, ScramCredential]:
        """Read a user's credentials; a znode without data, or without any of them, has none."""
        if not data:
            return {}
        config = documents.read(data).get("config")
        if not isinstance(config, dict):
            return {}
        return {
            mechanism: _credential_from_text(documents.text(config, mechanism.value))
            for mechanism in ScramMechanism
            if mechanism.value in config
        }


class ConfigChangeZnode:
    """`/config/changes/config_change_<number>`: whose configuration was changed."""

    PARENT: Final = "/config/changes"
    PREFIX: Final = f"{PARENT}/config_change_"
    VERSION: Final = 2

    @classmethod
    def encode(cls, sanitized_user: str) -> bytes:
        """Write that a user was changed, given the name as it stands in the path."""
        return documents.write({"version": cls.VERSION, "entity_path": f"users/{sanitized_user}"})

    @classmethod
    def decode(cls, data: bytes) -> str | None:
        """Read which user was changed: the name as it stands in the path; None if it is about something else."""
        document = documents.read(data)
        version = documents.integer(document, "version")
        if version == 1:  # about topics and clients only
            return None
        if version != cls.VERSION:
            raise InvalidZnode(f"version {version} of a configuration change is not known")
        match documents.text(document, "entity_path").split("/"):
            case ["users", user] if user != UserZnode.DEFAULT and is_node_name(user):
                return user
            case _:
                return None


class ClusterIdZnode:
    """`/cluster/id`: the name that the cluster gave itself."""

    PARENT: Final = "/cluster"
    PATH: Final = f"{PARENT}/id"

    @staticmethod
    def encode(cluster_id: str) -> bytes:
        """Write an id; its version is text, unlike all others."""
        return documents.write({"version": "1", "id": cluster_id})

    @staticmethod
    def decode(data: bytes) -> str:
        """Read an id; InvalidZnode if there is none."""
        return documents.text(documents.read(data), "id")


def _principal(sanitized: str) -> Principal:
    """Read a principal; the same few own most tokens, so short ones are remembered."""
    return _remembered_principal(sanitized) if len(sanitized) <= MAX_REMEMBERED_LENGTH else _parsed(sanitized)


def _parsed(sanitized: str) -> Principal:
    try:
        return Principal.parse(desanitize(sanitized))
    except InvalidPrincipal:
        raise InvalidZnode("a principal is not of the form Type:name") from None


_remembered_principal = functools.lru_cache(maxsize=4096)(_parsed)


def _credential_to_text(credential: ScramCredential) -> str:
    """Write a credential: `salt=...,stored_key=...,server_key=...,iterations=...`, the first three in base64.

    Source: org.apache.kafka.common.security.scram.internals.ScramCredentialUtils.
    """
    parts = {
        "salt": _base64(credential.salt),
        "stored_key": _base64(credential.stored_key),
        "server_key": _base64(credential.server_key),
        "iterations": str(credential.iterations),
    }
    return ",".join(f"{name}={value}" for name, value in parts.items())


def _credential_from_text(text: str) -> ScramCredential:
    """Read a credential; its parts may come in any order."""
    parts = dict(_credential_part(part) for part in text.rstrip(",").split(","))
    if parts.keys() != {"salt", "stored_key", "server_key", "iterations"}:
        raise InvalidZnode("a SCRAM credential has other parts than salt, stored_key, server_key and iterations")
    try:
        credential = ScramCredential(
            salt=_unbase64(parts["salt"]),
            stored_key=_unbase64(parts["stored_key"]),
            server_key=_unbase64(parts["server_key"]),
            iterations=int(parts["iterations"]),
        )
    except (binascii.Error, ValueError):
        raise InvalidZnode("a SCRAM credential has a part that is not readable") from None
    if credential.iterations < 1:
        raise InvalidZnode("a SCRAM credential has no iterations")
    return credential


def _credential_part(part: str) -> tuple[str, str]:
    name, equals, value = part.partition("=")
    if not name or not equals:
        raise InvalidZnode("a SCRAM credential is not of the form name=value,...")
    return name, value


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _unbase64(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
