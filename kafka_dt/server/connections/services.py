"""What the connections of one listener share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kafka_dt.audit.recorder import Recorder
from kafka_dt.config import Listener
from kafka_dt.identity.login.login import Login
from kafka_dt.metrics import Counts
from kafka_dt.server.connections.preparations import Preparations
from kafka_dt.server.connections.request_memory import RequestMemory
from kafka_dt.server.connections.sessions import Sessions
from kafka_dt.server.handlers import Handler
from kafka_dt.server.listeners.deadlines import LoginDeadlines
from kafka_dt.server.listeners.rates import FailedLogins
from kafka_dt.tokens import Principal
from kafka_dt_protocol import APIS, ApiTable, Limits

if TYPE_CHECKING:
    from kafka_dt.server.connections.connection import ClientConnection


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionServices:
    """What the connections of one listener share."""

    listener: Listener
    limits: Limits
    handler: Handler
    sessions: Sessions
    new_login: Callable[[Listener], Login]
    certified: Callable[[bytes | None], Principal]
    """Gives the principal of a client that need not log in, by its certificate in DER, if it has shown one."""
    now_ms: Callable[[], int]
    """The wall clock, milliseconds since the epoch."""
    steady_ms: Callable[[], int]
    """A clock that is never set, in milliseconds: sessions live by it."""
    failed_logins: FailedLogins
    """Says how long the answer to a failed login is held back."""
    opened: Callable[[ClientConnection], None]
    closed: Callable[[ClientConnection], None]
    deadlines: LoginDeadlines
    """Told of re-authentications that begin; the first login began when the socket was accepted."""
    memory: RequestMemory
    """Bounds what the connections of the worker hold together."""
    preparations: Preparations = field(default_factory=Preparations)
    """The logins whose clients compute their proofs."""
    apis: ApiTable = APIS
    """What is spoken; all but the logins among them is the handler's."""
    recorder: Recorder | None = None
    """Makes audit events; None where nothing is written down."""
    counts: Counts = field(default_factory=Counts.alone)
    """Where connections, logins and requests are counted."""
