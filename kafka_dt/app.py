"""The one place that builds the parts of a node and joins them.

`Node` is what one worker process runs: the ZooKeeper client and its stores, the rules, the logins, the handlers, the
open ports. `serve` runs a whole node: the supervisor and its workers.
"""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import secrets
import sys
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final

import uvloop

from kafka_dt.audit.recorder import Recorder
from kafka_dt.audit.trail import AuditTrail
from kafka_dt.config import (
    ConfigError,
    Endpoint,
    Listener,
    Loaded,
    OAuthBearerSettings,
    SecretKeyFiles,
    Settings,
    audit_settings,
    gateway_settings,
    listeners,
)
from kafka_dt.config.options.option import INT_MAX
from kafka_dt.gateway.gateway import Gateway
from kafka_dt.gateway.ports import PortListener
from kafka_dt.identity.acls.authorizer import Authorizer
from kafka_dt.identity.acls.cache import AclCache
from kafka_dt.identity.acls.manager import AclManager
from kafka_dt.identity.credentials.derivation import Salts, TokenCredentials
from kafka_dt.identity.credentials.digest_md5 import DigestSubjects
from kafka_dt.identity.credentials.scram import ScramSubjects, Subjects
from kafka_dt.identity.credentials.scram_changes import ScramUserManager
from kafka_dt.identity.kerberos.contexts import Kerberos
from kafka_dt.identity.login.login import Login
from kafka_dt.identity.login.tokens import LoginTokens
from kafka_dt.identity.oauth.bearer import BearerTokens
from kafka_dt.identity.oauth.jwks import Jwks
from kafka_dt.identity.revocation.board import Board, board_bytes
from kafka_dt.identity.revocation.revocations import Revocations
from kafka_dt.membership import Membership
from kafka_dt.processes.supervisor import Supervisor
from kafka_dt.processes.turns import NodeTurn
from kafka_dt.server.audited.requests import AuditedRequests, AuditedTokens, record_keys, record_removed
from kafka_dt.server.connections.connection import ClientConnection
from kafka_dt.server.connections.lifetimes import Lifetimes
from kafka_dt.server.connections.request_memory import RequestMemory, request_buffer_bytes
from kafka_dt.server.connections.services import ConnectionServices
from kafka_dt.server.connections.sessions import Sessions
from kafka_dt.server.handlers import Handler, dispatcher
from kafka_dt.server.handlers.acls import AclHandlers
from kafka_dt.server.handlers.cluster import ClusterHandlers
from kafka_dt.server.handlers.described import DescribedTokens
from kafka_dt.server.handlers.scram_users import ScramUserHandlers
from kafka_dt.server.handlers.tokens import TokenHandlers
from kafka_dt.server.listeners.admission import Admission, ConnectionLimits
from kafka_dt.server.listeners.connection_counts import ConnectionCounts
from kafka_dt.server.listeners.deadlines import LoginConnection
from kafka_dt.server.listeners.encryption import ListenerEncryption
from kafka_dt.server.listeners.failed_logins import FailedLogins
from kafka_dt.server.listeners.gates import FileGate, Gate, RateGate
from kafka_dt.server.listeners.listener import OpenListener
from kafka_dt.server.listeners.rate import Rate
from kafka_dt.server.repeated import Repeated
from kafka_dt.tokens import (
    ANONYMOUS,
    CreationCounts,
    CreationLimits,
    HmacAlgorithm,
    Keyring,
    Principal,
    StoreUnavailable,
    Token,
    TokenCache,
    TokenLimits,
    TokenManager,
    counts_bytes,
)
from kafka_dt.zookeeper.connection.client import ZooKeeperClient
from kafka_dt.zookeeper.connection.configuration import zookeeper_settings
from kafka_dt.zookeeper.errors import ConnectionLost, ZooKeeperError
from kafka_dt.zookeeper.proofs.history import HistoryGuard
from kafka_dt.zookeeper.proofs.witness import WitnessMemory
from kafka_dt.zookeeper.sealing.derivations import Derivations
from kafka_dt.zookeeper.sealing.token_codec import TokenCodec
from kafka_dt.zookeeper.stores.acls import ZooKeeperAclStore
from kafka_dt.zookeeper.stores.change_purge import PurgeLimits
from kafka_dt.zookeeper.stores.cluster_id import read_or_create_cluster_id
from kafka_dt.zookeeper.stores.salt_secret import read_or_create_salt_secret
from kafka_dt.zookeeper.stores.scram_changes import ZooKeeperScramUserStore
from kafka_dt.zookeeper.stores.scram_users import ScramUsers
from kafka_dt.zookeeper.stores.tokens import ZooKeeperTokenStore
from kafka_dt_protocol import Limits

