"""The brokers behind the gateway: where they are now and what they speak.

    brokers = UpstreamBrokers(config, servers, monotonic=time.monotonic, random_bytes=token_bytes, jitter=random.random)
    brokers.on_change(ports.brokers_changed)
    await brokers.start()
    brokers.candidates(2)            # where a connection that is meant for broker 2 can go
    brokers.learn(3, "host", 9092)   # an answer tells of broker 3: known at once

The cluster is asked every few seconds, by a connection of the gateway's own user, and soon after something new was
learned. What it answers replaces what was known, but a broker that was learned of moments ago stays: it is not known to
all others yet. Where a broker is that was known before, the cluster alone says, for answers may be old. While it cannot
be asked, what was known stays.

What each broker speaks is asked of the broker itself, without a login: when it is new or has moved, and now and then,
for it may have been upgraded. A client that came by an address of no broker in particular is told the versions that
all have in common.

Source: KIP-700 (DescribeCluster), KIP-4 (Metadata); KIP-35, KIP-511, KIP-584 (versions and features).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from kio.schema.errors import ErrorCode

from kafka_dt.client import Address, ClientConfig, ConnectionFailed, ConnectionLost, LoginFailed, TokenClientError
from kafka_dt.client.connection import Connection
from kafka_dt.client.session import ClientSession
from kafka_dt.config.options.gateway import UPSTREAM_PREFIX
from kafka_dt_protocol import APIS, ApiKey, build
from kafka_dt_protocol.wire.layout import entity_layout

_LOG = logging.getLogger(__name__)

ASK_SECONDS: Final = 3.0
"""How often the cluster is asked for its brokers."""
SOONEST_SECONDS: Final = 0.5
"""It is not asked again before that, whatever is learned."""
REFUSED_SECONDS: Final = 10.0
"""... nor before that, if it has refused our login: who guesses is locked out."""
LEARNED_SECONDS: Final = 10.0
"""How long a broker that was learned of stays, if the cluster does not name it; by then all brokers know each other."""
VERSIONS_SECONDS: Final = 60.0
"""How often a broker is asked what it speaks."""
VERSIONS_RETRY_SECONDS: Final = 10.0
"""... and when it could not be asked."""

PATIENCE_MS: Final = 10_000
"""How long a broker may take for a connection and for each answer: one that hangs must not hold up the start."""

_LATEST: Final = APIS[ApiKey.API_VERSIONS].response[APIS[ApiKey.API_VERSIONS].max_version]

OnChange = Callable[[frozenset[int], frozenset[int]], None]
"""Called with the ids of the brokers that came and of those that went."""


@dataclass(slots=True)
class _Broker:
    """One broker of the cluster."""

    address: Address
    learned: float = float("-inf")
    """When it was learned of, if not from the cluster's list."""
    versions: Any = None
    """Its answer to ApiVersions in the newest layout; None if it has not been asked so far."""
    ask_at: float = float("-inf")
    """When it is to be asked."""
    asking: asyncio.Task[None] | None = field(default=None, repr=False)
    unreachable: bool = False
    """Whether it could not be asked when that was tried last; the log tells so once."""


