"""A login over the Internet is strange in a company whose principals hardly ever come from there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from kafka_dt.audit import EventType
from kafka_dt.pipeline.report.signs.strange_login import STRANGE_LOGIN
from tests.integration.pipeline.audit_story import Story, found_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BEGIN: Final = datetime(2026, 3, 2, 9, tzinfo=UTC)
DAY: Final = timedelta(days=1)


@pytest.mark.parametrize(
    ("public", "wanted"),
    [
        pytest.param(0, ["45.9.9.9"], id="all others work in the company's networks"),
        pytest.param(4, [], id="a third of them work at home"),
    ],
)
def test_a_login_over_the_internet_is_strange_where_few_make_one(
    spark: SparkSession, tmp_path: Path, public: int, wanted: list[str]
) -> None:
    story = Story()
    for person in range(12):
        networks = (f"10.{person % 3}.0.{person}", f"10.200.{person}.1", f"10.44.{person}.1")
        for number in range(14):
            address = f"{50 + person}.7.7.7" if person < public else networks[number % 3]
            _login(story, f"User:person-{person}", BEGIN + number * DAY, address)
    _login(story, "User:person-11", BEGIN + timedelta(days=9, hours=12), "45.9.9.9")
    found = found_in(spark, story, tmp_path, [STRANGE_LOGIN])
    assert [each.address for each in found] == wanted
    assert {each.evidence[0].text for each in found} <= {"over the Internet"}


def _login(story: Story, principal: str, at: datetime, address: str) -> None:
    story.tell(
        EventType.LOGIN,
        at,
        address=address,
        principal=principal,
        mechanism="SCRAM-SHA-512",
        client_software="librdkafka",
        client_id=principal.partition(":")[2],
    )
