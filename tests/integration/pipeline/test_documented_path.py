"""spark-submit is found, and finds this Python, as docs/spark.md says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.docs.documents import blocks
from tests.support.java.jvm import Java


def test_spark_submit_runs_with_the_path_of_the_manual(spark_java: Java, tmp_path: Path) -> None:
    (export,) = (block.text for block in blocks("docs/spark.md", "sh") if block.text.startswith("export PATH="))
    (tmp_path / ".venv").symlink_to(sys.prefix)
    home = str(spark_java.executable.resolve().parent.parent)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    done = subprocess.run(
        ["/bin/bash", "-euc", f"{export}\nspark-submit --version"],
        cwd=tmp_path,
        env={**environment, "JAVA_HOME": home, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "version 4." in done.stderr
