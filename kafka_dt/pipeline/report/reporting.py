"""Makes a whole report of a table: the page, the JSON and the Parquet output.

    made = report(engine, Table("/data/audit"), Path("/reports/today"), ReportSettings(), progress=print, now=now)
    made.page    # /reports/today/report.html

The page comes last; an earlier one stays until then. Page and JSON are written on the driver's machine, each whole or
not at all, and for their owner only: they tell which token is used where. So is the Parquet output, which may be
elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from kafka_dt.files import replace_file
from kafka_dt.pipeline.errors import NoTable, OutputNotShared, ReportFailed
from kafka_dt.pipeline.report.analysis import Analysis, ReportSettings
from kafka_dt.pipeline.report.contents import as_json
from kafka_dt.pipeline.report.page import html
from kafka_dt.pipeline.report.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from kafka_dt.pipeline.engines import Engine
    from kafka_dt.pipeline.report.contents import Contents
    from kafka_dt.pipeline.table import Table

PAGE: Final = "report.html"
DOCUMENT: Final = "report.json"
PARQUET: Final = "parquet"


@dataclass(frozen=True, slots=True)
class Made:
    """What was written, and where."""

    contents: Contents
    page: Path
    document: Path
    parquet: str
    """A URI."""


def report(
    engine: Engine,
    table: Table,
    to: Path,
    settings: ReportSettings,
    *,
    progress: Callable[[str], None],
    now: datetime,
    parquet: str | None = None,
) -> Made:
    """Make a report of a table.

    Args:
        engine: does the work.
        table: has the events.
        to: a directory of this machine, made if need be; an earlier report in it is replaced.
        settings: what the report is to say.
        progress: is called with the name of the present step.
        now: the time, in UTC.
        parquet: path or URI of the directory for the Parquet output; None: in `to`, where executors are threads of
            this process.

    Raises:
        NoTable, NoEvents, NotInTable, OutputTaken, OutputNotShared, ReportFailed: `kafka_dt.pipeline.errors` says why.
        OSError: `to` cannot be written.
    """
    to = to.resolve()
    output = output_uri(parquet, to, here=engine.runs_here)
    to.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        events, quarantined = engine.events(table), _quarantined(engine, table)
        store = Store(engine, output)
        try:
            analysis = Analysis(events, settings, store, progress)
            contents = analysis.contents(now, quarantined=quarantined, table=table.path)
        finally:
            store.clear_work()
    except (PySparkException, Py4JError) as error:
        raise ReportFailed(_reason(error)) from error
    progress("Writing the page")
    document, page = to / DOCUMENT, to / PAGE
    replace_file(document, as_json(contents))
    replace_file(page, html(contents))
    return Made(contents, page, document, store.root)


def output_uri(parquet: str | None, to: Path, *, here: bool) -> str:
    """Say where the Parquet output goes: where the caller wants it, or beside the page.

    Raises:
        OutputNotShared: it would go to a disk of this machine, and executors are elsewhere.
    """
    if parquet is not None:
        return parquet
    if not here:
        raise OutputNotShared(str(to))
    return f"file://{to / PARQUET}"


def _reason(error: PySparkException | Py4JError) -> str:
    text = error.java_exception.toString() if isinstance(error, Py4JJavaError) else error
    return str(text).partition("\n")[0]


def _quarantined(engine: Engine, table: Table) -> int:
    try:
        return engine.quarantine(table).count()
    except NoTable:
        return 0
