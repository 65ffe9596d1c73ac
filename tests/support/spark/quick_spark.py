"""Settings of a Spark that runs each query once, over a handful of rows: compiling it would cost more than it saves.

    settings = QUICK_SPARK | {"spark.driver.memory": "768m"}
    command = [PROGRAM, "pipeline", "ingest", *options(QUICK_SPARK)]

Half of what a small program costs its JVM is reading Spark's classes out of the jars and checking them. `keep_classes`
has a JVM write down what it has read, once for a Java and a pyspark; all JVMs that start with `QUICK_JVM` take it from
that file. A JVM that cannot use the file, or finds none, goes on without it.

Source: Spark's `SQLConf` (WHOLESTAGE_CODEGEN_ENABLED, CODEGEN_FACTORY_MODE); JEP 350, "Dynamic CDS Archives"; the JDK's
`ProcessImpl` (jdk.lang.Process.launchMechanism).
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from tests.support.java.class_archive import archive_folder, using, write_archive
from tests.support.java.jvm import QUICK_START, Java

ROOM_FOR_CODE: Final = "-XX:ReservedCodeCacheSize=240m"
"""A JVM that compiles no more than once has room for 48 MB of code, which all the tests in one Spark fill within two
minutes; from then on it throws away what it has compiled, and compiles it again."""

FORKS: Final = "-Djdk.lang.Process.launchMechanism=VFORK"
"""Hadoop runs `chmod` and `readlink` for the files that it makes: some seventy times for each batch of an ingest. By
default the JVM starts a helper for each, which then starts the program."""

CLASSES_TIMEOUT_S: Final = 150.0
"""Where writing the classes takes longer, the machine has no time for it, and tests start without them."""


def kept_classes() -> Path | None:
    """Where the classes of Spark are, or would be; None without a Java or without pyspark."""
    home, spark = os.environ.get("JAVA_HOME"), importlib.util.find_spec("pyspark")
    found = Path(home) / "bin" / "java" if home else Path(shutil.which("java") or "")
    if spark is None or spark.origin is None or not found.is_file():
        return None
    java = found.resolve()
    package = Path(spark.origin).resolve()
    known_by = (java, java.stat().st_mtime_ns, package, importlib.metadata.version("pyspark"))
    name = hashlib.sha256(repr(known_by).encode()).hexdigest()[:16]
    return archive_folder() / f"spark-{name}.jsa"


def keep_classes(java: Java) -> None:
    """Have a JVM of Spark write down its classes, unless one has done it before."""
    file = kept_classes()
    if file is None:
        return
    environment = {**os.environ, "JAVA_HOME": str(java.executable.resolve().parent.parent)}

    def run(option: str) -> None:
        # It ends after the JVM, which writes the file at its end.
        command = [sys.executable, "-m", "tests.support.spark.classes", option]
        subprocess.run(command, env=environment, capture_output=True, timeout=CLASSES_TIMEOUT_S, check=True)

    with suppress(subprocess.TimeoutExpired):
        write_archive(file, run)


def _jvm() -> str:
    """The options of a JVM; of the file that it cannot use it would complain on its standard output."""
    kept = kept_classes()
    shared = () if kept is None else using(kept)
    return " ".join((*QUICK_START, ROOM_FOR_CODE, FORKS, *shared))


QUICK_JVM: Final = _jvm()
INTERPRETED: Final = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
QUICK_SPARK: Final = {
    **INTERPRETED,
    # It plans a query again after each shuffle; of a handful of rows nothing is to be learned.
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": QUICK_JVM,
}


def options(settings: Mapping[str, str]) -> list[str]:
    """The options of `kafka-dt pipeline` for settings of Spark."""
    return [f"--conf={key}={value}" for key, value in settings.items()]
