"""The state of a Kafka cluster without ZooKeeper: `kafka_dt.stores.ClusterState` for one worker.

A node starts when the cluster is fit to keep its tokens, and waits for a cluster that is not fit yet. Nodes do not know
each other here. The salts of SCRAM are those of one node: no user is kept with a salt that all nodes would have to
show.

Source: docs/decisions/0025-the-clusters-own-tokens.md.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from kafka_dt.client import ConnectionFailed, RequestRefused, TokenClientError
from kafka_dt.kraft.fitness import cluster_id, examine
from kafka_dt.kraft.news.settings import ensure, examine_topic
from kafka_dt.kraft.session import PATIENCE_MS, session
from kafka_dt.stores import ClusterUnavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_dt.client import ClientConfig
    from kafka_dt.client.connection import Connection
    from kafka_dt.client.session import ClientSession
    from kafka_dt.kraft.finding import Finding
    from kafka_dt.stores import WorkerState
    from kafka_dt.tokens import Principal
    from kafka_dt.upstream import UpstreamClient
    from kafka_dt_protocol.sasl import ScramMechanism

_LOG = logging.getLogger(__name__)

START_PATIENCE_MS: Final = 10_000
"""How long a broker may take to answer a request when a node starts. One that is cut off from the controllers leaves
questions about the metadata log without an answer for half a minute, and the next broker may be well."""
RETRY_S: Final = 3.0


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
