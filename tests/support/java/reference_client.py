"""Kafka's Java AdminClient and producer behind a pipe of JSON lines: exact values, error names, one JVM for many calls.

    with ReferenceClient(java, classpath, log=folder / "client.log") as client:
        alice = client.open(server, plain("alice", "..."))
        created = alice.create(renewers=["User:bob"])
        alice.renew(created.hmac, period_ms=60_000)

The Java side is compiled once, by a Java with a compiler (`Java.has_compiler`). It ends with this process, because its
standard input does.

Source: org.apache.kafka.clients.admin.Admin, KIP-48, KIP-373.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from tests.support.java.json_lines import JavaProgram, NoAnswer
from tests.support.java.jvm import Java
from tests.support.java.maven import Classpath
from tests.support.java.programs import program
from tests.support.java.properties import TokenLogin

SOURCE = Path(__file__).with_name("ReferenceClient.java")
ANSWER_TIMEOUT_S = 60.0
ASK_S = 0.02
"""Between two asks of a client that goes on; without a pause, client and server would take all the time of a core."""


class JavaClientError(Exception):
    """The Java client raised; `kind` is the simple name of its exception's class."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message


@dataclass(frozen=True, slots=True)
class JavaToken:
    """A delegation token as the Java client shows it; principals as text, `User:alice`."""

    token_id: str
    hmac: str = field(repr=False)
    """base64 text."""
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp_ms: int
    expiry_timestamp_ms: int
    max_timestamp_ms: int

    @property
    def login(self) -> TokenLogin:
        """What a client needs to log in with it."""
        return TokenLogin(self.token_id, self.hmac)


class ReferenceClient:
    """The Java process; `open` gives the sessions in it.

    Args:
        java: what runs it, with a compiler.
        classpath: the jars of one Kafka release.
        log: receives what Java writes to its standard error.
        source: another program of the same kind.
        properties: Java system properties from the start on.
    """

    def __init__(
        self,
        java: Java,
        classpath: Classpath,
        log: Path,
        *,
        source: Path = SOURCE,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self._command = program(java, source, classpath=classpath, heap_mb=256, properties=properties)
        self._log = log
        self._program: JavaProgram | None = None
        self._sessions = 0

    def open(self, server: str, config: Mapping[str, str]) -> JavaSession:
        """An AdminClient of its own; it connects with its first call."""
        self._sessions += 1
        session = JavaSession(self, f"client-{self._sessions}")
        session.call("open", config={**config, "bootstrap.servers": server})
        return session

    def set_property(self, name: str, value: str) -> None:
        """Set a Java system property; it holds for all sessions."""
        self.call({"client": "", "operation": "property", "name": name, "value": value})

    def call(self, request: Mapping[str, object], *, timeout_s: float = ANSWER_TIMEOUT_S) -> Any:
        """Send one request and wait for its answer; raises JavaClientError."""
        assert self._program is not None
        try:
            answer = self._program.ask(request, timeout_s=timeout_s)
        except NoAnswer as error:
            raise AssertionError(f"the Java client: {error}; its log: {self._log.read_text()[-2000:]}") from error
        if "error" in answer:
            raise JavaClientError(answer["error"], answer["message"])
        return answer["result"]

    def __enter__(self) -> Self:
        with self._log.open("ab") as log:
            self._program = JavaProgram(self._command, log)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._program is not None
        self._program.end(ANSWER_TIMEOUT_S)


class JavaSession:
    """One AdminClient with the settings it was opened with. Every method raises JavaClientError."""

    def __init__(self, client: ReferenceClient, name: str) -> None:
        self._client = client
        self._name = name

    def create(self, *, owner: str | None = None, renewers: Sequence[str] = (), max_lifetime_ms: int = -1) -> JavaToken:
        """CreateDelegationToken."""
        return _token(self.call("create", owner=owner, renewers=list(renewers), max_lifetime_ms=max_lifetime_ms))

    def renew(self, hmac: str, period_ms: int = -1) -> int:
        """RenewDelegationToken; the new expiry timestamp in milliseconds."""
        return int(self.call("renew", hmac=hmac, period_ms=period_ms))

    def expire(self, hmac: str, period_ms: int = -1) -> int:
        """ExpireDelegationToken; the new expiry timestamp in milliseconds."""
        return int(self.call("expire", hmac=hmac, period_ms=period_ms))

    def describe(self, owners: Sequence[str] | None = None) -> list[JavaToken]:
        """DescribeDelegationToken; None asks for all."""
        return [_token(each) for each in self.call("describe", owners=owners)]

    def cluster(self) -> tuple[str, int]:
        """DescribeCluster: the cluster's id and the number of its nodes."""
        cluster_id, nodes = self.call("cluster")
        return str(cluster_id), int(nodes)

    def goes_on_for(self, seconds: float) -> None:
        """Ask for the cluster again and again; it must stay the same. Raises JavaClientError when an ask fails."""
        cluster = self.cluster()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            assert self.cluster() == cluster
            time.sleep(ASK_S)

    def topics(self) -> list[str]:
        """The names of the topics."""
        return [str(name) for name in self.call("topics")]

    def survey(self) -> dict[str, int | str]:
        """What a console for the web asks first: the call -> how much it was told, or the exception's class."""
        return dict(self.call("survey"))

    def produce(self, topic: str, value: str) -> int:
        """Produce one record with a producer of its own; the record's offset."""
        return int(self.call("produce", topic=topic, value=value))

    def close(self) -> None:
        """Close the AdminClient and its connections."""
        self.call("close")

    def call(self, operation: str, **arguments: object) -> Any:
        """Any operation of ReferenceClient.java."""
        return self._client.call({"client": self._name, "operation": operation, **arguments})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _token(fields: dict[str, Any]) -> JavaToken:
    return JavaToken(**{**fields, "renewers": tuple(fields["renewers"])})
