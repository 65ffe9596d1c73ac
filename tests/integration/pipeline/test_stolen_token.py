"""Which uses of a token are a sign of a thief, and which are a cluster that moves or a job that grows: one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from kafka_dt.pipeline.report.signs import Finding, Severity
from kafka_dt.pipeline.report.signs.stolen_token import ALONE, ELSEWHERE_CHANGED, FOREIGN, STOLEN_TOKEN
from tests.integration.pipeline.audit_story import Story, found_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""Py4J leaves its sockets to the garbage collector."""
BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
PODS = ("10.7.1.5", "10.7.2.6", "10.7.3.7")
"""Machines of a cluster: most owners are in all of them."""
KCAT: Mapping[str, Any] = {"client_id": "rdkafka", "client_software": "librdkafka", "client_software_version": "2.4.0"}
JAVA: Mapping[str, Any] = {"client_id": "etl-1"}


def at(day: int, hour: float = 0) -> datetime:
    return BEGIN + timedelta(days=day, hours=hour)


def job(story: Story, name: str, end: datetime, places: Sequence[str] = PODS) -> None:
    """An owner with a token, both of this name."""
    story.token(name, f"User:{name}", at(0, 6))
    story.logins(name, f"User:{name}", at(0, 7), end, places)


def told() -> Story:
    """Each token is named for what happens to it."""
    story = Story()
    job(story, "alone", at(6))
    # The token is new: it has no history, but its owner has.
    story.token("alone-with-new", "User:alone", at(5))
    story.login("alone-with-new", "User:alone", at(5, 1), "203.0.113.9", **KCAT)
    job(story, "foreign", at(6))
    story.login("foreign", "User:foreign", at(4), "192.0.2.7")
    job(story, "beside", at(6))
    story.logins("beside", "User:beside", at(5), at(6), ["10.20.1.5"], **KCAT)
    for number in range(3):
        job(story, f"fails-over-{number}", at(4, number))
        story.logins(f"fails-over-{number}", f"User:fails-over-{number}", at(4, number), at(6), ["10.20.1.7"])
    # A thief has the tokens of three owners, and one of them has the thief's library as well.
    for number, client in enumerate((JAVA, JAVA, KCAT)):
        name = f"looted-{number}"
        story.token(name, f"User:{name}", at(0, 6))
        story.logins(name, f"User:{name}", at(0, 7), at(6), PODS, **client)
        story.token(f"{name}-new", f"User:{name}", at(5))
        story.login(f"{name}-new", f"User:{name}", at(5, 1 + number), "203.5.113.9", **KCAT)
    story.login("looted-2", "User:looted-2", at(5, 3), "203.5.113.9", **KCAT)
    job(story, "grows", at(6))
    story.logins("grows", "User:grows", at(4), at(6), ["10.7.200.1"])
    # A load test on many machines of a network of its own, with the owner's library.
    job(story, "load-test", at(6))
    for number in range(12):
        story.login(
            "load-test", "User:load-test", at(5, number / 12), f"10.99.{number % 3}.{number}", client_id="gatling"
        )
    # A notebook: its owner came to such a network before, so a new library there is no sign of a thief.
    for day, place, client in (
        (0, "10.8.1.5", JAVA),
        (4, "198.51.100.7", JAVA),
        (6, "203.1.200.7", KCAT),
    ):
        story.token(f"notebook-{day}", "User:tara", at(day, 6))
        story.logins(f"notebook-{day}", "User:tara", at(day, 7), at(day + 1), [place], **client)
    # The table begins on the day on which this owner does everything for the first time.
    story.token("cold-start", "User:cold-start", at(0, 5))
    story.logins("cold-start", "User:cold-start", at(0, 6), at(0, 9), PODS, every=timedelta(hours=1))
    story.login("cold-start", "User:cold-start", at(0, 9), "203.2.117.9", **KCAT)
    return story


@pytest.fixture(scope="module")
def found(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Finding]:
    folder = tmp_path_factory.mktemp("stolen")
    networks = "192.0.2.0/24, rented, foreign\n"
    return {each.subject: each for each in found_in(spark, told(), folder, [STOLEN_TOKEN], networks)}


@pytest.mark.parametrize(
    ("token_id", "case"),
    [
        ("alone-with-new", ALONE),
        ("foreign", FOREIGN),
        ("beside", ELSEWHERE_CHANGED),
        ("looted-0-new", ALONE),
        ("looted-1-new", ALONE),
    ],
)
def test_a_use_that_neither_the_owner_nor_the_company_explains_is_urgent(
    found: Mapping[str, Finding], token_id: str, case: str
) -> None:
    assert found[token_id].evidence[0].text == case
    assert found[token_id].severity is Severity.HIGH


def test_the_counts_behind_a_finding_are_told(found: Mapping[str, Finding]) -> None:
    evidence = {each.label: each.text for each in found["alone-with-new"].evidence}
    assert evidence["counted"] == (
        "0 other principals came to 203.0.0.0/16; the owner was in 1 other networks since 2026-03-02 07:00:00 UTC"
    )
    assert evidence["usual zones"] == "10.7.0.0/16"


def test_owners_that_come_together_with_a_new_library_do_not_explain_a_use(found: Mapping[str, Finding]) -> None:
    assert found["looted-2"].evidence[0].text == "elsewhere"
    assert found["looted-0-new"].evidence[3].text.startswith("2 other principals came to 203.5.0.0/16")


def test_moves_growth_journeys_and_first_days_are_no_sign(found: Mapping[str, Finding]) -> None:
    assert set(found) == {"alone-with-new", "foreign", "beside", "looted-0-new", "looted-1-new", "looted-2"}
