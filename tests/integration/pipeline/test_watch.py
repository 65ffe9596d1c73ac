"""`kafka-dt pipeline watch` on a real Spark: it learns from a table, follows files, and goes on after a crash."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from kafka_dt.audit import EventType
from kafka_dt.pipeline.cases import Case
from kafka_dt.pipeline.ingest import FileSource
from kafka_dt.pipeline.table import Table
from kafka_dt.pipeline.watch import stream
from kafka_dt.pipeline.watch.habits import Revoked, guessers, learn
from kafka_dt.pipeline.watch.keeping import Keeper
from kafka_dt.pipeline.watch.responding import Policy, Responder
from kafka_dt.pipeline.watch.seen import Seen, seen_rows
from kafka_dt.pipeline.watch.stream import Watch, WatchSettings
from tests.integration.pipeline.audit_story import Story

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kafka_dt.pipeline.report.networks import Network

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""Py4J leaves its sockets to the garbage collector."""
BEGIN: Final = datetime(2026, 3, 2, tzinfo=UTC)
NOW: Final = BEGIN + timedelta(days=10, hours=12)
TOOL: Final = {"client_software": "librdkafka", "client_id": "kcat"}


def at(day: int, hour: float) -> datetime:
    return BEGIN + timedelta(days=day, hours=hour)


@dataclass
class Told:
    """Notes what the watch does; raises an error in the place of the first case if it is told to."""

    crashes: bool = False
    alerts: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)

    def show(self, _case: Case) -> None:
        if self.crashes:
            raise RuntimeError("the process ends here")

    def deliver(self, cases: Sequence[Case]) -> Collection[str]:
        self.alerts += [sighting.id for case in cases for sighting in case.sightings]
        return ()

    def revoke(self, token_id: str, _owner: str | None, sending: Callable[[], None]) -> bool:
        sending()
        self.ended.append(token_id)
        return True


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten days: three jobs in a cluster, an operator who describes, and a principal that tries ids now and then.

    The ingest is quicker than the watch: the eleventh day is in the table, too.
    """
    path = tmp_path_factory.mktemp("watch") / "table"
    story = Story()
    for job in ("etl", "load", "sum"):
        owner = f"User:{job}"
        for day in range(10):
            story.token(f"{job}-{day}", owner, at(day, 1), renewers=["User:yarn"])
            story.logins(f"{job}-{day}", owner, at(day, 1), at(day, 9), [f"10.20.{day}.7", "10.20.99.8"], client_id=job)
        story.user_login(owner, at(0, 0), "10.20.0.7")
    story.user_login("User:ops", at(0, 8), "10.30.0.1", "SCRAM-SHA-512")
    for who, count in (("User:ops", 12), ("User:etl", 3)):
        story.tell(EventType.TOKENS_DESCRIBED, at(2, 8), None, "10.30.0.1", principal=who, count=count)
    story.guess("mistyped", at(3, 3), "10.30.0.9")
    story.end("sum-8", "User:sum", at(9, 10))
    story.end("load-8", "User:load", at(9, 10))
    story.renewal("load-8", "User:load", "User:yarn", at(9, 11))  # at a node that had not heard of the end
    tell_thefts(story, story, story)
    story.write(spark, path)
    return path


def tell_thefts(honest: Story, stolen: Story, more: Story) -> None:
    """Tell the eleventh day: an honest file; a theft and a guesser; more of both, a user and a revoked token."""
    for job in ("load", "sum"):
        honest.logins(f"{job}-9", f"User:{job}", at(10, 1), at(10, 9), ["10.20.10.7", "10.20.11.7"], client_id=job)
    stolen.login("etl-9", "User:etl", at(10, 9), "198.51.100.7", **TOOL)
    for number in range(4):
        stolen.guess(f"x{number}", at(10, 9 + number / 10), "203.0.113.9")
    more.guess("x4", at(10, 9.5), "203.0.113.9")
    more.login("etl-9", "User:etl", at(10, 11), "198.51.100.7", **TOOL)
    more.tell(EventType.SCRAM_USER_CHANGED, at(10, 10), None, "192.0.2.77", principal="User:ops", user="backup")
    more.guess("sum-8", at(10, 10), "203.0.114.5")


@pytest.fixture
def watched(spark: SparkSession, table: Path, tmp_path: Path) -> Callable[[Told], Keeper]:
    """Runs a watch on the files, one a batch, in a new process's place: nothing but its files is kept."""
    folder = tmp_path / "nodes"
    stories = (Story(), Story(), Story())
    tell_thefts(*stories)
    stories[-1].login("load-9", "User:load", at(2, 1), "198.51.100.7", **TOOL)  # an old event is left to the report
    for number, story in enumerate(stories):
        lines = Path(story.write_lines(folder / str(number)))
        os.utime(lines.rename(lines.with_name(f"{number}.jsonl")), (number, number))  # Spark reads the oldest first

    def run(told: Told) -> Keeper:
        keeper = Keeper(
            path=tmp_path / "watch.json",
            table=str(table),
            now=lambda: NOW,
            deliver=told.deliver,
            told=told.show,
            responder=Responder(
                Policy(frozenset({"stolen_token"}), 5), told.revoke, tmp_path / "responses.jsonl", lambda: NOW
            ),
            metrics=tmp_path / "cases.prom",
        )
        keeper.load()
        watch = Watch(
            spark,
            Table(str(table)),
            FileSource(str(folder), batch_bytes=1),
            WatchSettings(),
            keeper,
            now_ms=lambda: round(NOW.timestamp() * 1000),
        )
        watch.run(interval_ms=None)
        return keeper

    return run


