"""What one kind of request costs a node: processor time, memory, and bytes of log and audit, for each of its bytes.

    with WatchedNode(folder, zookeeper) as node:
        values = measure(node, shape)

The node has one worker. What is logged is not limited meanwhile, so that the worst is seen. CPU time is that of the
worker, and of many requests, because it is counted in ticks of 10 ms. Memory is how far the worker's resident memory
grows during the first and largest request.

Limits: Linux. The client runs on the same cores. CPU time of a connection and its login counts as the request's where
the request ends the connection.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from benchmarks.processes import ProcessTree
from benchmarks.request_shapes import Caller, Shape
from benchmarks.tokens import password_of
from tests.support.brokers.broker import USERS
from tests.support.nodes.audit import AuditFolder
from tests.support.nodes.node import ADMIN, SHA_256, Node, node_properties
from tests.support.protocol.raw import ConnectionClosed, RawConnection

LEAST_CPU_S: Final = 0.2
"""How much CPU time is measured at least, in seconds."""
LONGEST_S: Final = 3.0
"""How long a measurement takes at most, beside its first request."""
BATCH_BYTES: Final = 64 * 1024
"""Small requests are sent until they are so much together."""
WINDOW: Final = 16
"""How many of them are sent before their answers are read."""
MEASURED_BYTES: Final = 4096
"""Of less than that the memory is not told: the pages of one connection are more."""
_QUIET_S: Final = 0.2
_SAMPLE_S: Final = 0.001
_MECHANISMS: Final = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,DIGEST-MD5,OAUTHBEARER"


class WatchedNode:
    """A node of one worker, of which everything is watched.

    Args:
        folder: receives its files.
        zookeeper: `zookeeper.connect`.
        token_id: a token that is there.
    """

    def __init__(self, folder: Path, zookeeper: str, token_id: str) -> None:
        self._audit = AuditFolder(folder / "audit")
        self._token_id = token_id
        listener = "listener.name.sasl_plaintext."
        self._node = Node(
            folder,
            node_properties(
                zookeeper,
                kafka_dt_workers=1,
                allow_everyone_if_no_acl_found=False,
                connection_failed_authentication_delay_ms=0,
            )
            | self._audit.properties()
            | {
                f"{listener}sasl.enabled.mechanisms": _MECHANISMS,
                f"{listener}oauthbearer.kafka.dt.sasl.oauthbearer.allow.unsigned.tokens": "true",
            },
        )
        self._log = folder / "kafka-dt.log"

    def __enter__(self) -> Self:
        self._node.start()
        (self._worker,) = self._node.workers()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._node.stop()

    def cpu_seconds(self) -> float:
        """Tell what the worker has used."""
        return ProcessTree(self._worker).cpu_seconds()

    def resident_bytes(self) -> int:
        """Tell what the worker has in memory."""
        pages = int(Path(f"/proc/{self._worker}/statm").read_text().split()[1])
        return pages * 4096

    def written(self) -> tuple[int, int]:
        """Tell how many bytes of log and of audit there are, when no more come."""
        sizes = self._sizes()
        while True:
            time.sleep(_QUIET_S)
            now = self._sizes()
            if now == sizes:
                return now
            sizes = now

    def connect(self, caller: Caller) -> RawConnection:
        """Connect, and log in where the caller does."""
        connection = RawConnection(self._node.address("PLAINTEXT" if caller is Caller.ANONYMOUS else "SASL_PLAINTEXT"))
        match caller:
            case Caller.USER:
                connection.login_plain("alice", USERS["alice"])
            case Caller.ADMIN:
                connection.login_plain(ADMIN, USERS[ADMIN])
            case Caller.TOKEN:
                connection.login_scram(self._token_id, password_of(self._token_id), SHA_256, token=True)
        return connection

    def _sizes(self) -> tuple[int, int]:
        files = list(self._audit.path.glob("*.jsonl*"))
        return self._log.stat().st_size, sum(path.stat().st_size for path in files)


@dataclass(frozen=True, slots=True)
class _Cost:
    """Of one size."""

    request_bytes: int
    cpu_ns_byte: float
    memory_byte: float
    log_byte: float
    audit_byte: float


def measure(node: WatchedNode, shape: Shape) -> Mapping[str, float]:
    """Say what a kind of request costs at worst, and how the cost grows with its size."""
    costs = [_measure(node, shape, size) for size in sorted(shape.sizes, reverse=True)]
    largest = costs[0]
    values = {
        "request_bytes": largest.request_bytes,
        "cpu_us_byte": max(each.cpu_ns_byte for each in costs) / 1000,
        "cpu_ms": largest.cpu_ns_byte * largest.request_bytes / 1e6,
        "log_byte": max(each.log_byte for each in costs),
        "audit_byte": max(each.audit_byte for each in costs),
    }
    if largest.request_bytes >= MEASURED_BYTES:
        values["memory_byte"] = largest.memory_byte
    if len(costs) > 1:
        values["cpu_growth"] = largest.cpu_ns_byte / costs[1].cpu_ns_byte
    return values


def _measure(node: WatchedNode, shape: Shape, size: int) -> _Cost:
    payload = shape.payload(size)
    copies = min(200, max(1, BATCH_BYTES // (len(payload) + 4)))
    log, audit = node.written()
    resident = node.resident_bytes()
    with _peak_of(node) as peak:
        sent = _exchange(node, shape, payload, 1 if shape.ends else copies)
    log_after, audit_after = node.written()
    return _Cost(
        request_bytes=len(payload) + 4,
        cpu_ns_byte=_cpu_ns_byte(node, shape, payload, copies),
        memory_byte=max(0, peak[0] - resident) / sent,
        log_byte=(log_after - log) / sent,
        audit_byte=(audit_after - audit) / sent,
    )


def _cpu_ns_byte(node: WatchedNode, shape: Shape, payload: bytes, copies: int) -> float:
    begun, used, sent = time.monotonic(), node.cpu_seconds(), 0
    while True:
        sent += _exchange(node, shape, payload, copies)
        cpu_s = node.cpu_seconds() - used
        if cpu_s >= LEAST_CPU_S or time.monotonic() - begun >= LONGEST_S:
            return cpu_s / sent * 1e9


def _exchange(node: WatchedNode, shape: Shape, payload: bytes, copies: int) -> int:
    """Send requests and wait until each is answered, or the connection is closed; gives their bytes."""
    if shape.ends:
        return sum(_sent_to_the_end(node, shape, payload) for _ in range(copies))
    with node.connect(shape.caller) as connection:
        for begin in range(0, copies, WINDOW):
            number = min(WINDOW, copies - begin)
            for _ in range(number):
                connection.send_frame(payload)
            for _ in range(number):
                connection.receive_frame()
    return copies * (len(payload) + 4)


def _sent_to_the_end(node: WatchedNode, shape: Shape, payload: bytes) -> int:
    with node.connect(shape.caller) as connection:
        for each in shape.first:
            connection.send_frame(each)
            connection.receive_frame()
        with suppress(ConnectionClosed, ConnectionResetError, BrokenPipeError):
            connection.send_frame(payload)
            connection.receive_frame()
    return sum(len(each) + 4 for each in (*shape.first, payload))


@contextmanager
def _peak_of(node: WatchedNode) -> Iterator[list[int]]:
    """Watch the worker's memory; gives a list whose one entry is the most that it was."""
    peak, done = [node.resident_bytes()], threading.Event()

    def watch() -> None:
        while not done.wait(_SAMPLE_S):
            peak[0] = max(peak[0], node.resident_bytes())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        done.set()
        watcher.join()
        peak[0] = max(peak[0], node.resident_bytes())
