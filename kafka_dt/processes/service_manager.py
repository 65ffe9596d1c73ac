"""Tell systemd, or another program that starts a node as systemd does, that the node is ready, alive or stopping.

    manager = ServiceManager(os.environ)
    async with manager.beating():      # WATCHDOG=1, twice in the time that the unit's WatchdogSec gives
        manager.tell("READY=1")
        ...
        manager.tell("STOPPING=1")

Each message is one datagram to the socket that NOTIFY_SOCKET names. Without this variable nothing is sent. The beats
come from the event loop of the process: they end when it hangs.

Source: sd_notify(3), sd_watchdog_enabled(3); docs/how-to/systemd.md.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

_LOG = logging.getLogger(__name__)

PATIENCE_S: Final = 1.0
"""How long a message waits for room in the manager's queue; the loop waits with it."""
_ABSTRACT: Final = "@"
"""Stands in NOTIFY_SOCKET for the NUL with which the name of an abstract socket begins."""


class ServiceManager:
    """The program that has started this process.

    environment: the variables of this process
    """

    def __init__(self, environment: Mapping[str, str] = MappingProxyType({})) -> None:
        address = environment.get("NOTIFY_SOCKET", "")
        self._address = address.replace(_ABSTRACT, "\0", 1) if address.startswith(_ABSTRACT) else address
        is_ours = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        self._beat_s = int(environment.get("WATCHDOG_USEC", "0")) / 2_000_000 if is_ours else 0.0

    def tell(self, *assignments: str) -> None:
        """Send assignments such as `READY=1`; a manager that does not hear them is logged."""
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
                sock.settimeout(PATIENCE_S)
                sock.sendto("\n".join(assignments).encode(), self._address)
        except OSError as error:
            _LOG.warning("The service manager does not hear %s: %s", assignments[0], error)

    @asynccontextmanager
    async def beating(self) -> AsyncIterator[None]:
        """Beat during the block, if the manager waits for beats."""
        beats = asyncio.create_task(self._beat())
        try:
            yield
        finally:
            beats.cancel()

    async def _beat(self) -> None:
        while self._beat_s:
            self.tell("WATCHDOG=1")
            await asyncio.sleep(self._beat_s)
