"""Make one value for each listener of a node: from `listeners` and the keys around it.

Source: org.apache.kafka.network.SocketServerConfigs.listenerListToEndPoints; org.apache.kafka.common.config.SslConfigs,
org.apache.kafka.common.config.internals.BrokerSecurityConfigs and org.apache.kafka.common.network.ChannelBuilders
(client certificates on SASL_SSL).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from types import MappingProxyType
from typing import Final

from kafka_dt.config.listener_keys import (
    ListenerKeys,
    MechanismDeclaration,
    MechanismSettings,
    offered_mechanisms,
    refuse_leftovers,
)
from kafka_dt.config.options.gateway import GATEWAY_PREFIX, NO_PORT_BASE
from kafka_dt.config.options.option import INT_MAX, ConfigError, text_of
from kafka_dt.config.settings import Section, Settings, options
from kafka_dt.security_protocol import SecurityProtocol

PORT_BASE_KEY: Final = f"{GATEWAY_PREFIX}broker.port.base"
HOST_PATTERN_KEY: Final = f"{GATEWAY_PREFIX}broker.host.pattern"
CLIENT_AUTH: Final = "ssl.client.auth"
MAPPING_RULES: Final = "ssl.principal.mapping.rules"
PROXY_KEY: Final = "kafka.dt.proxy.protocol"
PROXY_NETWORKS_KEY: Final = f"{PROXY_KEY}.networks"
_ADDRESS: Final = re.compile(r"(?P<name>[^:/]+)://\[?(?P<host>[0-9a-zA-Z\-%._:]*?)\]?:(?P<port>[0-9]{1,5})")
_EVERY_ADDRESS: Final = ("0.0.0.0", "::")  # noqa: S104 - compared with, not bound to


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A listener name with a host and a port."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        """Write it as in `listeners`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerTls:
    """The settings of an encrypted listener."""

    settings: Mapping[str, str] = field(repr=False)
    """Kafka's `ssl.*` settings by name, as `kafka_dt.tls` takes them; secrets in clear."""
    spellings: Mapping[str, str]
    """The keys of those that are set for this listener alone, as the user wrote them, by name."""
    principal_mapping_rules: str
    """`ssl.principal.mapping.rules`."""

    def key(self, name: str) -> str:
        """Return the key by which a setting was made, for errors."""
        return self.spellings.get(name, name)


@dataclass(frozen=True, slots=True)
class ProxyProtocol:
    """The load balancers in front of a listener that say whose connection they forward."""

    required: bool
    """Whether every connection comes through one of them."""
    networks: tuple[IPv4Network | IPv6Network, ...]
    """Where they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """One listener with everything that is set for it."""

    bind: Endpoint
    advertised: Endpoint
    """What clients are told; port 0 stands for the port that was bound."""
    security_protocol: SecurityProtocol
    mechanisms: Mapping[str, MechanismSettings] = field(default_factory=lambda: MappingProxyType({}))
    """By name, in the order of the configuration; empty without SASL."""
    max_connections: int = INT_MAX
    """`max.connections` of this listener alone."""
    max_connection_creation_rate: int = INT_MAX
    """`max.connection.creation.rate` of this listener alone, connections a second."""
    sasl_server_max_receive_size: int = Settings.sasl_server_max_receive_size
    """The largest request before a login, in bytes."""
    tls: ListenerTls | None = None
    """None for a listener that is not encrypted."""
    proxy: ProxyProtocol | None = None
    """None where clients connect directly."""
    broker_port_base: int | None = None
    """In a gateway: each broker behind it has the port of this number plus its id."""
    broker_host_pattern: str = ""
    """In a gateway: each broker behind it has the host name that this becomes with its id for `{id}`."""

    @property
    def name(self) -> str:
        """The listener's name, in upper case."""
        return self.bind.name


def listeners(settings: Settings, mechanisms: Mapping[str, MechanismDeclaration]) -> tuple[Listener, ...]:
    """Make the listeners of a node.

    Args:
        settings: of the node.
        mechanisms: the SASL mechanisms that a listener can offer, by name.

    Raises:
        ConfigError: naming the key whose value cannot be used, or that sets something for an unknown listener.
    """
    binds = _endpoints("listeners", settings.listeners)
    if not binds:
        raise ConfigError("listeners", "at least one is needed, such as SASL_PLAINTEXT://:9092")
    advertised = _endpoints("advertised.listeners", settings.advertised_listeners)
    for name in advertised:
        if name not in binds:
            raise ConfigError("advertised.listeners", f"{name} is not among the listeners {', '.join(binds)}")
    protocols = _protocol_map(settings)
    used: set[str] = set()
    made = tuple(
        _listener(ListenerKeys(settings, name, used), bind, advertised.get(name), protocols, mechanisms)
        for name, bind in binds.items()
    )
    refuse_leftovers(settings, binds.keys(), used)
    if settings.proxy_protocol_networks and all(listener.proxy is None for listener in made):
        raise ConfigError(PROXY_NETWORKS_KEY, f"it sets nothing without {PROXY_KEY}")
    return made


