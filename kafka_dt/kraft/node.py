"""Build the stores of a node in the Kafka cluster behind its gateway.

    stores = node_stores(settings, WorkerPlace(0, 2, "4711"), needs, client=upstream, now_ms=now_ms)

`kafka_dt.app` calls it; nothing else of a node knows how such a cluster keeps tokens.

The nodes tell each other of revocations by a topic of the cluster (`news/`), and share no other state.

Source: docs/decisions/0025-the-clusters-own-tokens.md.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

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
from kafka_dt.kraft.cluster import KafkaCluster
from kafka_dt.kraft.knowledge import Knowledge
from kafka_dt.kraft.news.exchange import NewsExchange
from kafka_dt.kraft.no_scram_users import NoScramUsers
from kafka_dt.kraft.reader import ClusterReader
from kafka_dt.kraft.session import PATIENCE_MS, gateway_principal, session
from kafka_dt.kraft.source import ClusterTokens
from kafka_dt.stores import NodeStores, StoreNeeds, WorkerPlace
from kafka_dt.tokens.staleness import read_clocks
from kafka_dt_protocol.api.registry import ASKED
from kafka_dt_protocol.sasl import GSSAPI, ScramMechanism

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_dt.config import Settings
    from kafka_dt.metrics import Counts
    from kafka_dt.tracing import Spans
    from kafka_dt.upstream import UpstreamClient

NEWS_PATIENCE_MS: Final = 3_000
"""How long a broker may take to answer a request about the topic of news, which may wait for a second by itself."""
LONGEST_PROOF_S: Final = 15.0


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
