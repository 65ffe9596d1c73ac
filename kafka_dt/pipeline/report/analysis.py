"""All analyses of a table, in order: what is used by several is made once and kept on disk until the end.

    with Analysis(events, Settings()) as analysis:
        contents = analysis.contents(progress)
        analysis.write("/reports/parquet", progress)

Nothing but small aggregates and the first rows of lists is brought to the driver; the Parquet output is written where
the data are. Memory does not grow with the number of events: what is kept is kept on disk.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Final, Self

from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.storagelevel import StorageLevel

from kafka_dt.pipeline.findings import IncidentKind, Severity
from kafka_dt.pipeline.report import collecting
from kafka_dt.pipeline.report.activity import activity, by_type, logins_by_mechanism, refusals_by_reason
from kafka_dt.pipeline.report.alive import Role, alive_over_time
from kafka_dt.pipeline.report.attention import expiring_in_use, never_used, past_half
from kafka_dt.pipeline.report.blast import DEFAULT_STEPS, Start, blast_radius, reachable_logins
from kafka_dt.pipeline.report.conditions import until
from kafka_dt.pipeline.report.contents import Blast, Contents, Lines
from kafka_dt.pipeline.report.errors import NoEvents, NotInTable
from kafka_dt.pipeline.report.lives import alive_at, token_lives
from kafka_dt.pipeline.report.signs import Thresholds, signs_of_theft
from kafka_dt.pipeline.report.signs.rows import collected, most_urgent_first
from kafka_dt.pipeline.report.timeline import Timeline
from kafka_dt.pipeline.report.usage import logins_by_place

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from pyspark.sql import DataFrame

    Progress = Callable[[str], None]
    """Hears what is worked on now."""

FINDINGS: Final = 500
"""How many findings are brought to the driver."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a report is to say."""

    at: datetime | None = None
    """The instant for which it holds; None: the newest event."""
    lines: Lines = field(default_factory=Lines)
    thresholds: Thresholds = field(default_factory=Thresholds)
    start: Start | None = None
    """Where a blast radius begins; None: without one."""
    steps: int = DEFAULT_STEPS
    """How far it goes."""


