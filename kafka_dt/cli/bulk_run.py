"""Runs work on all tokens from the command line: progress on stderr, the summary on stdout, Ctrl-C ends it in order.

    run = BulkRun("Sealing")
    asyncio.run(run.on_zookeeper(settings, Seal(keyring, token_bytes)))
    run.write_summary(output)
    run.exit()

The first Ctrl-C (or SIGTERM) ends the run after the batches under way, the next one at once; either way the summary
tells what was done so far.

The table has each command's own words. The JSON is stable: `changed`, `unchanged`, `gone`, `failed`, `total` (how many
tokens there are, done or not), `failures`, `dryRun`, `interrupted`, `seconds`, and what a command adds.

Exit status: 0; 1 when anything failed, with one line on stderr; 130 when it was interrupted.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from kafka_dt.bulk import Summary, ZnodeResult, process, token_ids
from kafka_dt.cli import INTERRUPTED
from kafka_dt.cli.node_options import connected, now_ms, tell_if_no_token_was_made
from kafka_dt.cli.output import Output, counted, printable, rate, write_json
from kafka_dt.cli.progress import Steps

if TYPE_CHECKING:
    from collections.abc import Awaitable, Coroutine, Iterator

    from kafka_dt.bulk import Report, Result, Task
    from kafka_dt.config import Settings
    from kafka_dt.zookeeper.connection.client import ZooKeeperClient

WORDS: Final[Mapping[ZnodeResult, str]] = {outcome: outcome.value for outcome in ZnodeResult}
VERIFIED: Final = {ZnodeResult.UNCHANGED: "valid", ZnodeResult.GONE: "gone", ZnodeResult.FAILED: "failed"}
"""The words of commands that only check."""


class BulkRun:
    """One command's work: its title for the progress ("Sealing"), and the words for the rows of its table."""

    def __init__(
        self,
        title: str,
        *,
        dry_run: bool = False,
        words: Mapping[ZnodeResult, str] = WORDS,
        would: str = "would change",
    ) -> None:
        self._title = title
        self.dry_run = dry_run
        self._words = {**words, ZnodeResult.CHANGED: would} if dry_run else words
        self._total = 0
        self._steps = Steps()
        self._stop: asyncio.Event | None = None
        self._seconds = 0.0
        self._advance: Callable[[], None] = lambda: None
        self.summary = Summary()
        self.interrupted = False

    def do(self, work: Coroutine[Any, Any, None], output: Output) -> NoReturn:
        """Do the work (`on_zookeeper` or `through`, at last), print the summary, and end the process."""
        try:
            asyncio.run(work)
        finally:
            if self._stop is not None:  # it came so far that the summary tells something
                self.write(output)
        self.exit()

    def write(self, output: Output) -> None:
        """Print what was done."""
        self.write_summary(output)

    async def on_zookeeper(
        self,
        settings: Settings,
        task: Task,
        *,
        names: Sequence[str] | None = None,
        before: Callable[[ZooKeeperClient], Awaitable[None]] | None = None,
        heard: Report | None = None,
    ) -> None:
        """Have a task work on token znodes, after `before` on the same connection; `heard` hears the results, too.

        names: token ids; None = every token

        Raises:
            ConfigError: the settings cannot be used.
            ZooKeeperError: the work could not be brought to its end; the summary tells how far it came.
        """
        async with connected(settings) as client:
            if before is not None:
                await before(client)
            await tell_if_no_token_was_made(client, settings.zookeeper_connect)
            meant = await token_ids(client) if names is None else names

            async def work(stop: asyncio.Event, report: Report) -> None:
                if meant:  # without any, not even the znode below which changes are told is made
                    await process(client, meant, task, report=report, now_ms=now_ms, dry_run=self.dry_run, stop=stop)

            await self.through(len(meant), work, heard=heard)

    async def through(
        self,
        total: int,
        work: Callable[[asyncio.Event, Report], Awaitable[None]],
        *,
        heard: Report | None = None,
    ) -> None:
        """Do work on so many tokens, with progress and Ctrl-C.

        work: it gets the event that stops it, and the callback for its results
        """
        stop = self._stop = asyncio.Event()
        self._total = total
        begun_s = time.monotonic()
        with self._steps.step(self._title, total) as step, _signals_to(self._interrupt):
            self._advance = lambda: step.tell(self.summary.total, total)

            def report(results: Sequence[Result]) -> None:
                self.summary.add(results)
                if heard is not None:
                    heard(results)
                self._advance()

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
        self._advance()

    def tell(self, line: str) -> None:
        """Write a line for people, to stderr."""
        self._steps.note(line)

    def write_summary(
        self,
        output: Output,
        more: Mapping[str, object] | None = None,
        lines: Sequence[str] = (),
        apart: Mapping[str, int] | None = None,
    ) -> None:
        """Print what was done, with more fields of the JSON, and more lines at the top of the table.

        apart: counts that have rows of their own in the table and are among the unchanged ones in the JSON
        """
        summary, failures = self.summary, self.summary.failures
        if output is Output.JSON:
            write_json(
                {
                    **{outcome.value: summary.counts[outcome] for outcome in ZnodeResult},
                    "total": self._total,
                    "failures": [
                        {"reason": reason, "count": failed.count, "tokenIds": failed.token_ids}
                        for reason, failed in failures.items()
                    ],
                    "dryRun": self.dry_run,
                    "interrupted": self.interrupted,
                    "seconds": round(self._seconds, 3),
                    **(more or {}),
                }
            )
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
            named = ", ".join(map(printable, failed.token_ids))
            click.echo(f"  {failed.count} x {reason}: {named}{', ...' if failed.count > len(failed.token_ids) else ''}")
        click.echo(f"{counted(summary.total, 'token')} in {self._seconds:.1f} s{rate(summary.total, self._seconds)}")

    def exit(self) -> NoReturn:
        """End the process as the work has ended."""
        if self.summary.failed:
            self.tell(f"Failed: {counted(self.summary.failed, 'token')} of {self._total:,}")
        if self.interrupted:
            sys.exit(INTERRUPTED)
        sys.exit(1 if self.summary.failed else 0)

    def _interrupt(self, task: asyncio.Task[Any] | None) -> None:
        if self.interrupted:
            if task is not None:
                task.cancel()
        elif self._stop is not None:
            self.interrupted = True
            self._stop.set()
            self.tell("Ending after what is under way; once more to end at once")


@contextmanager
def _signals_to(interrupt: Callable[[asyncio.Task[Any] | None], None]) -> Iterator[None]:
    """Have Ctrl-C and SIGTERM call `interrupt`, where this is the main thread."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
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
