"""Which alerts are sent, how often, and what is remembered."""

from __future__ import annotations

import json
import resource
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from kafka_dt.pipeline.alerts import Alert, AlertError, Delivery, Failure, History, Memory, NotDelivered
from kafka_dt.pipeline.alerts.file import AlertFile
from kafka_dt.pipeline.alerts.forms import as_case
from kafka_dt.pipeline.cases import Sighting, form_cases
from kafka_dt.pipeline.report.signs import Severity
from tests.support.findings import MONDAY, sighting

HIGH = sighting("t1", "User:alice", "10.0.0.1", severity=Severity.HIGH)
MEDIUM = sighting("t2", "User:bob", "10.0.0.2")


class Answers:
    """A destination that fails as it is told to, and then takes everything."""

    name, key = "answers", "answers:1"

    def __init__(self, *failures: NotDelivered, digest: bool = False) -> None:
        self.digest = digest
        self.failures = list(failures)
        self.taken: list[list[Alert]] = []

    def send(self, alerts: Sequence[Alert]) -> None:
        if self.failures:
            raise self.failures.pop(0)
        self.taken.append(list(alerts))

    @property
    def findings(self) -> list[str]:
        return [one.finding.subject for message in self.taken for alert in message for one in alert.new]


class Runs:
    """Reports, one after the other, with one memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.pauses: list[float] = []
        self.day = 0

    def run(self, destination: Answers, *seen: Sighting, level: str = "low") -> list[Failure]:
        self.day += 1
        delivery = Delivery(Memory.of(self.path), now=MONDAY + timedelta(days=self.day), sleep=self.pauses.append)
        return delivery.deliver(form_cases(seen), [destination], level)


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path / "alerts.json")


def test_a_daily_report_does_not_repeat_itself(runs: Runs) -> None:
    destination = Answers()
    for _ in range(3):
        assert runs.run(destination, HIGH, MEDIUM) == []
    assert destination.findings == ["t1", "t2"]


def test_a_case_that_grows_is_told_with_what_is_new(runs: Runs) -> None:
    destination = Answers()
    runs.run(destination, HIGH)
    runs.run(destination, HIGH, sighting("t9", "User:alice", "10.0.0.1", day=1))
    (first,), (second,) = destination.taken
    assert [one.finding.subject for one in second.new] == ["t9"]
    assert len(second.case.sightings) == 2
    assert first.case.id == second.case.id
    assert first.id != second.id


def test_each_destination_is_told_what_it_does_not_know(runs: Runs) -> None:
    other = Answers()
    other.key = "answers:2"
    runs.run(Answers(), HIGH)
    runs.run(other, HIGH)
    assert other.findings == ["t1"]


def test_cases_below_the_level_are_told_when_they_reach_it(runs: Runs) -> None:
    destination = Answers()
    weak = [sighting("t1", kind=f"kind-{number}") for number in range(3)]
    runs.run(destination, *weak[:2], level="high")
    assert destination.taken == []
    runs.run(destination, *weak, level="high")
    ((alert,),) = destination.taken
    assert len(alert.new) == 3


def test_what_was_not_taken_is_tried_again_with_longer_pauses(runs: Runs) -> None:
    destination = Answers(*(NotDelivered("away") for _ in range(4)))
    assert runs.run(destination, HIGH) == []
    assert runs.pauses == [1, 2, 4, 8]
    assert destination.findings == ["t1"]


def test_a_destination_says_how_long_it_wants_to_be_left_alone(runs: Runs) -> None:
    runs.run(Answers(NotDelivered("busy", after_s=30), NotDelivered("busy", after_s=10_000)), HIGH)
    assert runs.pauses == [30, 60]


def test_a_destination_that_stays_away_is_told_by_the_next_report(runs: Runs) -> None:
    destination = Answers(*(NotDelivered("away") for _ in range(5)))
    assert runs.run(destination, HIGH, MEDIUM) == [Failure("answers", "away", 2)]
    assert destination.taken == []
    assert runs.run(destination, HIGH, MEDIUM) == []
    assert destination.findings == ["t1", "t2"]


def test_what_cannot_succeed_is_not_tried_again(runs: Runs) -> None:
    assert runs.run(Answers(NotDelivered("no such hook", again=False)), HIGH) == [Failure("answers", "no such hook", 1)]
    assert runs.pauses == []


def test_what_was_taken_before_a_failure_is_not_sent_again(runs: Runs) -> None:
    class TakesOne(Answers):
        def send(self, alerts: Sequence[Alert]) -> None:
            if self.taken:
                raise NotDelivered("full", again=False)
            super().send(alerts)

    destination = TakesOne()
    assert runs.run(destination, HIGH, MEDIUM) == [Failure("answers", "full", 1)]
    rest = Answers()
    runs.run(rest, HIGH, MEDIUM)
    assert destination.findings + rest.findings == ["t1", "t2"]


class Refuses(Answers):
    """Takes every alert but those about one token, which it refuses."""

    def __init__(self, token: str) -> None:
        super().__init__()
        self.token = token
        self.tries = 0

    def send(self, alerts: Sequence[Alert]) -> None:
        self.tries += 1
        if any(one.finding.subject == self.token for alert in alerts for one in alert.new):
            raise NotDelivered("too large", again=False)
        super().send(alerts)


def test_an_alert_that_is_refused_keeps_no_other_from_its_destination(runs: Runs) -> None:
    destination = Refuses("t1")
    assert runs.run(destination, HIGH, MEDIUM) == [Failure("answers", "too large", 1)]
    assert destination.findings == ["t2"]


class Watches:
    """Delivers again and again, as a watch does."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.history = History()
        self.now = MONDAY

    def run(self, destination: Answers, *seen: Sighting, after: timedelta = timedelta(seconds=10)) -> list[Failure]:
        self.now += after
        delivery = Delivery(Memory.of(self.path), now=self.now, sleep=lambda _: None, pauses_s=(), history=self.history)
        return delivery.deliver(form_cases(seen), [destination], "low")


