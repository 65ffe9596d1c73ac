"""Fixtures of the tests with real Kafka clients, tools and brokers; every test of this folder is marked `interop`.

One ZooKeeper, one real broker, one kafka-dt and one JVM a client release serve all of them: what stands beside each
other is the same in every test, so tests make their own tokens, users and topics. Where Java or Maven Central is
missing they are skipped with the reason; with CI in the environment that is a failure.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Final, NoReturn, Protocol, TypeVar

import pytest

from benchmarks.generator import LoadGenerator, compile_load
from kafka_dt.client import TokenClient
from tests.interop.clients.programs import CLIENTS, Program, ToolchainMissing
from tests.interop.kdc import Kdc, missing
from tests.support.brokers.broker import USERS, Broker
from tests.support.identity.tls_listeners import TlsListeners
from tests.support.java.jvm import Java, JavaMissing, find_java
from tests.support.java.maven import (
    KAFKA_4X,
    KAFKA_39,
    LOGGING,
    SPARK_KAFKA,
    YARN,
    Bundle,
    Classpath,
    ResolutionFailed,
    resolve,
)
from tests.support.java.properties import plain
from tests.support.java.reference_client import ReferenceClient
from tests.support.java.tools import KafkaTools
from tests.support.nodes.server import KafkaDt, server_properties
from tests.support.processes.waiting import eventually
from tests.support.zookeeper.server import make_chroot, running_zookeeper

BUNDLES = (KAFKA_39, KAFKA_4X, LOGGING, YARN, SPARK_KAFKA)
IMPATIENT = {"connection.failed.authentication.delay.ms": 0}
"""A failed login waits for 100 ms (a broker: up to 300), which adds up; `cases/delays.py` holds the waiting."""
GUARDED = {"allow.everyone.if.no.acl.found": False, "super.users": "User:admin;User:ANONYMOUS"}
"""User:ANONYMOUS is the broker itself, on its listener without login."""
TIMEOUT_S = 900
"""The first test may wait for a download."""
LOAD_TOKENS = 3


_JavaProgram = TypeVar("_JavaProgram", bound=ReferenceClient)


class Authority(Protocol):
    """Who hands out tokens: the broker or kafka-dt, with the same listeners, users, certificates and key."""

    def address(self, listener: str) -> str:
        """host:port of a listener, by its name."""

    @property
    def sasl(self) -> str:
        """host:port of the listener with PLAIN and SCRAM."""

    @property
    def plaintext(self) -> str:
        """host:port of the listener without login."""


_downloads = pytest.StashKey[dict[str, "Future[Classpath]"]]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _is_ours(item):
            item.add_marker(pytest.mark.interop)
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))
    items.sort(key=_is_ours)  # what they download comes while the others run


def keep_together(items: list[pytest.Item], folder: Path) -> None:
    """Have the tests below a folder run one after the other, from where the first of them is."""
    ours = [item for item in items if item.path.is_relative_to(folder)]
    if ours:
        first = items.index(ours[0])
        others = [item for item in items[first:] if not item.path.is_relative_to(folder)]
        items[first:] = [*ours, *others]


def _is_ours(item: pytest.Item) -> bool:
    return item.path.is_relative_to(Path(__file__).parent)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Begin to download; with an empty cache that takes most of a minute."""
    wanted = any(item.get_closest_marker("interop") for item in session.items)
    if not wanted or session.config.option.collectonly:
        return
    try:
        java = find_java()
    except JavaMissing:
        return
    executor = ThreadPoolExecutor(len(BUNDLES), thread_name_prefix="maven")
    session.config.stash[_downloads] = {each.name: executor.submit(resolve, each, java) for each in BUNDLES}
    executor.shutdown(wait=False)


def unavailable(reason: object) -> NoReturn:
    """Skip, or fail where nothing may be missing."""
    if os.environ.get("CI"):
        pytest.fail(f"{reason} (with CI set, this is no reason to skip)")
    pytest.skip(str(reason))


@pytest.fixture(scope="session")
def java() -> Java:
    """A Java that runs Kafka."""
    try:
        return find_java()
    except JavaMissing as missing:
        unavailable(missing)


