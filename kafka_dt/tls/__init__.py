"""TLS contexts from Kafka's `ssl.*` settings, for both sides of a connection.

`client_context` and `server_context` take the settings by their Kafka names, with secrets already in clear, and
return a context ready for asyncio; `ReloadingContext` is a listener's that follows its files. Read `contexts.py` first;
`stores.py` reads keys and certificates.

Limits: Java's own store formats (JKS, JCEKS) are refused with the command that converts them; Java's settings about
providers, key manager algorithms and engine classes have no meaning here and are not looked at.

Source: org.apache.kafka.common.config.SslConfigs, org.apache.kafka.common.security.ssl.DefaultSslEngineFactory.
"""

from kafka_dt.tls.contexts import TRUST_STORES, ReloadingContext, client_context, common_contexts, server_context
from kafka_dt.tls.stores import TlsError, read_identity

__all__ = [
    "TRUST_STORES",
    "ReloadingContext",
    "TlsError",
    "client_context",
    "common_contexts",
    "read_identity",
    "server_context",
]
