"""Which late attempts with an ended token are a sign, and which are a job that was not told: one month, one run."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from kafka_dt.pipeline.report.signs import Finding, Severity
from kafka_dt.pipeline.report.signs.use_after_revocation import USE_AFTER_REVOCATION
from tests.integration.pipeline.audit_story import Story, found_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""Py4J leaves its sockets to the garbage collector."""
BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
PODS = ["10.7.1.5", "10.7.2.6", "10.7.3.7"]
"""Machines of a cluster: three owners are in all of them."""
NETWORKS = "192.0.2.0/24, rented, foreign\n"


def at(day: int, hour: float = 0) -> datetime:
    return BEGIN + timedelta(days=day, hours=hour)


def told() -> Story:
    """Each token is named for where it is tried after its owner has ended it."""
    story = Story()
    for name, places, late in (
        ("strange-zone", PODS, "203.0.113.9"),
        ("its-machine", PODS, PODS[0]),
        ("new-pod", PODS, "10.7.9.9"),
        ("new-machine", ["10.9.1.5"], "10.9.1.77"),
        ("foreign", ["192.0.2.7"], "192.0.2.7"),
        ("in-time", ["10.9.2.5"], "10.9.2.77"),
        ("at-once", PODS, "203.0.113.9"),
    ):
        owner = f"User:{name}"
        story.token(name, owner, at(0, 6))
        story.logins(name, owner, at(0, 7), at(3), places)
        story.end(name, owner, at(3))
        story.login(name, owner, at(3, 0.01 if name in {"in-time", "at-once"} else 2), late, reason="unknown_token")
    # The thief was there before the token ended, and goes on.
    story.token("goes-on", "User:amy", at(0, 6))
    story.logins("goes-on", "User:amy", at(0, 7), at(3), PODS)
    story.logins("goes-on", "User:amy", at(2), at(3), ["203.0.113.5"])
    story.end("goes-on", "User:amy", at(3))
    story.login("goes-on", "User:amy", at(3, 2), "203.0.113.5", reason="unknown_token")
    # A job that has moved tries its old token in its new place, where it uses the next one.
    for name, begin, end, place in (("before-move", 0, 3, PODS), ("after-move", 3, 6, ["10.20.1.5"])):
        story.token(name, "User:ben", at(begin, 6))
        story.logins(name, "User:ben", at(begin, 7), at(end), place)
    story.end("before-move", "User:ben", at(3, 12))
    story.login("before-move", "User:ben", at(4), "10.20.1.5", reason="unknown_token")
    story.token("opens", "User:cem", at(0, 6))
    story.logins("opens", "User:cem", at(0, 7), at(4), PODS)
    story.end("opens", "User:cem", at(3))
    # The table begins with the end of the token: nothing is known of its owner.
    story.end("cold-start", "User:dot", at(0))
    story.login("cold-start", "User:dot", at(0, 2), "203.0.113.9", reason="unknown_token")
    return story


@pytest.fixture(scope="module")
def found(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Finding]:
    folder = tmp_path_factory.mktemp("revoked")
    return {each.subject: each for each in found_in(spark, told(), folder, [USE_AFTER_REVOCATION], NETWORKS)}


@pytest.mark.parametrize(
    ("token_id", "case"),
    [
        ("strange-zone", "a zone that is strange to the owner"),
        ("at-once", "a zone that is strange to the owner"),
        ("goes-on", "a place strange to the owner, where this token was used before"),
        ("foreign", "a place strange to the owner, where this token was used before"),
        ("new-machine", "a machine where the owner never was"),
        ("opens", "it succeeded"),
    ],
)
def test_a_late_attempt_where_the_owner_is_not_at_home_is_found(
    found: Mapping[str, Finding], token_id: str, case: str
) -> None:
    assert found[token_id].evidence[0].text == case
    assert (found[token_id].severity is Severity.HIGH) == (case == "it succeeded")


@pytest.mark.parametrize("token_id", ["its-machine", "new-pod", "before-move", "in-time", "cold-start"])
def test_a_late_attempt_that_its_place_explains_is_no_sign(found: Mapping[str, Finding], token_id: str) -> None:
    assert token_id not in found
