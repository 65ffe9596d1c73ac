"""SCRAM users: credentials in ZooKeeper as kafka-configs writes them, and news of them.

Source: KIP-84; kafka.zk.ZkData (ConfigEntityZNode, ConfigEntityChangeNotificationZNode),
org.apache.kafka.common.security.scram.internals.ScramCredentialUtils, kafka.server.ZkConfigManager.
"""

from __future__ import annotations

import json
import secrets
from base64 import b64encode
from collections.abc import Callable, Iterator
from functools import cache
from typing import Final

from kafka_dt.zookeeper.znodes.documents import sanitize
from kafka_dt_protocol.sasl import ScramMechanism, derive_credential
from tests.interop.cases.sasl import chosen
from tests.interop.cases.scram import (
    AT_FIRST,
    AT_LAST,
    CHALLENGED,
    NONCE,
    SAME_PATH,
    SHA_256,
    SHA_512,
    WRONG_AUTHZID,
    log_in,
    refused,
)
from tests.interop.cases.tokens import made
from tests.support.processes.waiting import eventually
from tests.support.protocol.conversation import Case, Stage, create, unrecorded

USERS: Final = "/config/users"
CHANGES: Final = "/config/changes"
GROUP: Final = ("User", "group")
LOGINS: Final = 12
WITHIN_S: Final = 5.0
PASSWORD: Final = "pencil"
SALT: Final = b"0123456789abcdef"
WELCOME: Final = "SaslAuthenticate v2: error_code=0 error_message='' auth_bytes=<v=> session_lifetime=0"
LET_IN: Final = (CHALLENGED, WELCOME, "works")


@cache
def credential(mechanism: ScramMechanism, password: str = PASSWORD, iterations: int = 4096) -> str:
    """A credential as it stands in ZooKeeper."""
    made = derive_credential(mechanism, password, SALT, iterations)
    parts = {"salt": made.salt, "stored_key": made.stored_key, "server_key": made.server_key}
    return ",".join(
        [*(f"{name}={b64encode(part).decode()}" for name, part in parts.items()), f"iterations={iterations}"]
    )


def cases() -> Iterator[Case]:
    both = {mechanism.value: credential(mechanism) for mechanism in ScramMechanism}
    for mechanism in ScramMechanism:
        yield Case(f"a user by {mechanism}", logging_in(both, mechanism), LET_IN)
    many = {SHA_256.value: credential(SHA_256, iterations=8192)}
    yield Case("a user of 8192 iterations", logging_in(many), LET_IN)
    other = {SHA_512.value: both[SHA_512]}
    yield Case("a user of the other mechanism", logging_in(other), AT_FIRST, AT_LAST, SAME_PATH)
    yield Case("a user with quotas alone", logging_in({"producer_byte_rate": "1"}), AT_FIRST, AT_LAST, SAME_PATH)
    yield Case("a user with quotas too", logging_in({**both, "producer_byte_rate": "1"}), LET_IN)
    yield Case("a wrong password of a user", logging_in(both, password="wrong"), AT_LAST)
    claim = logging_in(both, extensions=",tokenauth=true")
    yield Case("a user that claims to be a token", claim, AT_FIRST, AT_LAST, SAME_PATH)
    yield Case("a user that says it is no token", logging_in(both, extensions=",tokenauth=false"), LET_IN)
    yield Case("authorization id of the user", logging_in(both, gs2="n,a={},"), LET_IN)
    not_allowed = (refused(WRONG_AUTHZID), "closed")
    yield Case("authorization id of another user", logging_in(both, gs2="n,a=alice,"), not_allowed)
    for name in ("a b*", "a/b%c", "a+b", "a,b=c"):
        yield Case(f"a user {name!r}", logging_in(both, name=name), LET_IN)
    yield Case("a user that is not ASCII", logging_in(both, name="ä"), AT_FIRST)
    yield Case("the principal of a user's login", principal, [made(owner=GROUP, requester=GROUP)])
    new_password = json.dumps({"version": 1, "config": {SHA_256.value: credential(SHA_256, "other")}}).encode()
    yield Case("another password", rewriting(both, new_password), (*AT_LAST, *LET_IN))
    damages = {
        "a user without a credential": b'{"version":1,"config":{}}',
        "no JSON": b"{",
        "another version": b'{"version":2,"config":{}}',
    }
    for what, content in damages.items():
        yield Case(f"a user becomes {what}", rewriting(both, content), AT_FIRST * 2, AT_LAST * 2, SAME_PATH)


def logging_in(
    config: dict[str, str],
    mechanism: ScramMechanism = SHA_256,
    *,
    password: str = PASSWORD,
    name: str = "user",
    extensions: str = "",
    gs2: str = "n,,",
) -> Callable[[Stage], None]:
    def talk(stage: Stage) -> None:
        user = f"{name}-{stage.unique}"
        put(stage, user, config)
        said = user.replace("=", "=3D").replace(",", "=2C")
        first = f"{gs2.format(said)}n={said},r={NONCE.decode()}{extensions}".encode()
        log_in(chosen(stage, mechanism), mechanism, password, first)

    return talk


def put(stage: Stage, user: str, config: dict[str, str]) -> None:
    """Write a user, and wait until that is known: a second user, written later, can log in then."""
    write(stage, user, json.dumps({"version": 1, "config": config}).encode())
    wait(stage)


def write(stage: Stage, user: str, content: bytes) -> None:
    path = f"{USERS}/{sanitize(user)}"
    stage.zookeeper.ensure_path(path)
    stage.zookeeper.set(path, content)
    change = {"version": 2, "entity_path": f"users/{sanitize(user)}"}
    stage.zookeeper.create(f"{CHANGES}/config_change_", json.dumps(change).encode(), sequence=True)


def wait(stage: Stage) -> None:
    other = f"other-{secrets.token_hex(8)}"
    config = {SHA_256.value: credential(SHA_256)}
    write(stage, other, json.dumps({"version": 1, "config": config}).encode())
    # Each login may meet another worker.
    eventually(lambda: all(lets_in(stage, other) for _ in range(LOGINS)), WITHIN_S)


def lets_in(stage: Stage, user: str) -> bool:
    wire = chosen(stage, SHA_256)
    with unrecorded(wire):
        answer = log_in(wire, SHA_256, PASSWORD, first_of(user))
    return not answer.error_code.value


def first_of(user: str) -> bytes:
    return f"n,,n={user},r={NONCE.decode()}".encode()


def principal(stage: Stage) -> None:
    user = f"group-{stage.unique}"
    stage.names.add(user, repr(GROUP[1]))
    put(stage, user, {SHA_256.value: credential(SHA_256)})
    wire = chosen(stage, SHA_256)
    with unrecorded(wire):
        log_in(wire, SHA_256, PASSWORD, first_of(user))
    create(wire)


def rewriting(before: dict[str, str], content: bytes) -> Callable[[Stage], None]:
    """Write a user again and log in with the old and with another password."""

    def talk(stage: Stage) -> None:
        user = f"user-{stage.unique}"
        put(stage, user, before)
        write(stage, user, content)
        wait(stage)
        for password in (PASSWORD, "other"):
            log_in(chosen(stage, SHA_256), SHA_256, password, first_of(user))

    return talk


CASES: Final = tuple(cases())
