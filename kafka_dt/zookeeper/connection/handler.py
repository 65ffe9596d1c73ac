"""The bridge between kazoo's connection thread and the asyncio loop.

kazoo calls a handler for everything that depends on how a program waits. This one keeps kazoo's own thread for the
connection and brings all that comes out of it (answers, watches, changes of state) to the event loop: in the order in
which it came, which a cache needs, and many per wake-up of the loop.

It also ends a connection on which an answer is overdue. kazoo sends a ping only when it has had nothing else to send
for a while, and a server that has lost its leader answers a ping, too.

Source: kazoo.interfaces.IHandler, kazoo.interfaces.IAsyncResult.
"""

from __future__ import annotations

import errno
import socket
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from kafka_dt.zookeeper.connection.sockets import BufferedSocket, WakeUp, connect, wait_ready

if TYPE_CHECKING:
    import asyncio
    import ssl
    from collections.abc import Callable, Sequence

    from kafka_dt.zookeeper.connection.sockets import Waitable

Call = tuple["Callable[..., object]", tuple[Any, ...]]
_UNUSABLE_ADDRESS: Final = {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.ENETUNREACH}


class Inbox:
    """Calls on their way from any thread to the event loop's, in the order in which they were posted."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._calls: deque[Call] = deque()
        self._scheduled = False

    def post(self, function: Callable[..., object], *arguments: object) -> None:
        """Have `function` called soon in the loop's thread; one wake-up serves all that is posted meanwhile."""
        self._calls.append((function, arguments))
        if not self._scheduled and not self._loop.is_closed():
            self._scheduled = True
            self._loop.call_soon_threadsafe(self._drain)

    def _drain(self) -> None:
        self._scheduled = False  # before the first look, so that what is posted from now on wakes the loop again
        try:
            while self._calls:
                function, arguments = self._calls.popleft()
                function(*arguments)
        finally:
            if self._calls:  # a call failed: the loop reports it, the others must not wait for the next post
                self._loop.call_soon(self._drain)


class Answer:
    """The result of one kazoo request; its callbacks run at once in the thread that sets it."""

    __slots__ = ("_callbacks", "_done", "_lock", "exception", "made_s", "value")

    def __init__(self, lock: threading.Lock) -> None:
        self._lock = lock
        self.made_s = time.monotonic()
        """When the request was made, on the monotonic clock."""
        self._done = False
        self._callbacks: list[Callable[[Answer], object]] = []
        self.value: Any = None
        self.exception: BaseException | None = None

    def ready(self) -> bool:
        """Tell whether it is set."""
        return self._done

    def successful(self) -> bool:
        """Tell whether it is set, and to a value."""
        return self._done and self.exception is None

    def set(self, value: object = None) -> None:
        """Set the value and run the callbacks."""
        self._finish(value, None)

    def set_exception(self, exception: BaseException) -> None:
        """Set an exception instead of a value, and run the callbacks."""
        self._finish(None, exception)

    def get(self) -> Any:
        """Return the value or raise the exception; only for an answer that is set, as kazoo's callbacks use it."""
        if self.exception is not None:
            raise self.exception
        return self.value

    def rawlink(self, callback: Callable[[Answer], object]) -> None:
        """Have `callback` called when it is set; at once if it is."""
        with self._lock:
            if not self._done:
                self._callbacks.append(callback)
                return
        callback(self)

    def _finish(self, value: object, exception: BaseException | None) -> None:
        with self._lock:
            if self._done:  # kazoo refuses a request twice when its socket has just been closed
                return
            self._done = True
            self.value = value
            self.exception = exception
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)