@pytest.fixture
def watches(tmp_path: Path) -> Watches:
    return Watches(tmp_path / "alerts.json")


def test_a_watch_tries_a_refused_alert_again_after_an_hour(watches: Watches) -> None:
    destination = Refuses("t1")
    assert watches.run(destination, HIGH) == [Failure("answers", "too large", 1)]
    assert [watches.run(destination, HIGH) for _ in range(9)] == [
        [Failure("answers", "too large", 1, tried=False)] for _ in range(9)
    ]
    assert destination.tries == 1
    assert watches.run(destination, HIGH, MEDIUM) == [Failure("answers", "too large", 1, tried=False)]
    assert destination.findings == ["t2"]
    assert watches.run(destination, HIGH, after=timedelta(hours=1)) == [Failure("answers", "too large", 1)]
    destination.token = ""
    assert watches.run(destination, HIGH, after=timedelta(hours=1)) == []
    assert destination.findings == ["t2", "t1"]


def test_a_watch_leaves_a_destination_alone_as_long_as_it_wants(watches: Watches) -> None:
    destination = Answers(NotDelivered("busy", after_s=60))
    assert watches.run(destination, HIGH) == [Failure("answers", "busy", 1)]
    assert watches.run(destination, HIGH, MEDIUM) == [Failure("answers", "busy", 2, tried=False)]
    assert watches.run(destination, HIGH, MEDIUM, after=timedelta(seconds=51)) == []
    assert destination.findings == ["t1", "t2"]


def test_a_destination_cannot_keep_a_watch_away_for_more_than_an_hour(watches: Watches) -> None:
    destination = Answers(NotDelivered("busy", after_s=1e9))
    watches.run(destination, HIGH)
    assert watches.run(destination, HIGH, after=timedelta(hours=1)) == []


def test_a_process_that_ends_between_the_two_sends_the_same_alert_again(runs: Runs) -> None:
    class Killed(BaseException):
        pass

    class DiesAfterSending(Answers):
        def send(self, alerts: Sequence[Alert]) -> None:
            super().send(alerts)
            raise Killed

    dying, destination = DiesAfterSending(), Answers()
    with pytest.raises(Killed):
        runs.run(dying, HIGH)
    runs.run(destination, HIGH)
    assert dying.taken[0][0].id == destination.taken[0][0].id


