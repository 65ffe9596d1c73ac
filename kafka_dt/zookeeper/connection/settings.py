"""The settings of a ZooKeeper client: plain values, and how they are made from the configuration.

Source: org.apache.kafka.server.config.ZkConfigs; org.apache.zookeeper.client.ConnectStringParser.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from kafka_dt.config import ConfigError, Secret, Settings
from kafka_dt.jaas import JaasError, parse_login_module
from kafka_dt.tls import TlsError, client_context

if TYPE_CHECKING:
    import ssl

DEFAULT_TIMEOUT_MS = 18_000
DEFAULT_MAX_IN_FLIGHT = 256
_CONNECT: Final = "zookeeper.connect"
DIGEST_LOGIN: Final = "kafka.dt.zookeeper.digest"
SASL_LOGIN: Final = "kafka.dt.zookeeper.sasl.jaas.config"
DIGEST_LOGIN_MODULE: Final = "org.apache.zookeeper.server.auth.DigestLoginModule"


class LoginScheme(Enum):
    """How kafka-dt logs in to ZooKeeper; the value is the scheme in the ACLs that follow from it."""

    DIGEST = "digest"
    """ZooKeeper's `addauth digest`: any name and password is taken, the ACLs decide what it opens."""
    SASL_DIGEST_MD5 = "sasl"
    """SASL DIGEST-MD5 with a user that the server knows: what a broker does with `DigestLoginModule`."""

    @property
    def setting(self) -> str:
        """The key of the configuration that has such a login."""
        return DIGEST_LOGIN if self is LoginScheme.DIGEST else SASL_LOGIN


@dataclass(frozen=True, slots=True)
class ZooKeeperLogin:
    """A name and password for ZooKeeper."""

    scheme: LoginScheme
    username: str
    """Must not contain a colon."""
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ZooKeeperSettings:
    """How to reach ZooKeeper, and by which login."""

    connect: str
    """`zookeeper.connect`: `host:port,host:port` and an optional chroot."""
    session_timeout_ms: int = DEFAULT_TIMEOUT_MS
    """`zookeeper.session.timeout.ms`: the server may shorten or lengthen it."""
    connection_timeout_ms: int = DEFAULT_TIMEOUT_MS
    """`zookeeper.connection.timeout.ms`: how long a start waits."""
    set_acl: bool = False
    """`zookeeper.set.acl`: whether what we make is ours alone (and readable by all where it is not sensitive)."""
    login: ZooKeeperLogin | None = None
    """The login; a TLS certificate is the other way to have an identity."""
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    """How to talk TLS, with trust, own certificate and host name check as wanted; None = without TLS."""
    has_certificate: bool = False
    """Whether `tls` has a certificate of ours, so that `set_acl` has an identity to give the znodes to."""
    makes_chroot: bool = True
    """Whether a chroot that is missing is made, as nodes do; for a command it is a slip of the pen."""
    max_in_flight: int = DEFAULT_MAX_IN_FLIGHT
    """How many requests may wait for an answer at once; more wait in this process."""


def zookeeper_settings(settings: Settings) -> ZooKeeperSettings:
    """Make the settings of the ZooKeeper client.

    Raises:
        ConfigError: naming the key that cannot be used.
    """
    if not settings.zookeeper_connect:
        raise ConfigError(
            _CONNECT,
            "is needed, for example localhost:2181; without a ZooKeeper, set kafka.dt.token.store=upstream, for the "
            "tokens of a Kafka 4 cluster",
        )
    login = _login(settings)
    has_certificate = settings.zookeeper_ssl_client_enable and bool(settings.zookeeper_ssl_keystore_location)
    if settings.zookeeper_set_acl and login is None and not has_certificate:
        raise ConfigError(
            "zookeeper.set.acl",
            f"needs a login that the znodes can belong to: set {DIGEST_LOGIN}, {SASL_LOGIN}, "
            "or TLS with zookeeper.ssl.keystore.location",
        )
    return ZooKeeperSettings(
        connect=_servers(settings.zookeeper_connect),
        session_timeout_ms=settings.zookeeper_session_timeout_ms,
        connection_timeout_ms=settings.zookeeper_connection_timeout_ms,
        set_acl=settings.zookeeper_set_acl,
        login=login,
        tls=_tls(settings) if settings.zookeeper_ssl_client_enable else None,
        has_certificate=has_certificate,
    )


def _servers(connect: str) -> str:
    """Return the servers and the chroot as ZooKeeper's own client reads them: without blanks and empty entries."""
    servers, slash, chroot = connect.partition("/")
    named = [server for each in servers.split(",") if (server := each.strip())]
    for server in named or [""]:
        if not _is_address(server):
            raise ConfigError(_CONNECT, f"{server!r} is not of the form host:port")
    return ",".join(named) + slash + chroot


def _is_address(server: str) -> bool:
    try:
        address = urlsplit(f"//{server}")
        return bool((address.hostname or "").encode("idna")) and address.port != 0
    except ValueError:  # a bracket that is not closed, a port that is none, a part of a name that is empty or too long
        return False


def _login(settings: Settings) -> ZooKeeperLogin | None:
    if settings.zookeeper_digest is not None and settings.zookeeper_jaas_config is not None:
        raise ConfigError(DIGEST_LOGIN, f"is given beside {SASL_LOGIN}; keep one of them")
    if settings.zookeeper_jaas_config is not None:
        return _sasl_login(settings.zookeeper_jaas_config)
    if settings.zookeeper_digest is None:
        return None
    username, colon, password = settings.zookeeper_digest.value.partition(":")
    if not (username and colon):
        raise ConfigError(DIGEST_LOGIN, "is not of the form user:password")
    return ZooKeeperLogin(LoginScheme.DIGEST, username, password)


def _sasl_login(line: Secret) -> ZooKeeperLogin:
    try:
        module = parse_login_module(line.value)
    except JaasError as error:
        raise ConfigError(SASL_LOGIN, str(error)) from None
    if module.name != DIGEST_LOGIN_MODULE:
        raise ConfigError(SASL_LOGIN, f"only {DIGEST_LOGIN_MODULE} can be used, not {module.name}")
    if not (module.username and module.password):
        raise ConfigError(SASL_LOGIN, "username and password are needed")
    return ZooKeeperLogin(LoginScheme.SASL_DIGEST_MD5, module.username, module.password)


def _tls(settings: Settings) -> ssl.SSLContext:
    """ZooKeeper's own prefix before Kafka's names."""
    values = {
        "ssl.truststore.location": settings.zookeeper_ssl_truststore_location,
        "ssl.truststore.password": _clear(settings.zookeeper_ssl_truststore_password),
        "ssl.keystore.location": settings.zookeeper_ssl_keystore_location,
        "ssl.keystore.password": _clear(settings.zookeeper_ssl_keystore_password),
        "ssl.endpoint.identification.algorithm": settings.zookeeper_ssl_endpoint_identification_algorithm,
    }
    try:
        return client_context({key: value for key, value in values.items() if value or "endpoint" in key})
    except TlsError as error:
        raise ConfigError(f"zookeeper.{error.key}", error.reason) from None


def _clear(secret: Secret | None) -> str:
    return secret.value if secret else ""
