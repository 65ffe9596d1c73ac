"""The option table: every setting of kafka-dt, declared once as a typed field.

The names, meanings, defaults and value syntax are those of a Kafka broker wherever Kafka has the setting.
`kafka_dt.config.load` fills it from a `server.properties`; `kafka_dt.config.manual` makes the manual of it.

Source: Kafka's broker configuration; KIP-48's drafts (`.sec` spellings).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields

from kafka_dt.config.options.option import OPTION, Kind, Option, Secret, Section, Source, option
from kafka_dt.config.options.token_limits import TokenLimitOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(TokenLimitOptions):
    """The settings of one node; the modules `*_options.py` beside this one have their parts of them."""

    broker_id: int = option(
        "broker.id",
        Kind.INT,
        -1,
        "The id under which this node shows itself in Metadata and DescribeCluster. "
        "-1 stands for 1001, the first id that a broker generates.",
        section=Section.LISTENERS,
        minimum=-1,
    )
    listeners: tuple[str, ...] = option(
        "listeners",
        Kind.LIST,
        ("PLAINTEXT://:9092",),
        "The addresses to listen on, `NAME://host:port` each. An empty host is every address of the machine; "
        "port 0 is any free port.",
        section=Section.LISTENERS,
    )
    advertised_listeners: tuple[str, ...] = option(
        "advertised.listeners",
        Kind.LIST,
        (),
        "The addresses that clients are told, where they differ from `listeners`.",
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
        "How many connections may wait to be accepted; at least 1,024, if net.core.somaxconn allows it.",
        section=Section.LISTENERS,
        minimum=1,
    )
    socket_request_max_bytes: int = option(
        "socket.request.max.bytes",
        Kind.INT,
        104857600,
        "The largest request of a client that has logged in.",
        section=Section.LISTENERS,
        unit="bytes",
        minimum=1,
    )
    ssl_keystore_type: str = option(
        "ssl.keystore.type",
        Kind.STRING,
        "JKS",
        "The format of the key store. It is seen from the content, so this need not be set; Java's own JKS cannot "
        "be read, and the error says how to convert it.",
        section=Section.TLS,
        choices=("JKS", "PKCS12", "PEM"),
        per_listener=True,
    )
    ssl_keystore_location: str = option(
        "ssl.keystore.location",
        Kind.STRING,
        "",
        "A file with the private key and the certificate chain of the listener (PEM or PKCS12). When it changes it is "
        "read again, and new connections get the new certificate.",
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
        "The certificates that go with `ssl.keystore.key`, in PEM, the listener's own first.",
        section=Section.TLS,
        per_listener=True,
    )
    ssl_truststore_type: str = option(
        "ssl.truststore.type",
        Kind.STRING,
        "JKS",
        "The format of the trust store; as `ssl.keystore.type`.",
        section=Section.TLS,
        choices=("JKS", "PKCS12", "PEM"),
        per_listener=True,
    )
    ssl_truststore_location: str = option(
        "ssl.truststore.location",
        Kind.STRING,
        "",
        "A file with the certificates that those of clients must come from (PEM or PKCS12). Read again when it "
        "changes. Without a trust store the machine's certificates are trusted.",
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
        "Whether clients show a certificate: `required`, `requested` (they may), `none`. As in Kafka a SASL_SSL "
        "listener is `none` unless it is set for that listener by name.",
        section=Section.TLS,
        choices=("required", "requested", "none"),
        per_listener=True,
    )
    ssl_enabled_protocols: tuple[str, ...] = option(
        "ssl.enabled.protocols",
        Kind.LIST,
        ("TLSv1.2", "TLSv1.3"),
        "The protocol versions that are spoken.",
        section=Section.TLS,
        per_listener=True,
    )
    ssl_protocol: str = option(
        "ssl.protocol",
        Kind.STRING,
        "TLSv1.3",
        "The highest protocol version that is spoken, if it is among `ssl.enabled.protocols`.",
        section=Section.TLS,
        per_listener=True,
    )
    ssl_cipher_suites: tuple[str, ...] = option(
        "ssl.cipher.suites",
        Kind.LIST,
        (),
        "The cipher suites that are spoken, by their names in the RFCs or in OpenSSL; without any, OpenSSL's defaults. "
        "Of the suites of TLS 1.3 all are named or none.",
        section=Section.TLS,
        per_listener=True,
    )
    ssl_principal_mapping_rules: str = option(
        "ssl.principal.mapping.rules",
        Kind.STRING,
        "DEFAULT",
        "How the principal of an SSL listener comes from the distinguished name of the client's certificate: "
        "`RULE:pattern/replacement/`, with `L` or `U` after it for lower or upper case, or `DEFAULT` for the name as "
        "it is; separated by commas, the first that matches counts.",
        section=Section.TLS,
        per_listener=True,
    )
    sasl_enabled_mechanisms: tuple[str, ...] = option(
        "sasl.enabled.mechanisms",
        Kind.LIST,
        ("GSSAPI",),
        "The SASL mechanisms of a listener, such as `SCRAM-SHA-256,PLAIN`; "
        "[the list](protocol.md#sasl-mechanisms) says which there are and who logs in by each.",
        section=Section.AUTHENTICATION,
        per_listener=True,
    )
    sasl_server_max_receive_size: int = option(
        "sasl.server.max.receive.size",
        Kind.INT,
        524288,
        "The largest request of a client that has not logged in yet.",
        section=Section.AUTHENTICATION,
        unit="bytes",
        minimum=1,
    )
    connections_max_reauth_ms: int = option(
        "connections.max.reauth.ms",
        Kind.LONG,
        0,
        "After this long a session has to log in again (KIP-368); 0 is never. "
        "`listener.name.<name>.<mechanism>.connections.max.reauth.ms` sets it for one mechanism of one listener.",
        section=Section.AUTHENTICATION,
        unit="milliseconds",
        minimum=0,
        per_listener=True,
    )
    kerberos_service_name: str = option(
        "sasl.kerberos.service.name",
        Kind.STRING,
        "",
        "The service that the principal of GSSAPI's JAAS line is of, such as `kafka`.",
        section=Section.AUTHENTICATION,
        per_listener=True,
    )
    kerberos_principal_to_local_rules: tuple[str, ...] = option(
        "sasl.kerberos.principal.to.local.rules",
        Kind.LIST,
        ("DEFAULT",),
        "How Kerberos names become names of principals; the first rule that fits counts. `DEFAULT` takes names of the "
        "default realm and leaves the first component; rules of your own are written as in Kafka.",
        section=Section.AUTHENTICATION,
        per_listener=True,
    )
    oauthbearer_jwks_endpoint_url: str = option(
        "sasl.oauthbearer.jwks.endpoint.url",
        Kind.STRING,
        "",
        "Where the keys are that OAUTHBEARER's tokens are signed with, a JWKS: an `https:`, `http:` or `file:` URL.",
        section=Section.AUTHENTICATION,
        per_listener=True,
    )
    oauthbearer_jwks_endpoint_refresh_ms: int = option(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        Kind.LONG,
        3600000,
        "How often the JWKS is read again. It is also read when a token names a key that it does not hold, "
        "at most once in ten seconds.",
        section=Section.AUTHENTICATION,
        unit="milliseconds",
        minimum=1,
        per_listener=True,
    )
    oauthbearer_jwks_endpoint_retry_backoff_ms: int = option(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        Kind.LONG,
        100,
        "How long to wait after a first attempt to read the JWKS has failed; twice as long after each further one.",
        section=Section.AUTHENTICATION,
        unit="milliseconds",
        minimum=1,
        per_listener=True,
    )
    oauthbearer_jwks_endpoint_retry_backoff_max_ms: int = option(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        Kind.LONG,
        10000,
        "The longest wait between attempts to read the JWKS.",
        section=Section.AUTHENTICATION,
        unit="milliseconds",
        minimum=1,
        per_listener=True,
    )
    oauthbearer_clock_skew_seconds: int = option(
        "sasl.oauthbearer.clock.skew.seconds",
        Kind.INT,
        30,
        "How far the clocks of the issuer and of this node may be apart.",
        section=Section.AUTHENTICATION,
        unit="seconds",
        minimum=0,
        per_listener=True,
    )
    oauthbearer_expected_audience: tuple[str, ...] = option(
        "sasl.oauthbearer.expected.audience",
        Kind.LIST,
        (),
        "A token must be meant for one of these (`aud`). Without it a token that says whom it is meant for is refused.",
        section=Section.AUTHENTICATION,
        per_listener=True,
    )
    oauthbearer_expected_issuer: str = option(
        "sasl.oauthbearer.expected.issuer",
        Kind.STRING,
        "",
        "Who must have made a token (`iss`).",
        section=Section.AUTHENTICATION,
        per_listener=True,
    )
    oauthbearer_scope_claim_name: str = option(
        "sasl.oauthbearer.scope.claim.name",
        Kind.STRING,
        "scope",
        "The claim that holds a token's scopes. They are checked for their form only, as in Kafka.",
        section=Section.AUTHENTICATION,
        per_listener=True,
    )
    oauthbearer_sub_claim_name: str = option(
        "sasl.oauthbearer.sub.claim.name",
        Kind.STRING,
        "sub",
        "The claim that holds the name of the principal.",
        section=Section.AUTHENTICATION,
        per_listener=True,
    )
    oauthbearer_allow_unsigned_tokens: bool = option(
        "kafka.dt.sasl.oauthbearer.allow.unsigned.tokens",
        Kind.BOOLEAN,
        False,
        "Whether OAUTHBEARER also takes tokens without a signature (`alg` none): everybody may be anybody then. "
        "A broker does so unless it is told otherwise.",
        section=Section.AUTHENTICATION,
        source=Source.KAFKA_DT,
        per_listener=True,
    )
    connection_failed_authentication_delay_ms: int = option(
        "connection.failed.authentication.delay.ms",
        Kind.INT,
        100,
        "How long the answer to a failed login is held back, and with it the closing of the connection.",
        section=Section.AUTHENTICATION,
        unit="milliseconds",
        minimum=0,
    )
    authorizer_class_name: str = option(
        "authorizer.class.name",
        Kind.STRING,
        "",
        "Empty: as in Kafka, every user may do everything, also create tokens for others. "
        "`kafka.security.authorizer.AclAuthorizer`: super users, and whom the ACLs in ZooKeeper allow it.",
        section=Section.AUTHORIZATION,
        choices=("", "kafka.security.authorizer.AclAuthorizer"),
    )
    super_users: str = option(
        "super.users",
        Kind.STRING,
        "",
        "Principals that may do everything, separated by semicolons: `User:admin;User:ops`.",
        section=Section.AUTHORIZATION,
    )
    allow_everyone_if_no_acl_found: bool = option(
        "allow.everyone.if.no.acl.found",
        Kind.BOOLEAN,
        False,
        "Whether everyone may use a resource that no ACL names.",
        section=Section.AUTHORIZATION,
    )
    super_users_revoke_any: bool = option(
        "kafka.dt.super.users.revoke.any",
        Kind.BOOLEAN,
        True,
        "Whether super users may expire every token. Kafka lets only the owner and the renewers do so.",
        section=Section.AUTHORIZATION,
        source=Source.KAFKA_DT,
    )
    secret_key: Secret | None = option(
        "delegation.token.secret.key",
        Kind.PASSWORD,
        None,
        "The key that HMACs are made with, the same on all nodes and brokers. Without it, or with an empty one, "
        "every request about tokens is refused. A file (`file:/path`) is looked at every second, and a new key in it "
        "is taken at once: `kafka-dt keys rotate`.",
        section=Section.TOKENS,
        aliases=("delegation.token.master.key",),
    )
    previous_secret_keys: Secret | None = option(
        "kafka.dt.secret.keys.previous",
        Kind.PASSWORD,
        None,
        "Older secret keys, one a line, the newest first. Tokens that were made with them go on working, and what is "
        "sealed with them stays readable. A file is looked at every second; it has to exist, and may be empty.",
        section=Section.TOKENS,
        source=Source.KAFKA_DT,
        empty_file=True,
    )
    metadata_encryption: bool = option(
        "delegation.token.metadata.encryption.enable",
        Kind.BOOLEAN,
        True,
        "Whether tokens are sealed (encrypted, then authenticated) in ZooKeeper. Brokers cannot read sealed tokens: "
        "beside brokers this is false. Plain and sealed tokens are read either way.",
        section=Section.TOKENS,
        source=Source.KIP_395,
    )
    max_lifetime_ms: int = option(
        "delegation.token.max.lifetime.ms",
        Kind.LONG,
        604800000,
        "The time after which a token cannot be renewed any more.",
        section=Section.TOKENS,
        unit="milliseconds",
        minimum=1,
        seconds_alias="delegation.token.max.lifetime.sec",
    )
    expiry_time_ms: int = option(
        "delegation.token.expiry.time.ms",
        Kind.LONG,
        86400000,
        "The time after which a token ends unless it is renewed.",
        section=Section.TOKENS,
        unit="milliseconds",
        minimum=1,
        seconds_alias="delegation.token.expiry.time.sec",
    )
    expiry_check_interval_ms: int = option(
        "delegation.token.expiry.check.interval.ms",
        Kind.LONG,
        3600000,
        "How often expired tokens are removed.",
        section=Section.TOKENS,
        unit="milliseconds",
        minimum=1,
    )
    hmac_algorithm: str = option(
        "kafka.dt.token.hmac.algorithm",
        Kind.STRING,
        "HmacSHA512",
        "The HMAC of a token. Brokers use HmacSHA512; HmacSHA1 is the text of KIP-48.",
        section=Section.TOKENS,
        source=Source.KAFKA_DT,
        choices=("HmacSHA512", "HmacSHA256", "HmacSHA1"),
    )
    auth_without_extension: bool = option(
        "kafka.dt.token.auth.without.extension",
        Kind.BOOLEAN,
        True,
        "Whether a SCRAM login whose user name is a live token id, and no SCRAM user, is a login by token although "
        "the client did not send `tokenauth=true`. librdkafka, aiokafka, kafka-python and sarama cannot send it.",
        section=Section.TOKENS,
        source=Source.KAFKA_DT,
    )
    zookeeper_connect: str = option(
        "zookeeper.connect",
        Kind.STRING,
        "",
        "The ZooKeeper ensemble, `host:port,host:port/chroot`.",
        section=Section.ZOOKEEPER,
    )
    zookeeper_session_timeout_ms: int = option(
        "zookeeper.session.timeout.ms",
        Kind.INT,
        18000,
        "After this long without a sign of life ZooKeeper ends our session.",
        section=Section.ZOOKEEPER,
        unit="milliseconds",
        minimum=1,
    )
    zookeeper_connection_timeout_ms: int = option(
        "zookeeper.connection.timeout.ms",
        Kind.INT,
        18000,
        "How long the start waits for ZooKeeper.",
        section=Section.ZOOKEEPER,
        unit="milliseconds",
        minimum=1,
    )
    zookeeper_set_acl: bool = option(
        "zookeeper.set.acl",
        Kind.BOOLEAN,
        False,
        "Whether the znodes that we make are ours alone. Needs credentials for ZooKeeper.",
        section=Section.ZOOKEEPER,
    )
    zookeeper_ssl_client_enable: bool = option(
        "zookeeper.ssl.client.enable",
        Kind.BOOLEAN,
        False,
        "Whether to talk TLS to ZooKeeper.",
        section=Section.ZOOKEEPER,
    )
    zookeeper_ssl_truststore_location: str = option(
        "zookeeper.ssl.truststore.location",
        Kind.STRING,
        "",
        "The certificates that ZooKeeper's must come from (PEM or PKCS12).",
        section=Section.ZOOKEEPER,
    )
    zookeeper_ssl_truststore_password: Secret | None = option(
        "zookeeper.ssl.truststore.password",
        Kind.PASSWORD,
        None,
        "The password of the trust store.",
        section=Section.ZOOKEEPER,
    )
    zookeeper_ssl_keystore_location: str = option(
        "zookeeper.ssl.keystore.location",
        Kind.STRING,
        "",
        "Our certificate and private key for ZooKeeper (PEM or PKCS12).",
        section=Section.ZOOKEEPER,
    )
    zookeeper_ssl_keystore_password: Secret | None = option(
        "zookeeper.ssl.keystore.password",
        Kind.PASSWORD,
        None,
        "The password of the key store.",
        section=Section.ZOOKEEPER,
    )
    zookeeper_ssl_endpoint_identification_algorithm: str = option(
        "zookeeper.ssl.endpoint.identification.algorithm",
        Kind.STRING,
        "HTTPS",
        "Whether ZooKeeper's certificate must bear the name that we connect to; an empty value says no.",
        section=Section.ZOOKEEPER,
        choices=("HTTPS", "https", ""),
    )
    zookeeper_digest: Secret | None = option(
        "kafka.dt.zookeeper.digest",
        Kind.PASSWORD,
        None,
        "`user:password` for ZooKeeper's digest scheme.",
        section=Section.ZOOKEEPER,
        source=Source.KAFKA_DT,
    )
    zookeeper_jaas_config: Secret | None = option(
        "kafka.dt.zookeeper.sasl.jaas.config",
        Kind.PASSWORD,
        None,
        "The login module that a broker has in the section `Client` of its JAAS file, for SASL DIGEST-MD5: "
        '`org.apache.zookeeper.server.auth.DigestLoginModule required username="kafka" password="...";`. '
        "Needed beside brokers that own their znodes by SASL (`zookeeper.set.acl`).",
        section=Section.ZOOKEEPER,
        source=Source.KAFKA_DT,
    )
    zookeeper_max_staleness_ms: int = option(
        "kafka.dt.zookeeper.max.staleness.ms",
        Kind.LONG,
        30000,
        "The longest time for which a node may accept a token that was revoked, whatever happens to it: cut off from "
        "ZooKeeper, on a member that is cut off from the others, or frozen. A worker that has not proved for this "
        "long that it knows all revocations accepts no login by token. It makes such a proof, a write to ZooKeeper, "
        "three times in this period.",
        section=Section.ZOOKEEPER,
        source=Source.KAFKA_DT,
        unit="milliseconds",
        minimum=1000,
    )
    change_retention_ms: int = option(
        "kafka.dt.zookeeper.change.retention.ms",
        Kind.LONG,
        60000,
        "How long the change nodes that we make stay for brokers and other nodes to read. A broker keeps its own "
        "for 15 minutes, too long at thousands of changes a second.",
        section=Section.ZOOKEEPER,
        source=Source.KAFKA_DT,
        unit="milliseconds",
        minimum=1000,
    )
    overrides: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The keys of the form `listener.name.<name>...`, which `kafka_dt.config.listeners` reads."""


def options() -> Iterator[tuple[str, Option]]:
    """Walk the table: the field's name and its option, in the order of declaration."""
    for declared in fields(Settings):
        if OPTION in declared.metadata:
            yield declared.name, declared.metadata[OPTION]
