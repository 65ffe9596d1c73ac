"""The part of the option table that is about principals: how they log in, and what they may do.

Source: org.apache.kafka.common.config.SaslConfigs, org.apache.kafka.common.config.internals.BrokerSecurityConfigs,
kafka.security.authorizer.AclAuthorizer.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka_dt.config.options.option import Kind, Section, Source, option


@dataclass(frozen=True, kw_only=True)
class AccessOptions:
    """How clients prove who they are, and what their principals may do."""

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
