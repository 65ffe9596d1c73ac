"""The part of the option table that is about the processes of a node.

It stands upon the options of audit events only because the table is one class.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka_dt.config.audit_options import AuditOptions
from kafka_dt.config.option import Kind, Section, Source, option


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessOptions(AuditOptions):
    """How many workers a node has, and when one of them is replaced."""

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
