"""Put together the settings of a gateway: the cluster behind it, and the logins of its clients there.

    gateway = gateway_settings(settings, made)
    gateway.client               # Kafka's client properties, as kafka_dt.client reads them

Settings that contradict each other are errors here. Each `Listener` holds how it shows the brokers to clients:
`broker_port_base` or `broker_host_pattern`.

Source: org.apache.kafka.clients.CommonClientConfigs, org.apache.kafka.common.config.SaslConfigs; KIP-48, KIP-373.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kafka_dt.config.listeners import HOST_PATTERN_KEY, PORT_BASE_KEY, Listener
from kafka_dt.config.options.client import SCRAM_MECHANISMS
from kafka_dt.config.options.gateway import GATEWAY_PREFIX, STORE_PREFIX, UPSTREAM_PREFIX, UpstreamIdentity
from kafka_dt.config.options.option import ConfigError, Secret
from kafka_dt.config.options.tokens import TokenStore
from kafka_dt.config.settings import Section, Settings, options
from kafka_dt.jaas import JaasError, parse_login_module
from kafka_dt.security_protocol import SecurityProtocol

BOOTSTRAP: Final = f"{UPSTREAM_PREFIX}bootstrap.servers"
IDENTITY: Final = f"{UPSTREAM_PREFIX}identity"
STORE: Final = "kafka.dt.token.store"
ZOOKEEPER: Final = "zookeeper.connect"
SECRET_KEY: Final = "delegation.token.secret.key"  # noqa: S105 - the name of a setting
IDENTITY_FILE: Final = f"{UPSTREAM_PREFIX}identity.file"
IDENTITY_MECHANISM: Final = f"{UPSTREAM_PREFIX}identity.mechanism"
SECURITY_PROTOCOL: Final = f"{UPSTREAM_PREFIX}security.protocol"
JAAS: Final = f"{UPSTREAM_PREFIX}sasl.jaas.config"

ID: Final = "{id}"
_LABEL: Final = "[a-z0-9]([a-z0-9-]*[a-z0-9])?"
_HOST_NAME: Final = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_LARGEST_PORT: Final = 65535
_OURS: Final = ("identity", "identity.file", "identity.max.logins.per.ip", "identity.mechanism", "proxy.protocol")
"""The names behind the prefix that are no settings of Kafka's clients."""
_OF_OWN_TOKENS: Final = {
    "delegation.token.expiry.time.ms",
    "delegation.token.max.lifetime.ms",
    "delegation.token.metadata.encryption.enable",
    "kafka.dt.sealing.ahead",
    "kafka.dt.secret.keys.previous",
    "kafka.dt.token.hmac.algorithm",
}
"""About tokens that kafka-dt itself makes."""
_WITH_OWNER_TOKENS: Final = {UpstreamIdentity.OWNER_TOKEN, UpstreamIdentity.RELAY}
"""With these the gateway makes tokens upstream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """The settings of a gateway."""

    client: Mapping[str, str] = field(repr=False)
    """Kafka's client properties by name (`bootstrap.servers`, `security.protocol` ...); secrets in clear."""
    identity: UpstreamIdentity
    identity_file: Path | None = None
    """The file with the credentials of each principal; set with MAPPED only."""
    logins_per_ip: int = 100
    """How many connections of one address may have a login under way at the cluster; used with RELAY only."""
    identity_mechanism: str = SCRAM_MECHANISMS[0]
    """One of SCRAM_MECHANISMS: how clients' tokens, and their users of a ScramLoginModule, log in there."""
    names_clients: bool = False
    """Whether the brokers are told the address of each client (`kafka.dt.gateway.upstream.proxy.protocol`)."""
    serves_its_tokens: bool = False
    """Whether clients log in here with tokens of that cluster (`kafka.dt.token.store`)."""
    makes_its_tokens: bool = False
    """Whether new tokens are made in that cluster, which then decides who may create them."""


def gateway_settings(settings: Settings, made: Sequence[Listener]) -> GatewaySettings | None:
    """Put together the settings of a gateway; None if the node is none.

    :param made: the node's listeners
    :raises ConfigError: naming the key whose value cannot be used, or does not go with another
    """
    serves_its_tokens = TokenStore(settings.token_store).has_upstream
    if not settings.upstream_bootstrap_servers:
        if serves_its_tokens:
            reason = f"is needed for {STORE}={settings.token_store}: the brokers whose tokens the node serves"
            raise ConfigError(BOOTSTRAP, reason)
        _refuse_leftovers(settings, made)
        return None
    if serves_its_tokens:
        _check_token_store(settings)
    else:
        settings.refuse_leftovers(STORE_PREFIX, f"{STORE}={TokenStore.UPSTREAM}")
    if not settings.upstream_identity:
        raise ConfigError(IDENTITY, f"is needed for a gateway, one of {', '.join(UpstreamIdentity)}")
    identity = UpstreamIdentity(settings.upstream_identity)
    _check_login(settings, identity)
    _check_identity_file(settings, identity)
    _check_authorizer(settings, identity)
    for listener in made:
        _check_clients(listener, identity)
        _check_addresses(listener)
    _check_port_bases(made)
    return GatewaySettings(
        client=upstream_client_properties(settings),
        identity=identity,
        identity_file=Path(settings.upstream_identity_file) if settings.upstream_identity_file else None,
        logins_per_ip=settings.upstream_identity_logins,
        identity_mechanism=identity_mechanism(settings),
        names_clients=names_clients(settings),
        serves_its_tokens=serves_its_tokens,
        makes_its_tokens=TokenStore(settings.token_store).makes_upstream,
    )


