"""Who cannot be handed a token is told why; that Spark uses one is shown in tests/interop/gateway."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import pytest
from pyspark.errors import PySparkAttributeError

from kafka_dt.pipeline.token_file import ApplicationEnded, ClusterNotSetUp, Driver, NoDriver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTING: Final = r"--conf spark\.kafka\.clusters\.here\.auth\.bootstrap\.servers=HOST:PORT$"


class ConnectSession:
    """What Spark Connect's session says of its driver."""

    @property
    def sparkContext(self) -> Any:  # noqa: N802 - Spark's name
        raise PySparkAttributeError(
            errorClass="JVM_ATTRIBUTE_NOT_SUPPORTED", messageParameters={"attr_name": "sparkContext"}
        )


def test_an_application_that_was_started_without_the_cluster_is_told_the_setting(spark: SparkSession) -> None:
    with pytest.raises(ClusterNotSetUp, match=SETTING):
        Driver(spark, cluster="here")


def test_a_session_of_spark_connect_is_told_what_to_do_instead() -> None:
    with pytest.raises(NoDriver, match="spark_options"):
        Driver(ConnectSession(), cluster="here")  # type: ignore[arg-type]


def test_a_stopped_application_is_told_apart() -> None:
    stopped = SimpleNamespace(sparkContext=SimpleNamespace(_jsc=None))
    with pytest.raises(ApplicationEnded):
        Driver(stopped, cluster="here")  # type: ignore[arg-type]
