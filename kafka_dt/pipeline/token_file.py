"""Hand a Spark application its token from a file, and the next token from the same file while it runs.

    with following(spark, "/run/secrets/kafka/token.properties", cluster="here"):
        query.awaitTermination()

The file holds client properties as `kafka-dt token create --output properties` writes them; of these the login counts.
It is read at the beginning, when it has to hold a token, and whenever it has changed: a new token is handed to the
driver and the executors (`handed_tokens.py`), whose Kafka source and sink go on with it. A file that cannot be used is
logged once, and Spark keeps the token it has. A renewal changes nothing in a token, so nothing in the file.

The token is handed over again when new executors have registered, because an executor that was starting has missed it.
An executor needs longer to get ready for tasks than this module needs to see it.

Limits: replace the file as a whole (rename, a Kubernetes secret), and some time before the old token expires, so that
work under way with the old token can end.

Source: KIP-48, "Token renewal"; org.apache.spark.kafka010.KafkaTokenUtil.
"""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import javaproperties

from kafka_dt.client import ClientConfigError, Credentials
from kafka_dt.files import Stamp, stamp
from kafka_dt.pipeline.handed_tokens import ApplicationEnded, Driver, HandoverFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Set

    from pyspark.sql import SparkSession

_LOG = logging.getLogger(__name__)

LOOK_S: Final = 0.2


class TokenFileError(Exception):
    """The file holds no token.

    path: of the file; reason: what is wrong, without a word of a secret
    """

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} holds no token: {reason}")
        self.path = path
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
