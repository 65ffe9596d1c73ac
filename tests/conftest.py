"""What holds for all tests."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says something about the machine, not about the code.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With several processes a directory's tests run in one of them: they share servers that take long to start."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group(item.path.parent.name))
