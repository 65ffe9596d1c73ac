"""Starts Spark: on this machine, on a cluster, or as what `spark-submit` has set up.

    with spark_session("ingest", master="local[*]") as spark:
        ...

On one machine it listens on 127.0.0.1 only, has no web page and says nothing but errors; `conf` wins over all of that.
Under `spark-submit` only Delta's classes, the time zone and the form of files are set. Everywhere the session's time
zone is UTC, as the days of the table are.

With `delta=True` sessions read and write Delta tables, with `kafka=True` they have Spark's Kafka source. The jars of
both come from `spark.jars` or `spark.jars.packages` in `conf`, or are resolved from Maven Central, once: afterwards
they are in the cache of Ivy (`spark.jars.ivy`). A mirror or a proxy is an Ivy settings file in
`spark.jars.ivySettings`.

Files that Spark makes are for their owner alone, because they tell which token is used where;
`spark.hadoop.fs.permissions.umask-mode` opens them to a group. Executors that are other processes are given this
package as a file. What it imports has to be installed there for jobs that run Python on executors: generate, seal,
verify and the like; ingest and report run none there.

Limits: a process has one Spark at a time; where one runs already, that one is used, and left running.

Source: Spark 4.0, "Submitting Applications", "Python Package Management"; umask(2).
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import sys
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from zipfile import ZIP_DEFLATED, ZipFile

import pyspark
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

import kafka_dt
import kafka_dt_protocol
from kafka_dt.files import naming, replace_file
from kafka_dt.pipeline.errors import SparkNotStarted
from kafka_dt.pipeline.jvm import NEEDED, Jvm

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import ModuleType

    from kafka_dt.pipeline.ctrl_c import CtrlC

LOCAL: Final = "local[*]"
KAFKA_PACKAGE: Final = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
DELTA_PACKAGE: Final = f"io.delta:delta-spark_2.13:{importlib.metadata.version('delta-spark')}"
_DELTA: Final[Mapping[str, str]] = MappingProxyType(
    {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # The log of a table is small: Delta's 50 tasks would cost more than what they do.
        "spark.databricks.delta.snapshotPartitions": "2",
    }
)
"""What sessions with Delta Lake are started with, also by `spark-submit`."""
UMASK: Final = "spark.hadoop.fs.permissions.umask-mode"
PRIVATE: Final = "077"
"""The umask of what Spark makes, unless a setting says otherwise."""
TIME_ZONE: Final = "spark.sql.session.timeZone"

_SESSION: Final[Mapping[str, str]] = MappingProxyType(
    {
        TIME_ZONE: "UTC",
        # Spark's own choice, INT96, is unknown to others, and has no statistics by which files are passed over.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.parquet.compression.codec": "zstd",
    }
)
"""What a session has wherever it runs."""

_ONCE: Final[Mapping[str, str]] = MappingProxyType(
    {
        # Spark would plan a query anew after each of its steps, in hope of better joins; the tables here are small ones
        # that were written before, or too large for another join.
        "spark.sql.adaptive.enabled": "false",
    }
)
"""On one machine, where each query is run once."""
_PARTITIONS: Final = "spark.sql.shuffle.partitions"
_FEW_ROWS: Final[Mapping[str, str]] = MappingProxyType(
    {
        # Queries are run as they are planned: neither their stages nor their expressions become Java code.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        # Each task reads the plan of its stage, which is longer than its rows.
        _PARTITIONS: "1",
    }
)
"""What suits queries of a few rows, for which Spark takes longer to get ready than to run them."""
_ONCE_JAVA_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""Every query is new code to the JVM. Its second compiler takes longer than it saves, also for ten million events, and
without it the JVM has too little room for code unless it is told."""
_LEAST_CPU: Final = "-XX:+UseParallelGC"
"""Pauses for garbage collection harm no user of a report, so the JVM uses the collector that needs the least CPU time,
unless the user has chosen one: two are an error."""
_LEAST_MEMORY: Final = "-XX:+UseSerialGC"
"""Nor do they harm an ingest, which runs beside other programs: this collector lets the heap grow last."""
_A_COLLECTOR: Final = re.compile(r"-XX:\+Use\w+GC\b")
_JVM_ENVIRONMENT: Final = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")

