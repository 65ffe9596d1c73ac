"""The errors of a report, beside those of `kafka_dt.pipeline.errors`.

PipelineError
  NoEvents              the table has no event up to the instant of the report
  NotInTable            nothing in the table is about the start of a blast radius
  OutputTaken           the place of the Parquet output has other files
  OutputNotShared       executors on other machines cannot write where it would go
  ReportFailed          Spark could not do it; `reason` is its own, in one line
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_dt.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime


class NoEvents(PipelineError):
    """There is nothing to report."""

    def __init__(self, at: datetime | None) -> None:
        until = f" until {at.isoformat()}" if at else ""
        super().__init__(f"the table has no event{until}; `kafka-dt pipeline ingest` brings some")
        self.at = at


class NotInTable(PipelineError):
    """The start of a blast radius is unknown."""

    def __init__(self, start: str) -> None:
        super().__init__(
            f"nothing in the table is about {start!r}: owners are written like User:alice, addresses as nodes see them"
        )
        self.start = start


class OutputTaken(PipelineError):
    """The report would replace files that are not an earlier report."""

    def __init__(self, root: str, names: Sequence[str]) -> None:
        super().__init__(
            f"{root} has {', '.join(names)}, which no report has made and this one would replace: "
            "name another place with --parquet"
        )
        self.root = root
        self.names = names


class OutputNotShared(PipelineError):
    """Executors would write to disks of their own, so the report would miss their output and be empty."""

    def __init__(self, to: str) -> None:
        super().__init__(
            f"executors on other machines cannot write to {to} of this one: "
            "name a place that they share with --parquet, such as hdfs:///reports/today"
        )
        self.to = to


class ReportFailed(PipelineError):
    """Spark stopped; the table is as it was, and an earlier page stays."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"the report could not be made: {reason}; if an ingest took files away meanwhile, run it again"
        )
        self.reason = reason
