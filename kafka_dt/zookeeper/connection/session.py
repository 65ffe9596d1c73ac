"""Keep a kazoo client connected for as long as it is wanted, and report its state to the event loop.

kazoo itself finds a lost connection again, and opens a new session when the old one has expired. It gives up after
a refused login, and its thread ends on an error it did not foresee; then it is started again here after a
second, as a broker does. That its thread has ended is the sign: of an end that follows another without a connection
in between, kazoo tells no new state. `zookeeper.set.acl`, the login and TLS are checked before the first connection.

kazoo tells of a connection before it logs in. Here a connection counts from its login on, and a login that ZooKeeper
refuses is told as such: a server answers AUTHFAILED or, where it wants a login of every client,
SESSIONCLOSEDREQUIRESASLAUTH; older versions end the connection.

Source: kafka.zookeeper.ZooKeeperClient (reinitialize), kafka.server.KafkaServer.initZkClient;
org.apache.zookeeper.server.ZooKeeperServer (processSasl).
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
from kazoo.exceptions import (
    AuthFailedError,
    ConnectionDropped,
    SessionClosedRequireSaslError,
    WriterNotClosedException,
)
from kazoo.protocol.states import KazooState
from kazoo.retry import KazooRetry

from kafka_dt.blocking import in_own_thread
from kafka_dt.zookeeper.connection.handler import LoopHandler
from kafka_dt.zookeeper.connection.settings import LoginScheme
from kafka_dt.zookeeper.errors import LoginRefused, LoginUnusable

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_dt.zookeeper.connection.handler import Inbox
    from kafka_dt.zookeeper.connection.settings import ZooKeeperLogin, ZooKeeperSettings

_LOG = logging.getLogger(__name__)

# At DEBUG kazoo logs requests with their data (credentials, logins) and below that session passwords, so its level
# does not follow ours; what it says about connections below ERROR is said here once instead of every second.
kazoo_log = logging.getLogger(f"{__name__}.kazoo")
kazoo_log.setLevel(logging.ERROR)


def _in_a_line(record: logging.LogRecord) -> bool:
    """Say without a traceback that ZooKeeper left a request out: no code of kazoo's or ours is to blame."""
    if record.exc_info and isinstance(record.exc_info[1], RuntimeError):
        record.msg = f"the ZooKeeper client ends: {record.exc_info[1]}"
        record.exc_info = None
    return True


kazoo_log.addFilter(_in_a_line)

RESTART_DELAY_S = 1.0
REFUSAL_LOG_S = 60.0
"""How often a log says that ZooKeeper still refuses the login."""
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


# CONNECTED is told after the login.
_LOSSES = {
    KazooState.SUSPENDED: ConnectionState.SUSPENDED,
    KazooState.LOST: ConnectionState.LOST,
}