_LOG = logging.getLogger(__name__)

DEFAULT_BROKER_ID: Final = 1001
"""The first id that a broker generates for itself (`reserved.broker.max.id` + 1)."""
DRAIN_SECONDS: Final = 10.0
LOOK_SECONDS: Final = 0.2
"""How often a worker looks which tokens the others have seen ending, whose sessions it then ends."""
KEEP_UP_SECONDS: Final = 1.0
FILE_CHECK_SECONDS: Final = 1.0
"""How often the files of certificates and secret keys are looked at."""
NONCE_BYTES: Final = 18
"""144 bits, more than the 130 of Kafka's."""
DERIVED_AHEAD: Final = 4096
"""How many tokens a worker can seal in a row without waiting for PBKDF2; two seconds of work to make ready."""

WORKER_COMMAND: Final = (sys.executable, "-P", "-m", "kafka_dt.worker")
"""What happens to lie in the directory in which a node is started is not run (-P)."""


def now_ms() -> int:
    """Give the time: milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end on the event loop of this application."""
    uvloop.run(main)


async def serve(loaded: Loaded, on_ready: Callable[[Sequence[Endpoint]], None], log_level: int = logging.INFO) -> None:
    """Run a node until SIGTERM or SIGINT.

    Args:
        loaded: its settings.
        on_ready: called once with the addresses that clients can use.
        log_level: what the workers log.

    Raises:
        ConfigError: a setting cannot be used; no port has been opened.
        WorkerFailed: the node cannot start for another reason, such as ZooKeeper not being there.
    """
    settings = loaded.settings
    made = listeners(settings)
    for listener in made:
        _encryption(listener)
    Authorizer.from_settings(settings, AclCache())
    zookeeper_settings(settings)
    ConnectionLimits.of(settings, made)
    request_buffer_bytes(settings)
    _gateway(settings, made)
    if (audit := audit_settings(settings)) is not None:
        AuditTrail.check(audit)
    workers = _workers(settings)
    for number in range(workers):
        _witness_memory(settings, number)
    with (
        _memory("revocations", board_bytes(workers)) as board,
        _memory("creations", counts_bytes(workers)) as creations,
        Derivations.memory() as derivations,
        NodeTurn.file() as turn,
        ConnectionCounts.file(workers) as counts,
    ):
        supervisor = Supervisor(
            command=WORKER_COMMAND,
            brief={
                "properties": dict(loaded.properties),
                "board": board.fileno(),
                "creations": creations.fileno(),
                "derivations": derivations.fileno(),
                "turn": turn.fileno(),
                "counts": counts.fileno(),
                "log_level": log_level,
                "log_lines": settings.log_lines_per_minute,
                "node": secrets.token_hex(8),
            },
            endpoints=[listener.bind for listener in made],
            count=workers,
            inherited=[board.fileno(), creations.fileno(), derivations.fileno(), turn.fileno(), counts.fileno()],
            on_ready=lambda ports: on_ready([_reachable(listener, ports) for listener in made]),
            timeout_s=settings.worker_timeout_ms / 1000,
        )
        await supervisor.run()


