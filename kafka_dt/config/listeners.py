"""The listeners of a node: from `listeners` and the keys around it to one value for each.

`listener.name.<lower-case name>.<key>` overrides a key for one listener, and
`listener.name.<name>.<lower-case mechanism>.<key>` for one SASL mechanism of it, as in Kafka.

Source: Kafka's SocketServerConfigs.listenerListToEndPoints, ListenerName, JaasContext.loadServerContext.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from kafka_dt.config.errors import ConfigError
from kafka_dt.config.kerberos import KerberosSettings, kerberos_settings
from kafka_dt.config.listener_tls import ListenerTls, listener_tls
from kafka_dt.config.load import LISTENER_PREFIX
from kafka_dt.config.oauthbearer import HANDLER_KEY, OAuthBearerSettings, oauthbearer_settings
from kafka_dt.config.options.gateway import GATEWAY_PREFIX, NO_PORT_BASE
from kafka_dt.config.options.option import INT_MAX, Option, Secret, resolve_secret
from kafka_dt.config.settings import Settings, options
from kafka_dt.jaas import (
    KERBEROS_LOGIN_MODULE,
    OAUTHBEARER_LOGIN_MODULE,
    PLAIN_LOGIN_MODULE,
    SCRAM_LOGIN_MODULE,
    JaasError,
    LoginModule,
    parse_login_module,
)

JAAS_KEY: Final = "sasl.jaas.config"
PORT_BASE_KEY: Final = f"{GATEWAY_PREFIX}broker.port.base"
HOST_PATTERN_KEY: Final = f"{GATEWAY_PREFIX}broker.host.pattern"
_ADDRESS: Final = re.compile(r"(?P<name>[^:/]+)://\[?(?P<host>[0-9a-zA-Z\-%._:]*?)\]?:(?P<port>[0-9]{1,5})")
_ANY_HOST: Final = ("", "0.0.0.0", "::")  # noqa: S104 - compared with, not bound to


class SecurityProtocol(StrEnum):
    """What a connection is wrapped in (Kafka's SecurityProtocol)."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def sasl(self) -> bool:
        """Whether clients log in by SASL."""
        return self in {SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL}

    @property
    def tls(self) -> bool:
        """Whether connections are encrypted."""
        return self in {SecurityProtocol.SSL, SecurityProtocol.SASL_SSL}


class Mechanism(StrEnum):
    """The SASL mechanisms that a listener can offer."""

    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"
    OAUTHBEARER = "OAUTHBEARER"
    GSSAPI = "GSSAPI"
    DIGEST_MD5 = "DIGEST-MD5"


LOGIN_MODULES: Final[Mapping[Mechanism, str]] = MappingProxyType(
    {
        Mechanism.PLAIN: PLAIN_LOGIN_MODULE,
        Mechanism.SCRAM_SHA_256: SCRAM_LOGIN_MODULE,
        Mechanism.SCRAM_SHA_512: SCRAM_LOGIN_MODULE,
        Mechanism.OAUTHBEARER: OAUTHBEARER_LOGIN_MODULE,
        Mechanism.GSSAPI: KERBEROS_LOGIN_MODULE,
        Mechanism.DIGEST_MD5: PLAIN_LOGIN_MODULE,
    }
)
"""The login module that the JAAS line of each mechanism must name."""


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
class Listener:
    """One listener with everything that is set for it."""

    bind: Endpoint
    advertised: Endpoint
    """What clients are told; port 0 stands for the port that was bound."""
    security_protocol: SecurityProtocol
    mechanisms: tuple[Mechanism, ...] = ()
    """In the order of the configuration; empty without SASL."""
    plain_users: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    """User name to password, for PLAIN."""
    max_reauth_ms: Mapping[Mechanism, int] = field(default_factory=lambda: MappingProxyType({}))
    """`connections.max.reauth.ms` of each mechanism; 0 is never."""
    max_connections: int = INT_MAX
    """`max.connections` of this listener alone."""
    max_connection_creation_rate: int = INT_MAX
    """`max.connection.creation.rate` of this listener alone, connections a second."""
    tls: ListenerTls | None = None
    """None for a listener that is not encrypted."""
    oauthbearer: OAuthBearerSettings | None = None
    """How tokens are checked, if OAUTHBEARER is among the mechanisms."""
    kerberos: KerberosSettings | None = None
    """Our keys and the rules for names, if GSSAPI is among the mechanisms."""
    broker_port_base: int | None = None
    """In a gateway: each broker behind it has the port of this number plus its id."""
    broker_host_pattern: str = ""
    """In a gateway: each broker behind it has the host name that this becomes with its id for `{id}`."""

    @property
    def name(self) -> str:
        """The listener's name, in upper case."""
        return self.bind.name


def listeners(settings: Settings) -> tuple[Listener, ...]:
    """Make the listeners of a node.

    :raises ConfigError: naming the key whose value cannot be used, or that names a listener that there is none of
    """
    if not settings.listeners:
        raise ConfigError("listeners", "at least one is needed, such as SASL_PLAINTEXT://:9092")
    binds = _endpoints("listeners", settings.listeners)
    advertised = _endpoints("advertised.listeners", settings.advertised_listeners)
    for name in advertised:
        if name not in binds:
            raise ConfigError("advertised.listeners", f"{name} is not among the listeners {', '.join(binds)}")
    protocols = _protocol_map(settings)
    used: set[str] = set()
    made = tuple(
        _listener(_Scope(settings, name, used), bind, advertised.get(name), protocols) for name, bind in binds.items()
    )
    _refuse_leftovers(settings, used)
    return made


@dataclass(frozen=True, slots=True)
class _Scope:
    """The keys of one listener; remembers which of them were used."""

    settings: Settings
    name: str
    used: set[str]

    def text(self, key: str) -> tuple[str, str] | None:
        """Return the full key and the text of an override, if there is one."""
        full = f"{LISTENER_PREFIX}{self.name.lower()}.{key}"
        if full not in self.settings.overrides:
            return None
        self.used.add(full)
        return full, self.settings.overrides[full]

    def value(self, key: str, prefixes: tuple[str, ...] = ("",)) -> Any:
        """Return the value of an option, from the most special key that sets it."""
        name, declared = _PER_LISTENER[key]
        for prefix in prefixes:
            if found := self.text(prefix + key):
                return declared.parse(*found)
        return getattr(self.settings, name)

    def spelling(self, key: str) -> str | None:
        """Return the full key of an override, if there is one."""
        found = self.text(key)
        return found[0] if found else None


def _listener(
    scope: _Scope, bind: Endpoint, advertised: Endpoint | None, protocols: Mapping[str, SecurityProtocol]
) -> Listener:
    if bind.name not in protocols:
        raise ConfigError("listener.security.protocol.map", f"it says no security protocol for {bind.name}")
    protocol = protocols[bind.name]
    if advertised is None:
        advertised = Endpoint(bind.name, "", bind.port) if bind.host in _ANY_HOST else bind
    elif advertised.host in _ANY_HOST:
        raise ConfigError("advertised.listeners", f"{advertised} is no address that a client can connect to")
    plain = Listener(
        bind=bind,
        advertised=advertised,
        security_protocol=protocol,
        max_connections=scope.value("max.connections"),
        max_connection_creation_rate=scope.value("max.connection.creation.rate"),
        tls=listener_tls(scope.value, scope.spelling, sasl=protocol.sasl) if protocol.tls else None,
        broker_port_base=None if (base := scope.value(PORT_BASE_KEY)) == NO_PORT_BASE else base,
        broker_host_pattern=scope.value(HOST_PATTERN_KEY),
    )
    return _with_logins(scope, plain) if protocol.sasl else plain


def _with_logins(scope: _Scope, listener: Listener) -> Listener:
    mechanisms = _mechanisms(scope)
    for mechanism in mechanisms:
        _login_module(scope, mechanism)
    if Mechanism.DIGEST_MD5 in mechanisms:
        _refuse_digest_users(scope)
    return replace(
        listener,
        mechanisms=mechanisms,
        plain_users=_plain_users(scope) if Mechanism.PLAIN in mechanisms else MappingProxyType({}),
        max_reauth_ms=MappingProxyType(
            {
                mechanism: scope.value("connections.max.reauth.ms", (f"{mechanism.lower()}.", ""))
                for mechanism in mechanisms
            }
        ),
        oauthbearer=_oauthbearer(scope) if Mechanism.OAUTHBEARER in mechanisms else None,
        kerberos=_kerberos(scope) if Mechanism.GSSAPI in mechanisms else None,
    )


def _mechanisms(scope: _Scope) -> tuple[Mechanism, ...]:
    key = "sasl.enabled.mechanisms"
    offered = ", ".join(Mechanism)
    names = scope.value(key)
    if not names:
        raise ConfigError(key, f"listener {scope.name} needs at least one of {offered}")
    for name in names:
        if name not in list(Mechanism):
            raise ConfigError(key, f"{name!r} on listener {scope.name} is not one of {offered}")
    return tuple(dict.fromkeys(Mechanism(name) for name in names))


def _plain_users(scope: _Scope) -> Mapping[str, str]:
    module = _login_module(scope, Mechanism.PLAIN)
    if module is None:
        raise ConfigError(
            _jaas_key(scope, Mechanism.PLAIN),
            f'is needed for PLAIN; for example: {PLAIN_LOGIN_MODULE} required user_alice="alice\'s password";',
        )
    return MappingProxyType(dict(module.plain_users))


def _refuse_digest_users(scope: _Scope) -> None:
    """Let the line be there, since a broker wants one for each mechanism, but not let it seem to have users."""
    module = _login_module(scope, Mechanism.DIGEST_MD5)
    if module is not None and module.plain_users:
        raise ConfigError(_jaas_key(scope, Mechanism.DIGEST_MD5), "DIGEST-MD5 is for tokens alone, it has no users")


def _kerberos(scope: _Scope) -> KerberosSettings:
    key = _jaas_key(scope, Mechanism.GSSAPI)
    module = _login_module(scope, Mechanism.GSSAPI)
    if module is None:
        # GSSAPI is Kafka's default: perhaps nobody meant it.
        raise ConfigError(
            key,
            "is needed for GSSAPI, unless sasl.enabled.mechanisms names others; for example: "
            f'{KERBEROS_LOGIN_MODULE} required useKeyTab="true" storeKey="true" '
            'keyTab="/etc/kafka.keytab" principal="kafka/host.example.com@EXAMPLE.COM";',
        )
    return kerberos_settings(key, module, lambda name: scope.value(name, (f"{Mechanism.GSSAPI.lower()}.", "")))


def _oauthbearer(scope: _Scope) -> OAuthBearerSettings:
    prefix = f"{Mechanism.OAUTHBEARER.lower()}."
    module = _login_module(scope, Mechanism.OAUTHBEARER)
    return oauthbearer_settings(
        scope.name,
        lambda key: scope.value(key, (prefix, "")),
        scope.text(prefix + HANDLER_KEY),
        module.options if module else {},
    )


def _jaas_key(scope: _Scope, mechanism: Mechanism) -> str:
    return f"{LISTENER_PREFIX}{scope.name.lower()}.{mechanism.lower()}.{JAAS_KEY}"


def _login_module(scope: _Scope, mechanism: Mechanism) -> LoginModule | None:
    """Return what the JAAS line of a mechanism says, None without one.

    A broker wants a line for SCRAM too; its users are in ZooKeeper and the line says nothing more.
    """
    found = scope.text(f"{mechanism.lower()}.{JAAS_KEY}")
    if found is None:
        return None
    full, text = found
    secret: Secret = resolve_secret(full, text)
    try:
        module = parse_login_module(secret.value)
    except JaasError as error:
        raise ConfigError(full, str(error)) from None
    expected = LOGIN_MODULES[mechanism]
    if module.name != expected:
        raise ConfigError(full, f"{mechanism} needs {expected}, not {module.name}")
    return module


def _endpoints(key: str, texts: tuple[str, ...]) -> dict[str, Endpoint]:
    made: dict[str, Endpoint] = {}
    ports: dict[int, str] = {}
    for text in texts:
        match = _ADDRESS.fullmatch(text)
        if match is None or int(match["port"]) > 65535:  # noqa: PLR2004 - the largest TCP port
            raise ConfigError(key, f"{text!r} is not of the form NAME://host:port")
        endpoint = Endpoint(match["name"].upper(), match["host"], int(match["port"]))
        if endpoint.name in made:
            raise ConfigError(key, f"the listener name {endpoint.name} is given twice")
        if key == "listeners" and endpoint.port and endpoint.port in ports:
            raise ConfigError(key, f"{endpoint.name} and {ports[endpoint.port]} have the same port {endpoint.port}")
        ports[endpoint.port] = endpoint.name
        made[endpoint.name] = endpoint
    return made


def _protocol_map(settings: Settings) -> Mapping[str, SecurityProtocol]:
    key = "listener.security.protocol.map"
    protocols: dict[str, SecurityProtocol] = {}
    for text in settings.listener_security_protocol_map:
        name, _, protocol = text.rpartition(":")
        if not name or protocol.upper() not in list(SecurityProtocol):
            raise ConfigError(
                key,
                f"{text!r} is not of the form NAME:PROTOCOL, PROTOCOL one of {', '.join(SecurityProtocol)}",
            )
        protocols[name.strip().upper()] = SecurityProtocol(protocol.upper())
    return protocols


def _refuse_leftovers(settings: Settings, used: set[str]) -> None:
    """Refuse a `listener.name.` key that ends like one of ours but was not used: a slip of the pen."""
    for key in settings.overrides:
        if key not in used and key.endswith((JAAS_KEY, *_PER_LISTENER)):
            name = key.removeprefix(LISTENER_PREFIX).split(".")[0]
            raise ConfigError(key, f"it sets nothing: there is no listener {name.upper()} that would use it")


def _per_listener() -> Iterator[tuple[str, tuple[str, Option]]]:
    return ((declared.key, (name, declared)) for name, declared in options() if declared.per_listener)


_PER_LISTENER: Final = dict(_per_listener())
