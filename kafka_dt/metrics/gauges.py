"""What a node measures: the table of its gauges, whose values a worker samples every second.

    text = Gauges(tokens=3, ...).encode()
    Gauges.decode(text)

A gauge that does not apply is None or empty, and has no series.

Source: docs/metrics.md, which is made of this table.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Final, Self

from kafka_dt.metrics.declaration import Across, gauge

SAMPLE_SECONDS: Final = 1.0
"""How often a worker samples its gauges."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauges:
    """The gauges of one worker, at one moment."""

    sampled_s: float
    """The moment, by the monotonic clock of the machine in seconds."""
    unready: tuple[str, ...] = field(default=())
    """Why this worker cannot serve as it should, apart from its staleness."""

    tokens: int | None = gauge("tokens", "Tokens that have not expired, as the node knows them.", Across.MAX)
    tokens_ending: int | None = gauge(
        "tokens_expiring_within_a_day", "Those of them that expire within a day if they are not renewed.", Across.MAX
    )
    tokens_unreadable: int | None = gauge(
        "tokens_unreadable",
        "Tokens in the store that the node cannot read and does not serve: damaged, or sealed with a key that the node "
        "does not have.",
        Across.MAX,
    )
    staleness_s: float | None = gauge(
        "staleness_seconds",
        "How long changes of tokens may have gone unnoticed by a worker: infinite while nothing is proved, and growing "
        "while the worker hangs. No series where tokens are disabled.",
        Across.EACH,
    )
    staleness_limit_s: float | None = gauge(
        "staleness_limit_seconds",
        "The staleness at which logins by token stop: `kafka.dt.zookeeper.max.staleness.ms` or "
        "`kafka.dt.upstream.max.staleness.ms`.",
        Across.MAX,
    )
    store_connected: bool | None = gauge(
        "store_connected",
        "Whether a worker is connected to the store of tokens: ZooKeeper, or the upstream cluster.",
        Across.EACH,
    )
    clock_ahead_s: float | None = gauge(
        "clock_ahead_seconds",
        "How far the clock of the machine was ahead of the clock of the token store, at least, when the node compared "
        "them last; negative if it was behind. The node compares them when it starts, and every "
        "`delegation.token.expiry.check.interval.ms`. No series where the store removes expired tokens by itself.",
        Across.MAX,
    )
    news_silence_s: float | None = gauge(
        "revocation_news_silence_seconds",
        "How long ago a worker last heard from the topic by which nodes tell each other of revocations "
        "(`kafka.dt.upstream.news.topic`), infinite if never. About a second at most while all is well. No series "
        "without such a topic.",
        Across.EACH,
    )
    loop_lag_s: float = gauge(
        "event_loop_lag_seconds",
        "The longest time in the last second for which a worker's event loop served no client.",
        Across.EACH,
    )
    connections: Mapping[str, int] = gauge("connections", "Open connections of clients.", Across.SUM, "listener")
    derivations_waiting: int = gauge(
        "derivations_waiting", "SCRAM credentials of tokens that wait to be derived.", Across.SUM
    )
    upstream_connections: int | None = gauge(
        "gateway_upstream_connections_open", "Open connections of clients to upstream brokers.", Across.SUM
    )
    upstream_brokers: Mapping[str, int] = gauge(
        "gateway_upstream_brokers",
        "Upstream brokers, by whether a worker could reach them when it tried last (`yes`, `no`).",
        Across.MAX,
        "reachable",
    )
    keys: Mapping[str, str] = gauge(
        "secret_key_info",
        "The secret keys that the node accepts tokens of, by id; `role` is `current` for the one that makes tokens.",
        Across.MAX,
        *("key_id", "role"),
    )
    certificates: Mapping[str, float] = gauge(
        "certificate_expiry_timestamp_seconds",
        "When the certificate of a listener ends, in seconds since 1970. The listener `upstream` stands for the "
        "certificate that a gateway shows to the cluster behind it.",
        Across.MIN,
        "listener",
    )
    resident_bytes: int = gauge("worker_resident_memory_bytes", "The resident memory of a worker.", Across.EACH)

    def encode(self) -> bytes:
        """Write them down."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, text: bytes) -> Self:
        """Read what `encode` has written."""
        values = json.loads(text)
        return cls(**{**values, "unready": tuple(values["unready"])})
