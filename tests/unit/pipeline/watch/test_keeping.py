"""What follows batches, and what goes on between them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kafka_dt.audit import EventType
from kafka_dt.client import ConnectionFailed
from kafka_dt.pipeline.alerts import Alert, Delivery, Memory, NotDelivered
from kafka_dt.pipeline.cases import Case
from kafka_dt.pipeline.report.suppressions import Suppression
from kafka_dt.pipeline.watch.habits import HISTORY
from kafka_dt.pipeline.watch.keeping import AGAIN_S, Keeper
from kafka_dt.pipeline.watch.responding import Policy, Responder
from kafka_dt.pipeline.watch.seen import Seen
from kafka_dt.pipeline.watch.state import KEPT, State
from tests.unit.pipeline.watch.days import CLUSTER, ELSEWHERE, NOON, company, login, row, thief

OFTEN = [thief(minutes=minutes) for minutes in (0, 5, 90)]
GUESSER = "198.51.100.9"
GUESS: Mapping[str, Any] = {"reason": "unknown_token", "address": GUESSER, "wide": ELSEWHERE}
DAY_MINUTES = 24 * 60


class Team:
    """A watch and those that it tells, over restarts of the watch."""

    name, key, digest = "team", "team:1", False

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now = NOON
        self.batch = 0
        self.printed: list[tuple[str, ...]] = []
        self.sent: list[str] = []
        self.refused = ""
        """What its destination never takes an alert about."""
        self.start()

    def start(self) -> None:
        """Start a watch, in the place of the one before."""
        self.watch = Keeper(
            path=self.folder / "watch.json",
            table="t",
            now=lambda: self.now,
            deliver=self._deliver,
            told=lambda case: self.printed.append(tuple(each.finding.subject for each in case.sightings)),
            monotonic=self._monotonic,
        )
        self.watch.load()

    def see(self, *rows: Seen) -> None:
        """Give a batch to the watch, at the time of its last event."""
        self.batch += 1
        self.now = max(self.now, *(row.last_seen for row in rows))
        habits = company(tokens={f"t-{name}": CLUSTER for name in ("etl", 0, 2, 4, 6)})
        self.watch.take(rows, habits, "s", self.batch)
        self.watch.end()

    def send(self, alerts: Sequence[Alert]) -> None:
        """Take alerts, as a destination does, or refuse them."""
        if any(one.finding.subject == self.refused for alert in alerts for one in alert.new):
            raise NotDelivered("413", again=False)
        self.sent += [one.finding.subject for alert in alerts for one in alert.new]

    def _monotonic(self) -> float:
        return self.now.timestamp()

    def _deliver(self, cases: Sequence[Case]) -> Collection[str]:
        memory = Memory.of(self.folder / "alerts.json")
        delivery = Delivery(memory, now=self.now, sleep=lambda _s: None, pauses_s=())
        return {finding for failure in delivery.deliver(cases, [self], "low") for finding in failure.findings}


def test_a_theft_is_told_once_however_long_it_goes_on(tmp_path: Path) -> None:
    team = Team(tmp_path)
    for use in OFTEN:
        team.see(use)
    team.start()
    team.see(thief(minutes=DAY_MINUTES))
    assert (team.printed, team.sent) == ([("t-etl",)], ["t-etl"])
    # A case closes when nothing happens for some days; one that opens again is printed, but the team was alerted.
    team.now += KEPT + timedelta(hours=1)
    team.watch.tend()
    assert team.watch.open_cases == 0
    team.see(thief(minutes=(team.now - NOON) / timedelta(minutes=1)))
    assert (team.printed, team.sent) == ([("t-etl",)] * 2, ["t-etl"])


def test_a_guesser_is_told_once_a_day(tmp_path: Path) -> None:
    team = Team(tmp_path)
    for day in range(3):
        for number in range(12):
            tried = f"x{number}"
            team.see(row(EventType.LOGIN, minutes=day * DAY_MINUTES + number * 9, token_id=tried, **GUESS))
        team.start()
    assert team.printed == [(GUESSER,) * days for days in (1, 2, 3)]  # one case, which grows
    assert team.sent == [GUESSER] * 3


def test_a_slow_destination_keeps_nothing_from_being_judged_and_what_came_meanwhile_is_told_next(
    tmp_path: Path,
) -> None:
    may_go, sent = threading.Event(), []

    def deliver(cases: Sequence[Case]) -> Collection[str]:
        assert may_go.wait(10)
        sent.append({each.finding.subject for case in cases for each in case.sightings})
        return ()

    habits = company(tokens={"t-etl": CLUSTER, "t-2": CLUSTER})
    work = Keeper(path=tmp_path / "watch.json", table="t", now=lambda: NOON, deliver=deliver)
    work.take([thief()], habits, "s", 1)
    work.take([thief("t-2")], habits, "s", 2)
    work.tend()
    assert (State.of(tmp_path / "watch.json").batch, sent) == (2, [])
    may_go.set()
    work.end()
    assert sent == [{"t-etl"}, {"t-etl", "t-2"}]
    work.tend()
    work.end()
    assert len(sent) == 2


def test_the_end_does_not_wait_for_ever_and_the_next_run_tells_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafka_dt.pipeline.watch.keeping.PATIENCE_S", 0.1)
    hangs, sent = threading.Event(), list[int]()

    def hang(_cases: Sequence[Case]) -> Collection[str]:
        hangs.wait(10)
        return ()

    def deliver(cases: Sequence[Case]) -> Collection[str]:
        sent.append(len(cases))
        return ()

    work = Keeper(path=tmp_path / "watch.json", table="t", now=lambda: NOON, deliver=hang)
    work.take([thief()], company(), "s", 1)
    work.end()
    work = Keeper(path=tmp_path / "watch.json", table="t", now=lambda: NOON, deliver=deliver)
    work.load()
    work.end()
    hangs.set()
    assert sent == [1]


def test_an_error_of_the_delivery_ends_the_watch(tmp_path: Path) -> None:
    def deliver(_cases: Sequence[Case]) -> Collection[str]:
        raise OSError(28, "No space left on device")

    work = Keeper(path=tmp_path / "watch.json", table="t", now=lambda: NOON, deliver=deliver)
    work.take([thief()], company(), "s", 1)
    with pytest.raises(OSError, match="No space left"):
        work.end()


def test_an_old_theft_is_told_before_it_is_forgotten(tmp_path: Path) -> None:
    team = Team(tmp_path)
    team.now += KEPT + timedelta(days=1)
    team.see(thief())
    assert (team.printed, team.sent) == ([("t-etl",)], ["t-etl"])
    team.watch.tend()
    team.watch.tend()
    assert team.watch.open_cases == 0


def test_one_alert_that_is_refused_keeps_no_other_finding_from_being_forgotten(tmp_path: Path) -> None:
    team = Team(tmp_path)
    team.refused = "t-0"
    other = login("User:load", "t-2", software="kcat", wide="203.0.0.0/16", address="203.0.113.50")
    team.see(thief("t-0"), other)
    team.now += KEPT + timedelta(hours=1)
    for _ in range(3):
        team.now += timedelta(minutes=1)
        team.watch.tend()
        team.watch._teller.wait(10)
    assert {each.subject for each in team.watch.state.findings.values()} == {"t-0"}
    assert team.watch.is_behind
    team.now += HISTORY
    team.watch.tend()
    assert team.watch.state.findings == {}


def test_alerts_are_sent_again_also_when_the_wall_clock_was_set_back(tmp_path: Path) -> None:
    now, passed_s, tries = NOON, 0.0, list[float]()

    def deliver(cases: Sequence[Case]) -> Collection[str]:
        tries.append(passed_s)
        return {each.id for case in cases for each in case.sightings}

    work = Keeper(
        path=tmp_path / "watch.json",
        table="t",
        now=lambda: now,
        deliver=deliver,
        monotonic=lambda: passed_s,
    )
    work.take([thief()], company(), "s", 1)
    now -= timedelta(hours=1)
    for _ in range(3):
        work._teller.wait(10)
        passed_s += AGAIN_S
        work.tend()
    work._teller.wait(10)
    assert tries == [0, AGAIN_S, 2 * AGAIN_S, 3 * AGAIN_S]


def test_a_case_keeps_its_id_when_its_first_finding_is_forgotten_also_after_a_restart(tmp_path: Path) -> None:
    team, names, sizes = Team(tmp_path), set[str](), list[int]()
    for day in (0, 2, 4, 6):
        team.see(thief(minutes=day * DAY_MINUTES, token_id=f"t-{day}"))
        team.watch.tend()
        names.update(case.id for case in team.watch.cases())
        sizes += [len(case.sightings) for case in team.watch.cases()]
        team.start()
    assert (len(names), sizes) == (1, [1, 2, 2, 2])


def test_what_a_suppressed_finding_is_about_becomes_usual(tmp_path: Path) -> None:
    window = Suppression(
        who="ops",
        why="a migration",
        until=NOON + timedelta(days=1),
        owners=("User:etl",),
        end=NOON + timedelta(hours=1),
    )
    work = Keeper(path=tmp_path / "watch.json", table="t", now=lambda: NOON, suppressions=[window])
    work.take([thief()], company(), "s", 1)
    assert (work.cases(), work.state.strange) == ((), {})
    work.take([thief(minutes=90)], company(), "s", 2)  # after the window
    assert len(work.cases()) == 1
    assert ("User:etl", "networks", ELSEWHERE) in work.state.strange


def keeper(folder: Path, now: Callable[[], datetime], responder: Responder | None = None) -> Keeper:
    made = Keeper(
        path=folder / "watch.json",
        table="t",
        now=now,
        responder=responder,
        metrics=folder / "cases.prom",
        monotonic=lambda: now().timestamp(),
    )
    made.load()
    return made


def test_metrics_say_that_the_watch_lives_and_cases_close_though_no_events_come(tmp_path: Path) -> None:
    now = NOON
    work = keeper(tmp_path, lambda: now)
    work.take([thief()], company(), "s", 1)
    assert work.open_cases == 1
    now += timedelta(seconds=AGAIN_S)
    work.tend()
    metrics = (tmp_path / "cases.prom").read_text()
    assert f"kafka_dt_cases_made_seconds {now.timestamp():.15g}" in metrics
    assert 'kafka_dt_cases{severity="high"} 1' in metrics
    now += KEPT + timedelta(seconds=1)
    work.tend()
    assert work.open_cases == 0
    assert 'kafka_dt_cases{severity="high"} 0' in (tmp_path / "cases.prom").read_text()


def test_a_token_that_a_run_could_not_end_is_ended_by_the_next(tmp_path: Path) -> None:
    ended: list[str] = []

    def end(token_id: str, _owner: str | None, sending: Callable[[], None]) -> bool:
        if not is_up:
            raise ConnectionFailed("node:9092", "refused")
        sending()
        ended.append(token_id)
        return True

    def responder() -> Responder:
        return Responder(Policy(frozenset({"stolen_token"}), 5), end, tmp_path / "responses.jsonl", lambda: NOON)

    is_up = False
    keeper(tmp_path, lambda: NOON, responder()).take([thief()], company(), "s", 1)
    is_up = True
    work = keeper(tmp_path, lambda: NOON, responder())
    work.take([thief()], company(), "s", 1)  # the batch is in the state
    assert ended == []
    work.tend()
    assert ended == ["t-etl"]
