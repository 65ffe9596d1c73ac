"""The part of the option table that is about the processes of a node.

It stands upon the options of audit events only because the table is one class.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka_dt.config.options.audit import AuditOptions
from kafka_dt.config.options.option import Kind, Section, Source, option


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessOptions(AuditOptions):
    """How many workers a node has, when one of them is replaced, how much they log, and where they keep a memory."""

    workers: int = option(
        "kafka.dt.workers",
        Kind.INT,
        0,
        "How many processes serve the listeners; 0 is one for each core.",
        section=Section.PROCESS,
        source=Source.KAFKA_DT,
        minimum=0,
    )
    worker_timeout_ms: int = option(
        "kafka.dt.worker.timeout.ms",
        Kind.LONG,
        30000,
        "A worker that gives no sign of life for this long hangs: the supervisor kills and replaces it. A pause of the "
        "whole machine does not count.",
        section=Section.PROCESS,
        source=Source.KAFKA_DT,
        unit="milliseconds",
        minimum=1000,
    )
    log_lines_per_minute: int = option(
        "kafka.dt.log.lines.per.minute",
        Kind.INT,
        100,
        "How many lines of the same kind a worker writes to its log in a minute; about one client it writes a tenth "
        "of that. At the end of the minute one line says how many more there were. Audit events are not limited by "
        "this.",
        section=Section.PROCESS,
        source=Source.KAFKA_DT,
        minimum=1,
    )
    state_dir: str = option(
        "kafka.dt.state.dir",
        Kind.STRING,
        "",
        "The folder in which a node remembers its writes to ZooKeeper, so that it notices a restored ZooKeeper after "
        "a restart as well; the node makes the folder if it is missing. Without a folder, only a node that is running "
        "notices; one that starts afterwards knows only if another node of the cluster has noticed.",
        section=Section.PROCESS,
        source=Source.KAFKA_DT,
    )
