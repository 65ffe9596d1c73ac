"""Runs the rules of the watch over a month, hour by hour, and judges what they found.

    judgement = watched(folder)     # folder/table, folder/truth.jsonl

What is usual is learned anew every `RELEARN`; the watch does so every hour. The days of `FIRST` are not judged, and no
file of networks is used. The table is the one that `running.judged` leaves, or `kafka-dt pipeline ingest`.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from benchmarks.detection.judging import Found, Judgement, judge
from benchmarks.detection.stories import TRUTH, load_stories
from kafka_dt.pipeline.engines import SailEngine, sail_session
from kafka_dt.pipeline.table import Table
from kafka_dt.pipeline.watch import rules
from kafka_dt.pipeline.watch.habits import HISTORY, Habits, learn
from kafka_dt.pipeline.watch.seen import Seen, seen_rows
from kafka_dt.pipeline.watch.state import State

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.signs.finding import Finding

RELEARN: Final = timedelta(hours=12)
FIRST: Final = timedelta(days=2)
HOUR: Final = timedelta(hours=1)

_Batches = Iterator[tuple[Habits, list[Seen]]]


def watched(folder: Path) -> Judgement:
    """Judge what the watch finds in the table of a folder."""
    with sail_session() as session:
        events = SailEngine(session).events(Table(str(folder / "table")))
        findings = _findings(_batches(events))
    return judge(map(_found, findings), load_stories(folder / TRUTH))


def _batches(events: DataFrame) -> _Batches:
    """Give the rows of each hour as the watch has them, and what was usual when it learned last."""
    ((first, last),) = events.agg(*(each("time").cast("long") for each in (F.min, F.max))).collect()
    begin, end = (datetime.fromtimestamp(each, UTC) for each in (first, last))
    at = begin.replace(hour=0, minute=0, second=0) + FIRST
    learned, habits = at - RELEARN, Habits()
    while at <= end:
        if at - learned >= RELEARN:
            learned, habits = at, learn(events, at, HISTORY)
        in_hour = (F.col("time") >= at) & (F.col("time") < at + HOUR) & (F.col("date") == F.to_date(F.lit(at)))
        yield habits, seen_rows(events.where(in_hour), ())
        at += HOUR


def _findings(batches: _Batches) -> list[Finding]:
    state = State()
    found: dict[str, Finding] = {}
    for habits, rows in batches:
        rules.judge(rows, habits, state)
        found |= state.findings
        state.forget(habits.at)
    return list(found.values())


def _found(finding: Finding) -> Found:
    first, last = (round(each.timestamp() * 1000) for each in (finding.first_seen, finding.last_seen))
    return Found(finding.kind, finding.severity, finding.token_id, finding.owner, finding.address, first, last)
