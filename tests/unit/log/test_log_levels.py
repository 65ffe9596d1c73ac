"""The level of the log holds for all loggers; what is for debugging, for ours alone."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from kafka_dt.log import set_level

OURS, OTHER = logging.getLogger("kafka_dt.node"), logging.getLogger("kazoo.client")


@pytest.fixture(autouse=True)
def _levels_as_before() -> Iterator[None]:
    loggers = (logging.getLogger(), logging.getLogger("kafka_dt"))
    before = [each.level for each in loggers]
    yield
    for logger, level in zip(loggers, before, strict=True):
        logger.setLevel(level)


@pytest.mark.parametrize(
    ("level", "ours", "others"),
    [
        ("DEBUG", logging.DEBUG, logging.INFO),
        ("INFO", logging.INFO, logging.INFO),
        ("WARN", logging.WARNING, logging.WARNING),
        ("ERROR", logging.ERROR, logging.ERROR),
    ],
)
def test_libraries_never_log_what_is_for_debugging(level: str, ours: int, others: int) -> None:
    set_level(level)
    assert (OURS.getEffectiveLevel(), OTHER.getEffectiveLevel()) == (ours, others)
