"""Runs work on all tokens from the command line: progress on stderr, the summary on stdout, Ctrl-C ends it in order.

    run = BulkRun("Sealing")
    asyncio.run(run.on_zookeeper(settings, Seal(keyring, token_bytes)))
    run.write_summary(output)
    run.exit()

On a terminal a bar shows rate and time left; elsewhere a line is written now and then. The first Ctrl-C (or SIGTERM)
ends the run after the batches under way, the next one at once; either way the summary tells what was done so far.

The table has each command's own words. The JSON is stable: `changed`, `unchanged`, `gone`, `failed`, `total` (how many
tokens there are, done or not), `failures`, `dryRun`, `interrupted`, `seconds`, and what a command adds.

Exit status: 0; 1 when anything failed, with one line on stderr; 130 when it was interrupted.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

from kafka_dt.bulk import Summary, ZnodeResult, process, token_ids
from kafka_dt.cli.keys.nodes import counted
from kafka_dt.cli.node_options import Output, connected, tell_if_no_token_was_made

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator

    from kafka_dt.bulk import Report, Result, Task
    from kafka_dt.config import Settings
    from kafka_dt.zookeeper.connection.client import ZooKeeperClient

INTERRUPTED: Final = 130
WORDS: Final[Mapping[ZnodeResult, str]] = {outcome: outcome.value for outcome in ZnodeResult}
PLAIN_INTERVAL_S: Final = 5.0
"""How often progress is told where there is no terminal."""


def now_ms() -> int:
    """Give the time: milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class BulkRun:
    """One command's work.

    Args:
        title: what is done, for the progress: "Sealing".
        dry_run: whether it is only found out what would be done.
        words: the rows of the table; None = WORDS.
    """

    def __init__(self, title: str, *, dry_run: bool = False, words: Mapping[ZnodeResult, str] | None = None) -> None:
        self._title = title
        self._dry_run = dry_run
        self._words = words or ({**WORDS, ZnodeResult.CHANGED: "would change"} if dry_run else WORDS)
        self._total = 0
        self._console = Console(stderr=True, highlight=False)
        self._stop: asyncio.Event | None = None
        self._seconds = 0.0
        self._advance: Callable[[int], None] = lambda _done: None
        self.summary = Summary()
        self.interrupted = False

    @property
    def begun(self) -> bool:
        """Whether it came so far that the summary tells something."""
        return self._stop is not None

    async def on_zookeeper(
        self,
        settings: Settings,
        task: Task,
        *,
        before: Callable[[ZooKeeperClient], Awaitable[None]] | None = None,
        heard: Report | None = None,
    ) -> None:
        """Have a task work on every token znode.

        Args:
            settings: of a node.
            task: what is done.
            before: what is done first, on the same connection.
            heard: hears the results, too.

        Raises:
            ConfigError: the settings cannot be used.
            ZooKeeperError: it could not be brought to its end; the summary tells how far it came.
        """
        async with connected(settings) as client:
            if before is not None:
                await before(client)
            await tell_if_no_token_was_made(client, settings.zookeeper_connect)
            names = await token_ids(client)

            async def work(stop: asyncio.Event, report: Report) -> None:
                if names:  # without any, not even the znode below which changes are told is made
                    await process(client, names, task, report=report, now_ms=now_ms, dry_run=self._dry_run, stop=stop)

            await self.through(len(names), work, heard=heard)

    async def through(
        self,
        total: int,
        work: Callable[[asyncio.Event, Report], Awaitable[None]],
        *,
        heard: Report | None = None,
    ) -> None:
        """Do work that can be stopped and tells its results, with progress and Ctrl-C.

        Args:
            total: how many tokens there are.
            work: the work; it gets the event that stops it, and the callback for its results.
            heard: hears the results, too.
        """
        stop = self._stop = asyncio.Event()
        self._total = total
        begun_s = time.monotonic()
        with self._progress(total) as self._advance, _signals_to(self._interrupt):

            def report(results: Sequence[Result]) -> None:
                self.summary.add(results)
                if heard is not None:
                    heard(results)
                self._advance(self.summary.total)

            try:
                await work(stop, report)
            except asyncio.CancelledError:
                if not self.interrupted:
                    raise
            finally:
                self._seconds = time.monotonic() - begun_s
        if self.interrupted:
            self.tell(f"Interrupted: {self.summary.total} of {total} are done; run it again to go on")

    def merge(self, summary: Summary) -> None:
        """Count what was done elsewhere, while `through` runs."""
        self.summary.merge(summary)
        self._advance(self.summary.total)

    def tell(self, line: str) -> None:
        """Write a line for people, to stderr."""
        self._console.print(line, soft_wrap=True, markup=False)

    def write_summary(
        self,
        output: Output,
        more: Mapping[str, object] | None = None,
        lines: Sequence[str] = (),
        apart: Mapping[str, int] | None = None,
    ) -> None:
        """Print what was done.

        Args:
            output: in which form.
            more: further fields of the JSON.
            lines: further lines of the table, first of all.
            apart: what has rows of its own in the table and is among the unchanged ones in the JSON.
        """
        summary, failures = self.summary, self.summary.failures
        if output is Output.JSON:
            document: dict[str, Any] = {
                **{outcome.value: summary.counts[outcome] for outcome in ZnodeResult},
                "total": self._total,
                "failures": [
                    {"reason": reason, "count": failed.count, "tokenIds": failed.token_ids}
                    for reason, failed in failures.items()
                ],
                "dryRun": self._dry_run,
                "interrupted": self.interrupted,
                "seconds": round(self._seconds, 3),
                **(more or {}),
            }
            click.echo(json.dumps(document))
            return
        for line in lines:
            click.echo(line)
        apart = apart or {}
        rows = {word: summary.counts[outcome] for outcome, word in self._words.items()}
        if ZnodeResult.UNCHANGED in self._words:
            rows[self._words[ZnodeResult.UNCHANGED]] -= sum(apart.values())
        for word, count in {**rows, **apart}.items():
            click.echo(f"{word:13} {count}")
        for reason, failed in sorted(failures.items(), key=lambda item: -item[1].count):
            named = ", ".join(map(ascii_name, failed.token_ids))
            click.echo(f"  {failed.count} x {reason}: {named}{', ...' if failed.count > len(failed.token_ids) else ''}")
        click.echo(f"{counted(summary.total, 'token')} in {self._seconds:.1f} s{_rate(summary.total, self._seconds)}")

    def exit(self) -> None:
        """End the process as the work has ended."""
        if self.summary.failed:
            self.tell(f"Failed: {counted(self.summary.failed, 'token')} of {self._total:,}")
        if self.interrupted:
            sys.exit(INTERRUPTED)
        sys.exit(1 if self.summary.failed else 0)

    def _interrupt(self, task: asyncio.Task[Any]) -> None:
        if self.interrupted:
            task.cancel()
        elif self._stop is not None:
            self.interrupted = True
            self._stop.set()
            self.tell("Ending after what is under way; once more to end at once")

    @contextmanager
    def _progress(self, total: int) -> Iterator[Callable[[int], None]]:
        if not self._console.is_terminal:
            yield _PlainProgress(self, self._title, total).advance
            return
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), _Rate(), TimeRemainingColumn())
        with Progress(*columns, console=self._console, transient=True, refresh_per_second=4) as progress:
            shown = progress.add_task(self._title, total=total)
            yield lambda done: progress.update(shown, completed=done)


