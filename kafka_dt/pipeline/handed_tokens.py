"""A delegation token handed to Spark, for its own Kafka source and sink, while an application runs.

    driver = Driver(spark, cluster="here")
    driver.give(credentials)

Spark keeps the tokens that it gets by Kerberos beside its queries: in Hadoop's credentials of the user it runs as, on
the driver and on each executor. Its Kafka source and sink look there whenever they take a consumer or a producer, and
make another one when the token has changed. This module hands over a token of another origin by the
same message from the driver to the executors. So a running query changes its token, and the token is in no option,
configuration, plan or event log.

An executor asks for the application's tokens when it starts, and receives new ones after it has registered. It misses
tokens that were given in between. So `token_file.py` looks for new executors and gives the token again.

Spark reads from `spark.kafka.clusters.<cluster>.*` for which cluster the token is; set these keys before the
application starts (docs/spark.md).

Limits: classic Spark, where the driver's JVM is at hand, no Spark Connect. The message is not part of Spark's public
interface; seen with 4.0.0. It goes over Spark's own connections, which are encrypted if the application is so set up.

Source: org.apache.spark.kafka010.KafkaTokenUtil, org.apache.spark.sql.kafka010.consumer.KafkaDataConsumer,
org.apache.spark.scheduler.cluster.CoarseGrainedSchedulerBackend (UpdateDelegationTokens).
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from kafka_dt.client import Credentials

_KIND: Final = "KAFKA_DELEGATION_TOKEN"
_SERVICE: Final = "kafka.server.delegation.token.{cluster}"
_SERVERS_KEY: Final = "spark.kafka.clusters.{cluster}.auth.bootstrap.servers"
_ENABLED_KEY: Final = "spark.security.credentials.kafka.enabled"
_DISTRIBUTING_BACKEND: Final = "org.apache.spark.scheduler.cluster.CoarseGrainedSchedulerBackend"
_UPDATE: Final = "CoarseGrainedClusterMessages$UpdateDelegationTokens"


class HandoverError(Exception):
    """Spark cannot be given a token.

    HandoverError
    +-- NoDriver            this session has no JVM of its own
    +-- ClusterNotSetUp     the application was started without a setting
    +-- ApplicationEnded    it has been stopped
    +-- HandoverFailed      the JVM has refused
    """


class NoDriver(HandoverError):
    """A session of Spark Connect."""

    def __init__(self) -> None:
        super().__init__(
            "this Spark session has no JVM at hand (Spark Connect?); run it on the driver, or start the query again "
            "with the spark_options of a new token"
        )


class ClusterNotSetUp(HandoverError):
    """Spark would not use the token.

    key: what has to be set; value: to what
    """

    def __init__(self, key: str, value: str) -> None:
        super().__init__(f"Spark would not use the token: start the application with --conf {key}={value}")
        self.key = key
        self.value = value


class ApplicationEnded(HandoverError):
    """The application has ended."""

    def __init__(self) -> None:
        super().__init__("the Spark application has been stopped")


class HandoverFailed(HandoverError):
    """The JVM did not do it; the cause says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"Spark has not taken the token: {reason}")
        self.reason = reason


class Driver:
    """The driver of a running application, which is given tokens for one of its Kafka clusters.

    cluster: the name in `spark.kafka.clusters.<cluster>.*`
    Raises HandoverError when tokens would not be used.
    """

    def __init__(self, spark: SparkSession, *, cluster: str) -> None:
        context = _context(spark)
        _check_settings(context, cluster)
        self._service = _SERVICE.format(cluster=cluster)
        self._jvm: Any = context._jvm  # noqa: SLF001 - there is no public way to the JVM
        self._application: Any = context._jsc.sc()  # noqa: SLF001
        with self._translated():
            self._backend = self._distributing_backend()

    def give(self, token: Credentials) -> None:
        """Give the driver and all executors a token, in the place of the one they have for this cluster.

        token: its id and its HMAC in base64; `Credentials.from_properties` reads them
        Returns when the driver has it; the executors there are have it before the next task that is sent to them.
        Raises HandoverError.
        """
        with self._translated():
            hadoop, spark = self._jvm.org.apache.hadoop, self._jvm.org.apache.spark
            credentials = self._told()
            kind, service = hadoop.io.Text(_KIND), hadoop.io.Text(self._service)
            token_id, secret = token.username.encode(), token.password.encode()
            credentials.addToken(service, hadoop.security.token.Token(token_id, secret, kind, service))
            # By the message alone the driver would take the token later, and a query may start at once.
            hadoop.security.UserGroupInformation.getCurrentUser().addCredentials(credentials)
            if self._backend is not None:
                update = getattr(spark.scheduler.cluster, _UPDATE)
                self._backend.driverEndpoint().send(update(spark.deploy.SparkHadoopUtil.get().serialize(credentials)))

    def executors(self) -> frozenset[str]:
        """Return the ids of the executors that have registered; none of a local application, which is all driver.

        Raises HandoverError.
        """
        if self._backend is None:
            return frozenset()
        with self._translated():
            return frozenset(filter(None, self._backend.getExecutorIds().mkString(",").split(",")))

    def _told(self) -> Any:
        """Return what executors are given when they start: other tokens that were told stay there."""
        told = None if self._backend is None else self._backend.currentDelegationTokens()
        if told is None:
            return self._jvm.org.apache.hadoop.security.Credentials()
        return self._jvm.org.apache.spark.deploy.SparkHadoopUtil.get().deserialize(told)

    def _distributing_backend(self) -> Any:
        """Return what tells executors of tokens; None in a local application."""
        backend = self._application.schedulerBackend()
        return backend if self._jvm.java.lang.Class.forName(_DISTRIBUTING_BACKEND).isInstance(backend) else None

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (Py4JError, OSError) as error:
            if self._ended():
                raise ApplicationEnded from error
            raise HandoverFailed(type(error).__name__) from error

    def _ended(self) -> bool:
        try:
            return bool(self._application.isStopped())
        except (Py4JError, OSError):  # the JVM has gone
            return True


def _context(spark: SparkSession) -> Any:
    try:
        context = spark.sparkContext
    except PySparkException:
        raise NoDriver from None
    if context._jsc is None:  # noqa: SLF001 - so Python sees that it was stopped
        raise ApplicationEnded
    return context


def _check_settings(context: Any, cluster: str) -> None:
    settings = context.getConf()
    servers = _SERVERS_KEY.format(cluster=cluster)
    if not settings.get(servers):
        raise ClusterNotSetUp(servers, "HOST:PORT")
    if settings.get(_ENABLED_KEY, "true").lower() != "true":
        raise ClusterNotSetUp(_ENABLED_KEY, "true")