def test_a_digest_has_all_alerts_in_one_message(runs: Runs) -> None:
    destination = Answers(digest=True)
    runs.run(destination, HIGH, MEDIUM)
    assert [len(message) for message in destination.taken] == [2]


def test_a_finding_that_no_report_has_is_forgotten_after_a_year(runs: Runs) -> None:
    runs.run(Answers(), HIGH)
    runs.day = 400
    runs.run(Answers(), MEDIUM)
    assert HIGH.id not in runs.path.read_text()
    runs.day = 800
    repeated = Answers()
    runs.run(repeated, MEDIUM)
    assert repeated.taken == []


def test_the_memory_shows_no_target(tmp_path: Path) -> None:
    memory = tmp_path / "alerts.json"
    destination = AlertFile(tmp_path / "secret-place.jsonl", as_case)
    Delivery(Memory.of(memory), now=MONDAY, sleep=lambda _: None).deliver(form_cases([HIGH]), [destination], "low")
    assert "secret-place" not in memory.read_text()
    assert memory.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"told": {"a": 1}}', '{"told": {"a": {"b": "yesterday"}}}'])
def test_a_file_that_is_no_memory_is_not_replaced(tmp_path: Path, text: str) -> None:
    path = tmp_path / "alerts.json"
    path.write_text(text)
    with pytest.raises(AlertError, match="is no memory of alerts"):
        Memory.of(path)


def test_a_file_gets_a_line_for_each_alert(tmp_path: Path) -> None:
    path = tmp_path / "alerts.jsonl"
    for seen in (HIGH, MEDIUM):
        (case,) = form_cases([seen])
        AlertFile(path, as_case).send([Alert(case, case.sightings)])
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["case"]["severity"] for line in lines] == ["high", "medium"]
    assert lines[0]["new_findings"] == [HIGH.id]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_that_cannot_be_written_may_take_the_alert_later(tmp_path: Path) -> None:
    (case,) = form_cases([HIGH])
    with pytest.raises(NotDelivered, match="No such file") as failed:
        AlertFile(tmp_path / "missing" / "alerts.jsonl", as_case).send([Alert(case, case.sightings)])
    assert failed.value.again


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """Let files become no larger, as on a full disk."""
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        signal.signal(signal.SIGXFSZ, before)


def test_on_a_full_disk_no_part_of_a_line_stays(tmp_path: Path) -> None:
    path = tmp_path / "alerts.jsonl"
    first, second = (Alert(case, case.sightings) for case in form_cases([HIGH, MEDIUM]))
    file = AlertFile(path, as_case)
    file.send([first])
    written = path.read_bytes()
    with room_for(len(written) + 200), pytest.raises(NotDelivered, match="too large") as failed:
        file.send([second])
    assert path.read_bytes() == written
    assert failed.value.again
    file.send([second])
    assert [json.loads(line)["id"] for line in path.read_text().splitlines()] == [first.id, second.id]


def test_the_text_says_who_where_when_why_and_what_ends_it() -> None:
    (case,) = form_cases([HIGH])
    assert Alert(case, case.sightings).text.splitlines() == [
        "[high] User:alice from 10.0.0.1",
        f"2026-03-02 00:00 to 2026-03-02 01:00 UTC, {case.id}",
        "Stolen token: in networks 203.0.113.0/24",
        "End the token:",
        "kafka-dt token revoke --command-config admin.properties -- t1",
    ]


def test_names_that_clients_chose_cannot_steer_a_terminal_or_add_a_line() -> None:
    (case,) = form_cases([sighting("t1", "User:x\r\nBcc: all\x1b[2J" + "y" * 500, evidence="\u202e")])
    text = Alert(case, case.sightings).text
    assert text.replace("\n", "").isprintable()
    assert "\nBcc" not in text
    assert max(map(len, text.splitlines())) <= 200