def identity_mechanism(settings: Settings) -> str:
    """Return the SCRAM mechanism of the upstream logins for clients."""
    own = settings.upstream_sasl_mechanism
    return settings.upstream_identity_mechanism or (own if own in SCRAM_MECHANISMS else SCRAM_MECHANISMS[0])


def names_clients(settings: Settings) -> bool:
    """Say whether each connection upstream begins with a header of the PROXY protocol."""
    return settings.upstream_proxy_protocol == "v2"


def uses_own_user_for_clients(settings: Settings) -> bool:
    """Say whether tokens in the cluster name the gateway's own user, so that another user could not go on with them."""
    return settings.upstream_identity in _WITH_OWNER_TOKENS or TokenStore(settings.token_store).has_upstream


def without_effect(settings: Settings) -> Sequence[str]:
    """Return the keys that are set and mean nothing, since all tokens are those of the cluster behind the gateway."""
    if TokenStore(settings.token_store).has_zookeeper:
        return ()
    of_zookeeper = {declared.key for _, declared in options(Section.ZOOKEEPER)}
    return [
        declared.key
        for name, declared in options()
        if declared.key in of_zookeeper | _OF_OWN_TOKENS and getattr(settings, name) != declared.default
    ]


def upstream_client_properties(settings: Settings) -> Mapping[str, str]:
    """Return Kafka's client properties of the cluster behind a gateway, by their own names; secrets in clear."""
    return settings.client_properties(UPSTREAM_PREFIX, _OURS)


def _check_token_store(settings: Settings) -> None:
    """Check that the cluster behind the gateway can be a store of the node, and who clients are there."""
    chosen = f"{STORE}={settings.token_store}"
    if TokenStore(settings.token_store).has_zookeeper:
        _check_zookeeper_too(settings, chosen)
    elif settings.zookeeper_connect:
        raise ConfigError(ZOOKEEPER, f"it sets nothing with {chosen}; leave one of them out")
    elif settings.secret_key is not None:
        raise ConfigError(SECRET_KEY, f"it sets nothing with {chosen}: the cluster makes the tokens")
    if settings.allow_everyone_if_no_acl_found:
        reason = f"with {chosen} every client could create tokens for every other user who has no ACLs"
        raise ConfigError("allow.everyone.if.no.acl.found", reason)
    if settings.upstream_identity in {UpstreamIdentity.SERVICE, UpstreamIdentity.NONE}:
        reason = f"with {chosen} the gateway's own user sees all tokens, so no client may be that user; use owner-token"
        raise ConfigError(IDENTITY, reason)
    if _is_token(settings.upstream_sasl_jaas_config):
        raise ConfigError(JAAS, 'it is a token (tokenauth="true"), which may not ask for tokens; log in as a user')


def _check_zookeeper_too(settings: Settings, chosen: str) -> None:
    """Check that tokens in ZooKeeper can be served beside those of the cluster."""
    if not settings.zookeeper_connect:
        raise ConfigError(ZOOKEEPER, f"is needed for {chosen}: where the tokens are that the cluster does not have")
    if settings.secret_key is None:
        raise ConfigError(SECRET_KEY, f"is needed for {chosen}: the key that made the tokens in ZooKeeper")


def _check_login(settings: Settings, identity: UpstreamIdentity) -> None:
    """Check that the gateway has a login upstream if its identity needs one, and none if not."""
    protocol = SecurityProtocol(settings.upstream_security_protocol)
    certified = bool(settings.upstream_ssl_keystore_location or settings.upstream_ssl_keystore_key)
    match identity:
        case UpstreamIdentity.OWNER_TOKEN | UpstreamIdentity.RELAY | UpstreamIdentity.MAPPED if not protocol.uses_sasl:
            reason = f"{IDENTITY}={identity} needs SASL_SSL or SASL_PLAINTEXT, since that is how clients log in there"
            raise ConfigError(SECURITY_PROTOCOL, reason)
        case UpstreamIdentity.SERVICE if not (protocol.uses_sasl or (protocol.uses_tls and certified)):
            reason = f"{protocol} gives the gateway no login upstream; use SASL, or a certificate, or set {IDENTITY}="
            raise ConfigError(SECURITY_PROTOCOL, reason + UpstreamIdentity.NONE)
        case UpstreamIdentity.NONE if protocol.uses_sasl or settings.upstream_sasl_jaas_config or certified:
            key = JAAS if settings.upstream_sasl_jaas_config else SECURITY_PROTOCOL
            reason = (
                f"it gives the gateway a login upstream; set {IDENTITY}={UpstreamIdentity.SERVICE} if every client is"
            )
            raise ConfigError(key, f"{reason} to use it")
    if identity in _WITH_OWNER_TOKENS and _is_token(settings.upstream_sasl_jaas_config):
        raise ConfigError(JAAS, 'it is a token (tokenauth="true"), which makes no other tokens; log in as a user')


