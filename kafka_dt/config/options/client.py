"""What the settings of a node's own connections to Kafka brokers have in common: a gateway's, and audit events'.

Behind a prefix of ours they have the names, meanings and syntax of a Kafka client's settings.

Source: org.apache.kafka.common.config.SaslConfigs, org.apache.kafka.common.config.SslConfigs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kafka_dt.config.options.option import option

SCRAM_MECHANISMS: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
LOGIN_MECHANISMS: Final = ("PLAIN", *SCRAM_MECHANISMS)
"""The mechanisms by which a node can log in at brokers."""


def client_tls(key: str) -> Any:
    """Declare a field of the settings for an `ssl.` setting of Kafka's clients.

    key: its name with the prefix, such as `kafka.dt.audit.kafka.ssl.protocol`
    """
    prefix, ssl, name = key.partition("ssl.")
    default, doc, *choices = _TLS[ssl + name]
    return option(key, default, doc.format(prefix=prefix), choices=tuple(choices))


_STORE_TYPES: Final = ("JKS", "PKCS12", "PEM")
_TLS: Final[Mapping[str, tuple[Any, ...]]] = {
    "ssl.truststore.type": (
        "JKS",
        "The format of the trust store. The node recognizes the format by the content, so you need not set it.",
        *_STORE_TYPES,
    ),
    "ssl.truststore.location": (
        "",
        "A file with the certificates of the authorities that may sign the brokers' certificates (PEM or PKCS12). "
        "Without a trust store the node trusts the machine's certificates.",
    ),
    "ssl.truststore.password": (None, "The password of a PKCS12 trust store."),
    "ssl.truststore.certificates": (None, "The trusted certificates themselves, in PEM, instead of a trust store."),
    "ssl.keystore.type": (
        "JKS",
        "The format of the key store. The node recognizes the format by the content, so you need not set it.",
        *_STORE_TYPES,
    ),
    "ssl.keystore.location": (
        "",
        "A file with the node's private key and certificate chain (PEM or PKCS12), for brokers that ask for a "
        "certificate.",
    ),
    "ssl.keystore.password": (None, "The password of a PKCS12 key store."),
    "ssl.key.password": (None, "The password of an encrypted private key in PEM."),
    "ssl.keystore.key": (None, "The private key itself, in PEM, instead of a key store."),
    "ssl.keystore.certificate.chain": (
        None,
        "The certificates that belong to the private key, in PEM, the node's own first.",
    ),
    "ssl.endpoint.identification.algorithm": (
        "https",
        "Whether a broker's certificate must hold the host name that the node connects to; an empty value turns the "
        "check off.",
        *("https", "HTTPS", ""),
    ),
    "ssl.enabled.protocols": (("TLSv1.2", "TLSv1.3"), "The TLS versions that the node offers."),
    "ssl.protocol": (
        "TLSv1.3",
        "The highest TLS version that the node offers, if it is among `{prefix}ssl.enabled.protocols`.",
    ),
    "ssl.cipher.suites": ((), "The cipher suites that the node offers; none means OpenSSL's defaults."),
}
"""The default, the doc and the choices of each."""
