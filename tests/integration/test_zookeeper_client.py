"""The client: requests, errors, paths, ACLs, logins and TLS against a real ZooKeeper."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
from functools import partial
from typing import TYPE_CHECKING

import pytest
from kazoo.client import KazooClient

from kafka_dt import tls
from kafka_dt.zookeeper.connection.client import ZooKeeperClient
from kafka_dt.zookeeper.connection.operations import Create, Delete, SetData, Stat
from kafka_dt.zookeeper.connection.settings import LoginScheme, ZooKeeperLogin, ZooKeeperSettings
from kafka_dt.zookeeper.errors import (
    AccessDenied,
    CannotConnect,
    LoginRefused,
    LoginUnusable,
    MultiFailed,
    NodeExists,
    NoNode,
    VersionMismatch,
    ZooKeeperConnectionLost,
)
from kafka_dt.zookeeper.stores.cluster import read_or_create_cluster_id
from tests.integration.zookeeper_nodes import client_of, eventually, settings
from tests.support.identity.tls_material import authority, leaf
from tests.support.processes.ports import free_ports
from tests.support.zookeeper.server import child_zookeeper

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

LOGIN = ZooKeeperLogin(LoginScheme.DIGEST, "kafka-dt", "s3cret")


@pytest.fixture
async def client(zookeeper_connect: str) -> AsyncIterator[ZooKeeperClient]:
    async with client_of(settings(zookeeper_connect)) as client:
        yield client


async def test_a_chroot_is_made_with_its_parents(zookeeper_connect: str) -> None:
    async with client_of(settings(f"{zookeeper_connect}/a/b")) as client:
        await client.create("/x", b"1")
    async with client_of(settings(zookeeper_connect)) as outside:
        assert (await outside.get("/a/b/x")).data == b"1"


async def test_requests_and_their_errors(client: ZooKeeperClient) -> None:
    await client.create("/a", b"1")
    with pytest.raises(NodeExists):
        await client.create("/a", b"1")
    with pytest.raises(NoNode):
        await client.create("/b/c", b"1")
    with pytest.raises(NoNode):
        await client.get("/b")
    with pytest.raises(NoNode):
        await client.children("/b")
    with pytest.raises(NoNode):
        await client.delete("/b")
    with pytest.raises(VersionMismatch):
        await client.delete("/a", 5)
    with pytest.raises(ValueError, match="absolute"):
        client.get("a")
    assert await client.exists("/b") is None
    assert await client.children("/") == ["a"]
    await client.delete("/a", 0)
    assert await client.children("/") == []


async def test_a_multi_is_carried_out_whole(client: ZooKeeperClient) -> None:
    await client.create("/a", b"1")
    made, changed, removed = await client.multi(
        [Create("/n_", b"", sequence=True), SetData("/a", b"2", 0), Delete("/a", 1)]
    )
    assert str(made).endswith("/n_0000000001")
    assert isinstance(changed, Stat)
    assert changed.version == 1
    assert removed is None


async def test_a_multi_that_is_refused_says_which_operation_it_was(client: ZooKeeperClient) -> None:
    await client.create("/a", b"1")
    with pytest.raises(MultiFailed) as caught:
        await client.multi([Create("/b", b""), SetData("/a", b"2", 7), Create("/c", b"")])
    assert caught.value.index == 1
    assert isinstance(caught.value.cause, VersionMismatch)
    assert await client.children("/") == ["a"]


async def test_numbers_of_children_have_no_gaps(client: ZooKeeperClient) -> None:
    """What the follower of changes rests on."""
    await client.create("/p", b"")

    async def make(name: str) -> int:
        result = await client.multi([Create(name, b""), Create("/p/n_", b"", sequence=True)])
        return int(str(result[1])[-10:])

    async def made() -> int:
        stat = await client.exists("/p")
        assert stat is not None
        return (stat.child_version + stat.child_count) // 2

    assert [await make("/a"), await make("/b")] == [0, 1]
    with pytest.raises(MultiFailed):
        await make("/a")
    assert await make("/c") == 2
    await client.delete("/p/n_0000000001")
    await client.delete("/p/n_0000000002")
    assert await made() == 3
    assert await make("/d") == 3
    assert await made() == 4


async def test_answers_arrive_in_order_and_before_tasks_go_on(client: ZooKeeperClient) -> None:
    arrived: list[int] = []

    def remember(number: int, stat: Stat, _: object) -> Stat:
        arrived.append(number)
        return stat

    requests = [client.exists("/", arrived=partial(remember, number)) for number in range(1000)]
    assert await requests[500] is not None
    assert arrived[:501] == list(range(501))
    await asyncio.gather(*requests)
    assert arrived == list(range(1000))


async def test_what_arrived_raises_is_the_outcome(client: ZooKeeperClient) -> None:
    def refuse(*_: object) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await client.get("/", arrived=refuse)
    assert await client.exists("/missing", arrived=lambda *_: None) is None


async def test_a_watch_is_called_once_in_the_loop(client: ZooKeeperClient) -> None:
    calls: list[object] = []
    assert await client.exists("/w", watch=calls.append) is None
    assert await client.exists("/w", watch=calls.append) is None
    await client.create("/w", b"")
    await client.create("/w/x", b"")
    await eventually(lambda: bool(calls))
    assert len(calls) == 1


async def test_nothing_answers_is_a_clear_error() -> None:
    client = ZooKeeperClient(ZooKeeperSettings("127.0.0.1:1", connection_timeout_ms=300))
    with pytest.raises(CannotConnect, match=r"cannot connect to ZooKeeper at 127.0.0.1:1 within 300 ms: .*refused"):
        await client.start()
    with pytest.raises(ZooKeeperConnectionLost) as caught:
        await client.get("/")
    assert not caught.value.sent


async def test_the_cluster_id_is_made_once(client: ZooKeeperClient, zookeeper_connect: str) -> None:
    async with client_of(settings(zookeeper_connect)) as other:
        ids = await asyncio.gather(
            read_or_create_cluster_id(client, lambda count: b"\xff" * count),
            read_or_create_cluster_id(other, lambda count: b"\x00" * count),
        )
    assert ids[0] == ids[1]
    assert ids[0] in {"_____________________w", "AAAAAAAAQACAAAAAAAAAAA"} or len(ids[0]) == 22
    assert await read_or_create_cluster_id(client, bytes) == ids[0]


async def test_znodes_are_open_without_set_acl(client: ZooKeeperClient, zookeeper_connect: str) -> None:
    await client.ensure_path("/delegation_token/tokens")
    assert _acls(zookeeper_connect, "/delegation_token/tokens") == {("world", "anyone", 31)}


async def test_with_set_acl_znodes_are_ours_and_the_sensitive_ones_are_hidden(zookeeper_connect: str) -> None:
    secure = ZooKeeperSettings(zookeeper_connect, set_acl=True, login=LOGIN)
    async with client_of(secure) as client:
        await client.ensure_path("/delegation_token/tokens")
        await client.create("/delegation_token/tokens/t", b"token")
        await client.multi([Create("/delegation_token/tokens/u", b"token"), Create("/delegation_token/c", b"change")])
    async with client_of(settings(zookeeper_connect)) as stranger:
        assert (await stranger.get("/delegation_token/c")).data == b"change"
        for path in ("/delegation_token/tokens/t", "/delegation_token/tokens/u"):
            with pytest.raises(AccessDenied):
                await stranger.get(path)
        with pytest.raises(AccessDenied):
            await stranger.children("/delegation_token/tokens")
        with pytest.raises(MultiFailed) as caught:
            await stranger.multi([SetData("/delegation_token/c", b"")])
        assert isinstance(caught.value.cause, AccessDenied)
    async with client_of(secure) as again:
        assert (await again.get("/delegation_token/tokens/t")).data == b"token"
    owner = {scheme: permissions for scheme, _, permissions in _acls(zookeeper_connect, "/delegation_token", LOGIN)}
    assert owner == {"digest": 31, "world": 1}


async def test_set_acl_needs_a_login() -> None:
    with pytest.raises(LoginUnusable, match=r"zookeeper\.set\.acl=true"):
        ZooKeeperClient(ZooKeeperSettings("127.0.0.1:1", set_acl=True))


async def test_a_user_name_with_a_colon_is_refused() -> None:
    with pytest.raises(LoginUnusable, match="colon"):
        ZooKeeperClient(ZooKeeperSettings("127.0.0.1:1", login=ZooKeeperLogin(LoginScheme.DIGEST, "a:b", "c")))


async def test_a_sasl_login_without_its_package_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    login = ZooKeeperLogin(LoginScheme.SASL_DIGEST_MD5, "kafka", "secret")
    with pytest.raises(LoginUnusable, match="pure-sasl"):
        ZooKeeperClient(ZooKeeperSettings("127.0.0.1:1", login=login))


async def test_no_secret_reaches_a_log(zookeeper_connect: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(1)
    async with client_of(ZooKeeperSettings(zookeeper_connect, set_acl=True, login=LOGIN)) as client:
        await client.create("/secret", b"t0ken")
        await client.get("/secret")
        assert "connected to ZooKeeper" in caplog.text
    assert "s3cret" not in caplog.text
    assert "t0ken" not in caplog.text
    assert "s3cret" not in repr(LOGIN)
    assert logging.getLogger("kafka_dt.zookeeper.connection.session.kazoo").level == logging.ERROR


async def test_a_sasl_login_opens_what_a_broker_has_closed(tmp_path: Path) -> None:
    jaas = tmp_path / "server.jaas"
    jaas.write_text(
        'Server {\n  org.apache.zookeeper.server.auth.DigestLoginModule required user_kafka="secret";\n};\n'
    )
    with child_zookeeper(
        tmp_path / "data",
        {"authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"},
        {"java.security.auth.login.config": str(jaas)},
    ) as server:
        login = ZooKeeperLogin(LoginScheme.SASL_DIGEST_MD5, "kafka", "secret")
        async with client_of(ZooKeeperSettings(server.address, set_acl=True, login=login)) as client:
            await client.create("/a", b"1")
        assert ("sasl", "kafka", 31) in _acls(server.address, "/a")
        wrong = ZooKeeperLogin(LoginScheme.SASL_DIGEST_MD5, "kafka", "wrong")
        with pytest.raises(LoginRefused, match=r"^kafka\.dt\.zookeeper\.sasl\.jaas\.config: .* refuses this login"):
            await ZooKeeperClient(ZooKeeperSettings(server.address, login=wrong)).start()


async def test_tls_with_a_certificate_of_ours(tmp_path: Path) -> None:
    root = authority("root")
    (tmp_path / "server.p12").write_bytes(leaf("localhost", root).pkcs12("storepass"))
    (tmp_path / "trust.pem").write_text(root.certificate_pem)
    (tmp_path / "client.p12").write_bytes(leaf("client", root).pkcs12("clientpass"))
    port = free_ports(1)
    with child_zookeeper(tmp_path / "data", _tls_properties(tmp_path, port)):
        ours = {
            "ssl.truststore.location": str(tmp_path / "trust.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.keystore.location": str(tmp_path / "client.p12"),
            "ssl.keystore.password": "clientpass",
            "ssl.keystore.type": "PKCS12",
        }
        secure = ZooKeeperSettings(
            f"localhost:{port}/x", set_acl=True, tls=tls.client_context(ours), has_certificate=True
        )
        async with client_of(secure) as client:
            await client.ensure_path("/delegation_token/tokens")
            # Many answers in one TLS record: all must be seen although the socket itself is not readable any more.
            await asyncio.gather(*(client.create(f"/delegation_token/tokens/{n}", b"x" * 500) for n in range(500)))
            reads = [client.get(f"/delegation_token/tokens/{n}") for n in range(500)]
            znodes = await asyncio.wait_for(asyncio.gather(*reads), 20)
            assert {znode.data for znode in znodes} == {b"x" * 500}
        (tmp_path / "other.pem").write_text(authority("other").certificate_pem)
        stranger = ZooKeeperSettings(
            f"localhost:{port}",
            tls=tls.client_context({**ours, "ssl.truststore.location": str(tmp_path / "other.pem")}),
            connection_timeout_ms=1000,
        )
        with pytest.raises(CannotConnect, match=r"(?i)certificate"):
            await ZooKeeperClient(stranger).start()


def _tls_properties(folder: Path, port: int) -> dict[str, str]:
    return {
        "secureClientPort": str(port),
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "ssl.keyStore.location": str(folder / "server.p12"),
        "ssl.keyStore.password": "storepass",
        "ssl.keyStore.type": "PKCS12",
        "ssl.trustStore.location": str(folder / "trust.pem"),
        "ssl.trustStore.type": "PEM",
        "authProvider.x509": "org.apache.zookeeper.server.auth.X509AuthenticationProvider",
    }


def _acls(connect: str, path: str, login: ZooKeeperLogin | None = None) -> set[tuple[str, str, int]]:
    kazoo = KazooClient(hosts=connect)
    kazoo.start()
    try:
        if login is not None:
            kazoo.add_auth(login.scheme.value, f"{login.username}:{login.password}")
        return {(acl.id.scheme, acl.id.id, acl.perms) for acl in kazoo.get_acls(path)[0]}
    finally:
        kazoo.stop()
        kazoo.close()
