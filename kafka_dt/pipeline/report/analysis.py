"""All analyses of a table, in order: each writes its result, and the next ones read it.

    contents = Analysis(events, ReportSettings(), Store(engine, "/reports/parquet"), progress).contents(now)

Nothing but small aggregates and the first rows of lists is brought to the driver. Neither memory nor the plans of Spark
grow with the number of events or analyses: each step reads files and writes files.
"""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.errors import NoEvents, NotInTable
from kafka_dt.pipeline.report.attention import TokenList, attention, listings
from kafka_dt.pipeline.report.blast import (
    DEFAULT_STEPS,
    Start,
    blast_radius,
    collected_blast,
    is_named,
    reachable_logins,
    with_alive,
)
from kafka_dt.pipeline.report.cases import report_cases
from kafka_dt.pipeline.report.contents import Blast, Contents, Lines
from kafka_dt.pipeline.report.deeds import deeds_by_day
from kafka_dt.pipeline.report.expressions import first_and_last, rows_of, until
from kafka_dt.pipeline.report.lives import alive_at, logins_by_place, token_lives
from kafka_dt.pipeline.report.signs import SIGNS, Observed, Signs, look_for
from kafka_dt.pipeline.report.signs.finding import collected, counts, each_of, most_urgent_first
from kafka_dt.pipeline.report.store import ParquetOutput
from kafka_dt.pipeline.report.suppressions import suppress
from kafka_dt.pipeline.report.timeline import Counted, Timeline, activity, alive_over_time, alive_series
from kafka_dt.pipeline.report.told_once import told_once
from kafka_dt.pipeline.report.zones import Zones

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.networks import Network
    from kafka_dt.pipeline.report.signs.finding import Finding, Severity
    from kafka_dt.pipeline.report.store import Store
    from kafka_dt.pipeline.report.suppressions import Suppressed, Suppression

    Progress = Callable[[str], None]
    """Is called with the name of the present step."""

_FEW_EVENTS: Final = 500_000
"""With fewer the queries of the signs are run as suits a few rows."""
FINDINGS: Final = 5_000
"""How many findings are brought to the driver."""


@dataclass(frozen=True, slots=True)
class ReportSettings:
    """What a report is to say."""

    at: datetime | None = None
    """The instant for which it holds; None: the newest event."""
    lines: Lines = field(default_factory=Lines)
    signs: Signs = SIGNS
    """The signs of theft that it looks for."""
    networks: tuple[Network, ...] = ()
    """The networks that a file names, the smallest first; zones of other addresses are learned."""
    suppressions: tuple[Suppression, ...] = ()
    """What is left out of the findings, and why."""
    start: Start | None = None
    """Where a blast radius begins; None: without one."""
    steps: int = DEFAULT_STEPS
    """How far it goes."""


