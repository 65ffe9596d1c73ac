"""Kafka's own command line tools, of any release, run as an operator runs them.

    tools = KafkaTools(KAFKA_39_VERSION, java, classpath, folder)
    created = tools.delegation_tokens(address, plain("alice", "..."), "--create", "--max-life-time-period", "-1")
    parse_tokens(created.stdout)[0].hmac

The settings of the client go into a file with mode 0600 that is removed afterwards. Nothing raises on a status other
than 0: look at `ToolResult.status`, or call `ToolResult.ok()`. The tools run in one JVM (`ToolRunner.java`), which a
Java with a compiler starts with the first of them. Only the consumers have a JVM each: they count records for as long
as their JVM lives.

Source: org.apache.kafka.tools.DelegationTokenCommand and its siblings.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from tests.support.java.json_lines import JavaProgram, NoAnswer
from tests.support.java.jvm import Java
from tests.support.java.maven import Classpath
from tests.support.java.programs import program
from tests.support.java.properties import TokenLogin, write_properties

SOURCE = Path(__file__).with_name("ToolRunner.java")
TIMEOUT_S = 60.0

# Class names moved between the releases: these left core since 4.0.
_OLD_NAMES = {
    "org.apache.kafka.tools.ConsoleProducer": "kafka.tools.ConsoleProducer",
    "org.apache.kafka.tools.BrokerApiVersionsCommand": "kafka.admin.BrokerApiVersionsCommand",
    "org.apache.kafka.tools.AclCommand": "kafka.admin.AclCommand",
    "org.apache.kafka.tools.ConfigCommand": "kafka.admin.ConfigCommand",
}

_LOGGING = """\
log4j.rootLogger=ERROR, stderr
log4j.appender.stderr=org.apache.log4j.ConsoleAppender
log4j.appender.stderr.Target=System.err
log4j.appender.stderr.layout=org.apache.log4j.PatternLayout
log4j.appender.stderr.layout.ConversionPattern=%p %m (%c)%n
"""


class ToolFailed(AssertionError):
    """A tool ended with a status other than 0 where that was not expected."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """How a tool ended and what it said."""

    status: int
    stdout: str
    stderr: str

    def ok(self) -> Self:
        """This result; raises ToolFailed with what was said unless the status is 0."""
        if self.status:
            raise ToolFailed(f"status {self.status}\n{self.stdout}\n{self.stderr}")
        return self


@dataclass(frozen=True, slots=True)
class DescribedToken:
    """One row of the table that DelegationTokenCommand prints; its dates end at the minute and are left as text."""

    token_id: str
    hmac: str = field(repr=False)
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_date: str
    expiry_date: str
    max_date: str

    @property
    def login(self) -> TokenLogin:
        """What a client needs to log in with it."""
        return TokenLogin(self.token_id, self.hmac)


_ROW = re.compile(
    r"^(?P<id>[\w-]{22})\s+(?P<hmac>[\w+/=]+)\s+(?P<owner>\S+)\s+(?P<requester>\S+)\s+\[(?P<renewers>.*)\]\s+"
    r"(?P<issue>[\d:T-]+)\s+(?P<expiry>[\d:T-]+)\s+(?P<max>[\d:T-]+)\s*$",
    re.MULTILINE,
)


def parse_tokens(stdout: str) -> list[DescribedToken]:
    """The rows of DelegationTokenCommand's table; names with blanks in them are not understood."""
    return [
        DescribedToken(
            token_id=row["id"],
            hmac=row["hmac"],
            owner=row["owner"],
            requester=row["requester"],
            renewers=tuple(filter(None, row["renewers"].split(", "))),
            issue_date=row["issue"],
            expiry_date=row["expiry"],
            max_date=row["max"],
        )
        for row in _ROW.finditer(stdout)
    ]


