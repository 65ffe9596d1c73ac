"""Each sign finds what it should in small stories, and nothing in stories that look like them.

The stories are in `signs/`, a file for each sign. A line with `case` begins a story; `finds` says what a report has to
find in it, as kind, severity and, where a sign has several cases, the first fact of its evidence; `about` the addresses
of the findings; `says` how texts of its evidence begin. Each further line is an event, or several (`to`, `every`: in
hours; `{n}` in a text is the number of the event). An event has the fields of `docs/audit.md`, and three more: `at`, in
days since the story begins; `by`, the id of the token with which the client logs in; `lives`, how many hours a token
lives after the event, which makes it, renews it or shortens its life.

All stories are in one table, so that one run is enough; `make soak` has one of Spark as well. Each has its own month,
its own names and its own networks: `#` in a text is its number. The stories marked `cold` are in the first month,
with nothing before them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from kafka_dt.audit import EventType
from kafka_dt.pipeline.engines import SparkEngine
from kafka_dt.pipeline.report.signs import SIGNS
from tests.integration.pipeline.audit_story import Story, found_in
from tests.support.spark.engines import sail_or_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kafka_dt.pipeline.report.signs import Finding

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""Py4J leaves its sockets to the garbage collector."""
FOLDER: Final = Path(__file__).parent / "signs"
FILES: Final = [FOLDER / f"{sign.kind}.jsonl" for sign in SIGNS]
NETWORKS: Final = "192.0.2.0/25, rented, foreign\n192.0.2.128/25, hired, foreign\n203.0.113.0/24, campus, office\n"
"""What the company says of its networks: that two are not its own, and that a public one is."""
BEGIN: Final = datetime(2020, 1, 1, tzinfo=UTC)
MONTH: Final = timedelta(weeks=5)
"""Whole weeks: each story begins on a Wednesday."""


@dataclass(frozen=True, slots=True)
class Case:
    """One story."""

    sign: str
    number: int
    name: str
    cold: bool
    finds: tuple[tuple[str, ...], ...]
    about: tuple[str, ...]
    """Addresses of the findings; empty if any will do."""
    says: dict[str, str]
    """Label of a fact of its evidence -> how the text begins."""
    lines: list[dict[str, Any]] = field(default_factory=list)

    @property
    def begin(self) -> datetime:
        """When it begins."""
        return BEGIN if self.cold else BEGIN + self.number * MONTH

    def tell(self, story: Story) -> None:
        """Tell its events."""
        owners: dict[str, dict[str, str]] = {}
        for line in self.lines:
            for event in _repeated(json.loads(json.dumps(line).replace("#", str(self.number)))):
                _tell(story, self.begin, event, owners)


def _cases() -> Iterator[Case]:
    """Read all stories, and number them."""
    number = 0
    for path in FILES:
        case: Case | None = None
        for line in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            if "case" in line:
                if case is not None:
                    yield case
                number += 1
                finds = tuple(map(tuple, line["finds"]))
                about = tuple(address.replace("#", str(number)) for address in line.get("about", ()))
                case = Case(
                    path.stem, number, line["case"], line.get("cold", False), finds, about, line.get("says", {})
                )
            else:
                assert case is not None, f"{path.name} begins with an event"
                case.lines.append(line)
        if case is not None:
            yield case


def _repeated(line: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Give each event of a line."""
    at, to, every = line.pop("at"), line.pop("to", None), line.pop("every", 24)
    instants = [at] if to is None else [at + each * every / 24 for each in range(int((to - at) * 24 / every) + 1)]
    for number, instant in enumerate(instants):
        yield {**json.loads(json.dumps(line).replace("{n}", str(number))), "at": instant}


def _tell(story: Story, begin: datetime, event: dict[str, Any], tokens: dict[str, dict[str, str]]) -> None:
    """Tell an event; what a token's events always say is kept in `tokens`."""
    at = begin + timedelta(days=event.pop("at"))
    kind, reason = EventType(event.pop("type")), event.pop("reason", None)
    fields: dict[str, Any] = {"client_software": "apache-kafka-java", "mechanism": "SCRAM-SHA-512"}
    if (used := event.pop("by", None)) is not None:
        token = tokens[used]
        fields |= {**token, "principal": token["owner"], "token_id": used, "session_token_id": used, "by_token": True}
    if "token_id" in event and event["token_id"] in tokens:
        fields |= tokens[event["token_id"]]
    hours = event.pop("lives", None if kind is EventType.TOKEN_EXPIRED else 24)
    end_ms = None if hours is None else int((at + timedelta(hours=hours)).timestamp() * 1000)
    if kind in {EventType.TOKEN_RENEWED, EventType.TOKEN_EXPIRED} and reason is None:
        fields["expiry_time"] = end_ms
    if kind is EventType.TOKEN_CREATED and reason is None:
        event.setdefault("owner", event["principal"])
        event.setdefault("requester", event["principal"])
        tokens[event["token_id"]] = {"owner": event["owner"], "requester": event["requester"]}
        fields |= {"issue_time": int(at.timestamp() * 1000), "expiry_time": end_ms, "max_time": end_ms}
    address = event.pop("address", "10.0.0.1")
    story.tell(kind, at, reason, address, **{**fields, **event})


CASES: Final = list(_cases())


@pytest.fixture(scope="module", params=["sail", pytest.param("spark", marks=pytest.mark.soak)])
def findings(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Finding, ...]:
    folder = tmp_path_factory.mktemp("cases")
    story = Story()
    for case in CASES:
        case.tell(story)

    def spark() -> SparkSession:
        session: SparkSession = request.getfixturevalue("spark")
        return session

    with sail_or_spark(spark) if request.param == "sail" else nullcontext(SparkEngine(spark())) as engine:
        return found_in(engine, story, folder, SIGNS, NETWORKS)


@pytest.mark.parametrize("case", CASES, ids=[f"{case.sign}: {case.name}" for case in CASES])
def test_a_story_has_the_findings_that_it_should(findings: tuple[Finding, ...], case: Case) -> None:
    own = [each for each in findings if case.begin <= each.first_seen < case.begin + MONTH and _is_about(each, case)]
    found = Counter((each.kind, each.severity.value, each.evidence[0].text) for each in own)
    assert sorted(each[:2] for each in found.elements()) == sorted(each[:2] for each in case.finds), sorted(found)
    assert Counter(each for each in case.finds if len(each) > 2) <= found
    assert case.about in {(), tuple(sorted(str(each.address) for each in own))}
    evidence = {each.label: each.text for finding in own for each in finding.evidence}
    for label, begin in case.says.items():
        assert evidence[label].startswith(begin.replace("#", str(case.number)))


def test_every_file_of_stories_is_that_of_a_sign() -> None:
    assert sorted(FOLDER.iterdir()) == sorted(FILES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_sign_has_stories_that_it_finds_and_three_that_look_like_them(path: Path) -> None:
    own = [case for case in CASES if case.sign == path.stem]
    assert any(wanted[0] == path.stem for case in own for wanted in case.finds)
    assert sum(not case.finds and not case.cold for case in own) >= 3
    assert any(case.cold for case in own)


def _is_about(finding: Finding, case: Case) -> bool:
    """Say whether a finding of a month is about this story; the cold ones share a month."""
    marks = (finding.subject, finding.owner, finding.address)
    number = str(case.number)
    return not case.cold or any(
        mark.split(".")[1:2] == [number] or mark.endswith(f"-{number}") for mark in marks if mark
    )