class ZooKeeperSession:
    """One kazoo client and its states, each of which `on_state` hears in the loop; the chroot is not used.

    `on_refused` hears of each answer of ZooKeeper that refuses the login, in the loop as well.

    Raises:
        LoginUnusable: the settings ask for something that cannot be done.
    """

    def __init__(
        self,
        settings: ZooKeeperSettings,
        inbox: Inbox,
        on_state: Callable[[ConnectionState], None],
        on_refused: Callable[[LoginRefused], None],
    ) -> None:
        _check(settings)
        self._settings = settings
        self._inbox = inbox
        self._on_state = on_state
        self._on_refused = on_refused
        self._wanted = False
        self._one_at_a_time = threading.Lock()
        """kazoo cannot be stopped in the middle of its start."""
        self._was_connected = False
        self._told = ConnectionState.LOST
        self._failed_login = ""
        self._broken_login = ""
        self._refusal_due_s = 0.0
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
        self._tell_of_logins()

    @property
    def connected(self) -> bool:
        """Whether a request would be sent now."""
        return bool(self.kazoo.connected)

    @property
    def trouble(self) -> str:
        """Why there has been no connection, as far as is known: a failed login explains every later failure."""
        return self._broken_login or str(self.handler.last_error or "no answer")

    @property
    def session_id(self) -> int | None:
        """Which session is open; None while not connected."""
        client_id = self.kazoo.client_id
        return None if client_id is None else client_id[0]

    async def start(self) -> None:
        """Begin to connect, and go on trying until `close`."""
        self._wanted = True
        self._restarts = asyncio.create_task(self._start_again_and_again())
        await asyncio.to_thread(self._start)

    async def close(self) -> None:
        """End the session and the thread; a server that is silent is not waited for longer than a few seconds."""
        self._wanted = False
        if self._restarts is not None:
            self._restarts.cancel()
        closing = asyncio.create_task(in_own_thread(self._close, "zookeeper-close"))
        for hang_up in (self.handler.hang_up, self._give_up):
            await asyncio.wait((closing,), timeout=CLOSE_TIMEOUT_S)
            if closing.done():  # the event loop logs an error
                return
            hang_up()

    def _start(self) -> None:
        with self._one_at_a_time:
            if self._wanted:
                self.kazoo.start_async()

    def _close(self) -> None:
        with self._one_at_a_time, contextlib.suppress(WriterNotClosedException):
            self.kazoo.stop()
            # After a start that failed, kazoo has stopped already, but its thread may not have ended, and close() wants
            # that; nothing public waits for it.
            if self.kazoo._connection.stop(CLOSE_TIMEOUT_S):  # noqa: SLF001
                self.kazoo.close()

    def _give_up(self) -> None:
        _LOG.warning("the ZooKeeper client is still waiting for a server that does not answer; it ends with us")

    def _tell_of_logins(self) -> None:
        """Have kazoo tell of each login; nothing public comes between its connection and its first request."""
        connection = self.kazoo._connection  # noqa: SLF001
        connect = connection._connect  # noqa: SLF001

        def connect_and_log_in(*server: object) -> object:
            try:
                timeouts = connect(*server)
            except (AuthFailedError, SessionClosedRequireSaslError) as error:
                self._inbox.post(self._login_failed, isinstance(error.__cause__, ConnectionDropped))
                # After this one kazoo ends in silence; for the other it logs a traceback, and its thread writes one.
                raise AuthFailedError from error
            self.handler.last_error = None  # the next loss has a reason of its own
            self._tell(ConnectionState.CONNECTED)
            return timeouts

        connection._connect = connect_and_log_in  # noqa: SLF001

    def _heard(self, state: str) -> None:
        """Take a state from kazoo's thread."""
        if state != KazooState.CONNECTED:
            # A server that was restored has seen less than we have, and would refuse us for ever. What we read next is
            # behind a `sync`, and `history.py` notices that something is missing.
            self.kazoo.last_zxid = 0
            self._tell(_LOSSES[state])

    def _tell(self, state: ConnectionState) -> None:
        """Tell the loop of a state, from kazoo's thread."""
        if state is not self._told:
            self._told = state
            self._inbox.post(self._changed, state, self.handler.last_error)

    def _changed(self, state: ConnectionState, reason: OSError | None) -> None:
        if not self._wanted:
            return
        if state is ConnectionState.CONNECTED:
            self._was_connected = True
            _LOG.info("connected to ZooKeeper, session 0x%x", self.session_id or 0)
        else:
            _LOG.warning("connection to ZooKeeper %s (%s)", state.value, reason or "closed")
        self._on_state(state)

    def _login_failed(self, ended: bool) -> None:
        """Note, in the loop, that a login has failed; ended: the server said nothing, but ended the connection."""
        assert self._settings.login is not None  # noqa: S101
        setting, connect = self._settings.login.scheme.setting, self._settings.connect
        if ended:  # an older server refuses so; one that is being stopped may do so, too
            self._failed_login = self._broken_login = (
                f"ZooKeeper ends the connection during the login of {setting}: check its user name and password"
            )
        else:
            refusal = LoginRefused(
                setting, f"ZooKeeper at {connect} refuses this login: check its user name and password"
            )
            self._failed_login = str(refusal)
            self._on_refused(refusal)

    async def _start_again_and_again(self) -> None:
        """Start kazoo after each end, also after one that comes before its start is known to have worked."""
        while True:
            await self._ended.wait()
            self._ended.clear()
            self._log_end()
            await asyncio.sleep(RESTART_DELAY_S)
            try:
                await asyncio.to_thread(self._start)
            except Exception:  # noqa: BLE001 - whatever it is: without a client this node is of no use
                _LOG.exception("the ZooKeeper client could not be started, trying again")
                self._ended.set()

    def _log_end(self) -> None:
        failed, self._failed_login = self._failed_login, ""
        now_s = asyncio.get_running_loop().time()
        if not failed:
            _LOG.warning("the ZooKeeper client has ended, starting the client again")
        elif self._was_connected and now_s >= self._refusal_due_s:  # a start that fails says so itself
            self._refusal_due_s = now_s + REFUSAL_LOG_S
            _LOG.warning("%s; it is tried again every second", failed)


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
