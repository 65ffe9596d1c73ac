"""Any bytes in a znode, written by any program: they are what they say, or InvalidZnode names what is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from kafka_dt.tokens import SecretKey
from kafka_dt.zookeeper.errors import InvalidZnode, UnknownKey
from kafka_dt.zookeeper.sealing.sealed import open_sealed
from kafka_dt.zookeeper.znodes.acls import AclZnode, ExtendedAclChangeZnode, LiteralAclChangeZnode
from kafka_dt.zookeeper.znodes.kafka import ClusterIdZnode, ConfigChangeZnode, TokenChangeZnode, TokenZnode, UserZnode
from kafka_dt.zookeeper.znodes.own import SaltSecretZnode, WorkerZnode

KEY: Final = SecretKey("the secret key of the fuzzer")
VECTORS: Final = Path(__file__).parents[1] / "vectors" / "sealed" / "vectors.json"


def _token(data: bytes) -> object:
    token = TokenZnode.decode(data)
    assert TokenZnode.decode(TokenZnode.encode(token)) == token, "what was read is written differently"
    return token


def _sealed(data: bytes) -> object:
    return open_sealed([KEY], data, lambda _key, salt: salt.ljust(64, b"\0")[:64])


_DECODERS: Final[tuple[Callable[[bytes], Any], ...]] = (
    _token,
    _sealed,
    TokenChangeZnode.decode,
    UserZnode.decode,
    ConfigChangeZnode.decode,
    ClusterIdZnode.decode,
    AclZnode.decode,
    LiteralAclChangeZnode.decode,
    ExtendedAclChangeZnode.decode,
    WorkerZnode.decode,
    SaltSecretZnode.decode,
)
_EXAMPLES: Final = (
    b'{"version":3,"owner":"User%3Aa","tokenRequester":"User%3Ab","renewers":["User%3Ac"],"issueTimestamp":1,'
    b'"maxTimestamp":3,"expiryTimestamp":2,"tokenId":"AAAAAAAAAAAAAAAAAAAAAA","keyId":"0123456789abcdef"}',
    b"",
    b"AAAAAAAAAAAAAAAAAAAAAA",
    b'{"version":1,"config":{"SCRAM-SHA-256":"salt=c2FsdA==,stored_key=a2V5,server_key=a2V5,iterations=4096"}}',
    b'{"version":2,"entity_path":"users/alice"}',
    b'{"version":"1","id":"AAAAAAAAAAAAAAAAAAAAAA"}',
    b'{"version":1,"acls":[{"principal":"User:a","permissionType":"Allow","operation":"Read","host":"*"}]}',
    b"Topic:orders",
    b'{"version":1,"resourceType":"Topic","name":"orders","patternType":"PREFIXED"}',
    b'{"version":1,"host":"a","pid":1,"worker":0,"brokerId":1001,"keys":["0123456789abcdef"],"software":"1"}',
    SaltSecretZnode.encode(b"0123456789abcdef0123456789abcdef"),
)


def seeds() -> Iterable[bytes]:
    """Give one znode of each kind, and those that were sealed by others."""
    for number, example in enumerate(_EXAMPLES):
        yield bytes((number,)) + example
    for vector in json.loads(VECTORS.read_text(encoding="utf-8")):
        yield b"\x01" + vector["znode"].encode("ascii")


def check(data: bytes) -> None:
    """Decode one znode; the first byte says of which kind."""
    which, content = data[:1], data[1:]
    if not which:
        return
    try:
        _DECODERS[which[0] % len(_DECODERS)](content)
    except (InvalidZnode, UnknownKey) as error:
        assert "\n" not in str(error), "an error of more than one line"
