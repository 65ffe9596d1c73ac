"""`kafka-dt pipeline report` on Sail and on a real Spark: a run of each over the stories of `stories_of_theft.py`.

The command says everything that it can, and each test looks at another part of what it left.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from pathlib import Path
from threading import Barrier, Event
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from kafka_dt.cli import main
from kafka_dt.pipeline.generator import IncidentKind
from kafka_dt.pipeline.report.blast import Start, blast_radius, is_named, reachable_logins, with_alive
from kafka_dt.pipeline.report.expressions import rows_of
from kafka_dt.pipeline.report.habits import Habits
from kafka_dt.pipeline.report.signs import Observed, look_for, sign
from kafka_dt.pipeline.report.signs.finding import collected
from kafka_dt.pipeline.report.store import ParquetOutput
from kafka_dt.pipeline.report.zones import Zones
from kafka_dt.pipeline.table import Table
from tests.integration.pipeline import stories_of_theft as stories
from tests.support.spark.report_contents import BUSY, BusyAddressThresholds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""Py4J leaves its sockets to the garbage collector."""
FRAMES = [each.name for each in fields(Observed) if each.type == "DataFrame"]
"""What a rule looks at, besides zones."""
STEALERS = (stories.ELSEWHERE, stories.OTHER_CLIENT, stories.FIRST_DAY, stories.MOVED_AND_CHANGED)


@dataclass(frozen=True, slots=True)
class Made:
    """What the command has left."""

    table: Path
    to: Path
    printed: Mapping[str, Any]
    document: Mapping[str, Any]

    def parquet(self, spark: SparkSession, name: str) -> DataFrame:
        return spark.read.parquet(str(self.to / "parquet" / name))

    def finding(self, subject: str) -> Mapping[str, Any]:
        found: Mapping[str, Any]
        (found,) = (each for each in self.document["findings"] if each["subject"] == subject)
        return found

    def evidence(self, subject: str) -> Mapping[str, str]:
        return {each["label"]: each["text"] for each in self.finding(subject)["evidence"]}


SUPPRESSIONS = f"""
[[suppression]]
who = "the security team"
why = "its scanner tries token ids"
until = 9999-12-31
kind = "unknown_id_burst"
address = "{stories.SCANNER}"

[[suppression]]
who = "the security team"
why = "a test of alerts"
until = 2026-03-01
address = "{stories.GUESSER}"
"""


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """What Sail has left, where it can run."""
    folder = tmp_path_factory.mktemp("report")
    stories.whole_story().write(spark, folder / "table")
    (folder / "suppressions.toml").write_text(SUPPRESSIONS, encoding="utf-8")
    return make(folder, folder / "to")


@pytest.fixture(scope="module")
def made_by_spark(made: Made) -> Made:
    folder = made.table.parent
    return make(folder, folder / "by-spark", "--engine", "spark")


def make(folder: Path, to: Path, *more: str) -> Made:
    more = ("--suppressions", str(folder / "suppressions.toml"), "--owner", stories.YARN, *more)
    at, alerts = ("--at", "2026-03-06T00:00:00Z"), ("--alert", f"file:{to}.jsonl", "--alert-on", "high")
    result = run(folder / "table", to, *at, *alerts, *more, "--fail-on", "high", "--output", "json")
    assert result.exit_code == 4, result.output
    return Made(folder / "table", to, json.loads(result.stdout), json.loads((to / "report.json").read_text()))


def run(table: Path, to: Path, *more: str) -> Result:
    return CliRunner().invoke(main, ["pipeline", "report", "--table", str(table), "--to", str(to), *more])


def test_spark_and_sail_make_the_same_report(made: Made, made_by_spark: Made, spark: SparkSession) -> None:
    documents = [{**each.document, "generated_at": None} for each in (made, made_by_spark)]
    assert documents[0] == documents[1]
    for output in ParquetOutput:
        frames = [each.parquet(spark, output) for each in (made, made_by_spark)]
        assert frames[0].dtypes == frames[1].dtypes
        assert frames[0].count() == frames[1].count()
        assert frames[0].exceptAll(frames[1]).count() == 0