@pytest.fixture(scope="session")
def classpath_of(java: Java, pytestconfig: pytest.Config) -> Callable[[Bundle], Classpath]:
    """The jars of a bundle, as soon as they are here."""
    downloads = pytestconfig.stash.get(_downloads, {})

    def jars(bundle: Bundle) -> Classpath:
        try:
            return downloads[bundle.name].result() if bundle.name in downloads else resolve(bundle, java)
        except (ResolutionFailed, FileNotFoundError) as failure:
            unavailable(failure)

    return jars


@pytest.fixture(scope="session")
def kafka_39(
    java: Java, classpath_of: Callable[[Bundle], Classpath], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KafkaTools]:
    """The tools of the last Kafka with ZooKeeper."""
    with contextlib.closing(
        KafkaTools("3.9", java, classpath_of(KAFKA_39), tmp_path_factory.mktemp("tools-3.9"))
    ) as tools:
        yield tools


@pytest.fixture(scope="session")
def kafka_4x(
    java: Java, classpath_of: Callable[[Bundle], Classpath], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KafkaTools]:
    """The tools of the newest Kafka."""
    with contextlib.closing(
        KafkaTools("4.x", java, classpath_of(KAFKA_4X), tmp_path_factory.mktemp("tools-4.x"))
    ) as tools:
        yield tools


@pytest.fixture(scope="session", params=["kafka_39", "kafka_4x"])
def tools(request: pytest.FixtureRequest) -> KafkaTools:
    """The tools of either release: a test with this runs twice."""
    found = request.getfixturevalue(request.param)
    assert isinstance(found, KafkaTools)
    return found


@contextlib.contextmanager
def java_program(
    kind: type[_JavaProgram], tools: KafkaTools, folder: Path, properties: Mapping[str, str] | None = None
) -> Iterator[_JavaProgram]:
    """Run a program on the Java clients of a release; a folder receives its log."""
    if not tools.java.has_compiler:
        unavailable(f"{tools.java.executable} has no compiler, the Java client is started from source")
    with kind(tools.java, tools.classpath, folder / "java.log", properties=properties) as program:
        yield program


@pytest.fixture(scope="session")
def java_39(kafka_39: KafkaTools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReferenceClient]:
    """The Java client of the last release with ZooKeeper."""
    with java_program(ReferenceClient, kafka_39, tmp_path_factory.mktemp("java-3.9")) as client:
        yield client


@pytest.fixture(scope="session")
def java_4x(kafka_4x: KafkaTools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReferenceClient]:
    """The Java client of the newest release."""
    with java_program(ReferenceClient, kafka_4x, tmp_path_factory.mktemp("java-4.x")) as client:
        yield client


@pytest.fixture(scope="session", params=["java_39", "java_4x"], ids=["kafka_39", "kafka_4x"])
def java_client(request: pytest.FixtureRequest) -> ReferenceClient:
    """The Java client of either release: a test with this runs twice."""
    found = request.getfixturevalue(request.param)
    assert isinstance(found, ReferenceClient)
    return found


@pytest.fixture(scope="session")
def program_of() -> Callable[[str], Program]:
    """Build the program on a client of another language, once."""

    @cache
    def build(name: str) -> Program:
        try:
            return CLIENTS[name].build()
        except ToolchainMissing as missing:
            unavailable(missing)

    return build


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    """A KDC with an empty realm."""
    if wanted := missing():
        unavailable(f"Kerberos needs {wanted}")
    with Kdc(tmp_path_factory.mktemp("kdc")) as running:
        yield running


@pytest.fixture(scope="session")
def generator(java: Java, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoadGenerator]:
    """The load generator of the benchmarks."""
    if not java.has_compiler:
        unavailable(f"{java.executable} has no compiler")
    with LoadGenerator(java, compile_load(java), tmp_path_factory.mktemp("load")) as generator:
        yield generator


