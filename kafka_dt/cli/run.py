"""`kafka-dt run`: the embedded mode. A ZooKeeper, a node, and a first token to use.

It ends its start by using itself as a user would: it creates a token through its own port, logs in with it, and shows
the token as settings for other clients. Then it serves until Ctrl-C.

Settings, a user and the secrets (the secret key of tokens, the passwords of the user and of ZooKeeper) are made once
and kept in a data directory. The secrets are random, and only the directory's owner can read it.

Source: docs/tutorial.md.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import shlex
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console
from rich.text import Text

from kafka_dt import app
from kafka_dt.cli.options import example, user_data_dir
from kafka_dt.cli.tables import messages
from kafka_dt.client import ClientKind, DelegationToken, SecurityProtocol, TokenClient, settings
from kafka_dt.config import METRICS_LISTENER, ConfigError, Endpoint, from_properties, read_properties
from kafka_dt.files import replace_file
from kafka_dt.jaas import PLAIN_LOGIN_MODULE, LoginModule
from kafka_dt.log import set_up_logging
from kafka_dt.processes.supervisor import WorkerFailed
from kafka_dt.processes.template import ForkedTemplate
from kafka_dt.worker import template_of_workers
from kafka_dt.zookeeper.connection.settings import DIGEST_LOGIN_MODULE, LoginScheme, ZooKeeperLogin
from kafka_dt.zookeeper.embedded.server import EmbeddedZooKeeper, require_private

USER: Final = "alice"
HOST: Final = "127.0.0.1"
METRICS_PORT: Final = 9404
ZOOKEEPER_USER: Final = "kafka-dt"
SEALING_AHEAD: Final = 64
"""`kafka.dt.sealing.ahead`: the default keeps each core of a laptop busy for eight seconds at every start."""
LOG_LEVEL: Final = "WARN"
"""`kafka.dt.log.level`: what the command prints is for a person; lines about each request would hide it."""
_SECRETS: Final = {"password": 12, "secret_key": 32, "zookeeper_password": 32}
"""Random bytes of each secret, by its name in the file and in `EmbeddedNode`."""
_PASTE: Final = (
    ("the Java tools (token.properties)", ClientKind.JAVA, "{key}={value}"),
    ("kcat (kcat.conf)", ClientKind.CONFLUENT, "{key}={value}"),
    ("aiokafka (keyword arguments)", ClientKind.AIOKAFKA, "{key}={value!r},"),
)
"""What to paste where: a title, whose settings, and how a setting is written there."""
_AUDIT_ROLL_MS: Final = 10_000
"""`kafka.dt.audit.log.roll.ms`: a person who wants to read the events waits for a file to be complete."""
_AUDIT_RETENTION_MS: Final = 7 * 24 * 3_600_000


@example("kafka-dt run", "kafka-dt run --port 0 --data-dir /tmp/kafka-dt")
@click.command(short_help="Start ZooKeeper and kafka-dt, and create a first token.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=9092,
    show_default=True,
    help="The port of kafka-dt; 0 means any free port.",
)
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=user_data_dir,
    help="The directory for ZooKeeper's data and the generated secrets.  [default: the user's data directory]",
)
@click.option(
    "--workers",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    help="How many processes serve; 0 means one for each core.",
)
def run(port: int, data_dir: Path, workers: int) -> None:
    """Start ZooKeeper and kafka-dt, create a token and log in with it."""
    with template_of_workers() as template:
        _run(port, data_dir, workers, template)


def _run(port: int, data_dir: Path, workers: int, template: ForkedTemplate) -> None:
    set_up_logging("supervisor", level=LOG_LEVEL)
    console = messages()
    node = prepare(data_dir)
    zookeeper = EmbeddedZooKeeper(node.zookeeper_dir, login=node.zookeeper_login)
    with console.status("Starting ZooKeeper"):
        zookeeper.start()
    try:
        chosen = {"kafka.dt.workers": str(workers), METRICS_LISTENER: f"http://{HOST}:{_metrics_port()}"}
        properties = node.server_properties(port, zookeeper.address) | chosen
        app.run(_serve(node, zookeeper, template, properties, console))
        console.print(f"kafka-dt has stopped; the tokens stay in {node.data_dir}.", soft_wrap=True)
    except ConfigError as error:
        if error.key == "listeners":
            raise click.ClickException(f"{error.reason}; choose another port with --port, 0 is any") from None
        raise
    finally:
        zookeeper.stop()


async def _serve(
    node: EmbeddedNode,
    zookeeper: EmbeddedZooKeeper,
    template: ForkedTemplate,
    properties: Mapping[str, str],
    console: Console,
) -> None:
    """Serve until told to stop, until ZooKeeper ends, or until the first token fails."""
    _write_properties(node.configuration, properties)
    ready: asyncio.Future[Sequence[Endpoint]] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(app.serve(from_properties(properties), template, ready.set_result))
    zookeeper_ended = asyncio.create_task(zookeeper.exited())
    ends = (serving, zookeeper_ended)
    try:
        with console.status("Starting kafka-dt"):
            starts: set[asyncio.Future[Any]] = {ready, *ends}
            await asyncio.wait(starts, return_when=asyncio.FIRST_COMPLETED)
        if ready.done():
            address = f"{ready.result()[0].host}:{ready.result()[0].port}"
            _show(console, node, zookeeper, address, await _first_token(node, address))
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if zookeeper_ended.done() and not serving.done():
            raise WorkerFailed(f"ZooKeeper ended by itself; its log is {zookeeper.log}")
    finally:
        for task in ends:
            task.cancel()
        await asyncio.wait(ends)
    if not serving.cancelled():
        serving.result()


def _metrics_port() -> int:
    """Return the usual port of metrics, or a free one if another program has it."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, METRICS_PORT))
        except OSError:
            probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


