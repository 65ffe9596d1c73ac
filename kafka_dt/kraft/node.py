"""Build the stores of a node in the Kafka cluster behind its gateway.

    stores = node_stores(settings, WorkerPlace(0, 2, "4711"), needs, client=upstream, now_ms=now_ms)

`kafka_dt.app` calls it; nothing else of a node knows how such a cluster keeps tokens.

The nodes tell each other of revocations by a topic of the cluster (`news/`), and share no other state. The salts of
SCRAM are those of one node: no user is kept with a salt that all nodes would have to show.

Source: docs/decisions/0025-the-clusters-own-tokens.md.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import random
import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from kafka_dt.client import ConnectionFailed, RequestRefused, TokenClientError
from kafka_dt.client.session import ClientSession
from kafka_dt.config import (
    TokenStore,
    UpstreamIdentity,
    identity_mechanism,
    listeners,
    upstream_client_properties,
)
from kafka_dt.identity.mechanisms import mechanisms_of
from kafka_dt.kraft.acls import ClusterAcls, KnownAcls
from kafka_dt.kraft.changes import ClusterChanges, Connections
from kafka_dt.kraft.fitness import cluster_id, examine
from kafka_dt.kraft.knowledge import Knowledge
from kafka_dt.kraft.news.exchange import NewsExchange
from kafka_dt.kraft.news.settings import ensure, examine_topic
from kafka_dt.kraft.nothing import NoScramUsers
from kafka_dt.kraft.reader import ClusterReader
from kafka_dt.kraft.source import ClusterTokens
from kafka_dt.stores import ClusterUnavailable, NodeStores, StoreNeeds, WorkerPlace, WorkerState
from kafka_dt.tokens import ANONYMOUS, Principal
from kafka_dt.tokens.staleness import read_clocks
from kafka_dt_protocol.api.registry import ASKED
from kafka_dt_protocol.sasl import GSSAPI, ScramMechanism

if TYPE_CHECKING:
    from kafka_dt.client import Address, ClientConfig
    from kafka_dt.client.connection import Connection
    from kafka_dt.config import Settings
    from kafka_dt.kraft.finding import Finding
    from kafka_dt.metrics import Counts
    from kafka_dt.tracing import Spans
    from kafka_dt.upstream import UpstreamClient

_LOG = logging.getLogger(__name__)

PATIENCE_MS: Final = 5_000
"""How long a broker may take to answer a request for reading."""
START_PATIENCE_MS: Final = 10_000
"""How long a broker may take to answer a request when a node starts. One that is cut off from the controllers leaves
questions about the metadata log without an answer for half a minute, and the next broker may be well."""
NEWS_PATIENCE_MS: Final = 3_000
"""How long a broker may take to answer a request about the topic of news, which may wait for a second by itself."""
LONGEST_PROOF_S: Final = 15.0
RETRY_S: Final = 3.0


def node_stores(
    settings: Settings,
    place: WorkerPlace,
    needs: StoreNeeds,
    *,
    upstream: UpstreamClient,
    now_ms: Callable[[], int],
    spans: Spans | None = None,
) -> NodeStores:
    """Build the stores of a worker.

    Args:
        settings: of the node.
        place: which worker it is.
        needs: the parts of the worker that stores work with.
        upstream: the client of the cluster.
        now_ms: the wall clock, in milliseconds since 1970.
        spans: of requests; None where they are not traced.
    """
    ASKED.load_entities()
    gateway = gateway_principal(upstream.config)
    knowledge = Knowledge(needs.cache, time.monotonic)
    news = _news(settings, upstream, knowledge, needs.counts, now_ms)
    known_acls = KnownAcls()
    reader = ClusterReader(
        session(upstream.config.with_patience(PATIENCE_MS), upstream.servers, patience_s=PATIENCE_MS / 1000),
        knowledge,
        gateway,
        clocks=read_clocks,
        proof_s=proof_patience_s(settings.upstream_max_staleness_ms),
        counts=needs.counts,
        acls=known_acls,
    )
    tokens = ClusterTokens(
        reader,
        knowledge,
        needs.cache,
        refresh_s=settings.upstream_token_refresh_ms / 1000,
        max_staleness_ms=settings.upstream_max_staleness_ms,
        clocks=read_clocks,
        news=news,
    )
    users = NoScramUsers()
    changes = ClusterChanges(
        Connections(lambda: session(upstream.config, upstream.servers, patience_s=PATIENCE_MS / 1000)),
        gateway,
        tokens,
        knowledge,
        needs.cache,
        now_ms=now_ms,
        tell=news.tell if news is not None else lambda *_: None,
        spans=spans,
    )

    async def close() -> None:
        await tokens.close()
        await changes.close()

    return NodeStores(
        cluster=KafkaCluster(
            upstream,
            gateway,
            ScramMechanism(identity_mechanism(settings)),
            place.node,
            news_topic=settings.upstream_news_topic,
            creates=creates_tokens(settings),
        ),
        tokens=tokens,
        token_changes=changes,
        keyed_tokens=None,
        users=users,
        user_changes=users,
        acls=ClusterAcls(known_acls, tokens),
        close=close,
        prepare=lambda changed: upstream.prepare(upstream_client_properties(changed)),
        news_silence_s=None if news is None else news.silence_s,
    )


def _news(
    settings: Settings,
    upstream: UpstreamClient,
    knowledge: Knowledge,
    counts: Counts,
    now_ms: Callable[[], int],
) -> NewsExchange | None:
    """Make what tells other nodes of revocations; None without a topic."""
    if not settings.upstream_news_topic:
        return None
    config = upstream.config.with_patience(NEWS_PATIENCE_MS)
    return NewsExchange(
        settings.upstream_news_topic,
        lambda broker: session(config, upstream.servers if broker is None else lambda: (broker,)),
        knowledge,
        counts=counts,
        keep_s=settings.upstream_max_staleness_ms / 1000,
        now_ms=now_ms,
        monotonic=time.monotonic,
    )


def proof_patience_s(max_staleness_ms: int) -> float:
    """Return how long a proof may take at one broker, in seconds, before another one is asked.

    A broker may be behind for some seconds under load; there must be time left to try another one. What waits for the
    proof, such as a login with a token that is not known yet, does not wait longer for a broker that is cut off where
    operators allow a larger staleness.
    """
    return min(max_staleness_ms / 1000 / 2, LONGEST_PROOF_S)


def creates_tokens(settings: Settings) -> bool:
    """Say whether a node creates tokens in the cluster for its clients, and so needs CreateTokens on them there.

    It does not where each client logs in at the cluster, or with one of its tokens: such clients create their tokens
    themselves.

    Raises:
        ConfigError: a listener has no meaning.
    """
    if settings.upstream_identity != UpstreamIdentity.RELAY or TokenStore(settings.token_store).has_zookeeper:
        return True
    made = listeners(settings, mechanisms_of(settings)) if settings.listeners else ()
    return any(not each.security_protocol.uses_sasl or GSSAPI in each.mechanisms for each in made)


def gateway_principal(config: ClientConfig) -> Principal:
    """Return the gateway's own principal in the cluster."""
    return Principal.user(config.login.username) if config.login else ANONYMOUS


