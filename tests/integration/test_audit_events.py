"""Every kind of audit event from a real node of two workers, and nothing secret in any of them."""

from __future__ import annotations

import contextlib
import shutil
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_dt.client import DelegationToken, TokenOwnerMismatch
from kafka_dt.identity.acls.binding import AclOperation, ResourceType
from kafka_dt.tokens import SecretKey
from kafka_dt_protocol.wire.encoding import encode_varint
from tests.support.brokers.broker import SECRET_KEY, USERS
from tests.support.identity.acl_client import Acl, create_acls, delete_acls, filter_of
from tests.support.identity.issuer import unsigned
from tests.support.identity.scram_changes import deletion, upsertion
from tests.support.identity.tls_listeners import STRANGER, TlsListeners
from tests.support.identity.tls_material import authority, leaf, subject_of
from tests.support.nodes.audit import AuditFolder, Event
from tests.support.nodes.node import ADMIN, SHA_256, SHA_512, WORKERS, Node, node_properties, secrets_of
from tests.support.nodes.server import KafkaDt, server_properties
from tests.support.processes.waiting import eventually
from tests.support.protocol.raw import (
    CREATE,
    CREATE_ACLS,
    EXPIRE,
    ConnectionClosed,
    LoginRefused,
    RawConnection,
    ms,
)
from tests.support.zookeeper.server import make_chroot

HOUR = 3_600_000
ALTER_USERS = 51
UNKNOWN_ID = "AAAAAAAAAAAAAAAAAAAAAA"
NEW_PASSWORD = "the password of a new user"
NEW_KEY = "a secret key that is long enough not to be warned of"


class AuditedNode(Node):
    """A node, its events and its key file."""

    def __init__(self, directory: Path, zookeeper: str, name: str = "kafka-dt") -> None:
        self.folder = AuditFolder(directory / "audit")
        directory.mkdir(exist_ok=True)
        self.key = directory / "secret.key"
        self.key.write_text(SECRET_KEY)
        properties = node_properties(zookeeper) | {
            "delegation.token.secret.key": f"file:{self.key}",
            "allow.everyone.if.no.acl.found": False,
        }
        super().__init__(directory, properties | self.folder.properties(), name)
        self.zookeeper = zookeeper
        self.secrets = {SECRET_KEY, NEW_PASSWORD, NEW_KEY, *USERS.values()}

    async def create(self, user: str = "alice", **more: object) -> DelegationToken:
        async with self.client(user) as client:
            token = await client.create(renewers=["User:bob"], **more)  # type: ignore[arg-type]
        self.secrets |= set(secrets_of(token))
        return token

    def check_secrets(self) -> None:
        """See that none of them is in a file."""
        text = self.folder.text()
        assert text
        for secret in self.secrets:
            assert secret not in text


@pytest.fixture(scope="module")
def audited(zookeeper_address: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AuditedNode]:
    connect = make_chroot(zookeeper_address, "audited")
    with AuditedNode(tmp_path_factory.mktemp("audited"), connect) as node:
        yield node
        node.check_secrets()
    node.check_log()
    assert not list(node.folder.path.glob("*.open")), "a file was not completed at the end"
    node.check_secrets()


def told(event: Event, *keys: str) -> dict[str, object]:
    return {key: event.get(key) for key in keys}


async def login_of(audited: AuditedNode, connection: RawConnection, **wanted: object) -> Event:
    """The event of a login over a connection."""
    port = connection._socket.getsockname()[1]
    (event,) = audited.folder.wait_for(1, type="login", client_port=port, **wanted)
    return event


# Logins


async def test_a_login_of_a_user(audited: AuditedNode) -> None:
    with audited.connect() as connection:
        connection.ask(18, 3, client_software_name="a-library", client_software_version="1.2")
        connection.login_plain("alice", USERS["alice"])
        event = await login_of(audited, connection)
    assert told(event, "outcome", "mechanism", "listener", "principal", "by_token") == {
        "outcome": "ok",
        "mechanism": "PLAIN",
        "listener": "SASL_PLAINTEXT",
        "principal": "User:alice",
        "by_token": False,
    }
    assert told(event, "client_id", "client_software", "client_software_version", "client_address") == {
        "client_id": "raw",
        "client_software": "a-library",
        "client_software_version": "1.2",
        "client_address": "127.0.0.1",
    }
    assert event["node"] in {f"kdt1-{number}" for number in range(WORKERS)}
    assert "token_id" not in event


