"""The errors of the pipeline; Spark's own errors are translated into these where an operator can act on them.

PipelineError
  SparkNotStarted       there is no Java for Spark, no directory that it can write to, or its JVM ended at once
  SailNotStarted        Sail is not installed, or the system does not let it have a network of its own
  SailFailed            Sail could not make a report, or its process has ended
  NoSource              there is nothing to ingest from at the place that was named
  NoTable               there is no table at the path
  OldTable              the table at the path is one of an earlier release
  NotConverted          a table of an earlier release cannot be converted as asked for
  SourceInUse           another ingest reads the same source into the table
  FolderInUse           another watch keeps its state in the same folder
  TableNotShared        the driver does not find the files that executors write to the table
  TableBroken           a record that the ingest keeps about itself cannot be understood
  IngestFailed          a batch could not be done; `reason` is Spark's, in one line
  WatchFailed           a batch of the watch could not be judged; `reason` is Spark's, in one line
  BulkJobFailed         work on every token failed; `reason` says why, in one line
  DuplicatedTasks       Spark is set to do work twice, which no rate allows for
  NoEvents              the table has no event up to the instant of a report
  NotInTable            nothing in the table is about the start of a blast radius
  BadNetworks           a file of networks cannot be understood
  BadSuppressions       a file of suppressed findings cannot be understood
  OutputTaken           the place of a report's Parquet output has other files
  OutputNotShared       executors on other machines cannot write where it would go
  ReportFailed          the engine could not make a report; `reason` is its own, in one line

Errors carry their fields and word themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime


NO_DIRECTORY: Final = "there is no such directory"
"""The reason of `NoSource` where the directory is missing."""


class PipelineError(Exception):
    """Base of everything that the pipeline raises on purpose."""


class SparkNotStarted(PipelineError):
    """Spark's JVM could not be started."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"Spark does not start: {reason}")
        self.reason = reason


class SailNotStarted(PipelineError):
    """Sail cannot run here."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"Sail does not start: {reason}; --engine spark needs none")
        self.reason = reason


class SailFailed(PipelineError):
    """Sail has an error, or its process has ended by itself; the table is as it was, and an earlier page stays."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the report could not be made by Sail: {reason}; --engine spark takes Spark instead")
        self.reason = reason


class NoSource(PipelineError):
    """The ingest cannot read events from the source."""

    def __init__(self, source: str, reason: str) -> None:
        super().__init__(f"{source} cannot be ingested from: {reason}")
        self.source = source
        self.reason = reason


class NoTable(PipelineError):
    """There is no table of events."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is no table of audit events; `kafka-dt pipeline ingest --table {path}` makes one")
        self.path = path


class OldTable(PipelineError):
    """The table is one of kafka-dt 0.1."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} is a table of an earlier release: `kafka-dt pipeline convert --table {path} --to DIR` makes a new "
            "one of it"
        )
        self.path = path


class NotConverted(PipelineError):
    """A table of an earlier release cannot be converted as asked for."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} cannot be converted: {reason}")
        self.path = path
        self.reason = reason


class SourceInUse(PipelineError):
    """Several ingests may write to a table, but each from a source of its own."""

    def __init__(self, path: str) -> None:
        super().__init__(f"another ingest reads this source into {path}; stop one of the two")
        self.path = path


class FolderInUse(PipelineError):
    """A watch needs a folder of its own."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is that of another watch, which is running: name another one with --to")
        self.path = path


class TableNotShared(PipelineError):
    """Executors see other files at the path of the table than the driver does."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"what executors write to {path} is not found there: "
            "name a place that all machines of the cluster share, on HDFS or a mounted file system"
        )
        self.path = path


class TableBroken(PipelineError):
    """A record that the ingest keeps about itself cannot be read."""

    def __init__(self, file: str, reason: str) -> None:
        super().__init__(f"{file} cannot be used: {reason}; put it back from a backup")
        self.file = file
        self.reason = reason


class IngestFailed(PipelineError):
    """A batch failed. Earlier batches stay in the table, and the next run continues after them."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the ingest failed: {reason}; run it again to go on where it stopped")
        self.reason = reason


class WatchFailed(PipelineError):
    """A batch of the watch could not be judged."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the watch failed: {reason}")
        self.reason = reason


class BulkJobFailed(PipelineError):
    """Work on every token failed. Changes that were made stay, and the next run does the rest."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"{reason}; run it again to go on")
        self.reason = reason


class DuplicatedTasks(PipelineError):
    """Spark is set to run tasks twice, which no rate allows for."""

    def __init__(self) -> None:
        super().__init__("spark.speculation runs slow tasks a second time: switch it off for work on tokens")


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


class BadNetworks(PipelineError):
    """A file of networks cannot be understood."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"{where}: {reason}")
        self.where = where
        self.reason = reason


class BadSuppressions(PipelineError):
    """A file of suppressed findings cannot be understood."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"{where}: {reason}")
        self.where = where
        self.reason = reason


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