def test_it_finds_a_theft_tells_it_once_and_goes_on_after_a_crash(
    watched: Callable[[Told], Keeper], tmp_path: Path
) -> None:
    cut_off = Told(crashes=True)
    with pytest.raises(RuntimeError, match="the process ends here"):
        watched(cut_off)
    assert (cut_off.alerts, cut_off.ended) == ([], ["etl-9"])

    told = Told()
    keeper = watched(told)
    found = {(each.kind, each.subject, each.severity.value): each for each in keeper.state.findings.values()}
    assert set(found) == {
        ("stolen_token", "etl-9", "high"),
        ("unknown_id_burst", "203.0.113.9", "medium"),
        ("strange_administration", "User:ops", "medium"),
        ("use_after_revocation", "sum-8", "medium"),
    }
    assert ("changed", "backup") in {(each.label, each.text) for finding in found.values() for each in finding.evidence}
    stolen = found["stolen_token", "etl-9", "high"]
    assert (stolen.first_seen, stolen.last_seen) == (at(10, 9), at(10, 11))
    assert set(told.alerts) == set(keeper.state.findings)
    assert told.ended == []  # it was ended before the crash, and the journal tells so

    again = Told()
    kept = watched(again).state
    assert (kept.findings, kept.batch) == (keeper.state.findings, keeper.state.batch)
    outcomes = [json.loads(line)["outcome"] for line in (tmp_path / "responses.jsonl").read_text().splitlines()]
    assert outcomes == ["revoking", "revoked"]
    metrics = (tmp_path / "cases.prom").read_text().splitlines()
    assert {'kafka_dt_cases{severity="high"} 1', 'kafka_dt_cases{severity="medium"} 3'} <= set(metrics)