async def _first_token(node: EmbeddedNode, address: str) -> DelegationToken:
    """Create a token as the user, and log in with it."""
    login = node.login_properties(address)
    _write_properties(node.client_properties, login)
    async with TokenClient.from_config(login) as client:
        token = await client.create()
    async with TokenClient.from_config(_settings(token, ClientKind.JAVA, address)):
        return token


def _show(
    console: Console, node: EmbeddedNode, zookeeper: EmbeddedZooKeeper, address: str, token: DelegationToken
) -> None:
    """Print the addresses, the user, the token, and the token as settings to paste."""
    metrics = read_properties(node.configuration)[METRICS_LISTENER]
    health = f"kafka-dt health --config {shlex.quote(str(node.configuration))}"
    facts = {
        "Kafka clients": f"{address} (SASL_PLAINTEXT)",
        "ZooKeeper": zookeeper.address,
        "User": f"{USER}, password {node.password} (PLAIN)",
        "Its settings": str(node.client_properties),
        "Metrics": f"{metrics}/metrics ({health})",
        "Node settings": f"{node.configuration} (kafka-dt keys list --config ...)",
        "Audit events": str(node.audit_dir),
        "Token": f"{token.token_id}, owner {token.owner}: created and logged in with",
    }
    console.rule(Text("kafka-dt is ready", style="bold"))
    for name, fact in facts.items():
        console.print(Text.assemble((f"{name:14}", "bold"), f" {fact}"), soft_wrap=True)
    for title, kind, line in _PASTE:
        console.print()
        console.rule(f"The token for {title}", align="left")
        for key, value in _settings(token, kind, address).items():
            console.print(line.format(key=key, value=value), soft_wrap=True)
    console.print()
    console.rule("Make another one", align="left")
    login = shlex.quote(str(node.client_properties))
    console.print(
        f"{sys.argv[0]} token create --bootstrap-server {address} --command-config {login}",
        soft_wrap=True,
    )
    console.print("\nCtrl-C stops it; the tokens stay.")


def _settings(token: DelegationToken, kind: ClientKind, address: str) -> Mapping[str, str]:
    return settings(token, kind, bootstrap_servers=address, security_protocol=SecurityProtocol.SASL_PLAINTEXT)


