"""Read the settings of a running node again, and have the node take over what needs no restart.

    reloader = Reloader(running, reread=reread, check=check, change=supervisor.change)
    answer = await reloader.reload()

A file that cannot be used, or a worker that cannot use it, leaves everything as it was. One line tells the result:
names of settings, never values.

Source: docs/how-to/operate.md#change-settings-without-a-restart.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from kafka_dt.config import ConfigError, Loaded, Settings, changes, pinned
from kafka_dt.log import event, set_level
from kafka_dt.processes.changing import NotChanged
from kafka_dt.processes.control import Answer

_LOG = logging.getLogger(__name__)


class Reloader:
    """Keeps the settings that a node runs on.

    Args:
        running: what it has begun with, `pinned`.
        reread: reads what its file has now; raises ConfigError.
        check: checks settings as a start does; raises ConfigError.
        change: has all workers take over settings; raises NotChanged.
    """

    def __init__(
        self,
        running: Loaded,
        *,
        reread: Callable[[], Loaded],
        check: Callable[[Settings], object],
        change: Callable[[Mapping[str, str]], Awaitable[None]],
    ) -> None:
        self._running = running
        self._reread = reread
        self._check = check
        self._change = change
        self._turn = asyncio.Lock()

    async def reload(self) -> Answer:
        """Read the settings again; logs the result."""
        async with self._turn:
            try:
                text = await self._reload()
            except (ConfigError, NotChanged) as error:
                reason = " ".join(str(error).split())
                _LOG.error(
                    "The settings stay as they are: %s", reason, extra=event("reload", failed=True, reason=reason)
                )
                return Answer(False, f"the settings stay as they are: {reason}")
        _LOG.info("%s", text, extra=event("reload", failed=False, reason=text))
        return Answer(True, text)

    async def _reload(self) -> str:
        wanted = pinned(self._reread())
        self._check(wanted.settings)
        found = changes(self._running, wanted)
        if found.applied:
            self._check(found.settings.settings)
            await self._change(found.settings.properties)
            self._running = found.settings
            set_level(found.settings.settings.log_level)
        said = [f"Changed: {', '.join(found.applied)}"] if found.applied else []
        said += [f"To change, the node must be restarted: {', '.join(found.later)}"] if found.later else []
        return ". ".join(said) or "No setting has changed"
