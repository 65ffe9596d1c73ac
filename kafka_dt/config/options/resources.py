"""The options about a node's processes, and the limits of its connections.

Source: org.apache.kafka.network.SocketServerConfigs; KIP-612 (`max.connection.creation.rate`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kafka_dt.config.options.option import INT_MAX, Kind, option, per_listener


@dataclass(frozen=True, kw_only=True)
class LimitOptions:
    """What a connection, an address and all connections together may take."""

    login_timeout_ms: int = option(
        "kafka.dt.login.timeout.ms",
        30000,
        "How long a login may take after the node has accepted the connection: TLS handshake and SASL together, and "
        "any wait for ZooKeeper. The node closes a connection that has not logged in by then. A re-authentication may "
        "take the same time, from its handshake on.",
        minimum=1,
        kind=Kind.LONG,
    )
    request_buffer_bytes: int = option(
        "kafka.dt.request.buffer.bytes",
        256 * 1024 * 1024,
        "How many bytes of incomplete requests a node holds, in equal shares for its workers. At the limit, long "
        "requests wait until others end, and the node closes the oldest connection with a short request. One request "
        "of a node at a time may exceed the limit. Answers that clients do not read have a limit of the same size.",
        minimum=1024 * 1024,
        kind=Kind.LONG,
    )
    queued_max_request_bytes: int = option(
        "queued.max.request.bytes",
        -1,
        "Kafka's name for `kafka.dt.request.buffer.bytes`. A positive number here replaces that setting and must be "
        "at least `socket.request.max.bytes`; 0 or less means not set.",
        kind=Kind.LONG,
    )
    request_receive_timeout_ms: int = option(
        "kafka.dt.request.receive.timeout.ms",
        30000,
        "How long one request may take to arrive, from its first byte to its last; then the node closes the "
        "connection. The limit does not apply to requests that a gateway forwards: it passes their bytes on as they "
        "arrive.",
        minimum=1,
        kind=Kind.LONG,
    )
    connections_max_idle_ms: int = option(
        "connections.max.idle.ms",
        600000,
        "The node closes a connection on which it has received nothing for this long. A negative value turns this off.",
        kind=Kind.LONG,
    )
    connections_max_age_ms: int = option(
        "kafka.dt.connections.max.age.ms",
        -1,
        "The age at which a node closes a connection, with a random difference of up to a tenth. It closes the "
        "connection when no request is under way, or 10 s later after an answer. Clients connect again, to the node "
        "that a load balancer or a name gives them. -1 turns this off.",
        minimum=-1,
        kind=Kind.LONG,
    )
    max_connections: int = per_listener(
        "max.connections",
        INT_MAX,
        "How many connections a node may have on all listeners together; the node closes a further one at once. Set "
        "for one listener, it limits that listener as well. With 0 no client is served.",
        minimum=0,
    )
    max_connections_per_ip: int = option(
        "max.connections.per.ip",
        INT_MAX,
        "How many connections one IP address may have; the node closes a further one at once.",
        minimum=0,
    )
    max_connections_per_ip_overrides: tuple[str, ...] = option(
        "max.connections.per.ip.overrides",
        (),
        "Limits that replace `max.connections.per.ip` for some addresses or host names, `host:count` each. The node "
        "looks the names up when it starts.",
    )
    max_connection_creation_rate: int = per_listener(
        "max.connection.creation.rate",
        INT_MAX,
        "How many connections a node accepts in a second (KIP-612), in equal shares for its workers; further ones "
        "wait in the kernel's queue. Set for one listener, it limits that listener as well.",
        unit="connections a second",
        minimum=1,
    )


LOG_PREFIX: Final = "kafka.dt.log."


@dataclass(frozen=True, kw_only=True)
class ProcessOptions:
    """How many workers a node has, and what they write."""

    workers: int = option(
        "kafka.dt.workers",
        0,
        "How many processes serve the listeners; 0 means one for each core.",
        minimum=0,
    )
    worker_timeout_ms: int = option(
        "kafka.dt.worker.timeout.ms",
        30000,
        "How long a worker may give no sign of life; then the supervisor kills and replaces it. A pause of the whole "
        "machine does not count.",
        minimum=1000,
        kind=Kind.LONG,
    )
    log_format: str = option(
        "kafka.dt.log.format",
        "text",
        "What the lines of the log look like. `text`: for people. `json`: for programs, an object a line, with the "
        "field names of the Elastic Common Schema.",
        choices=("text", "json"),
    )
    log_level: str = option(
        "kafka.dt.log.level",
        "INFO",
        "The lowest level of lines that a node logs. `DEBUG` adds a line for each login that succeeds.",
        choices=("DEBUG", "INFO", "WARN", "ERROR"),
        reloads=True,
    )
    drain_timeout_ms: int = option(
        "kafka.dt.drain.timeout.ms",
        10000,
        "How long a node that stops waits for its clients. It accepts no more connections and closes those of idle "
        "clients at once. It closes the others within half of this time, at about 200 a second in each worker, each "
        "one when its requests have been answered; after this time it closes the rest. Whatever stops the node must "
        "wait 15 seconds longer before it kills the node.",
        minimum=0,
        kind=Kind.LONG,
    )
    log_lines_per_minute: int = option(
        "kafka.dt.log.lines.per.minute",
        100,
        "How many lines of the same kind a worker writes to its log in a minute; about one client it writes a tenth "
        "of that. At the end of the minute one line says how many lines it left out. The limit does not apply to "
        "audit events.",
        minimum=1,
    )
    state_dir: str = option(
        "kafka.dt.state.dir",
        "",
        "The folder in which a node remembers its writes to ZooKeeper, so that it notices a restored ZooKeeper after "
        "a restart as well; the node makes the folder if it is missing. Without a folder, only a node that is running "
        "notices; one that starts afterwards knows only if another node of the cluster has noticed.",
    )
