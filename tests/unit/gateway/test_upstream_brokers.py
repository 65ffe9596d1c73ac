"""Following the brokers of a cluster: scripted servers tell who there is, and what they speak."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt.client import Address, ClientConfig, Credentials, LoginFailed, SecurityProtocol
from kafka_dt.client.config import parse_addresses
from kafka_dt.gateway import brokers as module
from kafka_dt.gateway.brokers import UpstreamBrokers
from kafka_dt_protocol import APIS, ApiKey, RequestHeader, element_type
from tests.support.protocol.scripted_server import CLOSE, ScriptedServer

WITHIN_S = 60.0
NOWHERE = Address("127.0.0.1", 1)
"""An address on which no process listens."""


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ASK_SECONDS", 0.02)
    monkeypatch.setattr(module, "SOONEST_SECONDS", 0.001)


class Cluster:
    """Scripted brokers that agree on who there is."""

    def __init__(self) -> None:
        self.listed: dict[int, Address] = {}
        self.servers: dict[int, ScriptedServer] = {}
        self.asked = 0
        self._stack = AsyncExitStack()

    async def add(self, broker_id: int, **settings: Any) -> Address:
        server = ScriptedServer(**settings)
        server.scripts |= {ApiKey.DESCRIBE_CLUSTER: self._describe, ApiKey.METADATA: self._metadata}
        await self._stack.enter_async_context(server.running())
        self.servers[broker_id] = server
        (self.listed[broker_id],) = parse_addresses(server.address)
        return self.listed[broker_id]

    async def close(self) -> None:
        await self._stack.aclose()

    async def asked_again(self, times: int = 2) -> None:
        before = self.asked
        await until(lambda: self.asked >= before + times)

    def _describe(self, header: RequestHeader, _request: Any) -> Any:
        self.asked += 1
        broker = element_type(APIS[header.api_key].response[header.api_version], "brokers")
        fenced = {"is_fenced": False} if header.api_version >= 2 else {}
        return {
            "error_code": ErrorCode.none,
            "error_message": None,
            "cluster_id": "cluster",
            "controller_id": 0,
            "brokers": tuple(
                broker(broker_id=number, host=at.host, port=at.port, rack=None, **fenced)
                for number, at in self.listed.items()
            ),
        }

    def _metadata(self, header: RequestHeader, request: Any) -> Any:
        self.asked += 1
        assert request.topics == ()
        broker = element_type(APIS[header.api_key].response[header.api_version], "brokers")
        return {
            "error_code": ErrorCode.none,
            "cluster_id": "cluster",
            "controller_id": 0,
            "topics": (),
            "brokers": tuple(
                broker(node_id=number, host=at.host, port=at.port, rack=None) for number, at in self.listed.items()
            ),
        }


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    made = Cluster()
    yield made
    await made.close()


def followed(*bootstrap: Address, user: str = "", now: Callable[[], float] = time.monotonic) -> UpstreamBrokers:
    config = ClientConfig(
        bootstrap_servers=bootstrap,
        security_protocol=SecurityProtocol.SASL_PLAINTEXT if user else SecurityProtocol.PLAINTEXT,
        credentials=Credentials("PLAIN", user, "wonder") if user else None,
        request_timeout_ms=5_000,
        setup_timeout_ms=5_000,
    )
    places = iter(range(1_000_000))
    return UpstreamBrokers(config, monotonic=now, random_bytes=bytes, jitter=lambda: -next(places))


@asynccontextmanager
async def started(brokers: UpstreamBrokers) -> AsyncIterator[UpstreamBrokers]:
    try:
        await asyncio.wait_for(brokers.start(), WITHIN_S)
        yield brokers
    finally:
        await brokers.close()


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(WITHIN_S):
        while not condition():  # noqa: ASYNC110 - scripted servers send no events
            await asyncio.sleep(0.002)


def ranges(entity: Any) -> dict[int, tuple[int, int]]:
    return {key.api_key: (key.min_version, key.max_version) for key in entity.api_keys}


async def test_from_one_bootstrap_server_all_brokers_and_their_versions_are_known(cluster: Cluster) -> None:
    one = await cluster.add(1)
    two = await cluster.add(2, versions={**ScriptedServer().versions, ApiKey.METADATA: (2, 9)})
    async with started(followed(NOWHERE, one)) as brokers:
        assert brokers.candidates(1) == [one]
        assert brokers.candidates(2) == [two]
        assert brokers.candidates(3) == []
        assert ranges(brokers.versions(1))[ApiKey.METADATA] == (0, 13)
        assert ranges(brokers.versions(2))[ApiKey.METADATA] == (2, 9)
        assert ranges(brokers.versions(None))[ApiKey.METADATA] == (2, 9)
        assert brokers.candidates(None) == [two, one]
        assert brokers.servers() == (two, one, NOWHERE)


async def test_before_the_start_there_are_the_bootstrap_servers_alone() -> None:
    brokers = followed(NOWHERE, Address("127.0.0.1", 2))
    assert sorted(brokers.candidates(None), key=str) == [NOWHERE, Address("127.0.0.1", 2)]
    assert sorted(brokers.servers(), key=str) == [NOWHERE, Address("127.0.0.1", 2)]
    assert brokers.versions(None) is None
    await brokers.close()


async def test_it_logs_in_as_the_gateways_user_and_asks_for_versions_without(cluster: Cluster) -> None:
    one = await cluster.add(1, users={"gateway": "wonder"})
    await cluster.add(2, users={})
    async with started(followed(one, user="gateway")) as brokers:
        assert cluster.servers[1].logins == ["gateway"]
        assert cluster.servers[2].logins == []
        assert brokers.versions(2) is not None


async def test_wrong_credentials_end_the_start(cluster: Cluster) -> None:
    one = await cluster.add(1, users={"gateway": "other"})
    with pytest.raises(LoginFailed):
        async with started(followed(one, user="gateway")):
            pass


async def test_a_cluster_without_describe_cluster_is_asked_for_metadata(cluster: Cluster) -> None:
    versions = {key: each for key, each in ScriptedServer().versions.items() if key is not ApiKey.DESCRIBE_CLUSTER}
    one = await cluster.add(1, versions=versions)
    async with started(followed(one)) as brokers:
        assert brokers.candidates(1) == [one]
    assert ApiKey.METADATA in {api for api, _ in cluster.servers[1].requests}


async def test_a_cluster_that_refuses_describe_cluster_is_asked_for_metadata(cluster: Cluster) -> None:
    one = await cluster.add(1)
    cluster.servers[1].scripts[ApiKey.DESCRIBE_CLUSTER] = lambda _header, _request: {
        "error_code": ErrorCode.cluster_authorization_failed,
        "error_message": None,
        "cluster_id": "",
        "brokers": (),
    }
    async with started(followed(one)) as brokers:
        assert brokers.candidates(1) == [one]


async def test_the_start_waits_for_the_cluster_and_says_so_once(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, module.__name__)
    one = await cluster.add(1)
    describe = cluster.servers[1].scripts[ApiKey.DESCRIBE_CLUSTER]
    answers = [CLOSE] * 3
    cluster.servers[1].scripts[ApiKey.DESCRIBE_CLUSTER] = lambda header, request: (
        answers.pop() if answers else describe(header, request)
    )
    async with started(followed(one)) as brokers:
        assert brokers.candidates(1) == [one]
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO", "INFO"]
    assert "cannot be asked for its brokers" in caplog.messages[0]
    assert "if that listener wants a login by SASL" in caplog.messages[0]
    assert caplog.messages[-1] == "The upstream cluster names its brokers again: 1"


async def test_a_refused_login_and_a_cluster_out_of_reach_are_different_problems(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "REFUSED_SECONDS", 0.01)
    one = await cluster.add(1, users={"gateway": "wonder"})
    server = cluster.servers[1]
    describe = server.scripts[ApiKey.DESCRIBE_CLUSTER]
    async with started(followed(one, user="gateway")) as brokers:
        assert brokers.problem == ""
        server.scripts[ApiKey.DESCRIBE_CLUSTER] = lambda _header, _request: CLOSE
        await until(lambda: brokers.problem == "the upstream cluster cannot be reached")
        server.users["gateway"] = "another password"
        reason = "Authentication failed: Invalid username or password"
        refused = f"the upstream cluster refuses the gateway's login: {reason}"
        await until(lambda: brokers.problem == refused)
        server.users["gateway"] = "wonder"
        server.scripts[ApiKey.DESCRIBE_CLUSTER] = describe
        await until(lambda: brokers.problem == "")
    told = [record.getMessage() for record in caplog.records if "cannot be asked" in record.getMessage()]
    assert ["Invalid username or password" in each for each in told] == [False, True], "each problem once"
    assert "wonder" not in caplog.text


async def test_a_broker_that_hangs_does_not_hold_up_the_start(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither as the first bootstrap server, nor as one whose versions are asked for."""
    monkeypatch.setattr(module, "PATIENCE_MS", 500)
    over = asyncio.Event()

    async def hang(*_: object) -> Any:
        await over.wait()
        return CLOSE

    hanging, other = await cluster.add(1, scripts={ApiKey.API_VERSIONS: hang}), await cluster.add(2)
    config = ClientConfig(bootstrap_servers=(hanging, other), request_timeout_ms=10 * 60_000)
    brokers = UpstreamBrokers(config, monotonic=time.monotonic, random_bytes=bytes, jitter=lambda: 0.5)
    try:
        async with started(brokers):
            assert brokers.candidates(2) == [other]
    finally:
        over.set()


