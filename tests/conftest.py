"""What holds for all tests."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says something about the machine, not about the code.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the tests that are marked `soak` out unless KAFKA_DT_TEST_SOAK is set."""
    if not os.environ.get("KAFKA_DT_TEST_SOAK"):
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("soak")])
        items[:] = [item for item in items if not item.get_closest_marker("soak")]
