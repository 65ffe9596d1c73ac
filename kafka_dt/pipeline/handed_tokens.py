"""A delegation token handed to Spark, for its own Kafka source and sink, while an application runs.

    hand_over(spark, credentials, cluster="here")

Spark keeps the tokens that it gets by Kerberos beside its queries: in Hadoop's credentials of the user it runs as, on
the driver and on each executor. Its Kafka source and sink look there whenever they take a consumer or a producer, and
make another one when the token has changed. Here a token that somebody else has made goes the same way, as the same
message of the driver to the executors; an executor that starts later is given it, too. So a running query changes its
token, and the token stands in no option, no configuration, no plan and no event log.

What the token is good for, Spark reads from `spark.kafka.clusters.<cluster>.*`, which has to be set before the
application starts (docs/spark.md).

Limits: classic Spark, where the driver's JVM is at hand, no Spark Connect. The message is not part of Spark's public
interface; seen with 4.0.0. It goes over Spark's own connections, which are encrypted if the application is so set up.

Source: org.apache.spark.kafka010.KafkaTokenUtil, org.apache.spark.sql.kafka010.consumer.KafkaDataConsumer,
org.apache.spark.scheduler.cluster.CoarseGrainedSchedulerBackend (UpdateDelegationTokens).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

if TYPE_CHECKING:
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
    """There is no application any more."""

    def __init__(self) -> None:
        super().__init__("the Spark application has been stopped")


class HandoverFailed(HandoverError):
    """The JVM did not do it; the cause says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"Spark has not taken the token: {reason}")
        self.reason = reason


def hand_over(spark: SparkSession, token: Credentials, *, cluster: str) -> None:
    """Give the driver and all executors a token, in the place of the one they have for this cluster.

    token: its id and its HMAC in base64; `Credentials.from_properties` reads them
    cluster: the name in `spark.kafka.clusters.<cluster>.*`
    Returns when the driver has it; the executors have it before the next task that is sent to them.
    Raises HandoverError.
    """
    context = _context(spark)
    _check_settings(context, cluster)
    try:
        _give(context, token, _SERVICE.format(cluster=cluster))
    except (Py4JError, OSError) as error:
        if _ended(context):
            raise ApplicationEnded from error
        raise HandoverFailed(type(error).__name__) from error


def _context(spark: SparkSession) -> Any:
    try:
        context = spark.sparkContext
    except PySparkException:
        raise NoDriver from None
    if _ended(context):
        raise ApplicationEnded
    return context


def _ended(context: Any) -> bool:
    """Say whether a context was stopped here; one that the JVM has stopped by itself is found out by trying."""
    return context._jsc is None  # noqa: SLF001 - there is no public way to the JVM


def _check_settings(context: Any, cluster: str) -> None:
    settings = context.getConf()
    servers = _SERVERS_KEY.format(cluster=cluster)
    if not settings.get(servers):
        raise ClusterNotSetUp(servers, "HOST:PORT")
    if settings.get(_ENABLED_KEY, "true").lower() != "true":
        raise ClusterNotSetUp(_ENABLED_KEY, "true")


def _give(context: Any, token: Credentials, service: str) -> None:
    jvm, backend = context._jvm, context._jsc.sc().schedulerBackend()  # noqa: SLF001 - see _ended
    hadoop, spark = jvm.org.apache.hadoop, jvm.org.apache.spark
    # Locally tasks run in the driver, and there is nobody to tell.
    distributing = jvm.java.lang.Class.forName(_DISTRIBUTING_BACKEND).isInstance(backend)
    told = backend.currentDelegationTokens() if distributing else None
    # An executor that starts later is given what was told last, so whatever other tokens were told stay in it.
    credentials = spark.deploy.SparkHadoopUtil.get().deserialize(told) if told else hadoop.security.Credentials()
    name = hadoop.io.Text(service)
    secret = token.password.encode()
    credentials.addToken(
        name, hadoop.security.token.Token(token.username.encode(), secret, hadoop.io.Text(_KIND), name)
    )
    # Told first, the driver would still take the message in its own time; a query may be started at once.
    hadoop.security.UserGroupInformation.getCurrentUser().addCredentials(credentials)
    if distributing:
        update = getattr(spark.scheduler.cluster, _UPDATE)
        backend.driverEndpoint().send(update(spark.deploy.SparkHadoopUtil.get().serialize(credentials)))
