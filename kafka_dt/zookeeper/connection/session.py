"""Keep a kazoo client connected for as long as it is wanted, and report its state to the event loop.

kazoo itself finds a lost connection again, and opens a new session when the old one has expired. It gives up after
a refused login, and its thread ends on an error it did not foresee; then it is started again here after a
second, as a broker does. That its thread has ended is the sign: of an end that follows another without a connection
in between, kazoo tells no new state. `zookeeper.set.acl`, the login and TLS are checked before the first connection.

Source: kafka.zookeeper.ZooKeeperClient (reinitialize), kafka.server.KafkaServer.initZkClient.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import logging
import threading
from enum import Enum
from typing import TYPE_CHECKING, Any

from kazoo.client import KazooClient
from kazoo.exceptions import WriterNotClosedException
from kazoo.protocol.states import KazooState, KeeperState
from kazoo.retry import KazooRetry

from kafka_dt.zookeeper.connection.handler import LoopHandler
from kafka_dt.zookeeper.connection.settings import LoginScheme
from kafka_dt.zookeeper.errors import LoginUnusable

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_dt.zookeeper.connection.handler import Inbox
    from kafka_dt.zookeeper.connection.settings import ZooKeeperLogin, ZooKeeperSettings

_LOG = logging.getLogger(__name__)

# At DEBUG kazoo logs requests with their data (credentials, logins) and below that session passwords, so its level
# does not follow ours; what it says about connections below ERROR is said here once instead of every second.
kazoo_log = logging.getLogger(f"{__name__}.kazoo")
kazoo_log.setLevel(logging.ERROR)

RESTART_DELAY_S = 1.0
CLOSE_TIMEOUT_S = 2.0
MAX_RECONNECT_DELAY_S = 0.5
READ_TIMEOUT_SHARE = 2 / 3
"""Which part of the session timeout a server may be silent: so another one is found before the session expires."""


class ConnectionState(Enum):
    """The state of the connection."""

    CONNECTED = "connected"
    """Requests are served. Watches from before this moment are gone."""
    SUSPENDED = "suspended"
    """Lost; the session may be found again."""
    LOST = "lost"
    """Lost, and the session with it."""


_STATES = {
    KazooState.CONNECTED: ConnectionState.CONNECTED,
    KazooState.SUSPENDED: ConnectionState.SUSPENDED,
    KazooState.LOST: ConnectionState.LOST,
}


class ZooKeeperSession:
    """One kazoo client and its states, each of which `on_state` hears in the loop; the chroot is not used.

    Raises:
        LoginUnusable: the settings ask for something that cannot be done.
    """

    def __init__(self, settings: ZooKeeperSettings, inbox: Inbox, on_state: Callable[[ConnectionState], None]) -> None:
        _check(settings)
        self._inbox = inbox
        self._on_state = on_state
        self._wanted = False
        self._login_refused = False
        self._refused_before = False
        self._ended = asyncio.Event()
        self._restarts: asyncio.Task[None] | None = None
        answer_within_s = settings.session_timeout_ms / 1000 * READ_TIMEOUT_SHARE
        self.handler = LoopHandler(inbox, settings.tls, self._ended.set, answer_within_s)
        self.kazoo: Any = KazooClient(
            hosts=settings.connect.partition("/")[0],
            timeout=settings.session_timeout_ms / 1000,
            handler=self.handler,
            auth_data=_auth_data(settings.login),
            sasl_options=_sasl_options(settings.login),
            connection_retry=KazooRetry(
                max_tries=-1, delay=0.05, max_delay=MAX_RECONNECT_DELAY_S, sleep_func=self.handler.sleep_func
            ),
            command_retry=KazooRetry(sleep_func=self.handler.sleep_func),
            logger=kazoo_log,
            use_ssl=settings.tls is not None,
        )
        # Nothing public tells how old a request is. Each start of kazoo makes another list.
        self.handler.unanswered = lambda: self.kazoo._pending  # noqa: SLF001
        self.kazoo.add_listener(self._heard)

    @property
    def connected(self) -> bool:
        """Whether a request would be sent now."""
        return bool(self.kazoo.connected)

    @property
    def trouble(self) -> str:
        """Why there has been no connection, as far as is known: a refused login explains every later failure."""
        if self._refused_before:
            return "it refuses the login: check name and password"
        return str(self.handler.last_error or "no answer")

    @property
    def session_id(self) -> int | None:
        """Which session is open; None while not connected."""
        client_id = self.kazoo.client_id
        return None if client_id is None else client_id[0]

    async def start(self) -> None:
        """Begin to connect, and go on trying until `close`."""
        self._wanted = True
        self._restarts = asyncio.create_task(self._start_again_and_again())
        await asyncio.to_thread(self.kazoo.start_async)

    async def close(self) -> None:
        """End the session and the thread; a server that is silent is not waited for longer than a few seconds."""
        self._wanted = False
        if self._restarts is not None:
            self._restarts.cancel()
        loop, closed = asyncio.get_running_loop(), asyncio.Event()

        def close() -> None:
            self._close()
            with contextlib.suppress(RuntimeError):  # the loop has not waited for us
                loop.call_soon_threadsafe(closed.set)

        # A thread of its own and no executor's: those are waited for at the end of the process.
        threading.Thread(target=close, name="zookeeper-close", daemon=True).start()
        for hang_up in (self.handler.hang_up, self._give_up):
            try:
                await asyncio.wait_for(closed.wait(), CLOSE_TIMEOUT_S)
            except TimeoutError:
                hang_up()
            else:
                return

    def _close(self) -> None:
        with contextlib.suppress(WriterNotClosedException):
            self.kazoo.stop()
            # After a start that failed, kazoo has stopped already, but its thread may not have ended, and close() wants
            # that; nothing public waits for it.
            if self.kazoo._connection.stop(CLOSE_TIMEOUT_S):  # noqa: SLF001
                self.kazoo.close()

    def _give_up(self) -> None:
        _LOG.warning("the ZooKeeper client is still waiting for a server that does not answer; it ends with us")

    def _heard(self, state: str) -> None:
        """Take a state from kazoo's thread."""
        # Only now: kazoo is closed next. A server drops the connection of a client whose SASL login fails.
        if self.kazoo.client_state == KeeperState.AUTH_FAILED:
            self._login_refused = self._refused_before = True
        if state != KazooState.CONNECTED:
            # A server that was restored has seen less than we have, and would refuse us for ever. What we read next is
            # behind a `sync`, and `history.py` notices that something is missing.
            self.kazoo.last_zxid = 0
        self._inbox.post(self._changed, _STATES[state])

    def _changed(self, state: ConnectionState) -> None:
        if not self._wanted:
            return
        if state is ConnectionState.CONNECTED:
            _LOG.info("connected to ZooKeeper, session 0x%x", self.session_id or 0)
        else:
            _LOG.warning("connection to ZooKeeper %s (%s)", state.value, self.handler.last_error or "closed")
        self._on_state(state)

    async def _start_again_and_again(self) -> None:
        """Start kazoo after each end, also after one that comes before its start is known to have worked."""
        while True:
            await self._ended.wait()
            self._ended.clear()
            refused, self._login_refused = self._login_refused, False
            ended = "ZooKeeper refuses the login" if refused else "the ZooKeeper client has ended"
            _LOG.warning("%s, starting the client again", ended)
            await asyncio.sleep(RESTART_DELAY_S)
            try:
                await asyncio.to_thread(self.kazoo.start_async)
            except Exception:  # noqa: BLE001 - whatever it is: without a client this node is of no use
                _LOG.exception("the ZooKeeper client could not be started, trying again")
                self._ended.set()


def _check(settings: ZooKeeperSettings) -> None:
    login = settings.login
    if settings.set_acl and login is None and not settings.has_certificate:
        raise LoginUnusable(
            "zookeeper.set.acl=true gives the znodes to us alone, so ZooKeeper must know who we are: "
            "a login or a TLS certificate is needed"
        )
    if login is None:
        return
    if ":" in login.username:
        raise LoginUnusable("the user name for ZooKeeper must not contain a colon")
    if login.scheme is LoginScheme.SASL_DIGEST_MD5 and importlib.util.find_spec("puresasl") is None:
        raise LoginUnusable("a SASL login to ZooKeeper needs the Python package pure-sasl")


def _auth_data(login: ZooKeeperLogin | None) -> list[tuple[str, str]]:
    if login is None or login.scheme is not LoginScheme.DIGEST:
        return []
    return [("digest", f"{login.username}:{login.password}")]


def _sasl_options(login: ZooKeeperLogin | None) -> dict[str, str] | None:
    if login is None or login.scheme is not LoginScheme.SASL_DIGEST_MD5:
        return None
    return {"mechanism": "DIGEST-MD5", "username": login.username, "password": login.password}
