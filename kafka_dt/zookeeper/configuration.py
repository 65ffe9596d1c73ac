"""From the configuration to what the ZooKeeper client needs.

Source: org.apache.kafka.server.config.ZkConfigs.
"""

from __future__ import annotations

import ssl

from kafka_dt.config import ConfigError, Secret, Settings
from kafka_dt.tls import TlsError, client_context
from kafka_dt.zookeeper.settings import LoginScheme, ZooKeeperLogin, ZooKeeperSettings


def zookeeper_settings(settings: Settings) -> ZooKeeperSettings:
    """Make the settings of the ZooKeeper client.

    Raises:
        ConfigError: naming the key that cannot be used.
    """
    if not settings.zookeeper_connect:
        raise ConfigError("zookeeper.connect", "is needed, for example localhost:2181")
    login = _login(settings)
    if settings.zookeeper_set_acl and login is None and not settings.zookeeper_ssl_keystore_location:
        raise ConfigError(
            "zookeeper.set.acl", "needs somebody to give the znodes to: kafka.dt.zookeeper.digest or a key store"
        )
    return ZooKeeperSettings(
        connect=settings.zookeeper_connect,
        session_timeout_ms=settings.zookeeper_session_timeout_ms,
        connection_timeout_ms=settings.zookeeper_connection_timeout_ms,
        set_acl=settings.zookeeper_set_acl,
        login=login,
        tls=_tls(settings) if settings.zookeeper_ssl_client_enable else None,
        has_certificate=bool(settings.zookeeper_ssl_keystore_location),
    )


def _login(settings: Settings) -> ZooKeeperLogin | None:
    if settings.zookeeper_digest is None:
        return None
    username, colon, password = settings.zookeeper_digest.value.partition(":")
    if not (username and colon):
        raise ConfigError("kafka.dt.zookeeper.digest", "is not of the form user:password")
    return ZooKeeperLogin(LoginScheme.DIGEST, username, password)


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
