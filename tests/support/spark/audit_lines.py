"""Audit events for tests of the pipeline: made, written as a node writes them, and read back from a table.

    made = events(10)
    write_file(folder, "a", map(encode, made))      # folder/a.jsonl
    assert stored_ids(table) == {each.id for each in made}

`stored_ids` reads the Delta table without Spark, as another tool would.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from deltalake import DeltaTable

from kafka_dt.audit import AuditEvent, EventType, Outcome

NOON_MS: Final = 1_767_268_800_000
"""2026-01-01 12:00:00 in UTC."""
SECOND_MS: Final = 1_000
DAY_MS: Final = 86_400_000

LOGIN: Final = AuditEvent(
    id="00c0ffee-0",
    time=NOON_MS,
    node="node-1-0",
    type=EventType.LOGIN,
    outcome=Outcome.OK,
    listener="SASL_SSL",
    mechanism="SCRAM-SHA-512",
    principal="User:alice",
    by_token=True,
    session_token_id="cGVyc2lzdGVudCB0b2tlbg",
    client_id="consumer-1",
    client_software="apache-kafka-java",
    client_software_version="3.9.1",
    client_address="192.0.2.17",
    client_port=40_022,
    connection="00c0ffee-c1",
    token_id="cGVyc2lzdGVudCB0b2tlbg",
    owner="User:alice",
    requester="User:alice",
    renewers=("User:bob", "User:carol"),
    issue_time=NOON_MS - DAY_MS,
    expiry_time=NOON_MS + DAY_MS,
    max_time=NOON_MS + 7 * DAY_MS,
)
"""An event that has nearly everything."""


def events(count: int, *, first: int = 0, time_ms: int = NOON_MS, step_ms: int = SECOND_MS) -> list[AuditEvent]:
    """Logins numbered from `first`, the first one at `time_ms`."""
    return [
        replace(LOGIN, id=f"00c0ffee-{first + index}", time=time_ms + index * step_ms, client_port=1024 + index)
        for index in range(count)
    ]


def write_file(folder: Path, name: str, lines: Iterable[bytes]) -> Path:
    """Write a closed file."""
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f"{name}.jsonl.open"
    partial.write_bytes(b"".join(lines))
    return partial.rename(folder / f"{name}.jsonl")


def stored(table: Path, name: str = "events") -> list[dict[str, Any]]:
    """The rows of a table, as any tool sees them; none if there is no table yet."""
    if not DeltaTable.is_deltatable(str(table / name)):
        return []
    rows: list[dict[str, Any]] = DeltaTable(table / name).to_pyarrow_table().to_pylist()
    return rows


def live_files(table: Path, name: str = "events") -> set[Path]:
    """The files that the rows of a table are in now."""
    return {Path(uri.removeprefix("file://")) for uri in DeltaTable(table / name).file_uris()}


def stored_ids(table: Path) -> Counter[str]:
    """How often each event is there."""
    return Counter(row["id"] for row in stored(table))