def test_every_theft_is_found_and_nothing_that_only_looks_like_one(made: Made) -> None:
    found = {(IncidentKind(each["kind"]), each["subject"]) for each in made.document["findings"]}
    assert found == stories.FOUND


def test_what_somebody_accepts_is_in_no_case_and_is_listed_with_who_accepts_it(made: Made) -> None:
    accepted, over = made.document["suppressions"]
    assert [each["subject"] for each in accepted["findings"]] == [stories.SCANNER]
    assert (accepted["who"], accepted["has_run_out"]) == ("the security team", False)
    assert (over["has_run_out"], over["findings"]) == (True, [])
    assert not any(stories.SCANNER in case["addresses"] for case in made.document["cases"])
    assert sum(each["count"] for each in made.document["finding_counts"]) == len(stories.FOUND)
    assert made.printed["suppressions"] == made.document["suppressions"]


def test_findings_say_what_was_unusual_and_what_is_usual(made: Made) -> None:
    cases = {subject: made.evidence(subject)["what is unusual"] for subject in STEALERS}
    assert cases == {
        stories.ELSEWHERE: "elsewhere",
        stories.OTHER_CLIENT: "another client",
        stories.FIRST_DAY: "strange to its owner",
        stories.MOVED_AND_CHANGED: "moved and changed",
    }
    evidence = made.evidence(stories.ELSEWHERE)
    assert evidence["unusual addresses"] == "203.0.113.9"
    assert evidence["in zones"] == "203.0.113.0/24"
    assert evidence["usual zones"] == "10.0.2.0/24"
    assert evidence["usual clients"] == "apache-kafka-java 3.9.1 as etl-#"
    assert made.evidence(stories.FIRST_DAY)["unusual clients"] == "librdkafka as rdkafka"
    assert evidence["usual use last seen"] == "2026-03-05 23:00:00 UTC"


def test_a_finding_says_when_and_how_often(made: Made) -> None:
    finding = made.finding(stories.ELSEWHERE)
    assert finding["first_seen"] == "2026-03-04T13:00:00+00:00"
    assert finding["last_seen"] == "2026-03-04T14:40:00+00:00"
    assert finding["events"] == 6
    assert (finding["owner"], finding["address"]) == ("User:bob", "203.0.113.9")


def test_a_token_that_is_tried_after_its_revocation_opens_nothing_so_it_is_not_the_most_urgent(made: Made) -> None:
    assert made.finding(stories.TRIED_ELSEWHERE)["severity"] == "medium"
    assert made.finding(stories.TRIED_ELSEWHERE)["events"] == 2
    assert made.evidence(stories.TRIED_ELSEWHERE)["in zones"] == "198.51.100.0/24"


def _observed(frame: DataFrame) -> Observed:
    """Give one frame as all that a rule looks at."""
    habits = Habits(*[frame] * len(fields(Habits)))
    written = dict.fromkeys(FRAMES, frame)
    return Observed(**written, habits=habits, zones=Zones(frame), work=lambda _name, frame: frame)


def test_a_report_looks_for_the_signs_that_it_is_given(made: Made, spark: SparkSession) -> None:
    usage = made.parquet(spark, "usage")
    seen = _observed(usage)
    found = look_for([replace(BUSY, thresholds=BusyAddressThresholds(most_logins=46))], seen)
    assert found.columns == made.parquet(spark, "findings").columns
    (finding,) = collected(found)
    assert (finding.kind, finding.severity, finding.subject) == ("busy_address", "medium", "10.0.5.7")
    assert [(each.label, each.text) for each in finding.evidence] == [("client", "etl-#")]