class Analysis:
    """The analyses of the events of a table.

    Raises:
        NoEvents: there is none up to the instant of the report.
    """

    def __init__(self, events: DataFrame, settings: ReportSettings, store: Store, progress: Progress) -> None:
        self._settings = settings
        self._store = store
        self._progress = progress
        first, last = _span(events, settings.at)
        self._since = first
        self._at = settings.at or last
        self._timeline = Timeline.over(first, self._at)
        self._events = until(events, self._at)

    def contents(self, now: datetime, *, quarantined: int = 0, table: str = "") -> Contents:
        """Run all analyses, and bring the contents of the page to the driver.

        Args:
            now: when the report is made.
            quarantined: how many lines are no events.
            table: the path of the events, for the commands that are suggested.

        Raises:
            NotInTable: no event names the start of the blast radius.
        """
        settings, timeline = self._settings, self._timeline
        self._store.begin()
        counted = Counted(
            self._keep(ParquetOutput.ACTIVITY, "Counting events", activity(self._events, timeline)), timeline
        )
        self._progress("Following logins")
        places = self._store.work("places", logins_by_place(self._events))
        deeds = self._store.work("deeds", deeds_by_day(self._events))
        zones = Zones.learned(places, deeds, settings.networks, self._store.work)
        usage = self._keep(ParquetOutput.USAGE, "Learning zones", zones.of(places))
        lives = self._keep(ParquetOutput.TOKENS, "Following tokens", token_lives(self._events, usage))
        # Early, so that an unknown start costs the least.
        reached = self._blast(lives, usage, settings.start) if settings.start is not None else None
        alive = self._keep(ParquetOutput.ALIVE, "Counting living tokens", alive_over_time(lives, timeline))
        lists = listings(
            self._keep(ParquetOutput.ATTENTION, "Listing tokens", attention(lives, self._at, settings.lines))
        )
        types = counted.by_type()
        events = sum(each.events for each in types)
        with self._store.engine.for_few_rows() if events < _FEW_EVENTS else nullcontext():
            self._progress("Comparing principals")
            observed = Observed.of(self._events, usage, lives, deeds=deeds, zones=zones, work=self._store.work)
            found = look_for(settings.signs, observed)
            findings = self._keep(ParquetOutput.FINDINGS, "Looking for signs of theft", found)
        (numbers,) = rows_of(
            lives.agg(F.count("*").alias("tokens"), F.count(F.when(alive_at(self._at), 1)).alias("alive"))
        )
        first, suppressed = self._divided(most_urgent_first(findings), now)
        left_out = _numbers(each.finding for each in suppressed)
        once = told_once(first, settings.signs)
        return Contents(
            at=self._at,
            since=self._since,
            events=events,
            activity=types,
            quarantined=quarantined,
            tokens=numbers["tokens"],
            alive_now=numbers["alive"],
            alive=alive_series(alive, timeline),
            logins=counted.logins_by_mechanism(),
            refusals=counted.refusals_by_reason(),
            expiring=lists[TokenList.EXPIRING_IN_USE],
            never_used=lists[TokenList.NEVER_USED],
            past_half=lists[TokenList.PAST_HALF],
            findings=once,
            finding_counts=Counter(counts(findings)) - left_out - (_numbers(first) - _numbers(once)),
            suppressions=settings.suppressions,
            suppressed=suppressed,
            lines=settings.lines,
            signs=settings.signs,
            cases=report_cases(once, settings.signs, usage, table),
            blast=reached,
            silences=counted.silences(),
            table=table,
            generated_at=now,
        )

    def _divided(self, findings: DataFrame, now: datetime) -> tuple[tuple[Finding, ...], tuple[Suppressed, ...]]:
        """Give the first findings, and those that are suppressed; these take no place of others."""
        entries = self._settings.suppressions
        if not entries:
            return collected(findings.limit(FINDINGS)), ()
        return suppress(each_of(findings), entries, now, most=FINDINGS)

    def _blast(self, lives: DataFrame, usage: DataFrame, start: Start) -> Blast:
        self._progress("Following the blast radius")
        steps = self._settings.steps
        followed = blast_radius(lives, usage, start, steps, self._store.work)
        radius = self._keep(
            ParquetOutput.BLAST_RADIUS, "Following the blast radius", with_alive(followed, lives, self._at)
        )
        logins = self._keep(ParquetOutput.REACHABLE_LOGINS, "Finding reachable logins", reachable_logins(usage, radius))
        found = collected_blast(radius, logins, start, steps)
        if not found.counts and not is_named(self._events, start):
            raise NotInTable(start.node)
        return found

    def _keep(self, output: ParquetOutput, step: str, frame: DataFrame) -> DataFrame:
        self._progress(step)
        return self._store.keep(output, frame)


def _numbers(findings: Iterable[Finding]) -> Counter[tuple[str, Severity]]:
    return Counter((each.kind, each.severity) for each in findings)


def _span(events: DataFrame, at: datetime | None) -> tuple[datetime, datetime]:
    """Find the first and the last event; only the first and the last day are read."""
    concerned = events if at is None else until(events, at)
    (days,) = concerned.agg(F.min("date").alias("first"), F.max("date").alias("last")).collect()
    if days["first"] is None:
        raise NoEvents(at)
    at_ends = concerned.where(F.col("date").isin([days["first"], days["last"]]))
    (ends,) = rows_of(at_ends.agg(*first_and_last("time", "time")))
    return ends["first_seen"], ends["last_seen"]
