"""Tell that a path of this machine is not there before Spark starts, which takes ten seconds.

    if is_missing("/data/events", conf):
        raise NoTable("/data/events")

Spark decides where a path without a scheme is. It is on this machine unless Hadoop is configured otherwise.

Source: org.apache.hadoop.fs.Path (what is a scheme); Hadoop, "core-default.xml", fs.defaultFS.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_DEFAULT: Final = "spark.hadoop.fs.defaultFS"
_CONFIGURED: Final = frozenset(
    {
        "HADOOP_CONF_DIR",
        "YARN_CONF_DIR",
        "SPARK_CONF_DIR",
        "SPARK_HOME",
        "PYSPARK_SUBMIT_ARGS",
        "PYSPARK_GATEWAY_PORT",  # of a program that `spark-submit` runs
    }
)
"""In the environment of a program for which Hadoop may be configured."""


def is_missing(path: str, conf: Mapping[str, str]) -> bool:
    """Say whether nothing is at a path or URI; False also where only Spark can tell.

    Args:
        path: of a file or a directory.
        conf: settings of Spark.

    Raises:
        OSError: this process may not look there.
    """
    here = None if means_other(path, conf) else local_path(path)
    return here is not None and not here.exists()


def local_path(path: str) -> Path | None:
    """Give the path of a path or a `file` URI; None for a URI of another file system or another machine."""
    scheme, rest = _divided(path)
    if scheme is None:
        return Path(path)
    if scheme != "file":
        return None
    host, slash, below = rest.removeprefix("//").partition("/") if rest.startswith("//") else ("", "", rest)
    return None if host else Path(slash + below)


def means_other(path: str, conf: Mapping[str, str] = MappingProxyType({})) -> bool:
    """Say whether a path may be another one to Spark: it has no scheme, and Hadoop is configured."""
    scheme, _ = _divided(path)
    return scheme is None and (_DEFAULT in conf or bool(_CONFIGURED & os.environ.keys()))


def _divided(path: str) -> tuple[str | None, str]:
    """Divide a path or URI into its scheme, None if it has none, and the rest."""
    scheme, colon, rest = path.partition(":")
    return (scheme, rest) if colon and "/" not in scheme else (None, path)