def test_signs_that_have_not_begun_are_left_out_when_one_fails(
    made: Made, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = made.parquet(spark, "usage")
    seen = _observed(usage)
    at_once, begun, left_out = Barrier(4), [], Event()

    class Pool(ThreadPoolExecutor):
        def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
            super().shutdown(wait=False, cancel_futures=cancel_futures)
            left_out.set()
            super().shutdown(wait=wait)

    monkeypatch.setattr(sign, "ThreadPoolExecutor", Pool)

    def fails(_seen: Observed, _thresholds: BusyAddressThresholds) -> DataFrame:
        begun.append(at_once.wait(10))
        raise OSError("no disk")

    def takes_longer(_seen: Observed, _thresholds: BusyAddressThresholds) -> DataFrame:
        begun.append(at_once.wait(10))
        left_out.wait(10)
        return usage

    signs = [replace(BUSY, rule=takes_longer), replace(BUSY, rule=fails), *[replace(BUSY, rule=takes_longer)] * 6]
    with pytest.raises(OSError, match="no disk"):
        look_for(signs, seen)
    assert len(begun) == 4


def test_guesses_are_counted_by_different_ids_and_by_network_where_no_address_stands_out(made: Made) -> None:
    assert made.evidence(stories.GUESSER)["different ids"] == "15 in an hour"
    assert made.finding(stories.GUESSER)["address"] == stories.GUESSER
    assert made.evidence(stories.GUESSING_NETWORK)["different ids"] == "15 in an hour"
    assert made.evidence(stories.SLOW_GUESSER)["different ids"] == "9 in a day"


def test_a_renewal_by_who_may_not_proves_that_he_has_the_hmac(made: Made) -> None:
    assert made.finding(stories.STRANGER)["severity"] == "high"
    assert made.evidence(stories.STRANGER)["renewed or tried by"] == "User:trent"
    assert made.evidence(stories.STRANGER)["refused, the HMAC was right"] == "1"
    assert made.evidence(stories.NEW_RENEWER)["renewed or tried by"] == "User:mallory"
    assert made.evidence(stories.NEW_RENEWER)["usually renewed by"] == stories.YARN


def test_findings_come_with_the_commands_to_run_next(made: Made) -> None:
    commands = "\n".join(each.get("command", "") for each in made.finding(stories.ELSEWHERE)["responses"])
    assert "kafka-dt token revoke --command-config admin.properties" in commands
    assert f"--table={made.table}" in commands


def test_each_finding_is_in_one_case_and_the_gravest_case_is_first(made: Made) -> None:
    cases = made.document["cases"]
    named = sorted(entry["finding"] for case in cases for entry in case["timeline"])
    assert named == sorted(finding["id"] for finding in made.document["findings"])
    assert cases[0]["severity"] == "high"
    assert made.printed["cases"] == cases


def test_a_case_says_who_where_and_what_ends_it(made: Made) -> None:
    (case,) = (each for each in made.document["cases"] if stories.ELSEWHERE in each["tokens"])
    assert (case["owners"], case["addresses"]) == (["User:bob"], ["203.0.113.9"])
    assert case["why"] == ["Used by a stranger: what is unusual elsewhere"]
    assert case["end"]["command"].endswith(f"-- {stories.ELSEWHERE}")


def test_each_grave_case_is_an_alert(made: Made) -> None:
    alerts = [json.loads(line) for line in Path(f"{made.to}.jsonl").read_text().splitlines()]
    assert [alert["case"] for alert in alerts] == [
        each for each in made.document["cases"] if each["severity"] == "high"
    ]
    assert made.printed["alerts"] == {"sent": len(alerts), "failed": []}
    assert (made.to / "alerts.json").exists()


def test_lists_have_the_tokens_that_somebody_should_look_at(made: Made) -> None:
    expiring = {row["token_id"]: row["renewable"] for row in made.document["expiring"]["rows"]}
    assert expiring == {"ends-soon": True, "ends-for-good": False}
    unused = [(row["token_id"], row["alive"]) for row in made.document["never_used"]["rows"]]
    assert unused == [("unused", True), ("unused-and-gone", False)]
    old = {row["token_id"]: row["lived"] for row in made.document["past_half"]["rows"]}
    assert old["ends-for-good"] == pytest.approx(22.5 / 24)
    assert "usual" in old
    assert "unused" not in old


def test_living_tokens_are_counted_by_owner_requester_and_renewer(made: Made) -> None:
    alive = made.document["alive"]
    last = {role: {name: values[-1] for name, values in alive[role]["values"].items()} for role in alive}
    assert last["renewer"][stories.YARN] == 4
    assert last["renewer"]["User:mallory"] == 3
    assert last["requester"]["User:portal"] == 2
    assert sum(last["owner"].values()) == made.document["alive_now"]


def test_logins_are_counted_by_mechanism_and_refusals_by_reason(made: Made) -> None:
    logins = {name: sum(values) for name, values in made.document["logins"]["values"].items()}
    refusals = {name: sum(values) for name, values in made.document["refusals"]["values"].items()}
    events = stories.whole_story().events
    logged_in = [event for event in events if (event.type, event.outcome) == ("login", "ok")]
    assert logins == {
        "SCRAM-SHA-512 by token": sum(bool(event.by_token) for event in logged_in),
        "GSSAPI": sum(not event.by_token for event in logged_in),
    }
    assert refusals["DELEGATION_TOKEN_OWNER_MISMATCH"] == 1
    assert refusals["unsupported_mechanism"] == 1
    assert sum(refusals.values()) == sum(event.outcome == "refused" for event in events)
    assert made.document["events"] == len(events)


def test_a_token_from_before_the_table_is_known_by_its_use(made: Made, spark: SparkSession) -> None:
    tokens = made.parquet(spark, "tokens")
    ((owner, known),) = tokens.where("token_id = 'older'").select("owner", "created_known").collect()
    assert (owner, known) == ("User:lee", False)
    assert tokens.where("token_id like 'guess%' or token_id = 'stale'").count() == 0


def test_a_renewer_exposes_the_tokens_that_it_may_renew(made: Made) -> None:
    blast = made.document["blast"]
    exposed = {each["node"] for each in blast["reached"] if each["exposed"] and each["step"]}
    assert exposed == {"usual", stories.NEW_RENEWER, stories.STRANGER, "renewed-in-turn"}
    (home,) = (each for each in blast["reached"] if each["node"] == "10.0.10.7")
    assert not home["exposed"]
    assert [hop["relation"] for hop in home["path"]] == ["may renew", "logged in from"]
    assert made.printed["exposed"] == {"token": 4}


def test_a_machine_exposes_who_logs_in_there_and_all_tokens_of_them(made: Made, spark: SparkSession) -> None:
    lives, usage = made.parquet(spark, "tokens"), made.parquet(spark, "usage")
    radius = blast_radius(lives, usage, Start.address("10.0.1.5"), 2, lambda _name, frame: frame.cache())
    reached = {row["node"]: row for row in rows_of(radius)}
    assert [hop["node"] for hop in reached["usual"]["path"]] == ["User:alice", "usual"]
    assert reached["usual"]["exposed"]
    assert reached["usual"]["step"] == 2
    assert {row["address"] for row in rows_of(reachable_logins(usage, radius))} >= {"10.0.1.5", "10.0.1.10"}


def test_a_token_that_has_ended_is_reached_and_said_to_have_ended(made: Made, spark: SparkSession) -> None:
    lives, usage = made.parquet(spark, "tokens"), made.parquet(spark, "usage")
    radius = blast_radius(lives, usage, Start.owner("User:ivan"), 1, lambda _name, frame: frame.cache())
    alive = {row["node"]: row["alive"] for row in rows_of(with_alive(radius, lives, stories.END))}
    assert {node for node, lives_on in alive.items() if lives_on} == {"spared"}
    assert {node for node, lives_on in alive.items() if lives_on is None} == {"User:ivan"}
    assert {stories.TRIED_AT_HOME, "aged"} < {node for node, lives_on in alive.items() if lives_on is False}


def test_an_address_that_was_only_refused_is_known_and_exposes_nothing(made: Made, spark: SparkSession) -> None:
    lives, usage = made.parquet(spark, "tokens"), made.parquet(spark, "usage")
    guesser = Start.address(stories.GUESSER)
    assert rows_of(blast_radius(lives, usage, guesser, 1, lambda _name, frame: frame.cache())) == []
    events = Table(str(made.table)).events(spark)
    assert is_named(events, guesser)
    assert not is_named(events, Start.address("192.0.2.1"))


def test_the_parquet_output_has_everything(made: Made, spark: SparkSession) -> None:
    names = {path.name for path in (made.to / "parquet").iterdir() if path.is_dir()}
    assert names == {
        "activity", "alive", "attention", "blast_radius", "findings", "reachable_logins", "tokens", "usage",
    }  # fmt: skip
    accepted = 1
    assert made.parquet(spark, "findings").count() == len(stories.FOUND) + accepted
    ((events,),) = made.parquet(spark, "activity").groupBy().sum("events").collect()
    assert events == made.document["events"]


@pytest.mark.usefixtures("made_by_spark")
def test_a_session_has_the_settings_that_it_had_before_a_report(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"


def test_the_page_is_one_file_for_its_owner_that_names_nothing_as_markup(made: Made) -> None:
    page = made.to / "report.html"
    text = page.read_text(encoding="utf-8")
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert "<img src=x" not in text
    assert "\u202e" not in text
    assert "&lt;img src=x onerror=alert(1)&gt;\\u202e&lt;/script&gt;" in text


def test_all_that_a_report_writes_is_for_its_owner_alone(made: Made, made_by_spark: Made) -> None:
    for to in (made.to, made_by_spark.to):
        written = [to / "parquet", *(to / "parquet").rglob("*"), to / "report.html", to / "report.json"]
        assert any(path.name.endswith(".parquet") for path in written)
        assert [str(path) for path in written if path.stat().st_mode & 0o077] == []


def test_an_owner_that_nobody_knows_is_one_line(made: Made, tmp_path: Path) -> None:
    result = run(made.table, tmp_path, "--at", "2026-03-02T02:00:00Z", "--owner", "User:nobody")
    assert result.exit_code == 1
    assert "nothing in the table is about 'User:nobody'" in result.output
    assert not (tmp_path / "report.html").exists()


def test_an_instant_before_the_first_event_is_one_line(made: Made, tmp_path: Path) -> None:
    result = run(made.table, tmp_path, "--at", "2026-03-01")
    assert result.exit_code == 1
    assert "the table has no event until 2026-03-01T00:00:00+00:00" in result.output


def test_what_no_report_has_made_is_not_replaced(made: Made, tmp_path: Path) -> None:
    (tmp_path / "parquet" / "tokens").mkdir(parents=True)
    result = run(made.table, tmp_path, "--at", "2026-03-02T02:00:00Z")
    assert result.exit_code == 1
    assert "has tokens, which no report has made" in result.output
    assert (tmp_path / "parquet" / "tokens").exists()


@pytest.mark.usefixtures("spark")
def test_no_table_is_one_line(tmp_path: Path) -> None:
    result = run(tmp_path / "nothing", tmp_path / "to")
    assert result.exit_code == 1
    assert "is no table of audit events" in result.output


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--owner", "User:a", "--address", "10.0.0.1"], "not both"),
        (["--owner", "alice"], "write User:alice"),
        (["--at", "yesterday"], "is neither ISO 8601"),
        (["--at", "9999-12-31T23:00:00-14:00"], "is neither ISO 8601"),
        (["--unused-for", "nan"], "is not a number of hours"),
        (["--expiring-within", "1e300"], "is not in the range"),
    ],
)
def test_wrong_usage_is_told_before_spark_starts(options: list[str], says: str, tmp_path: Path) -> None:
    result = run(tmp_path, tmp_path, *options)
    assert result.exit_code == 2
    assert says in result.output
