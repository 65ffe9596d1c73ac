"""Show the progress of work in steps on stderr: a bar on a terminal, a line now and then elsewhere.

steps = Steps()
with steps.step("Making events") as step:
    step.tell(3, 60)
    step.now("Writing the page")
steps.note("250,000 events")
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.progress import TaskID

    from kafka_dt.pipeline.demo import Step

PLAIN_INTERVAL_S: Final = 5.0
"""How often progress is told where there is no terminal."""


class Steps:
    """Tells how far the work is.

    Args:
        console: where to; None = stderr.
        monotonic: a clock in seconds.
    """

    def __init__(self, console: Console | None = None, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        self._monotonic = monotonic

    def note(self, line: str) -> None:
        """Write a line for people."""
        self._console.print(line, soft_wrap=True, markup=False)

    @contextmanager
    def step(self, title: str) -> Iterator[Step]:
        """Show a step during a block."""
        if not self._console.is_terminal:
            yield _Lines(self.note, title, self._monotonic)
            return
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[done]}"),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=self._console, transient=True, refresh_per_second=4) as progress:
            yield _Bar(progress, progress.add_task(title, total=None, done=""))


class _Bar:
    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task

    def tell(self, done: int, of: int | None) -> None:
        self._progress.update(self._task, completed=done, total=of, done=_words(done, of))

    def now(self, title: str) -> None:
        self._progress.update(self._task, description=title)


class _Lines:
    def __init__(self, note: Callable[[str], None], title: str, monotonic: Callable[[], float]) -> None:
        self._note = note
        self._title = title
        self._monotonic = monotonic
        self._told_s = monotonic()

    def tell(self, done: int, of: int | None) -> None:
        self._if_due(f"{self._title}: {_words(done, of)}")

    def now(self, title: str) -> None:
        self._title = title
        self._if_due(title)

    def _if_due(self, line: str) -> None:
        """Write a line if the last one is some seconds old."""
        now_s = self._monotonic()
        if now_s - self._told_s >= PLAIN_INTERVAL_S:
            self._told_s = now_s
            self._note(line)


def _words(done: int, of: int | None) -> str:
    return f"{done:,}" if of is None else f"{done:,} of {of:,}"