_CLASSES: Final = (
    "functions",
    "org.apache.spark.sql.classic.SparkSession",
    "PythonUtils",
    "PythonSQLUtils",
    "org.apache.spark.sql.functions",
    "org.apache.spark.sql.expressions.Window",
)
"""As `pyspark.sql` names them to the JVM."""
_ARTIFACTS: Final = "artifacts"
"""Spark's directory for what sessions bring along, in the directory in which it is started."""
_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
"""In the environment of a program that `spark-submit` runs."""
_LOGGING: Final = Path(__file__).with_name("log4j2.properties")
_DRIVER_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
_IVY_SETTINGS: Final = """\
<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true"/></resolvers>
</ivysettings>
"""
"""A local Maven repository is left alone on purpose: Ivy stops at one that holds a pom without its jar."""


@contextmanager
def spark_session(
    name: str,
    *,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    delta: bool = False,
    kafka: bool = False,
    once: bool = False,
    small: bool = False,
    ctrl_c: CtrlC | None = None,
) -> Iterator[SparkSession]:
    """Give a running Spark; it is stopped at the end, unless it ran before.

    Args:
        name: of the application.
        master: where it runs; None = as submitted, otherwise on all cores of this machine.
        conf: settings of Spark, over those made here.
        delta: whether Delta tables are read or written.
        kafka: whether Spark's Kafka source is needed.
        once: whether each query is run once; on one machine Spark then spends less on making it fast, unless it was
            set up by `spark-submit`.
        small: whether memory matters more than pauses; on one machine the JVM's heap then grows as little as it can.
        ctrl_c: is given the JVM to end; None = Ctrl-C is what pyspark makes of it.

    Raises:
        SparkNotStarted: there is no Java, this directory cannot be written, or the JVM ended at once.
    """
    if (running := SparkSession.getActiveSession()) is not None:
        yield running
        return
    with tempfile.TemporaryDirectory(prefix="kafka-dt-spark-") as scratch:
        packages = [*([DELTA_PACKAGE] if delta else ()), *([KAFKA_PACKAGE] if kafka else ())]
        given = {**(_DELTA if delta else {}), **(conf or {})}
        if is_submitted():
            settings = given if master is None else {**given, "spark.master": master}
        else:
            settings = _settings(name, master, given, Path(scratch), packages, once=once, small=small)
        spark = _start(settings, Path(scratch), once=once, ctrl_c=ctrl_c)
        try:
            yield spark
        finally:
            # Where the JVM has ended, what failed for it says more than that it cannot be stopped.
            with suppress(Py4JError, OSError):
                spark.stop()


def is_submitted() -> bool:
    """Say whether this program is run by `spark-submit`."""
    return _SUBMITTED in os.environ


def is_local(master: str) -> bool:
    """Say whether the executors of a master are threads of the driver."""
    return master == "local" or master.startswith("local[")


def runs_here(spark: SparkSession) -> bool:
    """Say whether the executors of a session are threads of this process's JVM."""
    return is_local(str(spark.sparkContext.master))


def _start(settings: Mapping[str, str], scratch: Path, *, once: bool, ctrl_c: CtrlC | None) -> SparkSession:
    spark_conf = SparkConf()
    for key, value in settings.items():
        spark_conf.set(key, value)
    try:
        if not is_submitted() and not _has_jvm():
            # The JVM takes the umask over. Hadoop's own covers files of every file system, but no local directories.
            with _umask(settings.get(UMASK, PRIVATE)):
                jvm = Jvm.launch(spark_conf)
            if ctrl_c is not None:
                ctrl_c.jvm = jvm
            SparkContext(conf=spark_conf, gateway=jvm.gateway)
        else:
            SparkContext.getOrCreate(spark_conf)
        if ctrl_c is not None:
            ctrl_c.heed()
        _find_classes()
        spark = SparkSession.builder.config(map=dict(settings)).getOrCreate()
    except Py4JJavaError as error:
        raise SparkNotStarted(str(error.java_exception.getMessage()).partition("\n")[0]) from error
    for key, value in _SESSION.items():
        spark.conf.set(key, value)
    if not runs_here(spark):
        _ship(spark, scratch)
    elif once and not is_submitted() and _PARTITIONS not in settings:
        spark.conf.set(_PARTITIONS, 2 * spark.sparkContext.defaultParallelism)
    return spark


def umask(spark: SparkSession) -> int:
    """Return the umask of what a session makes; `PRIVATE` where no setting says so, also on a cluster."""
    return _octal(spark.sparkContext.getConf().get(UMASK) or PRIVATE)


@contextmanager
def for_few_rows(spark: SparkSession) -> Iterator[None]:
    """Run the queries of a block as suits a few rows, whatever is set: as they are planned, each step in one task.

    Source: Spark's `SQLConf`, WHOLESTAGE_CODEGEN_ENABLED, CODEGEN_FACTORY_MODE and SHUFFLE_PARTITIONS.
    """
    before = {name: spark.conf.get(name) for name in _FEW_ROWS}
    for setting, value in _FEW_ROWS.items():
        spark.conf.set(setting, value)
    try:
        yield
    finally:
        with suppress(Py4JError, OSError):  # the JVM may have ended
            for setting, earlier in before.items():
                spark.conf.set(setting, str(earlier))


