"""Wait beside the event loop for work that may block forever, such as that on a folder of a server that is away.

    due = await in_own_thread(files.tend, "audit files")

The threads of `asyncio.to_thread` are waited for at the end of a process. So each piece of work has a daemon thread of
its own: a process ends although it hangs.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

_T = TypeVar("_T")


async def in_own_thread(work: Callable[[], _T], name: str) -> _T:
    """Return what work returns, or raise what it raises; a cancelled wait leaves the work behind.

    Args:
        work: is called in the thread.
        name: the thread's.
    """
    outcome: Future[_T] = Future()

    def run() -> None:
        outcome.set_running_or_notify_cancel()
        try:
            result = work()
        except Exception as error:  # noqa: BLE001 - the task that waits gets it
            outcome.set_exception(error)
        else:
            outcome.set_result(result)

    threading.Thread(target=run, name=name, daemon=True).start()
    return await asyncio.wrap_future(outcome)