class _Rate(ProgressColumn):
    """How many a second."""

    def render(self, task: Any) -> Text:
        """Write the rate of the last seconds."""
        return Text(f"{task.speed:,.0f}/s" if task.speed else "-/s")


class _PlainProgress:
    def __init__(self, run: BulkRun, title: str, total: int) -> None:
        self._run = run
        self._title = title
        self._total = total
        self._begun_s = self._told_s = time.monotonic()

    def advance(self, done: int) -> None:
        """Write a line if the last one is some seconds old."""
        now_s = time.monotonic()
        if now_s - self._told_s < PLAIN_INTERVAL_S or not done:
            return
        self._told_s = now_s
        rate = done / (now_s - self._begun_s)
        left_s = (self._total - done) / rate
        self._run.tell(f"{self._title}: {done} of {self._total}, {rate:.0f}/s, {left_s:.0f} s left")


def ascii_name(text: str) -> str:
    """Escape what could steer a terminal."""
    return text if text.isprintable() else text.encode("unicode_escape").decode("ascii")


def _rate(count: int, seconds: float) -> str:
    return f", {count / seconds:.0f}/s" if count and seconds > 0 else ""


def _signals_to(interrupt: Callable[[asyncio.Task[Any]], None]) -> AbstractContextManager[None]:
    task = asyncio.current_task()
    return nullcontext() if task is None else _signals(interrupt, task)


@contextmanager
def _signals(interrupt: Callable[[asyncio.Task[Any]], None], task: asyncio.Task[Any]) -> Iterator[None]:
    """Have Ctrl-C and SIGTERM call `interrupt`, where this is the main thread."""
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM)
    try:
        for number in numbers:
            loop.add_signal_handler(number, interrupt, task)
    except (ValueError, RuntimeError):  # another thread, as in tests
        yield
        return
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