class Node:
    """The parts of one worker.

    Args:
        settings: of the node.
        ports: the port of each listener, by name.
        board: where the workers of the node post revocations.
        creation_counts: where they count the tokens that requesters ask for.
        derivations: where they share what opens sealed tokens.
        counts: where they count connections.
        turn: to hold more of a request than a worker's share of the memory for requests.
        number: which worker this is; the first one does what once a node is enough.
        node: what the workers of this node have in common, and those of no other node.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        ports: Mapping[str, int],
        board: Board,
        creation_counts: CreationCounts,
        derivations: Derivations,
        turn: NodeTurn,
        counts: ConnectionCounts,
        number: int,
        node: str,
    ) -> None:
        self._settings = settings
        self._number = number
        self._node = node
        self._listeners = [_bound(listener, ports) for listener in listeners(settings)]
        self._audit = _audit(settings, number)
        recorder = self._audit.recorder if self._audit else None
        self._encryption = {listener.name: _encryption(listener, recorder) for listener in self._listeners}
        self._executor = ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="pbkdf2")
        self.outdated = asyncio.Event()
        """Set when this worker must end, for an operator has accepted a ZooKeeper that it does not know."""
        self._history = HistoryGuard(
            _witness_memory(settings, number),
            f"{node}-{number}",
            outdated=self.outdated.set,
            distrusted=lambda: self._store.distrust(),  # noqa: PLW0108 - it is made later
            now_ms=now_ms,
            removes_old=number == 0,
        )
        self._zookeeper = ZooKeeperClient(zookeeper_settings(settings), self._history)
        limits = PurgeLimits(retention_ms=settings.change_retention_ms)
        self._users = ScramUsers(self._zookeeper, now_ms=now_ms, limits=limits)
        files = SecretKeyFiles(settings)
        keyring = _keyring(files, HmacAlgorithm(settings.hmac_algorithm))
        if keyring is not None and recorder is not None:
            keyring.on_change(partial(record_keys, recorder, keyring))
        self._cache = TokenCache(keyring)
        codec = TokenCodec(
            keyring,
            seal=settings.metadata_encryption,
            executor=self._executor,
            random_bytes=secrets.token_bytes,
            derivations=derivations,
            ahead=DERIVED_AHEAD,
        )
        self._store = ZooKeeperTokenStore(
            self._zookeeper,
            codec,
            now_ms=now_ms,
            limits=limits,
            max_staleness_ms=settings.zookeeper_max_staleness_ms,
            begin_at=number / _workers(settings),
            creations=_creation_limits(settings),
        )
        self._membership = Membership(
            settings, files, keyring, self._zookeeper, self._store, number=number, broker_id=self._broker_id()
        )
        self._tokens = TokenManager(
            self._store,
            self._cache,
            keyring,
            TokenLimits(
                settings.max_lifetime_ms,
                settings.expiry_time_ms,
                settings.zookeeper_max_staleness_ms,
                _creation_limits(settings),
            ),
            now_ms=now_ms,
            random_bytes=secrets.token_bytes,
            creation_counts=creation_counts,
        )
        acls = AclCache()
        self._acl_store = ZooKeeperAclStore(self._zookeeper, now_ms=now_ms, limits=limits)
        self._acls = AclManager(self._acl_store, acls)
        self._authorizer = Authorizer.from_settings(settings, acls)
        self._gateway = _gateway(settings, self._listeners)
        self._sessions = Sessions(self._token, now_ms, end_on_expiry=self._gateway is not None)
        self._cache.on_change(self._sessions.token_changed)
        self._revocations = Revocations(board, self._tokens.prove, self._cache.held, self._sessions.end_by)
        self._cache.on_change(self._revocations.token_changed)
        self._limits = ConnectionLimits.of(settings, self._listeners)
        self._counts = counts
        self._gates: list[Gate] = [FileGate(_file_limit)]
        self._gates += self._rate_gates(settings.max_connection_creation_rate)
        self._failed_logins = FailedLogins(settings.connection_failed_authentication_delay_ms, time.monotonic)
        self._memory = RequestMemory(
            request_buffer_bytes(settings) // _workers(settings),
            settings.request_receive_timeout_ms / 1000,
            time.monotonic,
            turn,
        )
        self._memory_sweep = Repeated(self._memory.sweep_seconds, self._memory.sweep)
        self._gss_executor = ThreadPoolExecutor(thread_name_prefix="gssapi")
        self._kerberos = _kerberos(self._listeners, self._gss_executor)
        self._bearer = {
            each.name: self._bearer_tokens(each.oauthbearer) for each in self._listeners if each.oauthbearer
        }
        self._open: list[OpenListener] = []
        self._broker_ports: list[PortListener] = []
        self._background: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Connect to ZooKeeper, read the tokens and open the ports.

        Raises:
            ZooKeeperError: ZooKeeper cannot be used.
            OSError: a port cannot be had.
        """
        if self._audit is not None:
            self._audit.start()
        await self._zookeeper.start()
        cluster_id = await read_or_create_cluster_id(self._zookeeper, secrets.token_bytes)
        cluster = ClusterHandlers(self._broker_id(), cluster_id, self._authorizer)
        subjects = self._subjects(await read_or_create_salt_secret(self._zookeeper, secrets.token_bytes))
        await self._membership.join()
        # From here on, for reading many sealed tokens takes a while, and a rotation waits for us.
        self._background.append(asyncio.create_task(_repeat(self._membership.look, FILE_CHECK_SECONDS)))
        await self._users.start()
        await self._tokens.start()
        if self._authorizer.enabled:
            await self._acls.start()
        for bearer in self._bearer.values():
            await bearer.start()
        if self._gateway is not None:
            await self._gateway.start()
        users = ScramUserManager(ZooKeeperScramUserStore(self._zookeeper, self._users))
        described = DescribedTokens(self._cache.get)
        self._cache.on_change(described.token_changed)
        handler = dispatcher(
            cluster.handlers(),
            TokenHandlers(self._tokens, self._authorizer, described, time.monotonic).handlers(),
            AclHandlers(self._acls, self._authorizer).handlers(),
            ScramUserHandlers(users, self._authorizer).handlers(),
        )
        if self._audit is not None:
            tokens = AuditedTokens(self._cache.get, self._cache.by_hmac)
            handler = AuditedRequests(handler, self._audit.recorder, tokens)
        self._memory_sweep.start()
        for listener in self._listeners:
            await self._open_listener(listener, handler, subjects)
        if self._gateway is not None:
            self._gateway.open_ports(self._broker_ports, node=self._node)
        self._background += [
            asyncio.create_task(_repeat(self._look_at_board, LOOK_SECONDS)),
            asyncio.create_task(_repeat(self._revocations.keep_up, KEEP_UP_SECONDS)),
            asyncio.create_task(_repeat(self._refresh_certificates, FILE_CHECK_SECONDS)),
            asyncio.create_task(_repeat(self._keep_history, KEEP_UP_SECONDS)),
        ]
        if self._number == 0:
            purge_seconds = self._settings.expiry_check_interval_ms / 1000
            self._background.append(asyncio.create_task(_repeat(self._remove_expired, purge_seconds, at_once=True)))

    async def stop(self) -> None:
        """Answer what is under way, close every connection and leave ZooKeeper."""
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        if self._gateway is not None:
            self._gateway.close_ports()
        await asyncio.gather(*(listener.drain(DRAIN_SECONDS) for listener in self._open))
        self._memory_sweep.stop()
        if self._gateway is not None:
            await self._gateway.close()
        await asyncio.gather(*(bearer.close() for bearer in self._bearer.values()))
        await self._store.close()
        await self._acl_store.close()
        await self._users.close()
        await self._membership.close()
        await self._history.close(self._zookeeper)
        await self._zookeeper.close()
        if self._audit is not None:
            await self._audit.close()
        self._executor.shutdown(cancel_futures=True)
        self._gss_executor.shutdown(cancel_futures=True)

    def _subjects(self, salt_secret: bytes) -> Subjects:
        salts = Salts(salt_secret)
        tokens = LoginTokens(self._tokens, self._revocations, now_ms)
        scram = ScramSubjects(
            self._users,
            tokens,
            TokenCredentials(salts, self._executor),
            salts,
            without_extension=self._settings.auth_without_extension,
        )
        return Subjects(tokens, scram, DigestSubjects(tokens, decoy=secrets.token_urlsafe()))

    async def _open_listener(self, listener: Listener, handler: Handler, subjects: Subjects) -> None:
        settings = self._settings
        encryption = self._encryption[listener.name]
        opened = OpenListener(
            listener.bind,
            backlog=settings.socket_listen_backlog_size,
            lifetimes=Lifetimes.from_settings(settings),
            admission=Admission(self._limits, self._counts, self._listeners.index(listener)),
            gates=[*self._gates, *self._rate_gates(listener.max_connection_creation_rate)],
        )
        services = ConnectionServices(
            listener=listener,
            limits=Limits(settings.sasl_server_max_receive_size, settings.socket_request_max_bytes),
            handler=handler,
            sessions=self._sessions,
            new_login=lambda of: Login(
                of,
                subjects,
                now_ms,
                _nonce,
                bearer=self._bearer.get(of.name),
                kerberos=self._kerberos.get(of.name),
            ),
            certified=_certified(listener, encryption),
            now_ms=now_ms,
            failed_logins=self._failed_logins,
            opened=opened.opened,
            closed=opened.closed,
            deadlines=opened.deadlines,
            memory=self._memory,
            recorder=self._audit.recorder if self._audit else None,
        )

        def new_connection(broker_id: int | None = None) -> LoginConnection:
            gateway = self._gateway
            connection = gateway.new_connection(services, broker_id) if gateway else ClientConnection(services)
            return encryption.protocol(connection) if encryption else connection

        await opened.open(new_connection)
        self._open.append(opened)
        if listener.broker_port_base is not None:
            self._broker_ports.append(PortListener(listener, opened, new_connection))

    def _rate_gates(self, per_second: int) -> list[Gate]:
        """Make what holds a worker to its share of a rate, if there is one."""
        if per_second >= INT_MAX:
            return []
        return [RateGate(Rate(per_second / _workers(self._settings), time.monotonic))]

    def _bearer_tokens(self, settings: OAuthBearerSettings) -> BearerTokens:
        keys = Jwks(settings, self._executor, now_ms) if settings.jwks_url else None
        return BearerTokens(settings, keys, now_ms)

    async def _remove_expired(self) -> None:
        with suppress(StoreUnavailable):
            on_removed = partial(record_removed, self._audit.recorder) if self._audit else None
            removed = await self._tokens.remove_expired(on_removed)
            if removed:
                _LOG.info("Removed %d expired delegation token%s", removed, "s"[: removed != 1])

    async def _keep_history(self) -> None:
        try:
            await self._history.keep(self._zookeeper)
        except ConnectionLost:
            return  # the next look makes up for it
        except ZooKeeperError as error:
            _LOG.error("A restored ZooKeeper would not be noticed now, see /kafka_dt in ZooKeeper: %s", error)

    async def _refresh_certificates(self) -> None:
        for encryption in filter(None, self._encryption.values()):
            await encryption.refresh()
        if self._gateway is not None:
            await self._gateway.refresh_certificates()

    async def _look_at_board(self) -> None:
        self._revocations.look()

    def _token(self, token_id: str) -> Token | None:
        held = self._cache.get(token_id)
        return held.token if held else None

    def _broker_id(self) -> int:
        return self._settings.broker_id if self._settings.broker_id >= 0 else DEFAULT_BROKER_ID


