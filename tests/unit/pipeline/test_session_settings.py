"""Test the Spark settings that hold where none is given."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kafka_dt.pipeline import session
from kafka_dt.pipeline.errors import SparkNotStarted


@pytest.fixture
def java_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "jdk"
    (home / "bin").mkdir(parents=True)
    java = home / "bin" / "java"
    java.touch(mode=0o755)
    monkeypatch.setenv("JAVA_HOME", str(home))
    # Set for executors on this machine; put back at the end.
    monkeypatch.setenv("PYSPARK_PYTHON", "python")
    return home


def settings(
    tmp_path: Path,
    master: str | None = None,
    packages: Sequence[str] = (),
    *,
    once: bool = False,
    small: bool = False,
    **conf: str,
) -> dict[str, Any]:
    given = {key.replace("_", "."): value for key, value in conf.items()}
    return session._settings("ingest", master, given, tmp_path, packages, once=once, small=small)


@pytest.mark.usefixtures("java_home")
def test_on_one_machine_it_is_reached_from_nowhere_else(tmp_path: Path) -> None:
    found = settings(tmp_path)
    assert found["spark.master"] == "local[*]"
    assert found["spark.driver.host"] == found["spark.driver.bindAddress"] == "127.0.0.1"
    assert found["spark.ui.enabled"] == "false"
    assert found["spark.app.name"] == "kafka-dt ingest"


@pytest.mark.usefixtures("java_home")
def test_executors_elsewhere_reach_the_driver_by_its_own_name(tmp_path: Path) -> None:
    assert "spark.driver.host" not in settings(tmp_path, "spark://192.0.2.1:7077")


@pytest.mark.usefixtures("java_home")
def test_what_is_given_wins_and_java_options_are_added_to(tmp_path: Path) -> None:
    found = settings(tmp_path, spark_ui_enabled="true", spark_driver_extraJavaOptions="-Xss4m")
    assert found["spark.ui.enabled"] == "true"
    quiet, more = found["spark.driver.extraJavaOptions"].split()
    assert (quiet.partition("=")[0], more) == ("-Dlog4j2.configurationFile", "-Xss4m")


@pytest.mark.usefixtures("java_home")
def test_queries_that_are_run_once_are_compiled_once_on_one_machine_and_as_usual_on_a_cluster(tmp_path: Path) -> None:
    once = settings(tmp_path, once=True, spark_sql_shuffle_partitions="9", spark_driver_extraJavaOptions="-Xss4m")
    assert once["spark.sql.adaptive.enabled"] == "false"
    assert once["spark.sql.shuffle.partitions"] == "9"
    first, *_, last = once["spark.driver.extraJavaOptions"].split()
    assert (first, last) == ("-XX:TieredStopAtLevel=1", "-Xss4m")
    for usual in (settings(tmp_path), settings(tmp_path, "yarn", once=True)):
        assert "spark.sql.adaptive.enabled" not in usual
        assert "TieredStopAtLevel" not in usual["spark.driver.extraJavaOptions"]


@pytest.mark.usefixtures("java_home")
@pytest.mark.parametrize(
    "name", ["spark_driver_extraJavaOptions", "spark_driver_defaultJavaOptions", "JAVA_TOOL_OPTIONS"]
)
@pytest.mark.parametrize(("once", "collector"), [(True, "UseParallelGC"), (False, "UseSerialGC")])
def test_a_garbage_collector_that_the_user_has_chosen_is_the_only_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, once: bool, collector: str
) -> None:
    own = settings(tmp_path, once=once, small=not once)
    assert f"-XX:+{collector}" in own["spark.driver.extraJavaOptions"].split()
    chosen = "-Xss4m -XX:+UseG1GC"
    if name == "JAVA_TOOL_OPTIONS":
        monkeypatch.setenv(name, chosen)
        given = settings(tmp_path, once=once, small=not once)
    else:
        given = settings(tmp_path, once=once, small=not once, **{name: chosen})
    assert collector not in given["spark.driver.extraJavaOptions"]


@pytest.mark.usefixtures("java_home")
def test_a_cluster_chooses_its_own_garbage_collector(tmp_path: Path) -> None:
    assert "-XX:+Use" not in settings(tmp_path, "yarn", small=True)["spark.driver.extraJavaOptions"]


@pytest.mark.usefixtures("java_home")
def test_jars_are_fetched_unless_somebody_has_them(tmp_path: Path) -> None:
    assert "spark.jars.packages" not in settings(tmp_path)
    wanted = (session.DELTA_PACKAGE, session.KAFKA_PACKAGE)
    fetched = settings(tmp_path, packages=wanted)
    assert fetched["spark.jars.packages"] == (
        "io.delta:delta-spark_2.13:4.0.0,org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0"
    )
    assert "ibiblio" in Path(fetched["spark.jars.ivySettings"]).read_text()
    assert "spark.jars.packages" not in settings(tmp_path, packages=wanted, spark_jars="kafka.jar,delta.jar")


def test_without_a_java_it_says_what_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkNotStarted, match=r"^Spark does not start: there is no java; it needs Java 17 or newer"):
        settings(tmp_path)


@pytest.mark.usefixtures("java_home")
def test_where_spark_cannot_make_its_directory_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/proc")  # not even root makes one there
    with pytest.raises(SparkNotStarted, match=r"makes a directory where it is started, and /proc cannot be written"):
        settings(tmp_path)


@pytest.mark.parametrize(
    ("master", "local"),
    [("local", True), ("local[4]", True), ("local[*]", True), ("local-cluster[1,1,512]", False), ("yarn", False)],
)
def test_executors_are_threads_of_a_local_master_alone(master: str, *, local: bool) -> None:
    assert session.is_local(master) is local


@pytest.mark.usefixtures("java_home")
def test_what_spark_makes_is_for_its_owner_alone_unless_a_setting_opens_it(tmp_path: Path) -> None:
    assert settings(tmp_path)[session.UMASK] == "077"
    given = session._settings("ingest", None, {session.UMASK: "027"}, tmp_path, (), once=False, small=False)
    assert given[session.UMASK] == "027"


@pytest.mark.parametrize(("text", "mode"), [("077", 0o700), ("027", 0o750), ("022", 0o755), ("u=rwx,g=,o=", 0o700)])
def test_the_jvm_is_started_with_hadoops_umask_and_this_process_keeps_its_own(
    tmp_path: Path, text: str, mode: int
) -> None:
    before = os.umask(0o022)
    try:
        with session._umask(text):
            (tmp_path / "made").mkdir()
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(before)
    assert (tmp_path / "made").stat().st_mode & 0o777 == mode


def test_what_the_jvm_prints_leaves_the_output_of_a_command_alone(java_home: Path) -> None:
    # The first Java that Spark's script starts prints the command of the second one, and the script's exit status.
    second = r"""printf '\0\n%s\0%s\0%d\0' "$0" spark 0"""
    script = f'#!/bin/sh\ncase "$*" in *launcher.Main*) {second} ;; *) echo :: loading settings; exit 1 ;; esac\n'
    (java_home / "bin" / "java").write_text(script)
    program = "import kafka_dt.pipeline.session as s\nwith s.spark_session('report'): pass"
    ended = subprocess.run([sys.executable, "-c", program], cwd=java_home, capture_output=True, text=True, check=False)
    assert "its JVM ended at once" in ended.stderr
    assert ":: loading settings" in ended.stderr
    assert ended.stdout == ""
