"""The options of listeners: their addresses, and TLS on them.

`kafka_dt.config.listeners` makes one value of them for each listener.

Source: org.apache.kafka.network.SocketServerConfigs; org.apache.kafka.common.config.SslConfigs,
org.apache.kafka.common.config.internals.BrokerSecurityConfigs.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka_dt.config.options.option import Secret, option, per_listener


@dataclass(frozen=True, kw_only=True)
class ListenerOptions:
    """Where a node listens."""

    broker_id: int = option(
        "broker.id",
        -1,
        "The id of this node in the answers to Metadata and DescribeCluster. -1 means 1001, the first id that a "
        "broker generates.",
        minimum=-1,
        aliases=("node.id",),
    )
    listeners: tuple[str, ...] = option(
        "listeners",
        ("PLAINTEXT://:9092",),
        "The addresses to listen on, `NAME://host:port` each. An empty host means every address of the machine; port "
        "0 means any free port.",
    )
    advertised_listeners: tuple[str, ...] = option(
        "advertised.listeners",
        (),
        "The addresses that the node gives to clients, where they differ from `listeners`.",
    )
    listener_security_protocol_map: tuple[str, ...] = option(
        "listener.security.protocol.map",
        ("PLAINTEXT:PLAINTEXT", "SSL:SSL", "SASL_PLAINTEXT:SASL_PLAINTEXT", "SASL_SSL:SASL_SSL"),
        "The security protocol of each listener name, `NAME:PROTOCOL` each.",
    )
    socket_listen_backlog_size: int = option(
        "socket.listen.backlog.size",
        50,
        "How many connections may wait until the node accepts them. The node asks the kernel for at least 1,024; "
        "net.core.somaxconn limits it.",
        minimum=1,
    )
    proxy_protocol: str = per_listener(
        "kafka.dt.proxy.protocol",
        "off",
        "Whether a load balancer in front of the node says whose connection it forwards (PROXY protocol, version "
        "1 or 2). The node then uses the client's own address: in ACLs, limits, audit events and its log. `required`: "
        "the node closes a connection without such a header. `optional`: clients may also connect directly. Needs "
        "`kafka.dt.proxy.protocol.networks`.",
        choices=("off", "optional", "required"),
    )
    proxy_protocol_networks: tuple[str, ...] = per_listener(
        "kafka.dt.proxy.protocol.networks",
        (),
        "The networks of the load balancers, such as `10.1.0.0/16,fd00:1::/64`. The node refuses a header from "
        "another address: its sender could choose any address as its own.",
    )
    socket_request_max_bytes: int = option(
        "socket.request.max.bytes",
        104857600,
        "The size of the largest request that the node takes from a client that has logged in.",
        minimum=1,
    )


@dataclass(frozen=True, kw_only=True)
class TlsOptions:
    """How the connections of listeners are encrypted."""

    ssl_keystore_type: str = per_listener(
        "ssl.keystore.type",
        "JKS",
        "The format of the key store. The node recognizes the format by the content, so you need not set it. It "
        "cannot read Java's own JKS; the error says how to convert such a file.",
        choices=("JKS", "PKCS12", "PEM"),
    )
    ssl_keystore_location: str = per_listener(
        "ssl.keystore.location",
        "",
        "A file with the private key and the certificate chain of the listener (PEM or PKCS12). The node reads the "
        "file again when it changes; new connections get the new certificate.",
    )
    ssl_keystore_password: Secret | None = per_listener(
        "ssl.keystore.password",
        None,
        "The password of a PKCS12 key store.",
    )
    ssl_key_password: Secret | None = per_listener(
        "ssl.key.password",
        None,
        "The password of an encrypted private key in PEM.",
    )
    ssl_keystore_key: Secret | None = per_listener(
        "ssl.keystore.key",
        None,
        "The private key itself, in PEM, instead of `ssl.keystore.location`.",
    )
    ssl_keystore_certificate_chain: Secret | None = per_listener(
        "ssl.keystore.certificate.chain",
        None,
        "The certificates that belong to `ssl.keystore.key`, in PEM, the listener's own first.",
    )
    ssl_truststore_type: str = per_listener(
        "ssl.truststore.type",
        "JKS",
        "The format of the trust store. The node recognizes it, as it does for `ssl.keystore.type`.",
        choices=("JKS", "PKCS12", "PEM"),
    )
    ssl_truststore_location: str = per_listener(
        "ssl.truststore.location",
        "",
        "A file with the certificates of the authorities that may sign clients' certificates (PEM or PKCS12). The "
        "node reads it again when it changes. Without a trust store the node trusts the machine's certificates.",
    )
    ssl_truststore_password: Secret | None = per_listener(
        "ssl.truststore.password",
        None,
        "The password of a PKCS12 trust store.",
    )
    ssl_truststore_certificates: Secret | None = per_listener(
        "ssl.truststore.certificates",
        None,
        "The trusted certificates themselves, in PEM, instead of `ssl.truststore.location`.",
    )
    ssl_client_auth: str = per_listener(
        "ssl.client.auth",
        "none",
        "Whether clients show a certificate: `required`; `requested`, if they have one; `none`. As in Kafka, a "
        "SASL_SSL listener has `none` unless you set the key for that listener by name.",
        choices=("required", "requested", "none"),
    )
    ssl_enabled_protocols: tuple[str, ...] = per_listener(
        "ssl.enabled.protocols",
        ("TLSv1.2", "TLSv1.3"),
        "The TLS versions that the node accepts.",
    )
    ssl_protocol: str = per_listener(
        "ssl.protocol",
        "TLSv1.3",
        "The highest TLS version that the node accepts, if it is among `ssl.enabled.protocols`.",
    )
    ssl_cipher_suites: tuple[str, ...] = per_listener(
        "ssl.cipher.suites",
        (),
        "The cipher suites that the node accepts, by their names in the RFCs or in OpenSSL; none means OpenSSL's "
        "defaults. Name all suites of TLS 1.3 or none of them.",
    )
    ssl_principal_mapping_rules: str = per_listener(
        "ssl.principal.mapping.rules",
        "DEFAULT",
        "How the distinguished name of a client's certificate becomes the principal of an SSL listener: rules of the "
        "form `RULE:pattern/replacement/`, with `L` or `U` after it for lower or upper case, or `DEFAULT` for the "
        "name unchanged. Commas separate the rules; the first that matches applies.",
    )
