"""A watch that ends tokens ends none by mistake: months in which no token is stolen, and much looks like it.

The months are those of both generators, without incidents: with moves, fail-overs, load tests, journeys, new teams and
the rest (`benchmarks/detection/company/changes.py`, `kafka_dt/pipeline/generator/noise.py`). On the last day a stranger
uses some tokens, so that a watch which sees nothing does not pass. The watch is a dry run of the real one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from benchmarks.detection.company.company import CompanyPlan, write_company
from benchmarks.detection.stories import EVENTS
from kafka_dt.audit import EventType, Outcome
from kafka_dt.pipeline.generator import Scenario, generate
from kafka_dt.pipeline.ingest import FileSource
from kafka_dt.pipeline.table import Table
from kafka_dt.pipeline.watch.keeping import Keeper
from kafka_dt.pipeline.watch.responding import Policy, Responder
from kafka_dt.pipeline.watch.state import State
from kafka_dt.pipeline.watch.stream import Watch, WatchSettings
from tests.integration.pipeline.audit_story import event_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""Py4J leaves its sockets to the garbage collector."""
DAY: Final = timedelta(days=1)
START: Final = datetime(2026, 10, 1, tzinfo=UTC)
RESPONDS_TO: Final = frozenset({"stolen_token", "foreign_renewal", "new_requester"})
"""All signs of the watch that are about a token."""
OF_SECRETS: Final = frozenset({"strange_login", "guessed_password", "guessed_hmac"})
"""Those about logins whose look-alikes are in every month: new places, and secrets that are wrong."""
THEFTS: Final = 5

Days = dict[int, list[dict[str, Any]]]
"""Day since 1970 -> its events."""


@dataclass(frozen=True, slots=True)
class Replay:
    """Days that come one after the other: a watch of each, and then they are in the table."""

    spark: SparkSession
    folder: Path

    def learn(self, number: int, events: list[dict[str, Any]]) -> None:
        """Put events into the table."""
        rows = event_rows(self.spark, str(_write(self.folder / "past", number, events))).coalesce(1)
        Table(str(self.folder / "table")).event_files(self.spark).append(rows, "days", number)

    def watch(self, number: int, events: list[dict[str, Any]], since: timedelta) -> None:
        """Watch events, with the clock at the end of their last day."""
        nodes = _write(self.folder / "nodes", number, events).parent
        now = datetime.fromtimestamp((number + 1) * DAY.total_seconds(), UTC)
        journal = self.folder / "responses.jsonl"
        keeper = Keeper(
            path=self.folder / "watch.json",
            table="t",
            now=lambda: now,
            responder=Responder(Policy(RESPONDS_TO, 10**6, dry_run=True), _never, journal, lambda: now),
        )
        keeper.load()
        settings = WatchSettings(since_ms=since // timedelta(milliseconds=1))
        watch = Watch(
            self.spark,
            Table(str(self.folder / "table")),
            FileSource(str(nodes)),
            settings,
            keeper,
            now_ms=lambda: int(now.timestamp() * 1000),
        )
        watch.run(interval_ms=None)

    def decided(self) -> dict[str, str]:
        """Give what the dry run would have ended: token -> why."""
        journal = self.folder / "responses.jsonl"
        lines = map(json.loads, journal.read_text().splitlines() if journal.exists() else ())
        return {line["token_id"]: json.dumps(line) for line in lines if line["outcome"] == "would_revoke"}

    def found(self) -> set[str]:
        """Give the kinds of findings."""
        return {each.kind for each in State.of(self.folder / "watch.json").findings.values()}


def _never(_token_id: str, _owner: str | None, _sending: Callable[[], None]) -> bool:
    raise AssertionError("a dry run ends no token")


def _write(folder: Path, number: int, events: list[dict[str, Any]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{number}.jsonl"
    path.write_text("".join(f"{json.dumps(each)}\n" for each in events), encoding="utf-8")
    return path


def _days(events: Path) -> Days:
    days: Days = {}
    for path in sorted(events.glob("*.jsonl")):
        for event in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            days.setdefault(event["time"] // (DAY // timedelta(milliseconds=1)), []).append(event)
    return dict(sorted(days.items()))


def _thefts(days: Days) -> Iterator[dict[str, Any]]:
    """Use tokens of some owners, a minute after their last use, each from a network and with a program of its own."""
    last: dict[str, dict[str, Any]] = {}
    for event in days[max(days)]:
        if event["type"] == EventType.LOGIN and event["outcome"] == Outcome.OK and event.get("by_token"):
            last[event["owner"]] = event
    for number, owner in enumerate(sorted(last)[:THEFTS]):
        tool = {"client_address": f"203.{number}.113.9", "client_software": "a-tool", "client_id": "a-thief"}
        yield {**last[owner], **tool, "id": f"theft-{number}", "time": last[owner]["time"] + 60_000}


def _company(folder: Path, seed: int, events: int, days: int) -> None:
    """Write the events of a company with an owner for each 200 events, and three look-alikes a day."""
    owners = max(20, min(300, events // 200))
    write_company(folder, CompanyPlan(seed, days, events, owners, incidents=0, look_alikes=3 * days))


def _scenario(folder: Path, seed: int, events: int, days: int) -> None:
    scenario = Scenario.of_size(events, start=START, days=days, seed=seed)
    generate(replace(scenario, incidents=0), folder / EVENTS)


MONTHS: Final = {"the second generator": _company, "the first generator": _scenario}
WEEKS: Final = (
    pytest.param(_company, id="the second generator", marks=pytest.mark.soak),
    pytest.param(_scenario, id="the first generator"),
)
Month = Callable[[Path, int, int, int], None]
"""Writes a month into a folder: seed, events, days."""


def _planted(days: Days) -> set[str]:
    thefts = list(_thefts(days))
    days[max(days)] += thefts
    return {each["token_id"] for each in thefts}


@pytest.mark.parametrize("write", WEEKS)
def test_look_alikes_of_a_week_end_no_token(spark: SparkSession, tmp_path: Path, write: Month) -> None:
    """Learned once: what the owners do for a week is judged by their week before."""
    write(tmp_path / "month", 12, 6_000, 12)
    days = _days(tmp_path / "month" / EVENTS)
    stolen = _planted(days)
    replay, known = Replay(spark, tmp_path), sorted(days)[:5]
    replay.learn(0, [event for day in known for event in days[day]])
    watched = [day for day in days if day not in known]
    replay.watch(max(days), [event for day in watched for event in days[day]], (max(days) + 1 - watched[0]) * DAY)
    decided = replay.decided()
    assert set(decided) <= stolen, decided
    assert not replay.found() & OF_SECRETS
    assert decided, "no theft was seen either"


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [21, 22])
@pytest.mark.parametrize("write", MONTHS.values(), ids=MONTHS)
def test_look_alikes_of_a_month_end_no_token(spark: SparkSession, tmp_path: Path, write: Month, seed: int) -> None:
    """Learned every day."""
    write(tmp_path / "month", seed, 200_000, 30)
    days = _days(tmp_path / "month" / EVENTS)
    stolen = _planted(days)
    replay = Replay(spark, tmp_path)
    for number, day in enumerate(days):
        if number > 3:
            replay.watch(day, days[day], DAY)
        replay.learn(day, days[day])
        assert not replay.found() & OF_SECRETS, day
    decided = replay.decided()
    assert set(decided) <= stolen, decided
    assert decided, "no theft was seen either"