async def _repeat(work: Callable[[], Coroutine[Any, Any, None]], seconds: float, *, at_once: bool = False) -> None:
    """Do background work for ever; what goes wrong once is logged and tried again the next time."""
    if not at_once:
        await asyncio.sleep(seconds)
    while True:
        try:
            await work()
        except Exception:  # noqa: BLE001 - background work must go on
            _LOG.exception("Background work failed; it is tried again in %.0f s", seconds)
        await asyncio.sleep(seconds)


def _witness_memory(settings: Settings, number: int) -> WitnessMemory:
    """Make what a worker remembers of its writes to ZooKeeper.

    Raises:
        ConfigError: the folder for it cannot be used.
    """
    if not settings.state_dir:
        return WitnessMemory()
    folder = Path(settings.state_dir)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise ConfigError("kafka.dt.state.dir", f"{folder} cannot be written to")
        return WitnessMemory(folder / f"witness-{number}.json")
    except (OSError, ValueError) as error:
        raise ConfigError("kafka.dt.state.dir", str(error)) from None


def _audit(settings: Settings, number: int) -> AuditTrail | None:
    """Make the audit trail of a worker; None where nothing is written down."""
    found = audit_settings(settings)
    return None if found is None else AuditTrail(found, number, now_ms=now_ms, random_hex=secrets.token_hex)