def _find_classes() -> None:
    """Look up the classes once for which pyspark asks at each call; the JVM searches for them in all jars each time."""
    jvm = SparkContext._jvm  # noqa: SLF001 - pyspark keeps it there
    for name in _CLASSES:
        setattr(jvm, name, getattr(jvm, name))


def _octal(text: str) -> int:
    """Read an umask; Hadoop takes symbols as well, which count as the strictest here."""
    try:
        return int(text, 8) & 0o777
    except ValueError:
        return int(PRIVATE, 8)


@contextmanager
def _umask(text: str) -> Iterator[None]:
    """Start processes with an umask for a block."""
    before = os.umask(_octal(text))
    try:
        yield
    finally:
        os.umask(before)


def _has_jvm() -> bool:
    """Say whether this process has a JVM, as an earlier session leaves it."""
    return SparkContext._gateway is not None  # noqa: SLF001 - pyspark does not say it otherwise


def _settings(
    name: str,
    master: str | None,
    conf: dict[str, str],
    scratch: Path,
    packages: Sequence[str],
    *,
    once: bool,
    small: bool,
) -> dict[str, str]:
    """Give the settings that Spark is started with unless the caller gives others."""
    if not _has_java():
        raise SparkNotStarted(f"there is no java; {NEEDED}")
    _check_directory()
    master = master or conf.get("spark.master", LOCAL)
    settings = {
        "spark.app.name": f"kafka-dt {name}",
        "spark.master": master,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        TIME_ZONE: "UTC",
        UMASK: PRIVATE,
        # A record of the line that made each column doubles what it costs to make one.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
    }
    if is_local(master):
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        # The interpreter that has what this one has; Spark's own choice is the first python3 on PATH.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if packages and not conf.keys() & {"spark.jars", "spark.jars.packages"}:
        ivy_settings = scratch / "ivysettings.xml"
        replace_file(ivy_settings, _IVY_SETTINGS)
        settings |= {"spark.jars.packages": ",".join(packages), "spark.jars.ivySettings": str(ivy_settings)}
    java_options = []
    if is_local(master):
        if once:
            settings |= _ONCE
            java_options.append(_ONCE_JAVA_OPTIONS)
        if (once or small) and not _chooses_collector(conf):
            java_options.append(_LEAST_CPU if once else _LEAST_MEMORY)
    java_options += [f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}", conf.get(_DRIVER_JAVA_OPTIONS, "")]
    settings |= conf
    settings[_DRIVER_JAVA_OPTIONS] = " ".join(java_options).strip()
    return settings


def _chooses_collector(conf: Mapping[str, str]) -> bool:
    """Say whether the user has chosen a garbage collector for the JVM."""
    given = (conf.get(_DRIVER_JAVA_OPTIONS), conf.get("spark.driver.defaultJavaOptions"))
    around = (os.environ.get(name) for name in _JVM_ENVIRONMENT)
    return any(_A_COLLECTOR.search(options) for options in (*given, *around) if options)


def _check_directory() -> None:
    """See that Spark can make its directory; without it every query fails, with many words.

    Source: SPARK-52396, mended in 4.0.1.
    """
    here = Path.cwd()
    try:
        with tempfile.TemporaryDirectory(dir=here / _ARTIFACTS if (here / _ARTIFACTS).is_dir() else here):
            pass
    except OSError as error:
        reason = f"it makes a directory where it is started, and {here} cannot be written: start it elsewhere"
        raise SparkNotStarted(reason) from error


def _has_java() -> bool:
    if home := os.environ.get("JAVA_HOME"):
        return os.access(Path(home) / "bin" / "java", os.X_OK)
    return shutil.which("java") is not None


def _ship(spark: SparkSession, scratch: Path) -> None:
    """Give the executors this code, unless it came in a file that they have got already."""
    if not Path(kafka_dt.__file__).exists():
        return
    archive = scratch / "kafka_dt.zip"
    with naming(archive), ZipFile(archive, "w", ZIP_DEFLATED) as files:
        for package in (kafka_dt, kafka_dt_protocol):
            _add(files, package)
    spark.sparkContext.addPyFile(str(archive))


def _add(files: ZipFile, package: ModuleType) -> None:
    root = Path(str(package.__file__)).parent
    for path in sorted(root.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            files.write(path, path.relative_to(root.parent))
