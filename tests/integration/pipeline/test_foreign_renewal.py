"""Which renewals are those of a stranger, and which those of an engineer on call: one run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kafka_dt.pipeline.report.signs import Severity
from kafka_dt.pipeline.report.signs.foreign_renewal import FOREIGN_RENEWAL
from tests.integration.pipeline.audit_story import Story, found_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""Py4J leaves its sockets to the garbage collector."""
BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
YARN, OOZIE, ON_CALL, AWAY = "User:yarn", "User:oozie", "User:jonas-oncall", "User:dataops"
AT_HOME = "User:mika-oncall"


def at(hours: float) -> datetime:
    return BEGIN + timedelta(hours=hours)


def told() -> Story:
    """Each token is named for the principal that renews it beside yarn; all tokens have the same renewers."""
    story = Story()
    for name, usual, other in (
        ("on-call", YARN, ON_CALL),
        ("on-call-too", YARN, ON_CALL),
        ("service", YARN, OOZIE),
        ("away", YARN, AWAY),
        ("at-home", YARN, AT_HOME),
        ("stranger", YARN, "User:trent"),
        ("none", YARN, None),
        ("of-oozie", OOZIE, None),
    ):
        owner = f"User:{name}"
        story.token(name, owner, BEGIN, renewers=[YARN, OOZIE, ON_CALL, AWAY, AT_HOME])
        story.login(name, owner, at(1), "10.7.1.5")
        for hours in range(18, 96, 18):
            story.renewal(name, owner, usual, at(hours))
        if other is not None:
            reason = "DELEGATION_TOKEN_OWNER_MISMATCH" if name == "stranger" else None
            story.renewal(name, owner, other, at(60), reason=reason, address="10.248.0.4")
    for hours in range(0, 48, 8):
        story.user_login(AWAY, at(hours), "10.31.0.53")
        story.user_login(AT_HOME, at(hours), "10.31.0.54" if hours % 16 else "10.32.0.54")
    story.user_login(ON_CALL, at(60), "10.248.0.4")
    # The table begins with this renewal: which principals renew the token is not known.
    story.token("cold-start", "User:cold-start", BEGIN, renewers=["User:mallory"])
    story.renewal("cold-start", "User:cold-start", "User:mallory", at(1))
    return story


def test_a_renewer_out_of_its_place_is_found_and_an_engineer_on_call_is_not(
    spark: SparkSession, tmp_path: Path
) -> None:
    found = {each.subject: each.severity for each in found_in(spark, told(), tmp_path, [FOREIGN_RENEWAL])}
    assert found == {"service": Severity.MEDIUM, "away": Severity.MEDIUM, "stranger": Severity.HIGH}
