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
from typing import TYPE_CHECKING, Any, Final

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from kafka_dt.cli.tables import messages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console
    from rich.progress import TaskID

PLAIN_INTERVAL_S: Final = 5.0
"""How often progress is told where there is no terminal."""


class Steps:
    """Tells how far the work is.

    Args:
        console: where to; None = stderr.
        monotonic: a clock in seconds.
    """

    def __init__(self, console: Console | None = None, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._console = console or messages(stderr=True)
        self._monotonic = monotonic

    def note(self, line: str) -> None:
        """Write a line for people."""
        self._console.print(line, soft_wrap=True)

    @contextmanager
    def step(self, title: str, total: int | None = None) -> Iterator[_Bar | _Lines]:
        """Show a step during a block; of a total it also tells the rate and the time that is left."""
        if not self._console.is_terminal:
            yield _Lines(self.note, title, self._monotonic, timed=total is not None)
            return
        done: tuple[ProgressColumn, ...] = (TextColumn("{task.fields[done]}"), TimeElapsedColumn())
        if total is not None:
            done = (MofNCompleteColumn(), _Rate(), TimeRemainingColumn())
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), *done)
        with Progress(*columns, console=self._console, transient=True, refresh_per_second=4) as progress:
            yield _Bar(progress, progress.add_task(title, total=total, done=""))


class _Bar:
    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task

    def tell(self, done: int, of: int | None) -> None:
        """Say how much is done, and of how much if that is known."""
        self._progress.update(self._task, completed=done, total=of, done=_words(done, of))

    def now(self, title: str) -> None:
        """Say what is worked on now."""
        self._progress.update(self._task, description=title)


class _Lines:
    def __init__(self, note: Callable[[str], None], title: str, monotonic: Callable[[], float], *, timed: bool) -> None:
        self._note = note
        self._title = title
        self._monotonic = monotonic
        self._timed = timed
        self._begun_s = self._told_s = monotonic()

    def tell(self, done: int, of: int | None) -> None:
        """Write how much is done if the last line is some seconds old."""
        line = f"{self._title}: {_words(done, of)}"
        spent_s = self._monotonic() - self._begun_s
        if self._timed and done and of is not None and spent_s:
            a_second = done / spent_s
            line += f", {a_second:,.0f}/s, {(of - done) / a_second:.0f} s left"
        self._if_due(line)

    def now(self, title: str) -> None:
        """Write what is worked on now if the last line is some seconds old."""
        self._title = title
        self._if_due(title)

    def _if_due(self, line: str) -> None:
        now_s = self._monotonic()
        if now_s - self._told_s >= PLAIN_INTERVAL_S:
            self._told_s = now_s
            self._note(line)


class _Rate(ProgressColumn):
    def render(self, task: Any) -> Text:
        """Write how many there were in each of the last seconds."""
        return Text(f"{task.speed:,.0f}/s" if task.speed else "-/s")


def _words(done: int, of: int | None) -> str:
    return f"{done:,}" if of is None else f"{done:,} of {of:,}"
