"""Work that an open listener repeats on the event loop, such as looking for idle connections."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

_LOG = logging.getLogger(__name__)


class Repeated:
    """Calls a function every so many seconds, from `start` until `stop`; one call that fails does not end it."""

    def __init__(self, seconds: float, work: Callable[[], None]) -> None:
        self._seconds = seconds
        self._work = work
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Call the function for the first time when the interval has passed."""
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._run)

    def stop(self) -> None:
        """Call it no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _run(self) -> None:
        try:
            self._work()
        except Exception:  # noqa: BLE001 - the next call must come whatever this one did
            _LOG.exception("Background work of a listener failed; the node tries again in %.1f s", self._seconds)
        if self._timer is not None:
            self.start()