@pytest.mark.parametrize("mechanism", [SHA_256, SHA_512])
async def test_a_login_by_token(audited: AuditedNode, mechanism: str) -> None:
    token = await audited.create()
    with audited.connect_by_token(token, mechanism) as connection:
        event = await login_of(audited, connection)
    expected = {
        "outcome": "ok",
        "mechanism": mechanism,
        "principal": "User:alice",
        "by_token": True,
        "session_token_id": token.token_id,
        "token_id": token.token_id,
        "owner": "User:alice",
        "requester": "User:alice",
    }
    assert told(event, *expected) == expected


async def test_logins_that_are_refused(audited: AuditedNode) -> None:
    token = await audited.create()
    revoked = await audited.create()
    async with audited.client() as client:
        await client.expire(revoked.hmac)
    for name, password, reason, claimed in (
        (token.token_id, "wrong", "wrong_credentials", {"token_id": token.token_id, "owner": "User:alice"}),
        (revoked.token_id, revoked.hmac_base64, "unknown_token", {"token_id": revoked.token_id, "owner": None}),
        (UNKNOWN_ID, "any", "unknown_token", {"token_id": UNKNOWN_ID, "owner": None}),
        ("mallory", "any", "unknown_user", {"principal": "User:mallory", "token_id": None}),
    ):
        with audited.connect() as connection:
            with pytest.raises(LoginRefused):
                connection.login_scram(name, password, SHA_256)
            event = await login_of(audited, connection)
        assert told(event, "outcome", "reason") == {"outcome": "refused", "reason": reason}
        assert told(event, *claimed) == claimed


async def test_a_mechanism_that_is_not_offered_and_what_is_no_login(audited: AuditedNode) -> None:
    with audited.connect() as connection:
        connection.handshake("GSSAPI")
        event = await login_of(audited, connection)
        assert told(event, "reason", "mechanism") == {"reason": "unsupported_mechanism", "mechanism": "GSSAPI"}
    with audited.connect() as connection:
        connection.send(b"GET / HTTP/1.1\r\n\r\n")
        event = await login_of(audited, connection)
        assert told(event, "reason", "mechanism") == {"reason": "broken_exchange", "mechanism": None}


async def test_a_login_again_over_the_same_connection(audited: AuditedNode) -> None:
    with audited.connect("REAUTH") as connection:
        connection.login_plain("alice", USERS["alice"])
        connection.login_plain("alice", USERS["alice"])
        port = connection._socket.getsockname()[1]
        first, second = audited.folder.wait_for(2, type="login", client_port=port)
    assert (first["outcome"], second["outcome"]) == ("ok", "ok")
    assert first["connection"] == second["connection"]
    assert first["id"] != second["id"]


async def test_logins_by_bearer_token(zookeeper_connect: str, tmp_path: Path) -> None:
    folder = AuditFolder(tmp_path / "audit")
    others = {key: value for key, value in server_properties(zookeeper_connect).items() if "listener.name" not in key}
    properties = others | {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.sasl_plaintext.oauthbearer.kafka.dt.sasl.oauthbearer.allow.unsigned.tokens": "true",
    }
    now = int(time.time())
    good, expired = (
        unsigned({"alg": "none"}, {"sub": "alice", "iat": now - HOUR, "exp": now + ends}) for ends in (60, -60)
    )
    with KafkaDt(tmp_path / "server", properties | folder.properties()) as server:
        with RawConnection(server.sasl) as connection:
            connection.handshake("OAUTHBEARER")
            connection.authenticate(f"n,,\x01auth=Bearer {good}\x01\x01".encode())
        with RawConnection(server.sasl) as connection:
            connection.handshake("OAUTHBEARER")
            connection.authenticate(f"n,,\x01auth=Bearer {expired}\x01\x01".encode())
            connection.authenticate(b"\x01")
        (refused,) = folder.wait_for(1, type="login", outcome="refused")
        with RawConnection(server.sasl) as connection:
            connection.handshake("OAUTHBEARER")
            connection.authenticate(f"n,,\x01auth=Bearer {expired}\x01\x01".encode())
        (accepted,) = folder.wait_for(1, type="login", outcome="ok")
        _, gone = folder.wait_for(2, type="login", outcome="refused")
    assert told(gone, "mechanism", "reason") == told(refused, "mechanism", "reason")
    assert told(accepted, "mechanism", "principal") == {"mechanism": "OAUTHBEARER", "principal": "User:alice"}
    assert told(refused, "mechanism", "reason") == {"mechanism": "OAUTHBEARER", "reason": "wrong_credentials"}
    assert good not in folder.text()
    assert expired not in folder.text()


async def test_who_says_nothing_is_no_event(audited: AuditedNode) -> None:
    with socket.create_connection(("127.0.0.1", int(audited.address("SASL_PLAINTEXT").rpartition(":")[2]))) as silent:
        port = silent.getsockname()[1]
    await audited.create()
    assert audited.folder.events(client_port=port) == []