async def test_a_broker_that_names_no_brokers_is_not_believed(cluster: Cluster) -> None:
    one = await cluster.add(1)
    listed, cluster.listed = cluster.listed, {}
    brokers = followed(one)
    starting = asyncio.create_task(brokers.start())
    await cluster.asked_again(4)
    assert not starting.done()
    cluster.listed = listed
    await asyncio.wait_for(starting, WITHIN_S)
    cluster.listed = {}
    await cluster.asked_again(4)
    assert brokers.candidates(1) == [one]
    await brokers.close()


async def test_brokers_that_come_go_and_move_are_followed_and_told(cluster: Cluster) -> None:
    one = await cluster.add(1)
    changes: list[tuple[set[int], set[int]]] = []
    async with started(followed(one)) as brokers:
        brokers.on_change(lambda came, went: changes.append((set(came), set(went))))
        two = await cluster.add(2, versions={**ScriptedServer().versions, ApiKey.METADATA: (0, 5)})
        await until(lambda: brokers.candidates(2) == [two])
        await until(lambda: ranges(brokers.versions(None))[ApiKey.METADATA] == (0, 5))
        cluster.listed[2] = one
        await until(lambda: brokers.candidates(2) == [one])
        await until(lambda: ranges(brokers.versions(2))[ApiKey.METADATA] == (0, 13))
        del cluster.listed[2]
        await until(lambda: brokers.candidates(2) == [])
        assert changes == [({1}, set()), ({2}, set()), (set(), {2})]