class Analysis:
    """The analyses of some events.

    Args:
        events: of the table.
        settings: what is asked for.

    Raises:
        NoEvents: there is none up to the instant of the report.
    """

    def __init__(self, events: DataFrame, settings: Settings) -> None:
        self._settings = settings
        self._kept: list[DataFrame] = []
        first, last = _span(events, settings.at)
        self.since = first
        self.at = settings.at or last
        self.timeline = Timeline.over(first, self.at)
        self._events = until(events, self.at)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for frame in self._kept:
            frame.unpersist()

    @cached_property
    def usage(self) -> DataFrame:
        """Logins by token, address and client."""
        return self._keep(logins_by_place(self._events))

    @cached_property
    def lives(self) -> DataFrame:
        """One row a token."""
        return self._keep(token_lives(self._events, self.usage))

    @cached_property
    def counted(self) -> DataFrame:
        """Events by step, type, outcome, mechanism and reason."""
        return self._keep(activity(self._events, self.timeline))

    @cached_property
    def findings(self) -> DataFrame:
        """The signs of theft."""
        return self._keep(signs_of_theft(self._events, self.usage, self.lives, self._settings.thresholds))

    @cached_property
    def radius(self) -> DataFrame | None:
        """The blast radius, if one is asked for."""
        if self._settings.start is None:
            return None
        return self._keep(blast_radius(self.lives, self.usage, self._settings.start, self._settings.steps, self._keep))

    @cached_property
    def lists(self) -> Mapping[str, DataFrame]:
        """Tokens that somebody should look at, by name."""
        lines = self._settings.lines
        return {
            "expiring_in_use": expiring_in_use(self.lives, self.at, lines.expiring_within, lines.used_within),
            "never_used": never_used(self.lives, self.at, lines.unused_for),
            "past_half": past_half(self.lives, self.at),
        }

    def contents(self, progress: Progress, now: datetime, *, quarantined: int = 0, table: str = "") -> Contents:
        """Bring to the driver what the page says.

        Args:
            progress: hears what is worked on.
            now: when the report is made.
            quarantined: how many lines are no events.
            table: where the events are.

        Raises:
            NotInTable: nothing is about the start of the blast radius.
        """
        progress("Counting events")
        activities = collecting.activities(by_type(self.counted))
        logins = collecting.activity_series(logins_by_mechanism(self.counted), self.timeline)
        refusals = collecting.activity_series(refusals_by_reason(self.counted), self.timeline)
        progress("Following logins and tokens")
        tokens = self.lives.count()
        alive_now = self.lives.where(alive_at(self.at)).count()
        progress("Counting living tokens")
        alive = {
            role.value: collecting.alive_series(alive_over_time(self.lives, role, self.timeline), self.timeline)
            for role in Role
        }
        lists = self.lists
        expiring = collecting.listing(lists["expiring_in_use"], F.asc("ended_at"))
        unused = collecting.listing(lists["never_used"], F.asc("created_at"))
        old = collecting.listing(lists["past_half"], F.desc("lived"))
        progress("Looking for signs of theft")
        findings = collected(most_urgent_first(self.findings, FINDINGS))
        counts = self.findings.groupBy("kind", "severity").agg(F.count("*").alias("count"))
        finding_counts = {
            (IncidentKind(row["kind"]), Severity(row["severity"])): row["count"] for row in collecting.rows_of(counts)
        }
        return Contents(
            at=self.at,
            since=self.since,
            events=sum(each.events for each in activities),
            activity=activities,
            quarantined=quarantined,
            tokens=tokens,
            alive_now=alive_now,
            alive=alive,
            logins=logins,
            refusals=refusals,
            expiring=expiring,
            never_used=unused,
            past_half=old,
            findings=findings,
            finding_counts=finding_counts,
            lines=self._settings.lines,
            thresholds={name: str(value) for name, value in asdict(self._settings.thresholds).items()},
            blast=self._blast(progress),
            table=table,
            generated_at=now,
        )

    def write(self, path: str, progress: Progress) -> None:
        """Write every analysis, whole, as Parquet: a folder each below `path`; what was there before is replaced."""
        for name, frame in self._frames().items():
            progress(f"Writing {name}")
            frame.write.mode("overwrite").parquet(f"{path}/{name}")

    def _frames(self) -> Mapping[str, DataFrame]:
        frames = {
            "tokens": self.lives,
            "usage": self.usage,
            **{f"alive_by_{role}": self._dated(alive_over_time(self.lives, role, self.timeline)) for role in Role},
            "logins_by_mechanism": self._dated(logins_by_mechanism(self.counted)),
            "refusals_by_reason": self._dated(refusals_by_reason(self.counted)),
            **self.lists,
            "findings": self.findings,
        }
        if self.radius is not None:
            frames |= {"blast_radius": self.radius, "reachable_logins": reachable_logins(self.usage, self.radius)}
        return frames

    def _dated(self, frame: DataFrame) -> DataFrame:
        """Say instants instead of their numbers."""
        number = "instant" if "instant" in frame.columns else "step"
        return frame.withColumn("instant", self.timeline.instant_of(F.col(number))).drop("step")

    def _blast(self, progress: Progress) -> Blast | None:
        start = self._settings.start
        if start is None or self.radius is None:
            return None
        progress("Following the blast radius")
        found = collecting.blast(self.radius, reachable_logins(self.usage, self.radius), start, self._settings.steps)
        if not found.counts:
            raise NotInTable(start.node)
        return found

    def _keep(self, frame: DataFrame) -> DataFrame:
        self._kept.append(frame.persist(StorageLevel.DISK_ONLY))
        return frame


def _span(events: DataFrame, at: datetime | None) -> tuple[datetime, datetime]:
    """Find the first and the last event; only the first and the last day are read."""
    concerned = events if at is None else until(events, at)
    (days,) = concerned.agg(F.min("date").alias("first"), F.max("date").alias("last")).collect()
    if days["first"] is None:
        raise NoEvents(at)
    ends = concerned.where(F.col("date").isin([days["first"], days["last"]])).agg(
        F.unix_millis(F.min("time")).alias("first"), F.unix_millis(F.max("time")).alias("last")
    )
    ((first, last),) = ends.collect()
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return epoch + timedelta(milliseconds=first), epoch + timedelta(milliseconds=last)