class UpstreamBrokers:
    """Follows the brokers of a cluster.

    Args:
        config: the bootstrap servers, and the gateway's own login there.
        bootstrap: gives the bootstrap servers of now; None takes those of the config.
        monotonic: seconds of a clock that never goes back.
        random_bytes: unguessable bytes, for SCRAM.
        jitter: a number from 0 up to 1.
    """

    def __init__(
        self,
        config: ClientConfig,
        bootstrap: Callable[[], Sequence[Address]] | None = None,
        *,
        monotonic: Callable[[], float],
        random_bytes: Callable[[int], bytes],
        jitter: Callable[[], float],
    ) -> None:
        self._config = config.with_patience(PATIENCE_MS)
        self._bootstrap = bootstrap or (lambda: config.bootstrap_servers)
        self._monotonic = monotonic
        self._jitter = jitter
        self._session = ClientSession(
            self._config, servers=self.servers, monotonic=monotonic, random_bytes=random_bytes, jitter=jitter
        )
        self._brokers: dict[int, _Broker] = {}
        self._fallback: Any = None
        self._common: Any = None
        self._listeners: list[OnChange] = []
        self._wake = asyncio.Event()
        self._following: asyncio.Task[None] | None = None
        self.problem = ""
        """Why the cluster could not be asked for its brokers when that was tried last, as `/readyz` shows it; empty if
        it answered. For a refused login it has the cluster's words, not our credentials."""

    def on_change(self, listener: OnChange) -> None:
        """Call a listener with the current brokers, and again whenever brokers come or go.

        It is called on the spot, in the middle of an answer, so it must be quick.
        """
        self._listeners.append(listener)
        if self._brokers:
            listener(frozenset(self._brokers), frozenset())

    async def start(self) -> None:
        """Ask for the brokers and for what they speak, waiting for the cluster if it is not there; then follow it.

        Raises:
            TokenClientError: waiting does not help, such as LoginFailed.
        """
        while True:
            try:
                await self._look()
                break
            except ConnectionFailed as error:
                self._complain(error)
                await asyncio.sleep(ASK_SECONDS)
        await asyncio.wait([broker.asking for broker in self._brokers.values() if broker.asking])
        self._following = asyncio.create_task(self._follow())

    async def close(self) -> None:
        """Follow no more."""
        tasks = [task for task in (self._following, *(broker.asking for broker in self._brokers.values())) if task]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._session.close()

    # What is known

    def candidates(self, broker_id: int | None) -> list[Address]:
        """Say where a connection can go, best first.

        Args:
            broker_id: the broker it is meant for. None: any will do, also a bootstrap server if no broker is known;
                they are in random order, except that brokers that could not be reached come last.
        """
        if broker_id is not None:
            broker = self._brokers.get(broker_id)
            return [] if broker is None else [broker.address]
        known = list(self._brokers.values()) or [_Broker(address) for address in self._bootstrap()]
        return [each.address for each in sorted(known, key=lambda broker: (broker.unreachable, self._jitter()))]

    def servers(self) -> tuple[Address, ...]:
        """Say where the cluster can be asked: its brokers, and then the bootstrap servers."""
        return tuple(dict.fromkeys((*self.candidates(None), *self._bootstrap())))

    def versions(self, broker_id: int | None) -> Any:
        """Say what a broker speaks; what all of them do, for None and for one that has not been asked yet.

        Returns:
            An ApiVersions response of the newest layout, the same object while nothing changes; None before `start`.
        """
        broker = None if broker_id is None else self._brokers.get(broker_id)
        if broker is not None and broker.versions is not None:
            return broker.versions
        return self._common or self._fallback

    def learn(self, node_id: int, host: str, port: int) -> None:
        """Note a broker that an answer of the cluster tells of; where one is that is known, the cluster is asked."""
        broker = self._brokers.get(node_id)
        if broker is not None and (broker.address.host, broker.address.port) == (host, port):
            return
        if broker is None:
            self._change({node_id: _Broker(Address(host, port), self._monotonic())}, set())
        self._wake.set()

    def reachable(self) -> Mapping[str, int]:
        """Return how many brokers could be reached when that was tried last (`yes`), and how many could not (`no`)."""
        unreachable = sum(broker.unreachable for broker in self._brokers.values())
        return {"yes": len(self._brokers) - unreachable, "no": unreachable}

    # Following

    async def _follow(self) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), ASK_SECONDS)
            pause = SOONEST_SECONDS
            try:
                await self._look()
            except TokenClientError as error:
                self._complain(error)
                pause = REFUSED_SECONDS if isinstance(error, LoginFailed) else pause
            except Exception:  # noqa: BLE001 - whatever it is, brokers must be followed
                _LOG.exception("The gateway could not ask the upstream cluster for its brokers; it tries again")
            await asyncio.sleep(pause)

    async def _look(self) -> None:
        """Ask for the brokers once, and begin to ask those for their versions of which they are not known or old."""
        self._wake.clear()
        self._replace(await self._ask())
        if self.problem:
            self.problem = ""
            _LOG.info("The upstream cluster names its brokers again: %s", ", ".join(map(str, sorted(self._brokers))))
        now = self._monotonic()
        for broker_id, broker in self._brokers.items():
            if broker.asking is None and broker.ask_at <= now:
                broker.asking = asyncio.create_task(self._ask_versions(broker_id, broker))

    def _complain(self, error: TokenClientError) -> None:
        problem, text = "the upstream cluster cannot be reached", str(error)
        if isinstance(error, LoginFailed):
            problem = f"the upstream cluster refuses the gateway's login: {error.reason}"
            text = error.text(UPSTREAM_PREFIX)
        if problem != self.problem:
            self.problem = problem
            _LOG.warning("The upstream cluster cannot be asked for its brokers; the gateway tries again: %s", text)

    async def _ask(self) -> Mapping[int, Address]:
        """Ask for the brokers of the cluster."""
        connection = await self._session.ready()
        self._fallback = self._fallback or in_latest_layout(connection.api_versions)
        try:
            found = await _described(connection) or await _metadata(connection)
        except ConnectionLost as error:
            raise self._session.explained(error) from error
        if not found:
            # Another one may know more than a broker that has not joined yet.
            connection.abort()
            raise ConnectionLost(connection.server, "it names no brokers")
        return found

    def _replace(self, found: Mapping[int, Address]) -> None:
        """Take over what the cluster says, but keep the brokers that were learned of moments ago."""
        fresh = self._monotonic() - LEARNED_SECONDS
        settled = {broker_id for broker_id, broker in self._brokers.items() if broker.learned < fresh}
        changed = {
            broker_id: _Broker(address)
            for broker_id, address in found.items()
            if self.candidates(broker_id) != [address]
        }
        self._change(changed, settled - found.keys())

    def _change(self, changed: Mapping[int, _Broker], gone: set[int]) -> None:
        came = frozenset(changed.keys() - self._brokers.keys())
        for broker_id in (*changed, *gone):
            before = self._brokers.pop(broker_id, None)
            if before is None:
                continue
            if before.asking is not None:
                before.asking.cancel()
            if broker_id in changed:  # most often the same broker on another machine
                changed[broker_id].versions = before.versions
        self._brokers.update(changed)
        if gone:
            self._find_common()
        for broker_id, broker in changed.items():
            _LOG.info("Upstream broker %d is at %s", broker_id, broker.address)
        for broker_id in sorted(gone):
            _LOG.info("Upstream broker %d has gone", broker_id)
        if came or gone:
            for listener in self._listeners:
                listener(came, frozenset(gone))

    # What brokers speak

    async def _ask_versions(self, broker_id: int, broker: _Broker) -> None:
        broker.ask_at = self._monotonic() + VERSIONS_SECONDS
        try:
            connection = await Connection.open(broker.address, self._config)
            await connection.close()
            self._note_versions(broker, in_latest_layout(connection.api_versions))
            broker.unreachable = False
        except TokenClientError as error:
            broker.ask_at = self._monotonic() + VERSIONS_RETRY_SECONDS
            if not broker.unreachable:
                broker.unreachable = True
                _LOG.warning("Upstream broker %d cannot be reached; the gateway tries again: %s", broker_id, error)
        except Exception:  # noqa: BLE001 - whatever it is, the broker must be asked again
            _LOG.exception("The gateway could not ask upstream broker %d for its versions; it tries again", broker_id)
        finally:
            broker.asking = None

    def _note_versions(self, broker: _Broker, versions: Any) -> None:
        before = broker.versions
        if versions != before:
            broker.versions = versions
            # With many brokers it takes long to compare all of them.
            narrows = self._common is not None and (before is None or _ranges(before) == _ranges(versions))
            self._find_common([self._common, versions] if narrows else None)

    def _find_common(self, among: Sequence[Any] | None = None) -> None:
        """Note what all brokers speak; `among`: the answers that it follows from, None = those of all brokers."""
        known = among or [broker.versions for broker in self._brokers.values() if broker.versions is not None]
        common = in_common(known) if known else None
        if common != self._common:  # else it stays the same object
            self._common = common


