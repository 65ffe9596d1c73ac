"""One worker of a node: its parts, joined.

    worker = Worker(settings, ports=ports, place=place, shared=shared, make_stores=make_stores, now_ms=now_ms)
    await worker.start()
    await worker.must_restart.wait()      # or a signal
    await worker.stop()

What flows: socket -> `WorkerPorts` -> handler -> `TokenManager` -> store.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final

from kafka_dt.audit.recorder import Recorder
from kafka_dt.config import Listener, Settings, audit_settings, listeners, metrics_settings
from kafka_dt.gateway import decided_by_cluster
from kafka_dt.identity.acls.authorizer import Authorizer
from kafka_dt.identity.acls.cache import AclCache
from kafka_dt.identity.acls.manager import AclManager
from kafka_dt.identity.credentials.ahead import CredentialsAhead
from kafka_dt.identity.credentials.derivation import Salts, TokenCredentials
from kafka_dt.identity.credentials.scram_changes import ScramUserManager
from kafka_dt.identity.login.tokens import LoginTokens
from kafka_dt.identity.mechanisms import mechanisms_of
from kafka_dt.idle import IdleTime
from kafka_dt.metrics.gauges import SAMPLE_SECONDS
from kafka_dt.node.audit_trail import AuditTrail
from kafka_dt.node.listeners import WorkerPorts
from kafka_dt.node.mechanisms import OpenMechanisms
from kafka_dt.node.sampling import Sampling
from kafka_dt.node.shared import Shared
from kafka_dt.node.tokens import WorkerTokens
from kafka_dt.server.audited.requests import AuditedRequests, AuditedTokens, record_removed
from kafka_dt.server.handlers import Handler, dispatcher
from kafka_dt.server.handlers.acls import AclHandlers
from kafka_dt.server.handlers.cluster import ClusterHandlers
from kafka_dt.server.handlers.described import DescribedTokens
from kafka_dt.server.handlers.scram_users import ScramUserHandlers
from kafka_dt.server.handlers.tokens import TokenHandlers
from kafka_dt.server.handlers.tools import ToolHandlers
from kafka_dt.server.traced import traced
from kafka_dt.stores import MakeStores, WorkerPlace
from kafka_dt.tokens import StoreUnavailable
from kafka_dt.tracing import Spans

_LOG = logging.getLogger(__name__)

DEFAULT_BROKER_ID: Final = 1001
"""The first id that a broker generates for itself (`reserved.broker.max.id` + 1)."""
LOOK_SECONDS: Final = 0.2
"""How often a worker looks which tokens the others have seen ending, whose sessions it then ends."""
STALE_CHECK_SECONDS: Final = 0.5
"""How often a worker looks whether it must end the sessions of tokens that may have been revoked unnoticed."""
KEEP_UP_SECONDS: Final = 1.0
FILE_CHECK_SECONDS: Final = 1.0
"""How often the files of certificates and secret keys are looked at."""


class Worker:
    """The parts of one worker.

    Args:
        settings: of the node.
        ports: the port of each listener, by name.
        place: which worker it is.
        shared: with the other workers of the node.
        make_stores: builds the stores.
        spans: of requests; None where they are not traced.
        now_ms: the wall clock, milliseconds since 1970.

    Raises:
        ConfigError: a setting cannot be used.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        ports: Mapping[str, int],
        place: WorkerPlace,
        shared: Shared,
        make_stores: MakeStores,
        spans: Spans | None = None,
        now_ms: Callable[[], int],
    ) -> None:
        self._settings = settings
        self._place = place
        self._shared = shared
        self._now_ms = now_ms
        self._spans = spans
        self._background: list[asyncio.Task[None]] = []
        self._audit = _audit(settings, place.number, now_ms)
        self._counts = shared.metrics.counts(place.number)
        self._executor = ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="pbkdf2")
        self._idle = IdleTime(self._executor)
        self._credentials_ahead: CredentialsAhead | None = None
        self._sampling: Sampling | None = None
        made = [_bound(listener, ports) for listener in listeners(settings, mechanisms_of(settings))]
        self._mechanisms = OpenMechanisms(settings, made, mechanisms_of(settings), now_ms)
        self._tokens = WorkerTokens(
            settings,
            place,
            make_stores,
            self._executor,
            shared,
            idle=self._idle,
            recorder=self._recorder,
            counts=self._counts,
            broker_id=self._broker_id,
            end_sessions_on_expiry=bool(settings.upstream_bootstrap_servers),
            now_ms=now_ms,
        )
        self._ports = WorkerPorts(
            settings,
            made,
            place,
            shared,
            held=self._tokens.cache.held,
            recorder=self._recorder,
            counts=self._counts,
            spans=spans,
            now_ms=now_ms,
        )
        self._stores = self._tokens.stores
        acls = AclCache()
        self._acls = AclManager(self._stores.acls, acls)
        self._authorizer = Authorizer.from_settings(settings, acls, self._acls.until_current)

    @property
    def must_restart(self) -> asyncio.Event:
        """Set when this worker must end, and another take its place, because it does not know the stores any more."""
        return self._stores.cluster.must_restart

    async def start(self) -> None:
        """Connect to the stores, read the tokens and open the ports.

        Raises:
            ClusterUnavailable: the stores cannot be used.
            StoreUnavailable: the tokens cannot be read.
            OSError: a port cannot be had.
        """
        if self._audit is not None:
            self._audit.start()
        cluster = self._stores.cluster
        await cluster.start()
        cluster_id = await cluster.cluster_id()
        salt_secret = await cluster.salt_secret()
        await self._tokens.membership.join()
        # From here on, for reading many sealed tokens takes a while, and a rotation waits for us.
        self._repeat(self._tokens.membership.look, FILE_CHECK_SECONDS)
        await self._stores.user_changes.load()
        await self._tokens.manager.start()
        if self._authorizer.enabled:
            await self._acls.start()
        login_tokens = LoginTokens(self._tokens.manager, self._tokens.revocations, self._now_ms, self._counts)
        salts = Salts(salt_secret)
        credentials = self._credentials(salts)
        await self._mechanisms.start(self._stores.users, login_tokens, credentials, salts)
        await self._ports.start_gateway()
        handler = self._handler(cluster_id) if self._spans is None else traced(self._handler(cluster_id), self._spans)
        await self._ports.open(handler, self._tokens.sessions, self._mechanisms.new_login)
        self._begin_background_work()
        if metrics_settings(self._settings) is not None:
            self._begin_to_measure(credentials)

    def prepare(self, settings: Settings) -> Callable[[], None]:
        """Check new settings of the node, and return what takes over those that need no restart.

        Raises:
            ConfigError: a setting cannot be used.
        """
        made = listeners(settings, mechanisms_of(settings))
        steps = (
            self._authorizer.prepare(settings),
            self._mechanisms.prepare(made),
            self._ports.prepare(settings, made),
            self._stores.prepare(settings),
        )

        def take_over() -> None:
            for step in steps:
                step()

        return take_over

    async def stop(self) -> None:
        """Answer the requests under way, close every connection and leave the stores.

        An error of one part lets the others end all the same; then it is raised.
        """
        async with AsyncExitStack() as parts:  # which end in the reverse order
            parts.callback(self._executor.shutdown, cancel_futures=True)
            if self._spans is not None:
                parts.push_async_callback(self._spans.close)
            if self._sampling is not None:
                parts.callback(self._sampling.hand_over)  # also of the events that are lost at the end
            if self._audit is not None:
                parts.push_async_callback(self._audit.close)
            parts.push_async_callback(self._stores.cluster.close)
            parts.push_async_callback(self._tokens.membership.close)
            parts.push_async_callback(self._stores.close)
            parts.push_async_callback(self._mechanisms.close)
            if self._sampling is not None:
                parts.callback(self._sampling.stop)
            # While connections are served, tokens are revoked, so background work ends after them.
            parts.push_async_callback(self._end_background_work)
            parts.push_async_callback(self._ports.drain)
            if self._credentials_ahead is not None:
                parts.callback(self._credentials_ahead.close)

    def _credentials(self, salts: Salts) -> TokenCredentials:
        """Make the credentials of tokens; from now on those of new tokens are derived ahead."""
        cache, place = self._tokens.cache, self._place
        made = TokenCredentials(
            salts, self._executor, known=cache.get, shared=self._shared.credentials, counts=self._counts
        )
        self._credentials_ahead = CredentialsAhead(
            made, cache.get, self._mechanisms.scram, self._idle, number=place.number, workers=place.workers
        )
        cache.on_change(self._credentials_ahead.token_changed)
        return made

    def _handler(self, cluster_id: str) -> Handler:
        """Build the handlers of all requests that are answered here."""
        cache = self._tokens.cache
        described = DescribedTokens(cache.get)
        cache.on_change(described.token_changed)
        audit = AuditedRequests(self._recorder, AuditedTokens(cache.get, cache.by_hmac)) if self._recorder else None
        families = (
            ClusterHandlers(self._broker_id, cluster_id, self._authorizer).served(),
            TokenHandlers(self._tokens.manager, self._authorizer, described, time.monotonic).served(),
            ToolHandlers(self._authorizer).served(),
            AclHandlers(self._acls, self._authorizer).served(),
            ScramUserHandlers(ScramUserManager(self._stores.user_changes), self._authorizer).served(),
        )
        return dispatcher(*map(decided_by_cluster, families), audit=audit)

    def _begin_background_work(self) -> None:
        self._repeat(self._look_at_board, LOOK_SECONDS)
        self._repeat(self._tokens.revocations.keep_up, KEEP_UP_SECONDS)
        if self._settings.token_sessions_end_when_stale:
            self._repeat(self._end_stale_sessions, STALE_CHECK_SECONDS)
        self._repeat(self._ports.refresh_certificates, FILE_CHECK_SECONDS)
        self._repeat(self._stores.cluster.keep, KEEP_UP_SECONDS)
        if self._place.number == 0:
            self._repeat(self._remove_expired, self._settings.expiry_check_interval_ms / 1000, at_once=True)

    def _begin_to_measure(self, credentials: TokenCredentials) -> None:
        ahead = self._credentials_ahead
        self._sampling = Sampling(
            self._shared.metrics,
            self._place.number,
            self._counts,
            tokens=self._tokens,
            ports=self._ports,
            audit=self._audit,
            derivations=lambda: credentials.waiting + (ahead.waiting if ahead else 0),
            now_ms=self._now_ms,
        )
        self._sampling.start()
        self._repeat(self._sampling.sample, SAMPLE_SECONDS)
        self._repeat(self._sampling.count_tokens, 0, at_once=True)

    def _repeat(self, work: Callable[[], Coroutine[Any, Any, None]], seconds: float, *, at_once: bool = False) -> None:
        self._background.append(asyncio.create_task(_repeated(work, seconds, at_once=at_once)))

    async def _end_background_work(self) -> None:
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)

    async def _remove_expired(self) -> None:
        with suppress(StoreUnavailable):
            on_removed = partial(record_removed, self._recorder) if self._recorder else None
            removed = await self._tokens.manager.remove_expired(on_removed)
            if removed:
                self._counts.tokens_removed.increase(removed)
                _LOG.info("Removed %d expired delegation token%s", removed, "s"[: removed != 1])

    async def _look_at_board(self) -> None:
        self._tokens.revocations.look()

    async def _end_stale_sessions(self) -> None:
        self._tokens.end_stale_sessions()

    @property
    def _recorder(self) -> Recorder | None:
        return self._audit.recorder if self._audit else None

    @property
    def _broker_id(self) -> int:
        return self._settings.broker_id if self._settings.broker_id >= 0 else DEFAULT_BROKER_ID


async def _repeated(work: Callable[[], Coroutine[Any, Any, None]], seconds: float, *, at_once: bool) -> None:
    """Do background work for ever; an error is logged, and the work is tried again the next time."""
    if not at_once:
        await asyncio.sleep(seconds)
    while True:
        try:
            await work()
        except Exception:  # noqa: BLE001 - background work must go on
            _LOG.exception("Background work failed; it is tried again in %.0f s", seconds)
        await asyncio.sleep(seconds)


def _audit(settings: Settings, number: int, now_ms: Callable[[], int]) -> AuditTrail | None:
    """Make the audit trail of a worker; None where no audit events are written."""
    found = audit_settings(settings)
    return None if found is None else AuditTrail(found, number, now_ms=now_ms, random_hex=secrets.token_hex)


def _bound(listener: Listener, ports: Mapping[str, int]) -> Listener:
    return replace(listener, bind=replace(listener.bind, port=ports[listener.name]))