class KafkaTools:
    """The tools of one Kafka release.

    Args:
        version: for class names and messages.
        java: what runs them.
        classpath: the jars of that release.
        folder: receives the files with settings.
    """

    def __init__(self, version: str, java: Java, classpath: Classpath, folder: Path) -> None:
        self.version = version
        self.java = java
        self.classpath = classpath
        self._folder = folder
        logging = folder / "tools-log4j.properties"
        logging.write_text(_LOGGING)
        self._properties = {"log4j.configuration": logging.as_uri()}
        self._runner: JavaProgram | None = None

    def command(self, main: str, arguments: Sequence[str] = ()) -> list[str]:
        """The command line of a tool in a JVM of its own."""
        return self.java.command(main, arguments, classpath=self.classpath, properties=self._properties)

    def close(self) -> None:
        """End the JVM of the tools."""
        if self._runner is not None:
            self._runner.kill()
            self._runner = None

    def delegation_tokens(self, server: str, config: Mapping[str, str], *arguments: str) -> ToolResult:
        """kafka-delegation-tokens.sh; `arguments` name the action and its options."""
        return self._run_client("org.apache.kafka.tools.DelegationTokenCommand", server, config, *arguments)

    def broker_api_versions(self, server: str, config: Mapping[str, str]) -> ToolResult:
        """kafka-broker-api-versions.sh: logs in and prints what the server can do."""
        return self._run_client("org.apache.kafka.tools.BrokerApiVersionsCommand", server, config)

    def topics(self, server: str, config: Mapping[str, str], *arguments: str) -> ToolResult:
        """kafka-topics.sh."""
        return self._run_client("org.apache.kafka.tools.TopicCommand", server, config, *arguments)

    def consumer_groups(self, server: str, config: Mapping[str, str], *arguments: str) -> ToolResult:
        """kafka-consumer-groups.sh."""
        return self._run_client(
            "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", server, config, *arguments
        )

    def configs(self, server: str, config: Mapping[str, str], *arguments: str) -> ToolResult:
        """kafka-configs.sh."""
        return self._run_client("org.apache.kafka.tools.ConfigCommand", server, config, *arguments)

    def acls(self, server: str, config: Mapping[str, str], *arguments: str) -> ToolResult:
        """kafka-acls.sh; `--force` answers its question before it removes."""
        return self._run_client("org.apache.kafka.tools.AclCommand", server, config, *arguments)

    def produce(self, server: str, config: Mapping[str, str], topic: str, text: str) -> ToolResult:
        """kafka-console-producer.sh with `text` as its input, a record a line."""
        arguments = ("--topic", topic, "--sync", "--max-block-ms", "15000")
        return self._run_client(
            "org.apache.kafka.tools.ConsoleProducer",
            server,
            config,
            *arguments,
            option=self._newer("--producer.config"),
            text=text,
        )

    def consume(self, server: str, config: Mapping[str, str], topic: str, count: int) -> ToolResult:
        """kafka-console-consumer.sh until it has `count` records from the beginning of `topic`."""
        arguments = ("--topic", topic, "--from-beginning", "--max-messages", str(count), "--timeout-ms", "20000")
        return self._run_client(
            "org.apache.kafka.tools.consumer.ConsoleConsumer",
            server,
            config,
            *arguments,
            option=self._newer("--consumer.config"),
            counts=True,
        )

    def share_consume(self, server: str, config: Mapping[str, str], topic: str, count: int) -> ToolResult:
        """kafka-console-share-consumer.sh of 4.x until it has `count` records; `config` has the `group.id`."""
        arguments = ("--topic", topic, "--max-messages", str(count), "--timeout-ms", "20000")
        main = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
        return self._run_client(main, server, config, *arguments, counts=True)

    def _newer(self, option: str) -> str:
        """The name that 4.x gives to an option which 3.9 knows as `option`."""
        return option if self.version.startswith("3.") else "--command-config"

    def _run_client(
        self,
        main: str,
        server: str,
        config: Mapping[str, str],
        *arguments: str,
        option: str = "--command-config",
        counts: bool = False,
        text: str = "",
    ) -> ToolResult:
        if self.version.startswith("3."):
            main = _OLD_NAMES.get(main, main)
        with tempfile.TemporaryDirectory(dir=self._folder) as private:
            settings = write_properties(Path(private) / "client.properties", config)
            given = ["--bootstrap-server", server, option, str(settings), *arguments]
            if self.java.has_compiler and not counts:
                return self._run_in_runner(main, given, text)
            command = self.command(main, given)
            done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        return ToolResult(done.returncode, done.stdout, done.stderr)

    def _run_in_runner(self, main: str, arguments: Sequence[str], text: str) -> ToolResult:
        if self._runner is None:
            self._runner = JavaProgram(
                program(self.java, SOURCE, classpath=self.classpath, properties=self._properties)
            )
        request = {"main": main, "arguments": arguments, "input": text}
        try:
            return ToolResult(**self._runner.ask(request, timeout_s=TIMEOUT_S))
        except NoAnswer as error:
            self.close()
            raise ToolFailed(f"the JVM of the tools, in {main}: {error}") from error
