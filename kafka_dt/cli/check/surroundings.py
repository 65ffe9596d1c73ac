"""What does not fit around a node: its ZooKeeper, the cluster behind it, the clock, and the settings of brokers.

ZooKeeper's time is that of a write, so the clock znode below `/kafka_dt` is written, as nodes do. Nothing else is
changed, here or at a broker.

Source: kafka.server.ConfigHelper (DescribeConfigs of a broker).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kafka_dt.cli.check.finding import Finding, NotReached, Refusal
from kafka_dt.cli.keys.nodes import in_the_other_form, workers_with_tokens
from kafka_dt.cli.node_options import connected, keyring_if_any
from kafka_dt.client import AdminClient, ClientConfig, ConnectionFailed, LoginFailed, TokenClientError
from kafka_dt.clock import now_ms
from kafka_dt.config import ConfigError, TokenStore, options, upstream_client_properties
from kafka_dt.config.gateway import BOOTSTRAP, JAAS
from kafka_dt.config.options.gateway import UPSTREAM_PREFIX
from kafka_dt.config.options.option import text_of
from kafka_dt.upstream import UpstreamClient
from kafka_dt.zookeeper.connection.reads import zookeeper_time_ms
from kafka_dt.zookeeper.errors import CannotConnect, LoginRefused, ZooKeeperConnectionLost, ZooKeeperError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from kafka_dt.config import Settings
    from kafka_dt.zookeeper.connection.client import ZooKeeperClient

ZOOKEEPER: Final = "zookeeper.connect"
SERVERS: Final = {ZOOKEEPER: "ZooKeeper", BOOTSTRAP: "the cluster behind the gateway"}
"""The servers without which a node does not serve, by the setting that names them."""
CLOCK_MS: Final = 5_000
"""How far the clocks may be apart: tokens end by them."""
SHARED_SETTINGS: Final = (
    "authorizer.class.name",
    "connections.max.reauth.ms",
    "delegation.token.expiry.time.ms",
    "delegation.token.max.lifetime.ms",
    "sasl.kerberos.principal.to.local.rules",
    "ssl.principal.mapping.rules",
    "zookeeper.set.acl",
)
"""Settings that decide about users and tokens: a cluster gives one answer only where brokers and nodes agree.

A broker shows no setting of its authorizer (`super.users`, `allow.everyone.if.no.acl.found`)."""


async def surroundings(settings: Settings, brokers: ClientConfig | None) -> AsyncIterator[Finding]:
    """Give what does not fit; brokers: how to reach one whose settings are compared, None = none are."""
    if TokenStore(settings.token_store).has_zookeeper:
        async for finding in _zookeeper(settings):
            yield finding
    if settings.upstream_bootstrap_servers:
        async for finding in _upstream(settings):
            yield finding
    if brokers is not None:
        async for finding in _brokers(settings, brokers):
            yield finding


async def _zookeeper(settings: Settings) -> AsyncIterator[Finding]:
    try:
        async with connected(settings) as client:
            async for finding in _in_zookeeper(client, settings):
                yield finding
    except LoginRefused as error:
        yield Refusal(error.setting, error.reason)
    except (CannotConnect, ZooKeeperConnectionLost) as error:
        yield NotReached(ZOOKEEPER, str(error))
    except ZooKeeperError as error:
        yield Finding(ZOOKEEPER, str(error))


async def _in_zookeeper(client: ZooKeeperClient, settings: Settings) -> AsyncIterator[Finding]:
    ahead_ms = now_ms() - await zookeeper_time_ms(client)
    if abs(ahead_ms) > CLOCK_MS:
        way = "ahead of" if ahead_ms > 0 else "behind"
        yield Finding("clock", f"this machine's clock is {abs(ahead_ms) / 1000:.0f} s {way} ZooKeeper's; set it by NTP")
    keyring = keyring_if_any(settings)
    if keyring is None:
        return
    for line in await in_the_other_form(client, sealed=settings.metadata_encryption):
        yield Finding("delegation.token.metadata.encryption.enable", line)
    ours = {key.id for key in keyring.keys}
    for worker in await workers_with_tokens(client):
        if worker.current_key != keyring.current.id or set(worker.keys) != ours:
            yield Finding("delegation.token.secret.key", f"{worker} has other keys; kafka-dt keys list shows them")


async def _upstream(settings: Settings) -> AsyncIterator[Finding]:
    config = UpstreamClient(upstream_client_properties(settings)).config
    try:
        async with AdminClient(config):
            pass
    except ConnectionFailed as error:
        yield NotReached(BOOTSTRAP, str(error))
    except LoginFailed as error:
        yield Refusal(JAAS, error.text(UPSTREAM_PREFIX))
    except TokenClientError as error:
        yield Refusal(BOOTSTRAP, str(error))


async def _brokers(settings: Settings, config: ClientConfig) -> AsyncIterator[Finding]:
    try:
        async with AdminClient(config) as client:
            theirs = await client.broker_settings(SHARED_SETTINGS)
    except TokenClientError as error:
        yield Finding("--bootstrap-server", str(error))
        return
    for finding in disagreements(settings, theirs):
        yield finding


def disagreements(settings: Settings, theirs: Mapping[str, str]) -> Iterator[Finding]:
    """Give the settings that a broker has otherwise; theirs: its values by key, those of `SHARED_SETTINGS` it shows."""
    for name, declared in options():
        if declared.key not in theirs or declared.key not in SHARED_SETTINGS:
            continue
        ours: Any = getattr(settings, name)
        try:
            value = declared.parse(declared.key, theirs[declared.key])
        except ConfigError:
            value = None  # of a newer Kafka, or of a plug-in
        if value != ours:
            yield Finding(declared.key, f"it is {text_of(ours)!r} here and {theirs[declared.key]!r} at the brokers")
