"""The executors of an application: how many tasks they run, and which secret keys they find.

    at_once = slots(spark)
    key_ids = executors_ring(spark, access, at_once)

What Spark raises while work runs there becomes one of the pipeline's errors (`translated`).

Source: Spark, "Job Scheduling"; org.apache.spark.SparkContext.maxNumConcurrentTasks.
"""

from __future__ import annotations

import socket
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException

from kafka_dt.config import ConfigError
from kafka_dt.config.secret_keys import CURRENT
from kafka_dt.pipeline.bulk.partition import ring_ids
from kafka_dt.pipeline.errors import BulkJobFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from kafka_dt.pipeline.bulk.cluster_access import ClusterAccess

_REASON_CHARACTERS: Final = 300
_ENDED: Final = "its JVM has ended"


def slots(spark: SparkSession) -> int:
    """Return how many tasks run at a time on the present executors; wait for the first executor.

    Raises:
        BulkJobFailed: Spark cannot tell.
    """
    context = spark.sparkContext
    with translated("Spark could not ask for its executors"):
        context.parallelize([0], 1).count()  # whose executor is there then, and on most clusters so are the others
        jvm = context._jsc.sc()  # noqa: SLF001 - nothing public tells it: defaultParallelism is a setting as well
        return max(1, int(jvm.maxNumConcurrentTasks(jvm.resourceProfileManager().defaultResourceProfile())))


def executors_ring(spark: SparkSession, access: ClusterAccess, tasks: int) -> tuple[str, ...]:
    """Return the ids of the secret keys that executors find, the current one first; no key leaves them.

    So many tasks look for the keys that most executors do.

    Raises:
        ConfigError: an executor finds none, or they find different ones.
        BulkJobFailed: Spark cannot ask them.
    """
    with translated("Spark could not ask the executors for their keys"):
        found = spark.sparkContext.parallelize(range(tasks), tasks).map(partial(_look, access)).collect()
    for _, trouble in found:
        if trouble is not None:
            raise ConfigError(*trouble)
    rings = {ids for ids, _ in found}
    if len(rings) > 1:
        listed = "; ".join(sorted(", ".join(ids) for ids in rings))
        raise ConfigError(CURRENT, f"executors have different secret keys ({listed}): give all of them the same")
    return rings.pop()


def cancel_jobs(context: SparkContext, group: str | None = None) -> None:
    """Cancel running jobs, all or those of a group; if the JVM has ended, the jobs have ended with it."""
    with suppress(Py4JError, OSError):
        if group is None:
            context.cancelAllJobs()
        else:
            context.cancelJobGroup(group)


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Turn what Spark raises during a block into BulkJobFailed; `what` is the work that failed, as a clause."""
    try:
        yield
    except (Py4JError, PySparkException, OSError) as error:  # OSError: the JVM has gone
        raise BulkJobFailed(f"{what} ({_cause(error)})") from error


def _look(access: ClusterAccess, _: int) -> tuple[tuple[str, ...], tuple[str, str] | None]:
    """Look for the keys, on an executor; its error travels in parts."""
    try:
        return ring_ids(access), None
    except ConfigError as error:
        return (), (error.key, f"{error.reason} (on {socket.gethostname()})")


def _cause(error: Exception) -> str:
    """Give Spark's reason in one line: the last one of its traceback says most."""
    if isinstance(error, Py4JNetworkError | ConnectionError):
        return _ENDED
    try:
        text = str(error)  # which asks the JVM
    except (Py4JError, OSError):
        return _ENDED
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("at ")]
    named = [line for line in lines if "Error: " in line or "Exception: " in line]
    return (named or lines or [type(error).__name__])[-1 if named else 0][:_REASON_CHARACTERS]
