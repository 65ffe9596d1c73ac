"""What tests without servers may use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.support.processes.steady_time import steady_time


@pytest.fixture(name="steady_time")
async def _steady_time() -> AsyncIterator[None]:
    """Let the time of the test's loop pass only while the loop waits (tests.support.processes.steady_time.py)."""
    with steady_time(asyncio.get_running_loop()):
        yield
