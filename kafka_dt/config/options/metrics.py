"""The options of metrics and health, and of how a node leaves its clients.

The names behind `kafka.dt.metrics.ssl.` are those of a listener of Kafka.

Source: org.apache.kafka.common.config.SslConfigs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kafka_dt.config.options.option import Kind, Secret, option

METRICS_PREFIX: Final = "kafka.dt.metrics."
NO_LISTENER: Final = "none"


@dataclass(frozen=True, kw_only=True)
class MetricsOptions:
    """The endpoint of metrics and health."""

    metrics_listener: str = option(
        "kafka.dt.metrics.listener",
        NO_LISTENER,
        "Where the node serves [metrics](metrics.md) and [health](how-to/monitor.md#health) over HTTP, such as "
        "`http://127.0.0.1:9404`, or `https://:9404` on all addresses. One process of the node serves them for all "
        "workers. `none` turns them off.",
    )
    metrics_user: str = option(
        "kafka.dt.metrics.user",
        "",
        "The user name that `/metrics` asks for (HTTP basic authentication); without one, any client that reaches the "
        "port may read the metrics. `/livez` and `/readyz` ask for none.",
    )
    metrics_password: Secret | None = option(
        "kafka.dt.metrics.password",
        None,
        "The password of that user.",
    )
    metrics_ssl_keystore_type: str = option(
        "kafka.dt.metrics.ssl.keystore.type",
        "JKS",
        "The format of the key store. The node recognizes the format by the content, so you need not set it.",
        choices=("JKS", "PKCS12", "PEM"),
    )
    metrics_ssl_keystore_location: str = option(
        "kafka.dt.metrics.ssl.keystore.location",
        "",
        "A file with the private key and the certificate chain of an `https` listener (PEM or PKCS12). The node reads "
        "the file again when it changes.",
    )
    metrics_ssl_keystore_password: Secret | None = option(
        "kafka.dt.metrics.ssl.keystore.password",
        None,
        "The password of a PKCS12 key store.",
    )
    metrics_ssl_key_password: Secret | None = option(
        "kafka.dt.metrics.ssl.key.password",
        None,
        "The password of an encrypted private key in PEM.",
    )
    metrics_ssl_truststore_type: str = option(
        "kafka.dt.metrics.ssl.truststore.type",
        "JKS",
        "The format of the trust store. The node recognizes the format by the content, so you need not set it.",
        choices=("JKS", "PKCS12", "PEM"),
    )
    metrics_ssl_truststore_location: str = option(
        "kafka.dt.metrics.ssl.truststore.location",
        "",
        "A file with the certificates of the authorities that may sign the certificates of those who scrape.",
    )
    metrics_ssl_truststore_password: Secret | None = option(
        "kafka.dt.metrics.ssl.truststore.password",
        None,
        "The password of a PKCS12 trust store.",
    )
    metrics_ssl_client_auth: str = option(
        "kafka.dt.metrics.ssl.client.auth",
        "none",
        "Whether those who connect must show a certificate; `required` holds for health as well.",
        choices=("none", "requested", "required"),
    )
    drain_delay_ms: int = option(
        "kafka.dt.drain.delay.ms",
        0,
        "How long a node that is told to stop goes on serving while `/readyz` says `draining`, so that load balancers "
        "send new clients elsewhere before it closes connections; `kafka.dt.drain.timeout.ms` counts from then on. A "
        "second SIGTERM ends the delay.",
        minimum=0,
        kind=Kind.LONG,
    )