@pytest.fixture(scope="module")
def load_tokens(broker: Broker, server: KafkaDt) -> list[str]:
    """Ids of tokens that the load generator logs in with; the salts that broker and kafka-dt name stay the same.

    A broker salts a token of its own a second time, when ZooKeeper tells it of its own change. So kafka-dt makes them.
    """

    async def create() -> list[str]:
        async with _alice_at(server) as client:
            return [(await client.create()).token_id for _ in range(LOAD_TOKENS)]

    async def known_to_the_broker() -> set[str]:
        async with _alice_at(broker) as client:
            return {token.token_id for token in await client.describe()}

    ids = asyncio.run(create())
    eventually(lambda: asyncio.run(known_to_the_broker()).issuperset(ids), within_s=10.0)
    return ids


def _alice_at(authority: Authority) -> TokenClient:
    return TokenClient.from_config({"bootstrap.servers": authority.sasl, **plain("alice", USERS["alice"])})


@pytest.fixture(scope="session")
def zookeeper_connect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`zookeeper.connect` of the broker and the server, in a chroot of their own."""
    with running_zookeeper(tmp_path_factory.mktemp("interop-zookeeper")) as address:
        yield make_chroot(address, "interop")


@pytest.fixture(scope="session")
def tls(tmp_path_factory: pytest.TempPathFactory) -> TlsListeners:
    """The certificates and the listeners of `broker` and `server`."""
    return TlsListeners.make(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="session")
def broker(
    kafka_39: KafkaTools, zookeeper_connect: str, tls: TlsListeners, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    """A real Kafka 3.9.1 broker on the ZooKeeper and with the key of `server`."""
    with Broker(
        tmp_path_factory.mktemp("broker"),
        zookeeper=zookeeper_connect,
        java=kafka_39.java,
        classpath=kafka_39.classpath,
        overrides={**tls.properties, **IMPATIENT},
    ) as running:
        yield running


@pytest.fixture(scope="session")
def server(zookeeper_connect: str, tls: TlsListeners, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaDt]:
    """kafka-dt on the ZooKeeper and with the key of `broker`."""
    properties = {**server_properties(zookeeper_connect), **tls.properties, **IMPATIENT}
    with KafkaDt(tmp_path_factory.mktemp("kafka-dt"), properties) as running:
        yield running


EITHER: Final = (pytest.param("broker", id="broker"), pytest.param("server", id="kafka-dt"))
BROKER_IN_SOAK: Final = (pytest.param("broker", id="broker", marks=pytest.mark.soak), EITHER[1])
"""For tables of what a broker has answered: it does not change, so only `make soak` asks it again."""


@pytest.fixture(params=EITHER)
def authority(request: pytest.FixtureRequest) -> Authority:
    """Either of the two: a test with this asks the real broker first, which keeps what it expects honest."""
    found: Authority = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="session")
def guarded_connect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`zookeeper.connect` of the broker and the server that allow a client only what an ACL allows."""
    with running_zookeeper(tmp_path_factory.mktemp("guarded-zookeeper")) as address:
        yield make_chroot(address, "guarded")


@pytest.fixture(scope="session")
def guarded_broker(
    kafka_39: KafkaTools, guarded_connect: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    """A real Kafka 3.9.1 broker with AclAuthorizer, whose only super user with a login is User:admin."""
    with Broker(
        tmp_path_factory.mktemp("guarded-broker"),
        zookeeper=guarded_connect,
        java=kafka_39.java,
        classpath=kafka_39.classpath,
        overrides=GUARDED,
    ) as running:
        yield running


@pytest.fixture(scope="session")
def guarded_server(guarded_connect: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaDt]:
    """kafka-dt like `guarded_broker`; one worker, so that what a client has changed holds for the next as well."""
    properties = {**server_properties(guarded_connect), **GUARDED, "kafka.dt.workers": 1}
    with KafkaDt(tmp_path_factory.mktemp("guarded-kafka-dt"), properties) as running:
        yield running


@pytest.fixture(params=EITHER)
def guarded(request: pytest.FixtureRequest) -> Authority:
    """Either of the two: a test with this asks the real broker first, which keeps what it expects honest."""
    found: Authority = request.getfixturevalue(f"guarded_{request.param}")
    return found