# Tokens


async def test_the_life_of_a_token(audited: AuditedNode) -> None:
    token = await audited.create(max_lifetime_ms=2 * HOUR)
    async with audited.client("bob") as bob, audited.client("carol") as carol:
        renewed_ms = await bob.renew(token.hmac, HOUR)
        with pytest.raises(TokenOwnerMismatch):
            await carol.renew(token.hmac)
        await bob.expire(token.hmac, HOUR)
        await bob.expire(token.hmac)
    (created,) = audited.folder.wait_for(1, type="token_created", token_id=token.token_id)
    facts = {
        "owner": "User:alice",
        "requester": "User:alice",
        "renewers": ["User:bob"],
        "issue_time": token.issue_timestamp_ms,
        "max_time": token.max_timestamp_ms,
        "key_id": SecretKey(SECRET_KEY).id,
    }
    assert told(created, *facts) == facts
    assert told(created, "principal", "mechanism", "by_token", "outcome") == {
        "principal": "User:alice",
        "mechanism": "PLAIN",
        "by_token": False,
        "outcome": "ok",
    }
    (renewed,) = audited.folder.wait_for(1, type="token_renewed", outcome="ok", token_id=token.token_id)
    assert told(renewed, "principal", "expiry_time", *facts) == {
        "principal": "User:bob",
        "expiry_time": renewed_ms,
        **facts,
    }
    (foreign,) = audited.folder.wait_for(1, type="token_renewed", outcome="refused", token_id=token.token_id)
    assert told(foreign, "principal", "reason", *facts) == {
        "principal": "User:carol",
        "reason": "DELEGATION_TOKEN_OWNER_MISMATCH",
        **facts,
    }
    later, now = audited.folder.wait_for(2, type="token_expired", outcome="ok", token_id=token.token_id)
    assert later["expiry_time"] > now["expiry_time"]
    assert audited.folder.events(type="token_removed", token_id=token.token_id) == []


async def test_who_logged_in_by_token_may_not_ask_and_is_named_with_the_token(audited: AuditedNode) -> None:
    token = await audited.create()
    with audited.connect_by_token(token) as connection:
        connection.ask(CREATE, 2, renewers=(), max_lifetime=ms(-1))
        connection.ask(EXPIRE, 2, hmac=token.hmac, expiry_time_period=ms(-1))
    expected = {"reason": "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED", "by_token": True, "principal": "User:alice"}
    for kind, about in (("token_created", None), ("token_expired", token.token_id)):
        (event,) = audited.folder.wait_for(1, type=kind, session_token_id=token.token_id)
        assert told(event, *expected) == expected
        assert event.get("token_id") == about


async def test_an_unknown_hmac_is_told_without_a_token(audited: AuditedNode) -> None:
    with audited.connect(user="carol") as connection:
        connection.ask(EXPIRE, 2, hmac=b"x" * 64, expiry_time_period=ms(-1))
    (event,) = audited.folder.wait_for(1, type="token_expired", principal="User:carol")
    assert told(event, "reason", "token_id") == {"reason": "DELEGATION_TOKEN_NOT_FOUND", "token_id": None}


async def test_tokens_that_are_described(audited: AuditedNode) -> None:
    await audited.create("carol")
    async with audited.client("carol") as carol:
        found = await carol.describe()
    (event,) = audited.folder.wait_for(1, type="tokens_described", principal="User:carol")
    assert event["count"] == len(found) > 0


async def test_a_token_that_ends_is_removed_by_one_worker_of_one_node(zookeeper_connect: str, tmp_path: Path) -> None:
    with (
        AuditedNode(tmp_path / "first", zookeeper_connect, "first") as first,
        AuditedNode(tmp_path / "second", zookeeper_connect, "second") as second,
    ):
        token = await first.create(max_lifetime_ms=500)
        removed: list[Event] = []

        def gone() -> bool:
            removed[:] = [
                event
                for node in (first, second)
                for event in node.folder.events(type="token_removed", token_id=token.token_id)
            ]
            return bool(removed)

        eventually(gone, within_s=20)
    assert gone()
    (event,) = removed
    assert told(event, "outcome", "owner", "principal", "connection") == {
        "outcome": "ok",
        "owner": "User:alice",
        "principal": None,
        "connection": None,
    }


# What else is changed