def _encryption(listener: Listener, recorder: Recorder | None = None) -> ListenerEncryption | None:
    return ListenerEncryption(listener, recorder) if listener.tls else None


def _gateway(settings: Settings, made: Sequence[Listener]) -> Gateway | None:
    """Make the gateway of a worker; None where the node is none."""
    found = gateway_settings(settings, made)
    return None if found is None else Gateway(found, made)


def _certified(listener: Listener, encryption: ListenerEncryption | None) -> Callable[[bytes | None], Principal]:
    """Say who a client is before it has logged in; where it logs in by SASL, its certificate makes nobody of it."""
    if encryption is None or listener.security_protocol.sasl:
        return lambda _: ANONYMOUS
    return encryption.principals.principal


def _kerberos(made: Sequence[Listener], executor: Executor) -> Mapping[str, Kerberos]:
    """Load Kerberos for the listeners that offer GSSAPI, by name."""
    return {each.name: Kerberos.from_settings(each.name, each.kerberos, executor) for each in made if each.kerberos}


def _bound(listener: Listener, ports: Mapping[str, int]) -> Listener:
    return replace(listener, bind=replace(listener.bind, port=ports[listener.name]))


def _reachable(listener: Listener, ports: Mapping[str, int]) -> Endpoint:
    """Say what a client on this machine would connect to."""
    port = listener.advertised.port or ports[listener.name]
    return Endpoint(listener.name, listener.advertised.host or "localhost", port)


def _file_limit() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def _memory(name: str, size: int) -> BinaryIO:
    """Make memory that the workers share, as a file that is on no disk: a full one would kill who writes to it."""
    made = os.fdopen(os.memfd_create(f"kafka-dt {name}"), "r+b")
    made.truncate(size)
    return made


def _workers(settings: Settings) -> int:
    return settings.workers or os.cpu_count() or 1


def _keyring(files: SecretKeyFiles, algorithm: HmacAlgorithm) -> Keyring | None:
    """Make the ring of the keys that there are; without a current one, tokens are disabled."""
    return Keyring(files.keys.current, algorithm, files.keys.previous) if files.keys else None


def _creation_limits(settings: Settings) -> CreationLimits:
    return CreationLimits(
        tokens_per_owner=settings.tokens_per_owner_max,
        creates_per_minute=settings.token_creates_per_minute_max,
        renewers=settings.token_renewers_max,
        token_bytes=settings.token_bytes_max,
    )


def _nonce() -> str:
    return secrets.token_urlsafe(NONCE_BYTES)
