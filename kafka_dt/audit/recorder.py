"""Making events: what all of a worker's have in common, and what those of one connection have.

    recorder = Recorder(log, node="kdt1-0", instance=secrets.token_hex(8), now_ms=now_ms)
    recorder.record(EventType.TOKEN_CREATED, Outcome.OK, origin, token_id=..., owner=...)

Code that knows what has happened calls it; code that must not know of events gets a callback.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Final, TypedDict, Unpack

from kafka_dt.audit.event import AuditEvent, EventType, Outcome
from kafka_dt.audit.log import AuditLog


class Facts(TypedDict, total=False):
    """The fields of an event that tell what it is about."""

    reason: str | None
    token_id: str | None
    owner: str | None
    requester: str | None
    renewers: tuple[str, ...] | None
    issue_time: int | None
    expiry_time: int | None
    max_time: int | None
    key_id: str | None
    count: int | None
    acl: str | None
    user: str | None
    keys: tuple[str, ...] | None
    entries: tuple[str, ...] | None
    limit: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The fields of an event that tell which client is at the other end; their meaning is that of `AuditEvent`."""

    listener: str | None = None
    mechanism: str | None = None
    principal: str | None = None
    by_token: bool | None = None
    session_token_id: str | None = None
    client_id: str | None = None
    client_software: str | None = None
    client_software_version: str | None = None
    client_address: str | None = None
    client_port: int | None = None
    connection: str | None = None


NOBODY: Final = Origin()
"""What a node does by itself has no origin."""


class Recorder:
    """Makes events and writes them to a log.

    Args:
        log: where to.
        node: which worker of which node this is.
        instance: text that no other start of any worker has.
        now_ms: the wall clock, milliseconds since the epoch.
    """

    def __init__(self, log: AuditLog, *, node: str, instance: str, now_ms: Callable[[], int]) -> None:
        self._log = log
        self._node = node
        self._instance = instance
        self._now_ms = now_ms
        self._events = count(1)
        self._connections = count(1)

    def connection(self) -> str:
        """Name a new connection."""
        return f"{self._instance}-c{next(self._connections)}"

    def now_ms(self) -> int:
        """Give the time of an event that is written down later."""
        return self._now_ms()

    def record(
        self,
        kind: EventType,
        outcome: Outcome,
        origin: Origin = NOBODY,
        *,
        time_ms: int | None = None,
        **facts: Unpack[Facts],
    ) -> None:
        """Write down that something has happened, now unless a time is given."""
        self._log.record(
            AuditEvent(
                id=f"{self._instance}-{next(self._events)}",
                time=self._now_ms() if time_ms is None else time_ms,
                node=self._node,
                type=kind,
                outcome=outcome,
                listener=origin.listener,
                mechanism=origin.mechanism,
                principal=origin.principal,
                by_token=origin.by_token,
                session_token_id=origin.session_token_id,
                client_id=origin.client_id,
                client_software=origin.client_software,
                client_software_version=origin.client_software_version,
                client_address=origin.client_address,
                client_port=origin.client_port,
                connection=origin.connection,
                **facts,
            )
        )