async def test_what_is_learned_is_known_at_once_and_asked_about_soon(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ASK_SECONDS", 60)
    one = await cluster.add(1)
    changes: list[tuple[set[int], set[int]]] = []
    async with started(followed(one)) as brokers:
        two = await cluster.add(2, versions={ApiKey.API_VERSIONS: (0, 4)})
        brokers.on_change(lambda came, went: changes.append((set(came), set(went))))
        common = brokers.versions(None)
        brokers.learn(2, two.host, two.port)
        assert brokers.candidates(2) == [two]
        assert changes == [({1}, set()), ({2}, set())]
        assert brokers.versions(2) is common
        await until(lambda: ranges(brokers.versions(2)) == {ApiKey.API_VERSIONS: (0, 4)})


async def test_what_is_known_already_is_not_asked_about_again(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ASK_SECONDS", 60)
    one = await cluster.add(1)
    async with started(followed(one)) as brokers:
        for _ in range(5):
            brokers.learn(1, one.host, one.port)
            await asyncio.sleep(0.005)
        assert cluster.asked == 1


async def test_what_was_learned_is_kept_for_a_while_and_then_only_if_the_cluster_names_it(cluster: Cluster) -> None:
    clock = [100.0]
    one = await cluster.add(1)
    async with started(followed(one, now=lambda: clock[0])) as brokers:
        brokers.learn(7, "new.example.com", 9092)
        await cluster.asked_again()
        assert brokers.candidates(7) == [Address("new.example.com", 9092)]
        clock[0] += module.LEARNED_SECONDS + 1
        await until(lambda: brokers.candidates(7) == [])
        assert brokers.candidates(1) == [one]


async def test_where_a_known_broker_is_says_the_cluster_that_is_asked_soon(
    cluster: Cluster, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ASK_SECONDS", 60)
    caplog.set_level(logging.INFO, module.__name__)
    one = await cluster.add(1)
    async with started(followed(one)) as brokers:
        versions = brokers.versions(1)
        for _ in range(50):
            brokers.learn(1, "old.example.com", 9092)
            brokers.learn(1, one.host, one.port)
        assert brokers.candidates(1) == [one]
        await until(lambda: cluster.asked == 2)
        cluster.listed[1] = NOWHERE
        brokers.learn(1, NOWHERE.host, NOWHERE.port)
        await until(lambda: brokers.candidates(1) == [NOWHERE])
        assert brokers.versions(1) is versions, "until it has told others"
    assert caplog.messages[:2] == [f"Upstream broker 1 is at {one}", f"Upstream broker 1 is at {NOWHERE}"]


async def test_the_cluster_corrects_what_was_learned_moments_ago(cluster: Cluster) -> None:
    one = await cluster.add(1)
    async with started(followed(one)) as brokers:
        brokers.learn(7, "old.example.com", 9092)
        cluster.listed[7] = one
        await until(lambda: brokers.candidates(7) == [one])


async def test_an_upgraded_broker_is_found_out_and_an_unchanged_one_stays_the_same_object(cluster: Cluster) -> None:
    clock = [100.0]
    one = await cluster.add(1)
    await cluster.add(2)
    async with started(followed(one, now=lambda: clock[0])) as brokers:
        before, same = brokers.versions(1), brokers.versions(2)
        cluster.servers[1].versions[ApiKey.METADATA] = (4, 12)
        clock[0] += module.VERSIONS_SECONDS + 1
        await until(lambda: brokers.versions(1) != before)
        await until(lambda: cluster.servers[2].connections == 2)
        await cluster.asked_again()
        assert ranges(brokers.versions(1))[ApiKey.METADATA] == (4, 12)
        assert brokers.versions(2) is same
        assert ranges(brokers.versions(None))[ApiKey.METADATA] == (4, 12)
        assert brokers.versions(None) is brokers.versions(None)


async def test_a_broker_that_cannot_be_reached_is_one_line_and_the_others_are_served(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    clock = [100.0]
    one = await cluster.add(1)
    cluster.listed[2] = NOWHERE
    async with started(followed(one, now=lambda: clock[0])) as brokers:
        assert brokers.candidates(2) == [NOWHERE]
        assert brokers.versions(2) is brokers.versions(None)
        assert brokers.versions(None) == brokers.versions(1)
        assert brokers.candidates(None) == [one, NOWHERE]
        for _ in range(3):
            clock[0] += module.VERSIONS_RETRY_SECONDS + 1
            await cluster.asked_again()
        lines = [message for message in caplog.messages if "Upstream broker 2 cannot be reached" in message]
        assert len(lines) == 1
        cluster.listed[2] = one
        await until(lambda: brokers.versions(2) is not brokers.versions(None))


async def test_while_the_cluster_is_gone_what_was_known_stays(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    one = await cluster.add(1)
    caplog.set_level(logging.WARNING, module.__name__)
    async with started(followed(one)) as brokers:
        describe = cluster.servers[1].scripts[ApiKey.DESCRIBE_CLUSTER]
        cluster.servers[1].scripts[ApiKey.DESCRIBE_CLUSTER] = lambda _header, _request: CLOSE
        cluster.servers[1].drop_connections()
        await until(lambda: caplog.messages)
        assert brokers.candidates(1) == [one]
        connections = cluster.servers[1].connections
        await until(lambda: cluster.servers[1].connections > connections + 2)
        assert len(caplog.messages) == 1
        cluster.servers[1].scripts[ApiKey.DESCRIBE_CLUSTER] = describe
        await cluster.asked_again()


@pytest.mark.usefixtures("steady_time")
async def test_a_login_that_is_refused_later_is_tried_with_long_pauses(
    cluster: Cluster, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = await cluster.add(1, users={"gateway": "wonder"})
    async with started(followed(one, user="gateway")) as brokers:
        cluster.servers[1].users["gateway"] = "changed"
        monkeypatch.setattr(module, "REFUSED_SECONDS", 0.3)
        cluster.servers[1].drop_connections()
        await until(lambda: "login at" in caplog.text)
        tried, refused_s = cluster.servers[1].connections, asyncio.get_running_loop().time()
        await until(lambda: cluster.servers[1].connections > tried)
        assert asyncio.get_running_loop().time() - refused_s > 0.2
        assert brokers.candidates(1) == [one]


async def test_without_its_bootstrap_server_the_cluster_is_asked_by_another_broker(cluster: Cluster) -> None:
    bootstrap = await cluster.add(1)
    await cluster.add(2)
    async with started(followed(bootstrap)) as brokers:
        cluster.servers[1].greeting = b"\0\0\0\0"
        cluster.servers[1].drop_connections()
        three = await cluster.add(3)
        await until(lambda: brokers.candidates(3) == [three])


async def test_nothing_unforeseen_ends_the_following(
    cluster: Cluster, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = await cluster.add(1)
    async with started(followed(one)) as brokers:

        async def broken() -> None:
            raise RuntimeError("a mistake of ours")

        with monkeypatch.context() as patch:
            patch.setattr(brokers, "_look", broken)
            await until(lambda: "a mistake of ours" in caplog.text)
        await cluster.asked_again()


async def test_nothing_unforeseen_ends_the_asking_for_versions(
    cluster: Cluster, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [100.0]
    brokers = followed(await cluster.add(1), now=lambda: clock[0])

    def broken(*_: Any) -> None:
        raise RuntimeError("a mistake of ours")

    with monkeypatch.context() as patch:
        patch.setattr(brokers, "_note_versions", broken)
        async with started(brokers):
            await cluster.asked_again()
            assert caplog.text.count("RuntimeError: a mistake of ours") == 1
            patch.undo()
            clock[0] += module.VERSIONS_SECONDS + 1
            await until(lambda: brokers._brokers[1].versions)
