"""What a node counts: the table of its counters and histograms.

    counts = Counts.alone()                 # numbers that no other process sees
    counts.logins.add("PLAIN", "ok")

The numbers of a worker go on in its successor, so the sums of a node never go back (`memory.py`).

Source: docs/metrics.md, which is made of this table.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Self

from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map

from kafka_dt.audit import EventType, Outcome, RefusalReason
from kafka_dt.metrics.declaration import Cells, Counter, Histogram, Kind, counter, histogram, metrics_of
from kafka_dt.metrics.frequent import Frequent
from kafka_dt_protocol.sasl import DIGEST_MD5, GSSAPI, OAUTHBEARER, PLAIN, ScramMechanism

OK: Final = "ok"
"""The result of what was done."""
CERTIFICATE: Final = "SSL"
"""The mechanism of a login with nothing but a certificate."""
MECHANISMS: Final = (PLAIN, *ScramMechanism, OAUTHBEARER, GSSAPI, DIGEST_MD5, CERTIFICATE)
FILES: Final = "files"
TOPIC: Final = "topic"
REQUEST_SECONDS: Final = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5)
"""The bounds of times, in seconds: from an answer of memory to one that clients give up."""
API_NAMES: Final = {
    key: "".join(part.capitalize() for part in name.split("_")) for key, name in sorted(api_key_map.items())
}
"""Kafka's names of all APIs, by key."""
TOKEN_ERRORS: Final = (
    ErrorCode.delegation_token_auth_disabled,
    ErrorCode.delegation_token_not_found,
    ErrorCode.delegation_token_owner_mismatch,
    ErrorCode.delegation_token_request_not_allowed,
    ErrorCode.delegation_token_authorization_failed,
    ErrorCode.delegation_token_expired,
    ErrorCode.invalid_principal_type,
    ErrorCode.invalid_request,
    ErrorCode.policy_violation,
    ErrorCode.throttling_quota_exceeded,
    ErrorCode.request_timed_out,
    ErrorCode.unknown_server_error,
)
"""What a request about tokens can be refused with."""
TOKEN_OPERATIONS: Final = {38: "create", 39: "renew", 40: "expire", 41: "describe"}
"""By API key."""


@dataclass(frozen=True, slots=True)
class Counts:
    """The counters and histograms of one process."""

    connections: Counter = counter("connections", "Connections that were accepted.")
    connections_refused: Counter = counter(
        "connections_refused",
        "Connections that were closed at once, because `max.connections` or `max.connections.per.ip` was reached.",
    )
    logins: Counter = counter(
        "logins",
        "Logins and re-authentications that ended, by mechanism (`SSL`: by certificate alone) and result: `ok`, or why "
        "the node refused it, as in [audit events](audit.md#why-a-login-was-refused).",
        mechanism=MECHANISMS,
        result=(OK, *RefusalReason),
    )
    request_seconds: Histogram = histogram(
        "request_duration_seconds",
        "How long requests took that the node answered itself, from the whole request to its answer. Logins are not "
        "among them.",
        REQUEST_SECONDS,
        api=API_NAMES,
    )
    login_wait_seconds: Histogram = histogram(
        "login_wait_duration_seconds",
        "How long messages of logins waited: for the store of tokens, a derivation, a thread or an issuer. Most "
        "messages are judged at once, and are not among them.",
        REQUEST_SECONDS,
    )
    token_requests: Counter = counter(
        "token_requests",
        "Requests about tokens, by operation and result: `ok`, or the name of Kafka's error.",
        operation=TOKEN_OPERATIONS,
        result={ErrorCode.none: OK, **{error: error.name.upper() for error in TOKEN_ERRORS}},
    )
    tokens_removed: Counter = counter("tokens_removed", "Expired tokens that this node removed from the store.")
    token_lookups: Counter = counter(
        "token_lookups",
        "Looks for the token of a login: answered from memory (`cache`), or by asking the store (`store`).",
        source=("cache", "store"),
    )
    derivations: Counter = counter(
        "derivations",
        "SCRAM credentials of tokens that were derived (PBKDF2): for a login that waited, or ahead of it.",
        purpose=("login", "ahead"),
    )
    store_request_seconds: Histogram = histogram(
        "store_request_duration_seconds",
        "How long the store of tokens took to answer a request: ZooKeeper, or the upstream cluster.",
        REQUEST_SECONDS,
    )
    store_connections: Counter = counter(
        "store_connections", "Connections to the store of tokens that came to be, of all workers."
    )
    revocation_news: Counter = counter(
        "revocation_news",
        "Messages between nodes about revocations of the upstream cluster's tokens: written (`told`), read, those of "
        "this node included (`heard`), given up because the topic could not be written to (`dropped`), or no messages "
        "of a node (`unreadable`).",
        event=("told", "heard", "dropped", "unreadable"),
    )
    audit_events: Counter = counter(
        "audit_events",
        "Audit events that were written.",
        type=EventType,
        outcome=Outcome,
        sink=(FILES, TOPIC),
    )
    audit_events_lost: Counter = counter(
        "audit_events_lost",
        "Audit events that were dropped, because a sink could not take them for too long.",
        type=EventType,
        outcome=Outcome,
        sink=(FILES, TOPIC),
    )
    gateway_bytes: Counter = counter(
        "gateway_bytes",
        "Bytes that the gateway forwarded.",
        direction=("to_cluster", "to_clients"),
    )
    gateway_requests: Counter = counter(
        "gateway_requests", "Requests that the gateway forwarded.", sparse=True, api=API_NAMES
    )
    gateway_connections: Counter = counter(
        "gateway_upstream_connections",
        "Connections of clients to upstream brokers, by how they began: `ok` (logged in, where a login is needed), "
        "`refused` (the cluster refused the login, or a token that the client needs upstream) or `failed` (the broker "
        "could not be reached). Clients without a section in the file of `mapped` are not counted.",
        result=(OK, "refused", "failed"),
    )
    worker_restarts: Counter = counter("worker_restarts", "Workers that ended and were replaced.")
    cpu_seconds: Counter = counter("worker_cpu_seconds", "Processor time of all workers, in seconds.")

    frequent: Frequent = field(default_factory=Frequent)
    """Events that are not in these numbers yet."""

    def take_over(self) -> None:
        """Add the frequent events to the numbers."""
        new = self.frequent
        self.connections.increase(new.connections)
        self.token_lookups.increase(new.tokens_found, "cache")
        self.gateway_bytes.increase(new.to_cluster_bytes, "to_cluster")
        self.gateway_bytes.increase(new.to_clients_bytes, "to_clients")
        new.connections = new.tokens_found = new.to_cluster_bytes = new.to_clients_bytes = 0
        for mechanism, logins in new.logins.items():
            self.logins.increase(logins, mechanism, OK)
        for api_key, requests in new.forwarded.items():
            self.gateway_requests.increase(requests, api_key)
        new.logins.clear()
        new.forwarded.clear()

    @classmethod
    def over(cls, cells: Cells) -> Self:
        """Make counters of the numbers that a memory has, `cells()` of them."""
        made: dict[str, Any] = {}
        first = 0
        for name, metric in metrics_of(cls).items():
            made[name] = (Histogram if metric.kind is Kind.HISTOGRAM else Counter)(metric, cells, first)
            first += metric.cells
        return cls(**made)

    @classmethod
    def alone(cls) -> Self:
        """Make counters that no other process sees."""
        return cls.over([0.0] * cls.cells())

    @classmethod
    def cells(cls) -> int:
        """Return how many numbers there are."""
        return sum(metric.cells for metric in metrics_of(cls).values())