async def test_acls_and_scram_users_that_are_changed(audited: AuditedNode) -> None:
    acl = Acl("alice", AclOperation.CREATE_TOKENS, ResourceType.USER, "User:audited")
    text = "ALLOW CreateTokens of LITERAL User:'User:audited' to User:alice from *"
    with audited.connect(user=ADMIN) as admin:
        assert create_acls(admin, acl) == [0]
        delete_acls(admin, filter_of(acl))
        admin.ask(ALTER_USERS, 0, deletions=(), upsertions=(upsertion("new-user", NEW_PASSWORD),))
        admin.ask(ALTER_USERS, 0, deletions=(deletion("unknown-user"),), upsertions=())
    with audited.connect(user="alice") as alice:
        create_acls(alice, acl)
    for kind in ("acl_created", "acl_deleted"):
        audited.folder.wait_for(1, type=kind, outcome="ok", acl=text, principal=f"User:{ADMIN}")
    (refused,) = audited.folder.wait_for(1, type="acl_created", outcome="refused", principal="User:alice")
    assert told(refused, "reason", "acl") == {"reason": "CLUSTER_AUTHORIZATION_FAILED", "acl": text}
    audited.folder.wait_for(1, type="scram_user_changed", outcome="ok", user="new-user")
    (unknown,) = audited.folder.wait_for(1, type="scram_user_changed", outcome="refused", user="unknown-user")
    assert unknown["reason"] == "RESOURCE_NOT_FOUND"


async def test_thousands_of_refused_acls_by_a_client_with_a_long_name_are_one_small_event(audited: AuditedNode) -> None:
    client_id = b"flood" + b"x" * 16_000
    creation = b"\x02\x02t\x03\x04U:a\x02*\x08\x03\x00"
    header = struct.pack(">hhih", CREATE_ACLS, 3, 1, len(client_id)) + client_id + b"\0"
    request = header + encode_varint(5_000 + 1) + creation * 5_000 + b"\0"
    before = len(audited.folder.text())
    with audited.connect("PLAINTEXT") as anybody:
        for _ in range(3):
            anybody.send_frame(request)
            anybody.receive_frame()
        events = audited.folder.wait_for(3, type="acl_created", principal="User:ANONYMOUS")
    assert [(event["count"], len(event["entries"])) for event in events] == [(5_000, 8)] * 3
    assert events[0]["client_id"].startswith("flood")
    assert len(audited.folder.text()) - before < 3 * 4 * 1024 < len(request)


async def test_keys_that_change_are_told_by_every_worker_with_their_ids(zookeeper_connect: str, tmp_path: Path) -> None:
    with AuditedNode(tmp_path, zookeeper_connect) as node:
        assert node.folder.events(type="keys_changed") == []
        replacement = tmp_path / "new.key"
        replacement.write_text(NEW_KEY)
        shutil.move(replacement, node.key)
        events = node.folder.wait_for(WORKERS, type="keys_changed")
        assert {event["node"] for event in events} == {f"kdt1-{number}" for number in range(WORKERS)}
        assert [event["keys"] for event in events] == [[SecretKey(NEW_KEY).id]] * WORKERS
        node.check_secrets()


# Certificates


async def test_certificates_are_logins(zookeeper_connect: str, tmp_path: Path) -> None:
    tls = TlsListeners.make(tmp_path)
    folder = AuditFolder(tmp_path / "audit")
    people = {"listener.name.ssl.ssl.client.auth": "required"}
    strangers = leaf("alice", authority("Another root"), subject_of("CN=Alice,OU=People,O=Example"))
    properties = server_properties(zookeeper_connect) | tls.properties | people | folder.properties()
    with KafkaDt(tmp_path / "server", properties) as server:
        for known in (tls.alice, tls.stranger):
            with RawConnection(server.address("SSL"), tls.context(known)) as connection:
                connection.ask(18, 3, client_software_name="a-library", client_software_version="1.2")
        for identity in (None, strangers):
            # With TLS 1.3 the client hears of the refusal only when it reads.
            with (
                contextlib.suppress(OSError, ConnectionClosed),
                RawConnection(server.address("SSL"), tls.context(identity)) as connection,
            ):
                connection.ask(18, 0)
        with RawConnection(server.address("SASL_SSL"), tls.context(tls.alice)) as connection:
            connection.login_plain("bob", USERS["bob"])
        for principal in ("User:alice", STRANGER):
            (event,) = folder.wait_for(1, type="login", outcome="ok", listener="SSL", principal=principal)
            assert told(event, "mechanism", "by_token") == {"mechanism": "SSL", "by_token": False}
            assert told(event, "client_id", "client_software") == {"client_id": "raw", "client_software": "a-library"}
        refused = folder.wait_for(2, type="login", outcome="refused", listener="SSL")
        assert [event["reason"] for event in refused] == ["wrong_credentials"] * 2
        assert all(event["client_address"] == "127.0.0.1" for event in refused)
        (event,) = folder.wait_for(1, type="login", listener="SASL_SSL")
        assert told(event, "principal", "mechanism") == {"principal": "User:bob", "mechanism": "PLAIN"}
