"""Audit events of a few days, told token by token, and a table of them as ingest leaves it.

    story = Story(datetime(2026, 3, 2, tzinfo=UTC))
    story.token("t1", "User:alice", day(0, 8), renewers=("User:yarn",))
    story.logins("t1", "User:alice", day(0, 9), day(4), every=timedelta(hours=2), address="10.0.1.7")
    story.write(spark, path)

Events are made as values of `AuditEvent`, so a story cannot say what a node could not.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import AuditEvent, EventType, Outcome
from kafka_dt.pipeline.report.networks import load_networks
from kafka_dt.pipeline.report.signs import look_for
from kafka_dt.pipeline.report.signs.finding import collected
from kafka_dt.pipeline.report.store import Store
from kafka_dt.pipeline.table import Table
from kafka_dt.pipeline.table.schema import CLUSTER_ID, DATE, INSTANTS, LINE_SCHEMA, day, instant
from tests.support.spark.observed import observed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kafka_dt.pipeline.engines import Engine
    from kafka_dt.pipeline.report.signs import Finding, Sign

WEEK = timedelta(days=7)
JAVA = {"client_software": "apache-kafka-java", "client_software_version": "3.9.1"}


class Story:
    """Events, in any order."""

    def __init__(self) -> None:
        self.events: list[AuditEvent] = []

    def tell(
        self, type_: EventType, at: datetime, reason: str | None = None, address: str = "10.0.0.1", **fields: Any
    ) -> None:
        """Add an event; with a reason it was refused."""
        outcome = Outcome.OK if reason is None else Outcome.REFUSED
        number = len(self.events)
        self.events.append(
            AuditEvent(
                id=f"story-{number}",
                time=_ms(at),
                node=f"node-{number % 3}",
                type=type_,
                outcome=outcome,
                reason=reason,
                client_address=address,
                client_port=40_000 + number % 1000,
                listener="SASL",
                **fields,
            )
        )

    def token(
        self,
        token_id: str,
        owner: str,
        at: datetime,
        *,
        requester: str | None = None,
        renewers: Sequence[str] = (),
        lives: timedelta = WEEK,
        longest: timedelta = WEEK,
    ) -> None:
        """Make a token."""
        self.tell(
            EventType.TOKEN_CREATED,
            at,
            principal=requester or owner,
            token_id=token_id,
            owner=owner,
            requester=requester or owner,
            renewers=tuple(renewers),
            issue_time=_ms(at),
            expiry_time=_ms(at + lives),
            max_time=_ms(at + longest),
        )

    def login(
        self,
        token_id: str,
        owner: str,
        at: datetime,
        address: str,
        *,
        client_id: str = "etl-1",
        reason: str | None = None,
        **client: str | None,
    ) -> None:
        """Log in by a token."""
        self.tell(
            EventType.LOGIN,
            at,
            reason,
            address,
            principal=owner,
            owner=owner,
            mechanism="SCRAM-SHA-512",
            by_token=True,
            session_token_id=token_id,
            token_id=token_id,
            client_id=client_id,
            **{**JAVA, **client},
        )

    def logins(
        self,
        token_id: str,
        owner: str,
        begin: datetime,
        end: datetime,
        addresses: Sequence[str],
        *,
        every: timedelta = timedelta(hours=2),
        **more: Any,
    ) -> None:
        """Log in by a token again and again, from one address after the other."""
        at, number = begin, 0
        while at < end:
            self.login(token_id, owner, at, addresses[number % len(addresses)], **more)
            at, number = at + every, number + 1

    def user_login(self, principal: str, at: datetime, address: str, mechanism: str = "GSSAPI") -> None:
        """Log in without a token."""
        self.tell(EventType.LOGIN, at, None, address, principal=principal, mechanism=mechanism, by_token=False, **JAVA)

    def guess(self, token_id: str, at: datetime, address: str) -> None:
        """Log in with an id of no token."""
        self.tell(
            EventType.LOGIN,
            at,
            "unknown_token",
            address,
            mechanism="SCRAM-SHA-256",
            token_id=token_id,
            client_software="librdkafka",
        )

    def renewal(
        self,
        token_id: str,
        owner: str,
        by: str,
        at: datetime,
        *,
        reason: str | None = None,
        lives: timedelta = WEEK,
        address: str = "10.0.0.2",
    ) -> None:
        """Renew a token, or try to."""
        told = {} if reason else {"expiry_time": _ms(at + lives)}
        self.tell(
            EventType.TOKEN_RENEWED, at, reason, address, principal=by, token_id=token_id, owner=owner, **told, **JAVA
        )

    def end(self, token_id: str, owner: str, at: datetime) -> None:
        """End a token at once."""
        self.tell(
            EventType.TOKEN_EXPIRED, at, principal=owner, token_id=token_id, owner=owner, expiry_time=_ms(at), **JAVA
        )

    def write(self, spark: SparkSession, table: Path) -> None:
        """Write the events into a table, where its readers look for them."""
        write_table(spark, self.write_lines(table), table)

    def write_lines(self, folder: Path) -> str:
        """Write the events as lines of JSON, and say where."""
        lines = folder / "lines.jsonl"
        folder.mkdir(parents=True, exist_ok=True)
        documents = ({key: value for key, value in asdict(each).items() if value is not None} for each in self.events)
        lines.write_text("".join(f"{json.dumps(document)}\n" for document in documents), encoding="utf-8")
        return str(lines)


def write_table(spark: SparkSession, lines: str, table: Path) -> None:
    """Write lines of JSON into a table as they are: what an ingest leaves of them, in a fraction of its time."""
    Table(str(table)).event_files(spark).append(event_rows(spark, lines).coalesce(1), "story", 0)


def found_in(
    engine: Engine, story: Story, folder: Path, signs: Sequence[Sign[Any]], networks: str = ""
) -> tuple[Finding, ...]:
    """Look for signs in a story's events, without the time that a table takes.

    Args:
        engine: runs the rules.
        story: what happened.
        folder: for what the rules keep.
        signs: what to look for.
        networks: the lines of a file of networks.
    """
    work = Store(engine, str(folder / "work")).work
    events = work("events", event_rows(engine.session, story.write_lines(folder)).coalesce(1))
    file = folder / "networks.csv"
    file.write_text(networks, encoding="utf-8")
    with engine.for_few_rows():
        return collected(look_for(signs, observed(events, work, load_networks(file) if networks else ())))


def event_rows(spark: SparkSession, lines: str) -> DataFrame:
    """Read lines of JSON as a table has them."""
    rows = spark.read.schema(LINE_SCHEMA).json(lines)
    rows = rows.withColumn(DATE, day(rows["time"])).withColumn(CLUSTER_ID, F.lit("here"))
    return rows.withColumns({name: instant(rows[name]) for name in INSTANTS})


def _ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)