def session(
    config: ClientConfig,
    servers: Callable[[], Sequence[Address]] | None = None,
    *,
    patience_s: float | None = None,
) -> ClientSession:
    """Make what connects to one of the bootstrap servers, in random order: workers share them.

    Args:
        config: the login.
        servers: gives the bootstrap servers; None takes those of the config.
        patience_s: how long a server may take until the login is done, before the next one is tried.
    """

    def mixed() -> Sequence[Address]:
        present = servers() if servers is not None else config.bootstrap_servers
        return random.sample(present, len(present))

    return ClientSession(
        config,
        servers=mixed,
        monotonic=time.monotonic,
        random_bytes=secrets.token_bytes,
        jitter=random.random,
        patience_s=patience_s,
    )


class _NotFitYet(Exception):
    """The cluster cannot be the store of tokens now, but may soon; the text says why."""


class KafkaCluster:
    """What a node has of the cluster besides its tokens: a ClusterState.

    Args:
        upstream: the client of the cluster.
        gateway: the gateway's own principal there.
        mechanism: how tokens log in there.
        secret: a text that the workers of this node have in common, and no other process knows.
        news_topic: the topic by which nodes tell each other of revocations; empty without one.
        creates: whether the gateway creates tokens for its clients.
        retry_s: how often a node that starts asks for a cluster that is not there yet, in seconds.
    """

    def __init__(
        self,
        upstream: UpstreamClient,
        gateway: Principal,
        mechanism: ScramMechanism,
        secret: str,
        *,
        news_topic: str = "",
        creates: bool = True,
        retry_s: float = RETRY_S,
    ) -> None:
        self.must_restart: Final = asyncio.Event()
        """Never set: the history of a cluster does not go back."""
        self._upstream = upstream
        self._gateway = gateway
        self._mechanism = mechanism
        self._secret = secret
        self._news_topic = news_topic
        self._creates = creates
        self._retry_s = retry_s
        self._id = ""

    async def start(self) -> None:
        """Wait for the cluster, as long as it takes, and see whether it is fit.

        Raises:
            ClusterUnavailable: it is not, and that will not pass by itself; or it refuses the gateway's login.
        """
        complaints: set[type[Exception]] = set()
        config = self._upstream.config.with_patience(START_PATIENCE_MS)
        asking = session(config, self._upstream.servers, patience_s=PATIENCE_MS / 1000)
        try:
            while not self._id:
                try:
                    await self._examine(asking, config)
                except (ConnectionFailed, _NotFitYet) as error:
                    if type(error) not in complaints:
                        complaints.add(type(error))
                        _LOG.warning("The node waits for the upstream cluster, whose tokens it serves: %s", error)
                    await asking.close()  # another broker may be well
                    await asyncio.sleep(self._retry_s)
                except TokenClientError as error:
                    raise ClusterUnavailable(str(error)) from error
        finally:
            await asking.close()

    async def cluster_id(self) -> str:
        """Return the id of the cluster."""
        return self._id

    async def salt_secret(self) -> bytes:
        """Return the secret of this node's salts."""
        return hashlib.sha256(b"salts " + self._secret.encode()).digest()

    async def announce(self, state: WorkerState) -> None:
        """Tell no other node: nodes do not know each other."""

    async def brokers(self) -> Sequence[str]:
        """Return none: no broker reads tokens that this node has written."""
        return ()

    async def keep(self) -> None:
        """Take new certificates if their files have changed."""
        await self._upstream.refresh_certificates()

    async def close(self) -> None:
        """There is nothing to leave."""

    async def _examine(self, asking: ClientSession, config: ClientConfig) -> None:
        connection = await asking.ready()
        findings = await examine(connection, config, self._gateway, self._mechanism, creates=self._creates)
        unfit = [each for each in findings if each.needed and not each.fit]
        if unfit:
            # One right may be what two points lack.
            problems = "; ".join(dict.fromkeys(map(str, unfit)))
            if all(each.passes for each in unfit):
                raise _NotFitYet(problems)
            raise ClusterUnavailable(f"the upstream cluster cannot be the store of tokens: {problems}")
        for finding in (*findings, *await self._topic(connection)):
            if not finding.fit:
                _LOG.warning("The upstream cluster as the store of tokens: %s", finding)
        self._id = await cluster_id(connection)

    async def _topic(self, connection: Connection) -> Sequence[Finding]:
        """Make the topic of revocations if it is not there, and look at it."""
        if not self._news_topic:
            return ()
        # What is refused is found below, with its remedy.
        with suppress(RequestRefused):
            if await ensure(connection, self._news_topic):
                _LOG.info("The node has created topic %s in the upstream cluster", self._news_topic)
        return (await examine_topic(connection, self._news_topic, self._gateway),)