def test_a_batch_chooses_no_event_by_parsing_its_line_again(
    watched: Callable[[Told], Keeper], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark moves a condition on what was parsed below the parsing, and parses for each part of the condition."""
    plans: list[str] = []

    def noted(events: DataFrame, networks: Sequence[Network]) -> list[Seen]:
        plans.append(events._jdf.queryExecution().optimizedPlan().toString())
        return seen_rows(events, networks)

    monkeypatch.setattr(stream, "seen_rows", noted)
    watched(Told())
    conditions = [line for plan in plans for line in plan.splitlines() if "Filter " in line]
    assert conditions
    assert not any("from_json" in each for each in conditions)


def test_it_learns_what_is_usual(spark: SparkSession, table: Path) -> None:
    morning = at(10, 0)
    habits = learn(Table(str(table)).events(spark), morning, timedelta(days=30))
    assert set(habits.owners) == {"User:etl", "User:load", "User:sum", "User:ops"}
    etl = habits.owners["User:etl"]
    assert (etl.since, set(etl.networks), set(etl.programs)) == (at(0, 0), {"10.20.0.0/16"}, {"apache-kafka-java"})
    assert habits.neighbours["10.20.0.0/16"] == {"User:etl", "User:load", "User:sum"}
    assert habits.principals["User:ops"].mechanisms == {"SCRAM-SHA-512": at(0, 8)}
    assert habits.principals["User:yarn"].administers == at(0, 1)
    assert habits.principals["User:yarn"].renews_for == 1
    assert {name for name, each in habits.principals.items() if each.describes} == {"User:ops"}
    # Seven live, and an answer may have the one that ended a day before.
    assert (habits.tokens["etl-9"], habits.owned["User:etl"]) == ("10.20.0.0/16", 8)
    assert habits.revoked == {"sum-8": Revoked("User:sum", at(9, 10))}
    assert (habits.guesses, habits.since, habits.at) == ({"10.30.0.9": 1}, at(0, 0), morning)
    assert {"10.20.99.8", "10.30.0.1"} <= set(habits.addresses)
    recent = learn(Table(str(table)).events(spark), morning, timedelta(days=2))
    assert recent.since >= morning - timedelta(days=2)


def test_of_guessed_ids_only_numbers_come_to_the_driver(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that is not logged in chooses ids, and how many."""
    story = Story()
    story.token("etl-0", "User:etl", at(0, 1))
    for day, ids in enumerate((["x0", "x1", "x1", "etl-0"], ["x0", "x1", "x2"])):
        for number, each in enumerate(ids):
            story.guess(each, at(day, 2 + number), "203.0.113.9")
    story.guess("x9", at(0, 3), "203.0.113.10")
    story.write(spark, tmp_path)
    events = Table(str(tmp_path)).events(spark)
    found = guessers(events)
    assert found.dtypes == [("client_address", "string"), ("ids", "bigint")]
    assert dict(map(tuple, found.collect())) == {"203.0.113.9": 3, "203.0.113.10": 1}
    monkeypatch.setattr("kafka_dt.pipeline.watch.habits.MOST_GUESSERS", 1)
    assert dict(map(tuple, guessers(events).collect())) == {"203.0.113.9": 3}


def test_an_owner_is_known_by_the_programs_that_it_had_first_however_many_names_it_makes_up(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafka_dt.pipeline.watch.habits.MOST_NAMES", 2)
    story = Story()
    for hour, name in enumerate(("etl", "etl", "report", "kcat", "ant")):
        story.login("etl-0", "User:etl", at(0, hour), "10.20.0.7", client_id=name, client_software=f"{name}-library")
    story.login("load-0", "User:load", at(0, 0), "10.20.0.7", client_id="load")
    story.write(spark, tmp_path)
    owners = learn(Table(str(tmp_path)).events(spark), at(1, 0), timedelta(days=30)).owners
    assert owners["User:etl"].clients == {"etl", "report"}
    assert owners["User:etl"].programs == {"etl-library", "report-library"}
    assert owners["User:load"].clients == {"load"}


def test_it_learns_on_how_many_days_a_program_was_refused_what_needs_a_login_without_a_token(
    spark: SparkSession, tmp_path: Path
) -> None:
    story = Story()
    for day in (0, 0, 1, 2):
        story.tell(
            EventType.TOKEN_CREATED,
            at(day, 1),
            "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED",
            principal="User:etl",
            by_token=True,
        )
    story.tell(EventType.TOKEN_CREATED, at(0, 1), "DELEGATION_TOKEN_AUTHORIZATION_FAILED", principal="User:ops")
    story.write(spark, tmp_path)
    habits = learn(Table(str(tmp_path)).events(spark), at(3, 0), timedelta(days=30))
    assert habits.refused_by_token == {"User:etl": 3}


def test_refused_logins_displace_nothing_else_from_a_batch(
    spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = Table(str(table)).events(spark)
    rows = seen_rows(events, ())
    others = [row for row in rows if not row.is_refused(EventType.LOGIN)]
    assert rows[: len(others)] != others
    monkeypatch.setattr("kafka_dt.pipeline.watch.seen.MOST_ROWS", len(others))
    assert {each.first_seen for each in seen_rows(events, ())} == {each.first_seen for each in others}