class LoopHandler:
    """What kazoo asks of a handler, with the event loop as the place where callbacks run.

    Args:
        inbox: brings watches to the loop.
        tls: for the connections to ZooKeeper; None = plain.
        on_end: called in the event loop when kazoo's thread has ended, whatever has ended it.
        answer_within_s: the age of the oldest request without an answer at which its connection is ended.
    """

    name = "kafka_dt_loop_handler"
    timeout_exception = TimeoutError
    sleep_func = staticmethod(time.sleep)

    def __init__(
        self, inbox: Inbox, tls: ssl.SSLContext | None, on_end: Callable[[], object], answer_within_s: float
    ) -> None:
        self._inbox = inbox
        self._answer_within_s = answer_within_s
        self._tls = tls
        self._on_end = on_end
        self._lock = threading.Lock()
        self._socket: BufferedSocket | None = None
        self.running = False
        self.last_error: OSError | None = None
        """Why the last attempt to connect failed, or why we ended a connection."""
        self.unanswered: Callable[[], Sequence[tuple[object, Answer | None, int]]] = tuple
        """Gives kazoo's list of the requests that were sent and not answered, the oldest first; its thread's own."""

    def start(self) -> None:
        """Note that kazoo is at work; there are no threads to start here."""
        self.running = True

    def stop(self) -> None:
        """Note that kazoo has ended."""
        self.running = False

    def spawn(self, function: Callable[..., object], *args: object, **kwargs: object) -> threading.Thread:
        """Run the connection's loop in a thread of its own."""

        def run() -> None:
            try:
                function(*args, **kwargs)
            except RuntimeError:
                pass  # an answer to a later request came first: kazoo has logged it, and is started again
            finally:
                self._inbox.post(self._on_end)

        thread = threading.Thread(target=run, name="zookeeper", daemon=True)
        thread.start()
        return thread

    def dispatch_callback(self, callback: Any) -> None:
        """Bring a watch to the event loop."""
        self._inbox.post(callback.func, *callback.args)

    def async_result(self) -> Answer:
        """Return the place for the answer to a request."""
        return Answer(self._lock)

    def create_connection(self, address: tuple[str, int], hostname: str, timeout: float, **_: object) -> BufferedSocket:
        """Connect to a server; TLS comes from our own context instead of kazoo's arguments."""
        try:
            self._socket = connect(address, hostname, timeout, self._tls)
        except OSError as error:
            # Of a name's addresses, one that this machine cannot use (IPv6 in a container) explains the least.
            if self.last_error is None or error.errno not in _UNUSABLE_ADDRESS:
                self.last_error = error
            raise
        return self._socket

    def hang_up(self) -> None:
        """End the connection under kazoo's hands: whatever it waits for, it notices at once."""
        if self._socket is not None:
            self._socket.hang_up()

    def create_socket_pair(self) -> tuple[WakeUp, WakeUp]:
        """Return the ends by which requests are announced."""
        wake_up = WakeUp()
        return wake_up, wake_up

    def select(
        self,
        readers: Sequence[Waitable],
        writers: Sequence[Waitable],
        _: object,
        timeout: float | None = None,
    ) -> tuple[list[Waitable], list[Waitable], list[Waitable]]:
        """Wait for sockets.

        Raises:
            TimeoutError: the oldest request has waited for its answer for too long.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            waits_s = [left - time.monotonic() for left in (deadline, self._answer_due_s()) if left is not None]
            ready = wait_ready(readers, writers, max(0.0, min(waits_s)) if waits_s else None)
            if self._socket not in ready[0]:
                self._require_answers()
            if any(ready) or (deadline is not None and time.monotonic() >= deadline):
                return ready

    def _answer_due_s(self) -> float | None:
        """Return when the next answer is overdue, on the monotonic clock; None if none is awaited."""
        unanswered = self.unanswered()
        oldest = unanswered[0][1] if unanswered else None
        return None if oldest is None else oldest.made_s + self._answer_within_s

    def _require_answers(self) -> None:
        due_s = self._answer_due_s()
        # After this process itself stood still the answer may be there, and not have been read.
        if due_s is None or time.monotonic() < due_s or self._socket is None or self._socket.has_news():
            return
        self.last_error = TimeoutError(f"a request was not answered for {self._answer_within_s:.1f} s")
        raise self.last_error

    def socket(self) -> socket.socket:
        """Return a new TCP socket."""
        return socket.socket()

    def event_object(self) -> threading.Event:
        """Return an event that threads can wait for."""
        return threading.Event()

    def lock_object(self) -> threading.Lock:
        """Return a lock for threads."""
        return threading.Lock()

    def rlock_object(self) -> threading.RLock:
        """Return a lock that its holder can take again."""
        return threading.RLock()
