"""What a JVM prints while it starts is shown only if it does not start; downloads are one line."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from kafka_dt.pipeline import jvm
from tests.support.processes.waiting import eventually

STARTS = """
echo ':: loading settings :: file = /tmp/ivysettings.xml'
echo 'Ivy Default Cache set to: /home/alice/.ivy2.5.2/cache'
echo '\tfound io.delta#delta-spark_2.13;4.0.0 in central' >&2
"""
DOWNLOADS = """
echo 'downloading https://repo1.maven.org/maven2/io/delta/delta-spark_2.13/4.0.0/delta-spark_2.13-4.0.0.jar ...'
echo 'downloading https://repo1.maven.org/maven2/io/delta/delta-storage/4.0.0/delta-storage-4.0.0.jar ...'
"""


def told_by(script: str, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """Have a process print, first while it starts; returns what is on stderr then, and what comes on it later."""
    printed = jvm._Printed()
    with printed.inlet() as inlet:
        outlet, started = os.pipe()
        # It tells that it has started by closing a pipe, as Spark does by a file.
        script = f"{script}\nexec {started}>&-; read line; echo ERROR later"
        process = subprocess.Popen(
            ["/bin/bash", "-c", script],
            stdin=subprocess.PIPE,
            stdout=inlet,
            stderr=inlet,
            pass_fds=[started],
            text=True,
        )
    os.close(started)
    assert os.read(outlet, 1) == b""
    os.close(outlet)
    printed.drop()
    at_first = capsys.readouterr().err
    process.communicate("\n")
    later: list[str] = []

    def has_come() -> bool:
        later.append(capsys.readouterr().err)
        return "later" in "".join(later)

    eventually(has_come, 10)
    return at_first, "".join(later)


def test_what_is_printed_by_the_start_is_dropped_and_what_comes_later_is_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert told_by(STARTS, capsys) == ("", "ERROR later\n")


def test_downloads_are_one_line_that_says_from_where_and_to_where(capsys: pytest.CaptureFixture[str]) -> None:
    line = "Spark's jars are not in /home/alice/.ivy2.5.2/cache; they are downloaded from https://repo1.maven.org\n"
    assert told_by(STARTS + DOWNLOADS, capsys) == (line, "ERROR later\n")


def test_jars_that_cannot_be_had_are_told_with_the_way_out() -> None:
    reason = "[unresolved dependency: io.delta#delta-spark_2.13;4.0.0: not found]"
    failed = f'Exception in thread "main" java.lang.RuntimeException: {reason}\n\tat org.apache.spark.util.MavenUtils\n'
    assert jvm._why(failed) == (
        f": {reason}; name a mirror in spark.jars.ivySettings, or the jars themselves in spark.jars"
    )
    assert jvm._why("Error: could not create the Java Virtual Machine") == f"; {jvm.NEEDED}"


def test_what_a_command_says_itself_does_not_end_up_in_the_middle_of_a_line_of_the_jvm(
    capsys: pytest.CaptureFixture[str],
) -> None:
    printed = jvm._Printed()
    with printed.inlet() as inlet:
        outlet = os.dup(inlet)
    printed.drop()
    os.write(outlet, b"ERROR one\nat org.apache.sp\xc3")
    shown = ""

    def shows(text: str) -> bool:
        nonlocal shown
        shown += capsys.readouterr().err
        return shown == text

    eventually(lambda: shows("ERROR one\n"), 10)
    sys.stderr.write("Error: the command's own\n")
    os.write(outlet, b"\xa4rk.Task\nthe last")
    whole = "ERROR one\nError: the command's own\nat org.apache.sp\u00e4rk.Task\n"
    eventually(lambda: shows(whole), 10)
    os.close(outlet)
    eventually(lambda: shows(f"{whole}the last"), 10)