async def _described(connection: Connection) -> Mapping[int, Address]:
    """Ask for the brokers by DescribeCluster; gives none where the cluster does not know that."""
    if not any(key.api_key == ApiKey.DESCRIBE_CLUSTER for key in connection.api_versions.api_keys):
        return {}
    answer = await connection.request(
        ApiKey.DESCRIBE_CLUSTER, include_cluster_authorized_operations=False, include_fenced_brokers=False
    )
    if answer.error_code is not ErrorCode.none:
        return {}
    return {broker.broker_id: Address(broker.host, broker.port) for broker in answer.brokers}


async def _metadata(connection: Connection) -> Mapping[int, Address]:
    """Ask for the brokers by Metadata; for no topics, but in version 0, in which that means all."""
    answer = await connection.request(
        ApiKey.METADATA,
        topics=(),
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )
    return {broker.node_id: Address(broker.host, broker.port) for broker in answer.brokers}


def in_latest_layout(answer: Any) -> Any:
    """Give an answer to ApiVersions in the layout of the newest version; what it does not say has its default."""
    if type(answer) is _LATEST:
        return answer
    layout, values = entity_layout(_LATEST), _values(answer)
    for each in (*layout.plain, *layout.tagged):
        if each.entity is not None:
            found = values.get(each.name, ())
            values[each.name] = tuple(build(each.entity, **_values(element)) for element in found)
    return build(_LATEST, **values)


def in_common(answers: Sequence[Any]) -> Any:
    """Give what all of some answers say; they are of the newest layout, and at least one.

    What the cluster has finalized is told as by the broker that knows most of it.
    """
    newest = max(answers, key=lambda answer: answer.finalized_features_epoch)
    return replace(
        newest,
        api_keys=_shared(*(answer.api_keys for answer in answers), key="api_key"),
        supported_features=_shared(*(answer.supported_features for answer in answers), key="name"),
        zk_migration_ready=all(answer.zk_migration_ready for answer in answers),
    )


def _ranges(answer: Any) -> tuple[Any, ...]:
    """Give what `in_common` narrows."""
    return (answer.api_keys, answer.supported_features, answer.zk_migration_ready)


def _shared(first: Iterable[Any], *others: Iterable[Any], key: str) -> tuple[Any, ...]:
    """Narrow ranges to what is in those of the same key of all others; what is then empty is left out."""
    tables = [{getattr(each, key): each for each in other} for other in others]
    found = []
    for entry in first:
        same = [entry, *(table[getattr(entry, key)] for table in tables if getattr(entry, key) in table)]
        lowest, highest = max(each.min_version for each in same), min(each.max_version for each in same)
        if len(same) == len(tables) + 1 and lowest <= highest:
            found.append(replace(entry, min_version=lowest, max_version=highest))
    return tuple(found)


def _values(entity: Any) -> dict[str, Any]:
    return {field.name: getattr(entity, field.name) for field in fields(entity)}
