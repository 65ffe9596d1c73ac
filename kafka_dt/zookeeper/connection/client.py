"""ZooKeeper for asyncio: many requests in flight, answers in order, a session that is found again.

    client = ZooKeeperClient(settings)
    await client.start()
    znode = await client.get("/cluster/id")
    await client.close()

Every request method returns a future at once: await it, or give `arrived`, which is called in the loop when the
answer arrives, in ZooKeeper's order and before any task runs that waits for this or a later answer. It gets the value
and the error (one of them is None), and what it returns or raises is the outcome of the future.

While the connection is down requests fail at once with `ZooKeeperConnectionLost(sent=False)`. One that was under way
when the connection broke fails with `sent=True`: it may have been carried out. Should its answer come all the same,
`arrived` does not hear it: the server that gave it may lag behind, or may have been restored. Nothing is ever sent
twice. For the creation of a znode with a random name that is harmless (no process learns of it), and a change that is
guarded by a version may be tried again (it finds another version).

The connection comes back by itself, with the old session or, if that has expired, with a new one: `session_id` tells
them apart. Watches do not survive any loss of the connection: kazoo calls them all then (they say nothing more than
"look again") and does not set them again. So who watches looks again after CONNECTED.

With a `ConnectionGuard` no connection counts until the guard admits it: see `kafka_dt/zookeeper/proofs/history.py`.

Source: org.apache.zookeeper.ZooKeeper, kafka.zookeeper.ZooKeeperClient.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from kafka_dt.zookeeper.connection.handler import Inbox
from kafka_dt.zookeeper.connection.operations import ANY_VERSION, Check, Stat, Znode, size_of
from kafka_dt.zookeeper.connection.requests import RequestSizes, ZooKeeperRequests, fail
from kafka_dt.zookeeper.connection.session import ConnectionState, ZooKeeperSession
from kafka_dt.zookeeper.connection.translation import (
    acl_of,
    multi_error,
    read_many,
    stat_of,
    write_many,
    znode_of,
    znodes_of,
)
from kafka_dt.zookeeper.errors import (
    AccessDenied,
    CannotConnect,
    LoginRefused,
    NoChroot,
    NodeExists,
    RequestTooLarge,
    ZooKeeperConnectionLost,
    ZooKeeperError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kafka_dt.zookeeper.connection.handler import Answer
    from kafka_dt.zookeeper.connection.operations import Operation
    from kafka_dt.zookeeper.connection.requests import Arrived
    from kafka_dt.zookeeper.connection.settings import ZooKeeperSettings

    Watch = Callable[[object], None]

_T = TypeVar("_T")

_LOG = logging.getLogger(__name__)

RETRY_DELAY_S = 0.1
ADMISSION_RETRY_S = 1.0
MAX_REQUEST_BYTES = 1_000_000
"""A server closes the connection over a request of more than its `jute.maxbuffer` (1,048,575 bytes unless configured);
so a larger one is not sent. `requests` deals with servers that take less."""


class ConnectionGuard(Protocol):
    """Looks at each connection before it is used."""

    trouble: str
    """Why the last connection is not admitted; empty if it is, or if that is not known yet."""

    @property
    def awaits_operator(self) -> bool:
        """Whether an operator has to act before a connection is admitted: no timeout applies until then."""

    async def admit(self, client: ZooKeeperClient) -> None:
        """Return when the connection may be used; until then, requests are made by `client.ungated`.

        Raises:
            ZooKeeperError: it cannot be found out; it is asked again.
        """


class ZooKeeperClient:
    """A connection to a ZooKeeper ensemble, for one event loop; without a guard each connection is used at once.

    `answered` hears how long each request took, in seconds.

    Raises:
        LoginUnusable: the settings ask for something that cannot be done.
    """

    def __init__(
        self,
        settings: ZooKeeperSettings,
        guard: ConnectionGuard | None = None,
        answered: Callable[[float], None] = lambda _: None,
    ) -> None:
        self._settings = settings
        self._guard = guard
        self._admission: asyncio.Task[None] | None = None
        self._is_ungated = False
        chroot = settings.connect.partition("/")[2].strip("/")
        self._chroot = f"/{chroot}" if chroot else ""
        self._loop = asyncio.get_running_loop()
        self._inbox = Inbox(self._loop)
        self._session = ZooKeeperSession(settings, self._inbox, self._state_changed, self._login_refused)
        self._listeners: list[Callable[[ConnectionState], None]] = []
        self._sizes = RequestSizes(MAX_REQUEST_BYTES)
        self._requests = ZooKeeperRequests(
            self._loop, self._inbox, lambda: self.connected, settings.max_in_flight, self._sizes, answered=answered
        )
        self._connected = asyncio.Event()
        self._decided = asyncio.Event()
        """Set at the first connection, or at a refusal of the login before it: a later one may pass."""
        self._refusal: LoginRefused | None = None

    @property
    def connected(self) -> bool:
        """Whether requests are served now."""
        return self._connected.is_set() and self._session.connected

    @property
    def session_id(self) -> int | None:
        """Which session is open; None while not connected."""
        return self._session.session_id

    def add_listener(self, listener: Callable[[ConnectionState], None]) -> None:
        """Have every change of the connection's state told to `listener`, in the loop."""
        self._listeners.append(listener)

    async def start(self) -> None:
        """Connect, and make the chroot if it is missing, as a broker does, where the settings want that.

        Raises:
            CannotConnect: it did not work within the connection timeout, and not because an operator has to act.
            NoChroot: it is missing, and not to be made.
            LoginRefused: ZooKeeper refuses the login, or wants one.
            AccessDenied: ZooKeeper does not let us make the chroot.
        """
        await self._session.start()
        try:
            await self._connect_in_time()
        except TimeoutError:
            await self.close()
            reason = (self._guard.trouble if self._guard else "") or self._session.trouble
            raise CannotConnect(self._settings.connect, self._settings.connection_timeout_ms, reason) from None
        except (AccessDenied, NoChroot):
            await self.close()
            raise

    async def close(self) -> None:
        """End the session; requests under way fail."""
        self._stop_admission()
        await self._session.close()
        self._requests.fail_all()

    def get(self, path: str, *, watch: Watch | None = None, arrived: Arrived | None = None) -> asyncio.Future[Znode]:
        """Read a znode; NoNode if it does not exist.

        `watch` is called once when it is changed or removed, or the connection is lost. The same function set again
        before that counts once.
        """
        kazoo, full = self._session.kazoo, self._full(path)
        return self._send(lambda: kazoo.get_async(full, watch=watch), znode_of, path, arrived)

    def get_many(
        self, paths: Sequence[str], *, arrived: Arrived | None = None
    ) -> asyncio.Future[list[Znode | ZooKeeperError]]:
        """Read znodes in one request, not of one moment; for each the znode, or what is wrong with it.

        A server before 3.6 refuses it (ZooKeeperRefusal) and closes the connection. `reads` has a way for any server.
        """
        kazoo, full = self._session.kazoo, [self._full(path) for path in paths]
        return self._send(lambda: read_many(kazoo, full), lambda found: znodes_of(paths, found), "get_many", arrived)

    def exists(
        self, path: str, *, watch: Watch | None = None, arrived: Arrived | None = None
    ) -> asyncio.Future[Stat | None]:
        """Read the state of a znode; None if it does not exist. `watch` hears of its creation, too."""
        kazoo, full = self._session.kazoo, self._full(path)
        return self._send(
            lambda: kazoo.exists_async(full, watch=watch),
            lambda stat: None if stat is None else stat_of(stat),
            path,
            arrived,
        )

    def children(self, path: str, *, arrived: Arrived | None = None) -> asyncio.Future[list[str]]:
        """Read the names of the children, in no order; NoNode if the znode does not exist."""
        kazoo, full = self._session.kazoo, self._full(path)
        return self._send(lambda: kazoo.get_children_async(full), list, path, arrived)

    def sync(self, path: str) -> asyncio.Future[None]:
        """Have the server we talk to catch up with the leader.

        Requests sent after it, without waiting for its answer, see every change acknowledged anywhere before it,
        unless the leader has just been cut off from the others: see `barrier`.
        """
        kazoo, full = self._session.kazoo, self._full(path)
        return self._send(lambda: kazoo.sync_async(full), lambda _: None, path, None)

    def barrier(self, path: str) -> asyncio.Future[list[str | Stat | None]]:
        """Have a quorum agree on a write that changes nothing: a `multi` that checks whether `path` exists.

        Requests sent after it, without waiting for its answer, see every change acknowledged anywhere before it. `sync`
        promises the same, but a leader that is cut off from the others answers it until it steps down; this one it
        cannot answer. It costs ZooKeeper a write, and needs no more than the permission to read `path`.

        Raises:
            MultiFailed: from the future; the znode does not exist, or its ACL refuses us.
        """
        return self.multi([Check(path)])

    def create(self, path: str, data: bytes | None, *, ephemeral: bool = False) -> asyncio.Future[None]:
        """Make a znode; NodeExists if it exists, NoNode if its parent does not. ZooKeeper tells None from b""."""
        kazoo, full = self._session.kazoo, self._full(path)
        acl = acl_of(path, secure=self._settings.set_acl)
        return self._send(
            lambda: kazoo.create_async(full, data, acl=acl, ephemeral=ephemeral), lambda _: None, path, None
        )

    def delete(self, path: str, version: int = ANY_VERSION) -> asyncio.Future[None]:
        """Remove a znode without children; NoNode, or VersionMismatch."""
        kazoo, full = self._session.kazoo, self._full(path)
        return self._send(lambda: kazoo.delete_async(full, version), lambda _: None, path, None)

    def multi(
        self, operations: Sequence[Operation], *, arrived: Arrived | None = None
    ) -> asyncio.Future[list[str | Stat | None]]:
        """Carry out all operations or none; fails with MultiFailed, or RequestTooLarge if it was not sent.

        Returns:
            For each operation: the path it created (with the chroot), the new Stat of what it set, or None.
        """
        secure, kazoo = self._settings.set_acl, self._session.kazoo

        def begin() -> Answer:
            paths = [self._full(operation.path) for operation in operations]
            return write_many(kazoo, operations, paths, secure=secure)

        def convert(results: list[Any]) -> list[str | Stat | None]:
            refused = multi_error(operations, results)
            if refused is not None:
                raise refused
            return results

        size = sum(size_of(operation) for operation in operations)
        try:
            self._sizes.require(size)
        except RequestTooLarge as error:
            return self._refused(error)
        return self._send(begin, convert, "multi", arrived, size)

    def ungated(self, request: Callable[[], asyncio.Future[_T]]) -> asyncio.Future[_T]:
        """Make a request on a connection that is not admitted yet; for the guard. It waits for no other request."""
        self._is_ungated = True
        try:
            return request()
        finally:
            self._is_ungated = False

    def readmit(self) -> None:
        """Have the connection count as none until the guard admits it again."""
        if self.connected:
            self._requests.fail_all()  # before they could be taken for the reason of a loss
            self._enter(ConnectionState.SUSPENDED)
            self._state_changed(ConnectionState.CONNECTED)

    async def ensure_path(self, path: str) -> None:
        """Make a znode and its parents where they are missing, without data, as a broker does."""
        names = path.strip("/").split("/")
        for count in range(1, len(names) + 1):
            await self._ensure("/" + "/".join(names[:count]))

    async def _ensure(self, path: str) -> None:
        if await self.exists(path) is None:
            try:
                await self.create(path, None)
            except NodeExists:
                return  # another process was quicker

    async def _connect_in_time(self) -> None:
        try:
            async with asyncio.timeout(self._settings.connection_timeout_ms / 1000):
                await self._have_chroot()
        except TimeoutError:
            if self._guard is None or not self._guard.awaits_operator:
                raise
            await self._have_chroot()  # an operator takes as long as it takes

    async def _have_chroot(self) -> None:
        while True:
            await self._decided.wait()
            if self._refusal is not None:
                raise self._refusal
            await self._connected.wait()
            try:
                await self._ensure_chroot()
            except ZooKeeperConnectionLost:
                await asyncio.sleep(RETRY_DELAY_S)
            else:
                return

    async def _ensure_chroot(self) -> None:
        if await self.exists("/") is not None:
            return
        if not self._settings.makes_chroot:
            raise NoChroot(self._chroot)
        chroot, self._chroot = self._chroot, ""
        try:
            await self.ensure_path(chroot)
        finally:
            self._chroot = chroot

    def _full(self, path: str) -> str:
        if not path.startswith("/"):
            raise ValueError("paths of znodes are absolute")
        return (self._chroot + path).rstrip("/") or "/"

    def _send(
        self,
        begin: Callable[[], Answer],
        convert: Callable[[Any], Any],
        subject: str,
        arrived: Arrived | None,
        size: int = 0,
    ) -> asyncio.Future[Any]:
        if not (self.connected or (self._is_ungated and self._session.connected)):
            return self._refused(ZooKeeperConnectionLost(self._why_not_connected(), sent=False))
        return self._requests.send(begin, convert, subject, arrived, size, at_once=self._is_ungated)

    def _why_not_connected(self) -> str:
        if self._session.connected and self._guard is not None and self._guard.awaits_operator:
            return "ZooKeeper is not used until an operator accepts its history: kafka-dt accept-restore"
        return "there is no connection to ZooKeeper"

    def _refused(self, error: ZooKeeperError) -> asyncio.Future[Any]:
        """Return the outcome of a request that was not sent; `arrived` is not called."""
        future: asyncio.Future[Any] = self._loop.create_future()
        fail(future, error)
        return future

    def _state_changed(self, state: ConnectionState) -> None:
        self._stop_admission()
        if state is ConnectionState.CONNECTED and self._guard is not None:
            self._admission = self._loop.create_task(self._admit(self._guard))
        else:
            self._enter(state)

    async def _admit(self, guard: ConnectionGuard) -> None:
        while True:
            try:
                await guard.admit(self)
            except ZooKeeperConnectionLost:
                await asyncio.sleep(RETRY_DELAY_S)  # if the connection itself is lost, this task is cancelled
            except ZooKeeperError as error:
                if isinstance(error, LoginRefused):
                    self._login_refused(error)
                guard.trouble = str(error)
                _LOG.warning("this connection to ZooKeeper cannot be used, trying again: %s", error)
                await asyncio.sleep(ADMISSION_RETRY_S)
            else:
                self._admission = None
                self._enter(ConnectionState.CONNECTED)
                return

    def _login_refused(self, refusal: LoginRefused) -> None:
        if not self._decided.is_set():
            self._refusal = refusal
            self._decided.set()

    def _stop_admission(self) -> None:
        if self._admission is not None:
            self._admission.cancel()
            self._admission = None

    def _enter(self, state: ConnectionState) -> None:
        if state is ConnectionState.CONNECTED:
            self._connected.set()
            self._decided.set()
            self._requests.go_on()
        else:
            self._connected.clear()
            self._requests.lost()
        for listener in self._listeners:
            listener(state)