@dataclass(frozen=True, slots=True)
class EmbeddedNode:
    """What a node of the embedded mode runs on."""

    data_dir: Path
    password: str = field(repr=False)
    """The password of `USER`."""
    secret_key: str = field(repr=False)
    """`delegation.token.secret.key`."""
    zookeeper_password: str = field(repr=False)
    """The password of the embedded ZooKeeper, which serves no client without it."""

    @property
    def zookeeper_dir(self) -> Path:
        """Where the embedded ZooKeeper keeps its data."""
        return self.data_dir / "zookeeper"

    @property
    def zookeeper_login(self) -> ZooKeeperLogin:
        """The login of the embedded ZooKeeper."""
        return ZooKeeperLogin(LoginScheme.SASL_DIGEST_MD5, ZOOKEEPER_USER, self.zookeeper_password)

    @property
    def audit_dir(self) -> Path:
        """Where the node records its audit events."""
        return self.data_dir / "audit"

    @property
    def configuration(self) -> Path:
        """The settings of the node as it runs, for `kafka-dt keys --config` and the like."""
        return self.data_dir / "server.properties"

    @property
    def client_properties(self) -> Path:
        """The client settings of the user, for Kafka's tools and `kafka-dt token --command-config`."""
        return self.data_dir / "client.properties"

    def server_properties(self, port: int, zookeeper: str) -> dict[str, str]:
        """Give the settings of the node, with the port of its listener and `host:port` of the embedded ZooKeeper."""
        users = LoginModule(PLAIN_LOGIN_MODULE, {f"user_{USER}": self.password}).line
        return {
            "listeners": f"SASL_PLAINTEXT://{HOST}:{port}",
            "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512,PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": users,
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "delegation.token.secret.key": self.secret_key,
            "kafka.dt.sealing.ahead": str(SEALING_AHEAD),
            "kafka.dt.log.level": LOG_LEVEL,
            "kafka.dt.audit.log.dir": str(self.audit_dir),
            "kafka.dt.audit.log.roll.ms": str(_AUDIT_ROLL_MS),
            "kafka.dt.audit.log.retention.ms": str(_AUDIT_RETENTION_MS),
            "zookeeper.connect": zookeeper,
            "zookeeper.set.acl": "true",
            "kafka.dt.zookeeper.sasl.jaas.config": LoginModule(
                DIGEST_LOGIN_MODULE, {"username": ZOOKEEPER_USER, "password": self.zookeeper_password}
            ).line,
        }

    def login_properties(self, bootstrap_server: str) -> dict[str, str]:
        """Give the client settings with which the user logs in."""
        return {
            "bootstrap.servers": bootstrap_server,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": LoginModule(PLAIN_LOGIN_MODULE, {"username": USER, "password": self.password}).line,
        }


def prepare(data_dir: Path) -> EmbeddedNode:
    """Make the data directory, or take the one that is there with the secrets that it holds.

    Raises:
        OSError: it cannot be made or read.
        DataDirOpen: other users of the machine could read it.
        click.ClickException: its secrets are not what was once written.
    """
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    require_private(data_dir)
    path = data_dir / "secrets.json"
    kept = _kept(path) if path.exists() else {}
    missing = _SECRETS.keys() - kept.keys()  # all of them in a new directory, some in one of an older version
    if missing:
        kept |= {name: secrets.token_urlsafe(_SECRETS[name]) for name in missing}
        replace_file(path, json.dumps(kept))
    return EmbeddedNode(data_dir.absolute(), **{name: kept[name] for name in _SECRETS})


def _kept(path: Path) -> dict[str, str]:
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        kept = None
    if not isinstance(kept, dict) or not all(isinstance(kept.get(name, ""), str) for name in _SECRETS):
        raise click.ClickException(
            f"{path} does not hold the secrets that were written there, without which its tokens are of no use: "
            "restore it, or choose another --data-dir"
        )
    return kept


def _write_properties(path: Path, properties: Mapping[str, str]) -> None:
    replace_file(path, "".join(f"{key}={value}\n" for key, value in properties.items()))
