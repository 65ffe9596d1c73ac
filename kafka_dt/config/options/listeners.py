"""The options of listeners: their addresses, and TLS on them.

`kafka_dt.config.listeners` makes one value of them for each listener.

Source: org.apache.kafka.network.SocketServerConfigs; org.apache.kafka.common.config.SslConfigs,
org.apache.kafka.common.config.internals.BrokerSecurityConfigs.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka_dt.config.options.option import Kind, Secret, Section, option


@dataclass(frozen=True, kw_only=True)
class ListenerOptions:
    """Where a node listens, and how connections are encrypted."""

    broker_id: int = option(
        "broker.id",
        Kind.INT,
        -1,
        "The id of this node in the answers to Metadata and DescribeCluster. -1 means 1001, the first id that a "
        "broker generates.",
        section=Section.LISTENERS,
        minimum=-1,
    )
    listeners: tuple[str, ...] = option(
        "listeners",
        Kind.LIST,
        ("PLAINTEXT://:9092",),
        "The addresses to listen on, `NAME://host:port` each. An empty host means every address of the machine; port "
        "0 means any free port.",
        section=Section.LISTENERS,
    )
    advertised_listeners: tuple[str, ...] = option(
        "advertised.listeners",
        Kind.LIST,
        (),
        "The addresses that the node gives to clients, where they differ from `listeners`.",
        section=Section.LISTENERS,
    )
    listener_security_protocol_map: tuple[str, ...] = option(
        "listener.security.protocol.map",
        Kind.LIST,
        ("PLAINTEXT:PLAINTEXT", "SSL:SSL", "SASL_PLAINTEXT:SASL_PLAINTEXT", "SASL_SSL:SASL_SSL"),
        "The security protocol of each listener name, `NAME:PROTOCOL` each.",
        section=Section.LISTENERS,
    )
    socket_listen_backlog_size: int = option(
        "socket.listen.backlog.size",
        Kind.INT,
        50,
        "How many connections may wait until the node accepts them. The node asks the kernel for at least 1,024; "
        "net.core.somaxconn limits it.",
        section=Section.LISTENERS,
        minimum=1,
    )
    socket_request_max_bytes: int = option(
        "socket.request.max.bytes",
        Kind.INT,
        104857600,
        "The size of the largest request that the node takes from a client that has logged in.",
        section=Section.LISTENERS,
        unit="bytes",
        minimum=1,
    )
    ssl_keystore_type: str = option(
        "ssl.keystore.type",
        Kind.STRING,
        "JKS",
        "The format of the key store. The node recognizes the format by the content, so you need not set it. It "
        "cannot read Java's own JKS; the error says how to convert such a file.",
        section=Section.TLS,
        choices=("JKS", "PKCS12", "PEM"),
        per_listener=True,
    )
    ssl_keystore_location: str = option(
        "ssl.keystore.location",
        Kind.STRING,
        "",
        "A file with the private key and the certificate chain of the listener (PEM or PKCS12). The node reads the "
        "file again when it changes; new connections get the new certificate.",
        section=Section.TLS,
        per_listener=True,
    )
    ssl_keystore_password: Secret | None = option(
        "ssl.keystore.password",
        Kind.PASSWORD,
        None,
        "The password of a PKCS12 key store.",
        section=Section.TLS,
        per_listener=True,
    )
    ssl_key_password: Secret | None = option(
        "ssl.key.password",
        Kind.PASSWORD,
        None,
        "The password of an encrypted private key in PEM.",
        section=Section.TLS,
        per_listener=True,
    )
    ssl_keystore_key: Secret | None = option(
        "ssl.keystore.key",
        Kind.PASSWORD,
        None,
        "The private key itself, in PEM, instead of `ssl.keystore.location`.",
        section=Section.TLS,
        per_listener=True,
    )
    ssl_keystore_certificate_chain: Secret | None = option(
        "ssl.keystore.certificate.chain",
        Kind.PASSWORD,
        None,
        "The certificates that belong to `ssl.keystore.key`, in PEM, the listener's own first.",
        section=Section.TLS,
        per_listener=True,
    )
    ssl_truststore_type: str = option(
        "ssl.truststore.type",
        Kind.STRING,
        "JKS",
        "The format of the trust store. The node recognizes it, as it does for `ssl.keystore.type`.",
        section=Section.TLS,
        choices=("JKS", "PKCS12", "PEM"),
        per_listener=True,
    )
    ssl_truststore_location: str = option(
        "ssl.truststore.location",
        Kind.STRING,
        "",
        "A file with the certificates of the authorities that may sign clients' certificates (PEM or PKCS12). The "
        "node reads it again when it changes. Without a trust store the node trusts the machine's certificates.",
        section=Section.TLS,
        per_listener=True,
    )
    ssl_truststore_password: Secret | None = option(
        "ssl.truststore.password",
        Kind.PASSWORD,
        None,
        "The password of a PKCS12 trust store.",
        section=Section.TLS,
        per_listener=True,
    )
    ssl_truststore_certificates: Secret | None = option(
        "ssl.truststore.certificates",
        Kind.PASSWORD,
        None,
        "The trusted certificates themselves, in PEM, instead of `ssl.truststore.location`.",
        section=Section.TLS,
        per_listener=True,
    )
    ssl_client_auth: str = option(
        "ssl.client.auth",
        Kind.STRING,
        "none",
        "Whether clients show a certificate: `required`; `requested`, if they have one; `none`. As in Kafka, a "
        "SASL_SSL listener has `none` unless you set the key for that listener by name.",
        section=Section.TLS,
        choices=("required", "requested", "none"),
        per_listener=True,
    )
    ssl_enabled_protocols: tuple[str, ...] = option(
        "ssl.enabled.protocols",
        Kind.LIST,
        ("TLSv1.2", "TLSv1.3"),
        "The TLS versions that the node accepts.",
        section=Section.TLS,
        per_listener=True,
    )
    ssl_protocol: str = option(
        "ssl.protocol",
        Kind.STRING,
        "TLSv1.3",
        "The highest TLS version that the node accepts, if it is among `ssl.enabled.protocols`.",
        section=Section.TLS,
        per_listener=True,
    )
    ssl_cipher_suites: tuple[str, ...] = option(
        "ssl.cipher.suites",
        Kind.LIST,
        (),
        "The cipher suites that the node accepts, by their names in the RFCs or in OpenSSL; none means OpenSSL's "
        "defaults. Name all suites of TLS 1.3 or none of them.",
        section=Section.TLS,
        per_listener=True,
    )
    ssl_principal_mapping_rules: str = option(
        "ssl.principal.mapping.rules",
        Kind.STRING,
        "DEFAULT",
        "How the distinguished name of a client's certificate becomes the principal of an SSL listener: rules of the "
        "form `RULE:pattern/replacement/`, with `L` or `U` after it for lower or upper case, or `DEFAULT` for the "
        "name unchanged. Commas separate the rules; the first that matches applies.",
        section=Section.TLS,
        per_listener=True,
    )
