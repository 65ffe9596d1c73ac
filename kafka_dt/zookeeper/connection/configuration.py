"""Make the settings of the ZooKeeper client from the configuration.

Source: org.apache.kafka.server.config.ZkConfigs.
"""

from __future__ import annotations

import ssl
from typing import Final

from kafka_dt.config import ConfigError, Secret, Settings
from kafka_dt.jaas import JaasError, parse_login_module
from kafka_dt.tls import TlsError, client_context
from kafka_dt.zookeeper.connection.settings import LoginScheme, ZooKeeperLogin, ZooKeeperSettings

_DIGEST: Final = "kafka.dt.zookeeper.digest"
_JAAS: Final = "kafka.dt.zookeeper.sasl.jaas.config"
DIGEST_LOGIN_MODULE: Final = "org.apache.zookeeper.server.auth.DigestLoginModule"


def zookeeper_settings(settings: Settings) -> ZooKeeperSettings:
    """Make the settings of the ZooKeeper client.

    Raises:
        ConfigError: naming the key that cannot be used.
    """
    if not settings.zookeeper_connect:
        raise ConfigError("zookeeper.connect", "is needed, for example localhost:2181")
    login = _login(settings)
    has_certificate = settings.zookeeper_ssl_client_enable and bool(settings.zookeeper_ssl_keystore_location)
    if settings.zookeeper_set_acl and login is None and not has_certificate:
        raise ConfigError(
            "zookeeper.set.acl",
            f"needs a login that the znodes can belong to: set {_DIGEST}, {_JAAS}, "
            "or TLS with zookeeper.ssl.keystore.location",
        )
    return ZooKeeperSettings(
        connect=settings.zookeeper_connect,
        session_timeout_ms=settings.zookeeper_session_timeout_ms,
        connection_timeout_ms=settings.zookeeper_connection_timeout_ms,
        set_acl=settings.zookeeper_set_acl,
        login=login,
        tls=_tls(settings) if settings.zookeeper_ssl_client_enable else None,
        has_certificate=has_certificate,
    )


def _login(settings: Settings) -> ZooKeeperLogin | None:
    if settings.zookeeper_digest is not None and settings.zookeeper_jaas_config is not None:
        raise ConfigError(_DIGEST, f"is given beside {_JAAS}; keep one of them")
    if settings.zookeeper_jaas_config is not None:
        return _sasl_login(settings.zookeeper_jaas_config)
    if settings.zookeeper_digest is None:
        return None
    username, colon, password = settings.zookeeper_digest.value.partition(":")
    if not (username and colon):
        raise ConfigError(_DIGEST, "is not of the form user:password")
    return ZooKeeperLogin(LoginScheme.DIGEST, username, password)


def _sasl_login(line: Secret) -> ZooKeeperLogin:
    try:
        module = parse_login_module(line.value)
    except JaasError as error:
        raise ConfigError(_JAAS, str(error)) from None
    if module.name != DIGEST_LOGIN_MODULE:
        raise ConfigError(_JAAS, f"only {DIGEST_LOGIN_MODULE} can be used, not {module.name}")
    if not (module.username and module.password):
        raise ConfigError(_JAAS, "username and password are needed")
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