def _check_identity_file(settings: Settings, identity: UpstreamIdentity) -> None:
    if identity is UpstreamIdentity.MAPPED and not settings.upstream_identity_file:
        raise ConfigError(IDENTITY_FILE, f"is needed for {IDENTITY}={identity}")
    if identity is not UpstreamIdentity.MAPPED and settings.upstream_identity_file:
        raise ConfigError(IDENTITY_FILE, f"it is for {IDENTITY}={UpstreamIdentity.MAPPED}, not for {identity}")


def _check_authorizer(settings: Settings, identity: UpstreamIdentity) -> None:
    """Check that no client can act as another user upstream by creating a token for that user."""
    if identity in {*_WITH_OWNER_TOKENS, UpstreamIdentity.MAPPED} and not settings.authorizer_class_name:
        reason = (
            f"without it every user may create tokens for every other user, and so act as any user upstream "
            f"({IDENTITY}={identity}); "
            "set kafka.security.authorizer.AclAuthorizer"
        )
        raise ConfigError("authorizer.class.name", reason)


def _check_clients(listener: Listener, identity: UpstreamIdentity) -> None:
    """Check that every client of a listener has to log in, where its principal selects the login upstream."""
    if identity in {UpstreamIdentity.SERVICE, UpstreamIdentity.NONE} or listener.security_protocol.uses_sasl:
        return
    if listener.tls is None or listener.tls.settings.get("ssl.client.auth") != "required":
        way_out = "a SASL listener, or SSL with ssl.client.auth=required"
        reason = f"clients of listener {listener.name} need no login; {identity} needs {way_out}"
        raise ConfigError(IDENTITY, reason)


def _check_addresses(listener: Listener) -> None:
    base, pattern = listener.broker_port_base, listener.broker_host_pattern
    if base is None and not pattern:
        reason = f"a gateway needs it, or {HOST_PATTERN_KEY}, to give each broker an address (listener {listener.name})"
        raise ConfigError(PORT_BASE_KEY, reason)
    if base is not None and pattern:
        raise ConfigError(HOST_PATTERN_KEY, f"listener {listener.name} has {PORT_BASE_KEY} as well; leave one of them")
    if base is not None and not 0 < base <= _LARGEST_PORT:
        raise ConfigError(PORT_BASE_KEY, f"{base} is no port (listener {listener.name})")
    if pattern:
        _check_pattern(listener, pattern)


def _check_pattern(listener: Listener, pattern: str) -> None:
    if pattern.count(ID) != 1 or not _HOST_NAME.fullmatch(pattern.replace(ID, "0").lower()):
        reason = f"{pattern!r} is no host name with {ID} in it once, such as broker-{ID}.kafka.example.com"
        raise ConfigError(HOST_PATTERN_KEY, reason)
    if listener.tls is None:
        reason = (
            f"listener {listener.name} has no TLS, so a client does not name the host that it means; "
            f"set {PORT_BASE_KEY} for it"
        )
        raise ConfigError(HOST_PATTERN_KEY, reason)


def _check_port_bases(made: Sequence[Listener]) -> None:
    names: dict[int, str] = {}
    for listener in made:
        base = listener.broker_port_base
        if base is None:
            continue
        if base in names:
            own = f"listener.name.{listener.name.lower()}.{PORT_BASE_KEY}"
            raise ConfigError(PORT_BASE_KEY, f"{names[base]} and {listener.name} both have {base}; set {own} as well")
        names[base] = listener.name


def _is_token(jaas: Secret | None) -> bool:
    try:
        return jaas is not None and parse_login_module(jaas.value).token_auth
    except JaasError as error:
        raise ConfigError(JAAS, str(error)) from None


def _refuse_leftovers(settings: Settings, made: Sequence[Listener]) -> None:
    """Refuse a setting of a gateway on a node that is none: the operator expects a gateway."""
    settings.refuse_leftovers(GATEWAY_PREFIX, BOOTSTRAP)
    settings.refuse_leftovers(STORE_PREFIX, f"{STORE}={TokenStore.UPSTREAM}")
    for listener in made:
        if listener.broker_port_base is not None or listener.broker_host_pattern:
            key = HOST_PATTERN_KEY if listener.broker_host_pattern else PORT_BASE_KEY
            raise ConfigError(f"listener.name.{listener.name.lower()}.{key}", f"it sets nothing without {BOOTSTRAP}")
