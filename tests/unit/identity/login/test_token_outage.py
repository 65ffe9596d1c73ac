from __future__ import annotations

import logging

import pytest

from kafka_dt.identity.login.tokens import TokenOutage
from kafka_dt.tokens import StoreUnavailable

ERROR = StoreUnavailable("cut off")


@pytest.fixture
def outage(caplog: pytest.LogCaptureFixture) -> TokenOutage:
    caplog.set_level(logging.INFO)
    return TokenOutage()


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage().partition(" log in")[0] for record in caplog.records]


def test_an_outage_has_one_line_at_its_begin_and_one_at_its_end(
    outage: TokenOutage, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        for _ in range(1_000):
            outage.refused(ERROR, all_tokens=False)
        outage.ended()
        outage.ended()
    assert lines(caplog) == ["Tokens that this worker has not met yet cannot", "All tokens can"] * 2
    assert "1000 logins were refused" in caplog.text


def test_that_known_tokens_are_refused_as_well_is_said_once(
    outage: TokenOutage, caplog: pytest.LogCaptureFixture
) -> None:
    for all_tokens in (False, True, False, True):
        outage.refused(ERROR, all_tokens=all_tokens)
    assert outage.lasts
    outage.ended()
    assert not outage.lasts
    assert lines(caplog) == ["Tokens that this worker has not met yet cannot", "No token can", "All tokens can"]


def test_an_outage_that_is_noticed_late_says_at_once_that_no_token_logs_in(
    outage: TokenOutage, caplog: pytest.LogCaptureFixture
) -> None:
    outage.refused(ERROR, all_tokens=True)
    outage.refused(ERROR, all_tokens=False)
    assert lines(caplog) == ["No token can"]
