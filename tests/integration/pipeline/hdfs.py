"""An HDFS in a process of its own: Hadoop's MiniDFSCluster, with one data node.

    with running_hdfs(java, classpath, folder) as uri:
        Table(f"{uri}/audit")

Source: org.apache.hadoop.hdfs.MiniDFSCluster, in hadoop-client-minicluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.support.java.jvm import Java
from tests.support.java.maven import Classpath
from tests.support.java.programs import program
from tests.support.processes.process import ChildProcess

_SOURCE: Final = Path(__file__).with_name("MiniHdfs.java")
_START_TIMEOUT_S: Final = 120.0


@contextmanager
def running_hdfs(java: Java, classpath: Classpath, folder: Path) -> Iterator[str]:
    """Start it, and give its URI.

    Args:
        java: what runs it, with a compiler.
        classpath: the jars of `tests.support.java.maven.YARN`, which have HDFS as well.
        folder: receives all its files.
    """
    command = program(java, _SOURCE, [str(folder)], classpath=classpath, heap_mb=512)
    environment = {"JAVA_HOME": str(java.executable.resolve().parent.parent)}
    with ChildProcess("HDFS", command, folder / "hdfs.log", environment) as process:
        yield process.wait_for(r"HDFS is ready at (hdfs://\S+)", _START_TIMEOUT_S)[1]
