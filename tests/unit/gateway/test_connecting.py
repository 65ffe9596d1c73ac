"""From a principal to a connection: which login, which broker, and what is tried again."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from kafka_dt.client import (
    Address,
    ClientConfig,
    ConnectionFailed,
    ConnectionLost,
    Credentials,
    LoginFailed,
    MechanismNotEnabled,
    NoServerReached,
    SecurityProtocol,
    parse_addresses,
)
from kafka_dt.config import ConfigError, GatewaySettings, UpstreamIdentity
from kafka_dt.gateway.connecting import MOST_AT_ONCE, Connector
from kafka_dt.gateway.gateway import identities_for
from kafka_dt.gateway.identities import (
    REFUSED_MS,
    IdentityRefused,
    MappedIdentities,
    NoIdentity,
    OneForAll,
    UpstreamLogin,
)
from kafka_dt.gateway.owner_tokens import OwnerTokens
from kafka_dt.gateway.upstream import Exchange, Upstream
from kafka_dt.metrics import Counts
from kafka_dt.tokens import ANONYMOUS, Principal
from kafka_dt_protocol.api.registry import ApiKey
from kafka_dt_protocol.sasl import ScramMechanism
from tests.support.protocol.scripted_server import ScriptedServer

ALICE = Principal.user("alice")
GATEWAY = Credentials("PLAIN", "gateway", "secret")
NOW = 1_000_000
WITHIN_S = 60.0
PATIENCE_S = 0.02


def login(password: str, known_by_ms: int = 0, mechanism: str = "PLAIN") -> UpstreamLogin:
    return UpstreamLogin(Credentials(mechanism, "alice", password), known_by_ms)


class Given:
    """Identities as a test has them: the next one of a list after each refusal."""

    def __init__(self, *logins: UpstreamLogin | None) -> None:
        self._logins = list(logins)
        self.refusals: list[UpstreamLogin] = []

    async def login(self, principal: Principal) -> UpstreamLogin | None:
        if not self._logins:
            raise NoIdentity(principal, "the test has no more")
        return self._logins[0]

    async def refused(self, principal: Principal, login: UpstreamLogin) -> None:
        assert principal == ALICE
        self.refusals.append(login)
        self._logins.pop(0)

    async def close(self) -> None:
        pass


class Silent:
    """Hears nothing."""

    client_addresses = (None, None)

    def upstream_data(self, data: bytes) -> None:
        raise AssertionError(data)

    def upstream_lost(self, reason: str) -> None:
        raise AssertionError(reason)

    def upstream_full(self) -> None:
        raise AssertionError

    def upstream_writable(self) -> None:
        raise AssertionError


@pytest.fixture
async def broker() -> AsyncIterator[ScriptedServer]:
    scripted = ScriptedServer(users={"alice": "wonder"})
    async with scripted.running():
        yield scripted


class Steps:
    """A clock that goes on only while a task sleeps; `then` happens after each sleep."""

    def __init__(self, then: Callable[[], None] = lambda: None) -> None:
        self.now_ms = NOW
        self.slept: list[float] = []
        self._then = then

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now_ms += round(1000 * seconds)
        self._then()


def config(broker: ScriptedServer) -> ClientConfig:
    return ClientConfig(
        bootstrap_servers=parse_addresses(broker.address),
        security_protocol=SecurityProtocol.SASL_PLAINTEXT,
        credentials=GATEWAY,
        request_timeout_ms=5_000,
    )


def settings(identity: UpstreamIdentity, file: Path | None = None) -> GatewaySettings:
    return GatewaySettings(client={}, identity=identity, identity_file=file, identity_mechanism="SCRAM-SHA-512")


async def connect(
    broker: ScriptedServer,
    identities: Given,
    steps: Steps | None = None,
    addresses: Callable[[], Sequence[Address]] | None = None,
) -> Upstream:
    steps = steps or Steps()
    connector = Connector(config(broker), identities, now_ms=lambda: steps.now_ms, sleep=steps.sleep)
    return await connector.connect(ALICE, addresses or (lambda: parse_addresses(broker.address)), Silent())


@pytest.fixture
def refusing() -> Iterator[Address]:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield Address("127.0.0.1", bound.getsockname()[1])


@pytest.fixture
async def frozen() -> AsyncIterator[ScriptedServer]:
    """A broker that takes connections and answers nothing."""
    scripted = ScriptedServer(scripts={ApiKey.API_VERSIONS: lambda *_: b""})
    async with scripted.running():
        yield scripted


@dataclass
class Opened:
    """A connection that is only ended."""

    aborted: bool = False

    def abort(self) -> None:
        self.aborted = True


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(WITHIN_S):
        while not condition():  # noqa: ASYNC110 - scripted servers send no events
            await asyncio.sleep(0.002)


async def test_a_client_is_logged_in_as_its_identity(broker: ScriptedServer) -> None:
    upstream = await connect(broker, Given(login("wonder")))
    assert broker.logins == ["alice"]
    upstream.abort()


async def test_the_next_address_is_tried_when_one_cannot_be_reached(broker: ScriptedServer, refusing: Address) -> None:
    both = (refusing, *parse_addresses(broker.address))
    upstream = await connect(broker, Given(login("wonder")), addresses=lambda: both)
    assert upstream.server == broker.address
    upstream.abort()


async def test_brokers_that_cannot_be_reached_are_told(broker: ScriptedServer, refusing: Address) -> None:
    with pytest.raises(ConnectionLost, match="refused"):
        await connect(broker, Given(login("wonder")), addresses=lambda: [refusing])
    with pytest.raises(NoServerReached) as caught:
        await connect(broker, Given(login("wonder")), addresses=lambda: [refusing, refusing])
    assert len(caught.value.reasons) == 2
    with pytest.raises(ConnectionFailed, match="no address"):
        await connect(broker, Given(login("wonder")), addresses=list)


async def test_a_broker_that_does_not_answer_is_not_waited_for_alone(
    broker: ScriptedServer, frozen: ScriptedServer
) -> None:
    addresses = parse_addresses(f"{frozen.address},{broker.address}")
    connector = Connector(config(broker), Given(login("wonder")), patience_s=PATIENCE_S)
    async with asyncio.timeout(WITHIN_S):
        upstream = await connector.connect(ALICE, lambda: addresses, Silent())
    assert upstream.server == broker.address
    await until(lambda: not frozen._open)
    upstream.abort()


async def test_of_two_brokers_that_take_the_login_at_once_one_is_left(
    broker: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = asyncio.Event()
    asked: list[str] = []
    opened: list[Opened] = []

    async def open_late(_: Upstream, address: Address, __: object) -> Opened:
        asked.append(address.host)
        await answer.wait()
        opened.append(Opened())
        return opened[-1]

    monkeypatch.setattr(Upstream, "open", open_late)
    connector = Connector(config(broker), Given(login("wonder")), patience_s=PATIENCE_S)
    addresses = [Address(host, 1) for host in "abc"]
    connecting = asyncio.create_task(connector.connect(ALICE, lambda: addresses, Silent()))
    await until(lambda: len(asked) == MOST_AT_ONCE)
    await asyncio.sleep(2 * PATIENCE_S)
    answer.set()
    used = await connecting
    assert asked == ["a", "b"]
    assert [each.aborted for each in opened if each is not used] == [True]  # type: ignore[comparison-overlap]


async def test_a_login_that_brokers_may_not_know_yet_is_tried_again_for_a_while(broker: ScriptedServer) -> None:
    broker.users["alice"] = "not yet"
    steps = Steps(lambda: broker.users.update(alice="wonder") if len(steps.slept) == 3 else None)
    identities = Given(login("wonder", known_by_ms=NOW + 5_000))
    upstream = await connect(broker, identities, steps)
    assert steps.slept == [0.05, 0.1, 0.2]
    assert identities.refusals == []
    upstream.abort()


async def test_the_patience_with_a_new_login_ends(broker: ScriptedServer) -> None:
    steps = Steps()
    new = login("wrong", known_by_ms=NOW + 5_000)
    with pytest.raises(NoIdentity):
        await connect(broker, Given(new), steps)
    assert 5 <= sum(steps.slept) <= 6


async def test_a_login_that_is_refused_is_looked_for_again_once(broker: ScriptedServer) -> None:
    identities = Given(login("old"), login("wonder"))
    upstream = await connect(broker, identities)
    assert identities.refusals == [login("old")]
    assert broker.logins == ["alice"]
    upstream.abort()
    identities = Given(login("old"), login("older"), login("wonder"))
    with pytest.raises(LoginFailed):
        await connect(broker, identities)
    assert broker.connections == 4


async def test_a_name_that_does_not_print_does_not_break_a_line(
    broker: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    connector = Connector(config(broker), OneForAll(lambda: login("wrong").credentials))
    with pytest.raises(LoginFailed):
        await connector.connect(Principal.user("a\nlice"), lambda: parse_addresses(broker.address), Silent())
    (line,) = caplog.messages
    refused = "The upstream cluster refused the login of User:a?lice; the gateway looks for another login: "
    assert line.startswith(refused)


async def test_the_same_login_is_not_tried_twice(broker: ScriptedServer) -> None:
    with pytest.raises(LoginFailed):
        await connect(broker, Given(login("wrong"), login("wrong")))
    assert broker.connections == 1


async def test_a_login_that_was_refused_is_not_tried_again_for_some_seconds(broker: ScriptedServer) -> None:
    steps = Steps()
    wrong = [login("wrong")] * 100
    connector = Connector(config(broker), Given(*wrong), now_ms=lambda: steps.now_ms, sleep=steps.sleep)

    async def connect() -> Upstream:
        return await connector.connect(ALICE, lambda: parse_addresses(broker.address), Silent())

    for _ in range(10):
        with pytest.raises(LoginFailed, match="Invalid username or password"):
            await connect()
        steps.now_ms += REFUSED_MS // 10
    assert broker.connections == 1
    broker.users["alice"] = "wrong"
    (await connect()).abort()
    assert broker.connections == 2
    broker.users["alice"] = "right"
    with pytest.raises(LoginFailed, match="Invalid username or password"):
        await connect()
    steps.now_ms -= 3_600_000  # the clock was set back
    broker.users["alice"] = "wrong"
    (await connect()).abort()
    assert broker.connections == 4


async def test_a_login_that_one_broker_refuses_is_tried_at_the_others(broker: ScriptedServer) -> None:
    other = ScriptedServer(users={"alice": "new"})
    connector = Connector(config(broker), Given(*[login("new")] * 4))

    async def connect(to: ScriptedServer) -> Upstream:
        return await connector.connect(ALICE, lambda: parse_addresses(to.address), Silent())

    async with other.running():
        for _ in range(2):
            with pytest.raises(LoginFailed):
                await connect(broker)
            (await connect(other)).abort()
    assert (broker.connections, other.connections) == (1, 2)


async def test_another_login_of_the_same_principal_is_tried_at_once(broker: ScriptedServer) -> None:
    identities = Given(login("old"), login("old"), login("wonder"))
    connector = Connector(config(broker), identities)
    with pytest.raises(LoginFailed):
        await connector.connect(ALICE, lambda: parse_addresses(broker.address), Silent())
    (await connector.connect(ALICE, lambda: parse_addresses(broker.address), Silent())).abort()
    assert broker.connections == 2


async def test_the_keys_of_a_password_are_derived_once(broker: ScriptedServer) -> None:
    connector = Connector(config(broker), OneForAll(lambda: login("wonder", mechanism="SCRAM-SHA-512").credentials))
    for _ in range(3):
        (await connector.connect(ALICE, lambda: parse_addresses(broker.address), Silent())).abort()
    assert broker.logins == ["alice"] * 3
    remembered = connector._derive.cache_info()
    assert (remembered.misses, remembered.hits) == (1, 2)


async def test_a_mechanism_that_the_broker_does_not_take_is_nothing_that_passes(broker: ScriptedServer) -> None:
    broker.mechanisms = ("SCRAM-SHA-256",)
    identities = Given(login("wonder", known_by_ms=NOW + 5_000), login("wonder", mechanism="SCRAM-SHA-256"))
    with pytest.raises(MechanismNotEnabled):
        await connect(broker, identities)
    assert identities.refusals == []


async def test_whoever_is_nobody_gets_no_connection(broker: ScriptedServer) -> None:
    with pytest.raises(NoIdentity):
        await connect(broker, Given())
    assert broker.connections == 0


@pytest.mark.parametrize(("error", "results"), [(IdentityRefused, ["refused"]), (NoIdentity, [])])
async def test_a_client_without_an_identity_counts_as_refused_if_the_cluster_refused_it(
    broker: ScriptedServer, error: type[NoIdentity], results: list[str]
) -> None:
    class Without(Given):
        async def login(self, principal: Principal) -> UpstreamLogin | None:
            raise error(principal, "the test has none")

    counted, expected = [0.0] * Counts.cells(), [0.0] * Counts.cells()
    connector = Connector(config(broker), Without(), counts=Counts.over(counted))
    with pytest.raises(error):
        await connector.connect(ALICE, lambda: parse_addresses(broker.address), Silent())
    for result in results:
        Counts.over(expected).gateway_connections.add(result)
    assert counted == expected


async def test_a_second_login_is_with_what_the_principal_has_now(broker: ScriptedServer) -> None:
    used: list[Credentials] = []

    class Watched(Upstream):
        async def reauthenticate(self, credentials: Credentials, exchange: Exchange) -> None:
            assert exchange is no_exchange
            used.append(credentials)

    async def no_exchange(_correlation_id: int, _request: bytes) -> bytes:
        raise AssertionError

    steps = Steps()
    identities = Given(login("wonder"), login("new", known_by_ms=NOW + 3_000))
    connector = Connector(config(broker), identities, now_ms=lambda: steps.now_ms, sleep=steps.sleep)
    (address,) = config(broker).bootstrap_servers
    upstream = await Watched(config(broker), Silent()).open(address, login("wonder").credentials)
    await identities.refused(ALICE, login("wonder"))
    await connector.log_in_again(ALICE, upstream, no_exchange)
    assert used == [login("new").credentials]
    assert steps.slept == [3], "a broker that has not heard of it would end the connection"
    await Connector(config(broker), OneForAll(lambda: None)).log_in_again(ALICE, upstream, no_exchange)
    assert len(used) == 1
    upstream.abort()


async def test_tokens_are_asked_for_at_the_brokers_that_there_are_now(broker: ScriptedServer) -> None:
    away = replace(config(broker), bootstrap_servers=(Address("127.0.0.1", 1),))
    now: list[Address] = []
    tokens = identities_for(settings(UpstreamIdentity.OWNER_TOKEN), away, lambda: now)
    with pytest.raises(ConnectionFailed, match="no address of the upstream cluster is known"):
        await tokens.login(ALICE)
    now += parse_addresses(broker.address)
    with pytest.raises(NoIdentity, match=r"login at .* failed"):
        await tokens.login(ALICE)
    await tokens.close()


async def test_there_is_a_kind_of_identities_for_each_setting(broker: ScriptedServer, tmp_path: Path) -> None:
    client = config(broker)
    tokens = identities_for(settings(UpstreamIdentity.OWNER_TOKEN), client, tuple)
    assert isinstance(tokens, OwnerTokens)
    assert tokens._gateway == "User:gateway"
    assert tokens._mechanism is ScramMechanism.SHA_512
    await tokens.close()
    with pytest.raises(ConfigError, match="is needed for mapped"):
        identities_for(settings(UpstreamIdentity.MAPPED), client, tuple)
    (tmp_path / "users").write_text(
        '"User:a" { org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="b"; };'
    )
    mapped = settings(UpstreamIdentity.MAPPED, tmp_path / "users")
    assert isinstance(identities_for(mapped, client, tuple), MappedIdentities)
    service = identities_for(settings(UpstreamIdentity.SERVICE), client, tuple)
    for principal in (ALICE, ANONYMOUS):
        assert await service.login(principal) == UpstreamLogin(GATEWAY)
        assert await identities_for(settings(UpstreamIdentity.NONE), client, tuple).login(principal) is None
    await service.refused(ALICE, UpstreamLogin(GATEWAY))
    await service.close()
