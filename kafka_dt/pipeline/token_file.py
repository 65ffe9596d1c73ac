"""Hand a Spark application its token from a file, and the next token from the same file while it runs.

    with following(spark, "/run/secrets/kafka/token.properties", cluster="here"):
        query.awaitTermination()

The file holds client properties as `kafka-dt token create --output properties` writes them; of these the login counts.
It is read at the beginning, when it has to hold a token, and whenever it has changed (`FollowedToken`). A file that
cannot be used is logged once, and Spark keeps the token it has.

The token goes where Spark keeps the tokens that it gets by Kerberos: into Hadoop's credentials of the user that it runs
as, on the driver and, by a message of the driver, on each executor (`Driver`). Spark's Kafka source and sink look there
whenever they take a consumer or a producer. So a running query changes its token, and the token is in no option,
configuration, plan or event log. An executor that was starting misses the message, so the token is handed over again
when new executors have registered, before they are ready for tasks.

Limits: replace the file as a whole (rename, a Kubernetes secret), and some time before the old token expires. Set the
keys `spark.kafka.clusters.<cluster>.*` before the application starts (docs/spark.md). It has to be classic Spark, no
Spark Connect. The message is not part of Spark's public interface; seen with 4.0.0.

Source: KIP-48, "Token renewal"; org.apache.spark.kafka010.KafkaTokenUtil,
org.apache.spark.sql.kafka010.consumer.KafkaDataConsumer,
org.apache.spark.scheduler.cluster.CoarseGrainedSchedulerBackend (UpdateDelegationTokens).
"""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import javaproperties
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from kafka_dt.client import ClientConfigError, Credentials
from kafka_dt.files import Stamp, stamp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Set

    from pyspark.sql import SparkSession

_LOG = logging.getLogger(__name__)

LOOK_S: Final = 0.2
_KIND: Final = "KAFKA_DELEGATION_TOKEN"
_SERVICE: Final = "kafka.server.delegation.token.{cluster}"
_SERVERS_KEY: Final = "spark.kafka.clusters.{cluster}.auth.bootstrap.servers"
_ENABLED_KEY: Final = "spark.security.credentials.kafka.enabled"
_DISTRIBUTING_BACKEND: Final = "org.apache.spark.scheduler.cluster.CoarseGrainedSchedulerBackend"
_UPDATE: Final = "CoarseGrainedClusterMessages$UpdateDelegationTokens"


class TokenFileError(Exception):
    """The file holds no token.

    path: of the file; reason: what is wrong, without a word of a secret
    """

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} holds no token: {reason}")
        self.path = path
        self.reason = reason


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


@contextmanager
def following(spark: SparkSession, file: str | Path, *, cluster: str, look_s: float = LOOK_S) -> Iterator[None]:
    """Have Spark use the token that is in a file, now and after each change of it, while a block runs.

    cluster: the name in `spark.kafka.clusters.<cluster>.*`
    look_s: seconds between two looks at the file and at the executors
    Raises TokenFileError when it holds no token at the beginning, and HandoverError when Spark cannot be given one.
    """
    followed = FollowedToken(Path(file), Driver(spark, cluster=cluster))
    followed.start()
    over = threading.Event()
    thread = threading.Thread(target=followed.run, args=(lambda: over.wait(look_s),), name="token file", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class Receiver(Protocol):
    """Receives tokens; a Driver."""

    def give(self, token: Credentials) -> None:
        """Take a token in the place of the one before."""
        ...

    def executors(self) -> Set[str]:
        """Return the ids of the executors that can be given a token."""
        ...


class FollowedToken:
    """The token in a file, and its receiver.

    path: client properties with a token's login
    """

    def __init__(self, path: Path, receiver: Receiver) -> None:
        self._path = path
        self._receiver = receiver
        self._seen: Stamp = None
        self._token: Credentials | None = None
        self._served: Set[str] = frozenset()
        self._complaint = ""

    def start(self) -> None:
        """Give the token that is there.

        Raises TokenFileError and HandoverError.
        """
        self._seen = stamp(self._path)
        self._hand(read_token(self._path))

    def run(self, wait: Callable[[], bool]) -> None:
        """Look at the file again and again.

        wait: lets some time pass and says whether that is enough
        """
        while not wait():
            try:
                self._look()
            except ApplicationEnded:
                return
            except (TokenFileError, HandoverFailed) as error:
                self._complain(f"{error}; Spark keeps the token it has")

    def _look(self) -> None:
        now = stamp(self._path)
        token = self._token
        # Remembered before it is read: what is written meanwhile is a change to be seen by the next look.
        changed, self._seen = now != self._seen, now
        if changed or self._complaint:
            token = read_token(self._path)
        if token is not None and (token != self._token or self._receiver.executors() - self._served):
            self._hand(token)
        self._complaint = ""

    def _hand(self, token: Credentials) -> None:
        # Asked before: executors that come meanwhile are given it by the next look.
        served = self._receiver.executors()
        self._receiver.give(token)
        if token != self._token:
            _LOG.info("Spark has the token %s", token.username)
        self._token, self._served = token, served

    def _complain(self, text: str) -> None:
        if text != self._complaint:
            _LOG.warning("%s", text)
        self._complaint = text


def read_token(path: Path) -> Credentials:
    """Return the login of the client properties in a file, which has to be a token's.

    Raises TokenFileError.
    """
    try:
        found = Credentials.from_properties(javaproperties.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise TokenFileError(path, error.strerror or type(error).__name__) from error
    except ClientConfigError as error:
        raise TokenFileError(path, str(error)) from error
    except ValueError:
        # Not chained: the error may hold the text.
        raise TokenFileError(path, "it is not a file of properties") from None
    if not found.token_auth:
        raise TokenFileError(path, 'sasl.jaas.config has no tokenauth="true"')
    return found


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