def _listener(
    keys: ListenerKeys,
    bind: Endpoint,
    advertised: Endpoint | None,
    protocols: Mapping[str, SecurityProtocol],
    mechanisms: Mapping[str, MechanismDeclaration],
) -> Listener:
    if bind.name not in protocols:
        raise ConfigError("listener.security.protocol.map", f"it says no security protocol for {bind.name}")
    protocol = protocols[bind.name]
    if advertised is None:
        advertised = Endpoint(bind.name, "", bind.port) if bind.host in ("", *_EVERY_ADDRESS) else bind
    elif advertised.host in _EVERY_ADDRESS:
        raise ConfigError("advertised.listeners", f"{advertised} is no address that a client can connect to")
    return Listener(
        bind=bind,
        advertised=advertised,
        security_protocol=protocol,
        mechanisms=MappingProxyType(offered_mechanisms(keys, mechanisms) if protocol.uses_sasl else {}),
        max_connections=keys.value("max.connections"),
        max_connection_creation_rate=keys.value("max.connection.creation.rate"),
        sasl_server_max_receive_size=keys.value("sasl.server.max.receive.size"),
        tls=_tls(keys, sasl=protocol.uses_sasl) if protocol.uses_tls else None,
        proxy=_proxy(keys),
        broker_port_base=None if (base := keys.value(PORT_BASE_KEY)) == NO_PORT_BASE else base,
        broker_host_pattern=keys.value(HOST_PATTERN_KEY),
    )


def _proxy(keys: ListenerKeys) -> ProxyProtocol | None:
    mode, networks = keys.value(PROXY_KEY), keys.value(PROXY_NETWORKS_KEY)
    key, _ = keys.text(PROXY_NETWORKS_KEY) or (PROXY_NETWORKS_KEY, "")
    if mode == "off":
        if keys.text(PROXY_NETWORKS_KEY):
            raise ConfigError(key, f"it sets nothing for listener {keys.listener} without {PROXY_KEY}")
        return None
    if not networks:
        reason = f"is needed for {PROXY_KEY}={mode} (listener {keys.listener}), such as 10.1.0.0/16"
        raise ConfigError(key, reason)
    return ProxyProtocol(mode == "required", tuple(_network(key, text) for text in networks))


def _network(key: str, text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text)
    except ValueError as error:
        raise ConfigError(key, f"{text!r} is no network, such as 10.1.0.0/16: {error}") from None


def _tls(keys: ListenerKeys, *, sasl: bool) -> ListenerTls:
    """Gather the TLS settings of a listener, its own ones over those of the node.

    As in a broker, a listener with SASL asks clients for certificates only if it is set for that listener by name.
    """
    spellings = {key: found[0] for key in _TLS_KEYS if (found := keys.text(key))}
    texts = {key: text_of(keys.value(key)) for key in _TLS_KEYS}
    if sasl and CLIENT_AUTH not in spellings:
        texts[CLIENT_AUTH] = "none"
    rules = texts.pop(MAPPING_RULES)
    used = {key: text for key, text in texts.items() if text}
    return ListenerTls(
        settings=MappingProxyType(used), spellings=MappingProxyType(spellings), principal_mapping_rules=rules
    )


def _endpoints(key: str, texts: tuple[str, ...]) -> dict[str, Endpoint]:
    made: dict[str, Endpoint] = {}
    for text in filter(None, texts):
        match = _ADDRESS.fullmatch(text)
        if match is None or int(match["port"]) > 65535:  # noqa: PLR2004 - the largest TCP port
            raise ConfigError(key, f"{text!r} is not of the form NAME://host:port")
        endpoint = Endpoint(match["name"].upper(), match["host"], int(match["port"]))
        if endpoint.name in made:
            raise ConfigError(key, f"the listener name {endpoint.name} is given twice")
        if key == "listeners" and endpoint.port:
            _refuse_same_port(endpoint, made.values())
        made[endpoint.name] = endpoint
    return made


def _refuse_same_port(endpoint: Endpoint, others: Iterable[Endpoint]) -> None:
    """Refuse a port that another listener has, except for one address of IPv4 and one of IPv6 (KIP-797)."""
    for other in others:
        if other.port == endpoint.port and {_ip_version(endpoint.host), _ip_version(other.host)} != {4, 6}:
            raise ConfigError("listeners", f"{endpoint.name} and {other.name} have the same port {endpoint.port}")


def _ip_version(host: str) -> int | None:
    """Return the version of an address; None for a name, and for `::`, which listens on IPv4 as well."""
    try:
        return None if host == "::" else ip_address(host).version
    except ValueError:
        return None


def _protocol_map(settings: Settings) -> Mapping[str, SecurityProtocol]:
    key = "listener.security.protocol.map"
    protocols: dict[str, SecurityProtocol] = {}
    for text in filter(None, settings.listener_security_protocol_map):
        name, _, protocol = (part.strip() for part in text.rpartition(":"))
        if not name or protocol.upper() not in list(SecurityProtocol):
            raise ConfigError(
                key,
                f"{text!r} is not of the form NAME:PROTOCOL, PROTOCOL one of {', '.join(SecurityProtocol)}",
            )
        protocols[name.upper()] = SecurityProtocol(protocol.upper())
    return protocols


_TLS_KEYS: Final = tuple(declared.key for _, declared in options(Section.TLS))
