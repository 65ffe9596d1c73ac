"""The options about principals: how they log in, and what they may do.

Source: org.apache.kafka.common.config.SaslConfigs, org.apache.kafka.common.config.internals.BrokerSecurityConfigs,
kafka.security.authorizer.AclAuthorizer.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka_dt.config.options.option import Kind, option, per_listener


@dataclass(frozen=True, kw_only=True)
class AuthenticationOptions:
    """How clients log in."""

    sasl_enabled_mechanisms: tuple[str, ...] = per_listener(
        "sasl.enabled.mechanisms",
        ("GSSAPI",),
        "The SASL mechanisms of a listener, such as `SCRAM-SHA-256,PLAIN`. [The list](protocol.md#sasl-mechanisms) "
        "has every mechanism and the clients that log in by it.",
    )
    sasl_server_max_receive_size: int = per_listener(
        "sasl.server.max.receive.size",
        524288,
        "The size of the largest request that the node takes from a client that has not logged in yet; -1 means no "
        "limit. With 0 or another negative value no client can log in.",
        unit="bytes",
    )
    connections_max_reauth_ms: int = per_listener(
        "connections.max.reauth.ms",
        0,
        "How long a session lasts until the client must log in again (KIP-368); 0 or less means no limit. "
        "`listener.name.<name>.<mechanism>.connections.max.reauth.ms` sets it for one mechanism of one listener.",
        kind=Kind.LONG,
    )
    kerberos_service_name: str = per_listener(
        "sasl.kerberos.service.name",
        "",
        "The service name in the principal of GSSAPI's JAAS line, such as `kafka`.",
    )
    kerberos_principal_to_local_rules: tuple[str, ...] = per_listener(
        "sasl.kerberos.principal.to.local.rules",
        ("DEFAULT",),
        "How Kerberos names become names of principals; the first rule that matches applies. `DEFAULT` takes names of "
        "the default realm and keeps their first component; other rules have Kafka's syntax.",
    )
    oauthbearer_jwks_endpoint_url: str = per_listener(
        "sasl.oauthbearer.jwks.endpoint.url",
        "",
        "The `https:`, `http:` or `file:` URL of the JWKS, the keys that sign OAUTHBEARER's tokens.",
    )
    oauthbearer_jwks_endpoint_refresh_ms: int = per_listener(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        3600000,
        "How often the node reads the JWKS again. It also reads it when a token names a key that the JWKS lacks, at "
        "most once in ten seconds.",
        minimum=1,
        kind=Kind.LONG,
    )
    oauthbearer_jwks_endpoint_retry_backoff_ms: int = per_listener(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        100,
        "How long the node waits after its first failed attempt to read the JWKS; it doubles the wait after each "
        "further one.",
        minimum=1,
        kind=Kind.LONG,
    )
    oauthbearer_jwks_endpoint_retry_backoff_max_ms: int = per_listener(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        10000,
        "The longest wait between attempts to read the JWKS.",
        minimum=1,
        kind=Kind.LONG,
    )
    oauthbearer_clock_skew_seconds: int = per_listener(
        "sasl.oauthbearer.clock.skew.seconds",
        30,
        "How far the clocks of the issuer and of this node may differ.",
        minimum=0,
    )
    oauthbearer_expected_audience: tuple[str, ...] = per_listener(
        "sasl.oauthbearer.expected.audience",
        (),
        "The audiences that the node accepts: a token must name one of them (`aud`). Without this setting the node "
        "refuses every token that names an audience.",
    )
    oauthbearer_expected_issuer: str = per_listener(
        "sasl.oauthbearer.expected.issuer",
        "",
        "The issuer that a token must name (`iss`).",
    )
    oauthbearer_scope_claim_name: str = per_listener(
        "sasl.oauthbearer.scope.claim.name",
        "scope",
        "The claim that holds a token's scopes. As in Kafka, the node checks only their form.",
    )
    oauthbearer_sub_claim_name: str = per_listener(
        "sasl.oauthbearer.sub.claim.name",
        "sub",
        "The claim that holds the name of the principal.",
    )
    oauthbearer_allow_unsigned_tokens: bool = per_listener(
        "kafka.dt.sasl.oauthbearer.allow.unsigned.tokens",
        False,
        "Whether OAUTHBEARER also accepts tokens without a signature (`alg` none). Any client can then log in as any "
        "user. A broker accepts them by default.",
    )
    connection_failed_authentication_delay_ms: int = option(
        "connection.failed.authentication.delay.ms",
        100,
        "How long the node waits before it answers a failed login and closes the connection.",
        minimum=0,
    )


@dataclass(frozen=True, kw_only=True)
class AuthorizationOptions:
    """What principals may do."""

    authorizer_class_name: str = option(
        "authorizer.class.name",
        "",
        "The class that decides which principal may do what. Empty: as in Kafka, every user may do everything, also "
        "create tokens for other users. `kafka.security.authorizer.AclAuthorizer`: super users may do everything, "
        "other users what the ACLs in ZooKeeper allow.",
        choices=("", "kafka.security.authorizer.AclAuthorizer"),
    )
    super_users: str = option(
        "super.users",
        "",
        "The principals that may do everything, separated by semicolons: `User:admin;User:ops`.",
        reloads=True,
    )
    allow_everyone_if_no_acl_found: bool = option(
        "allow.everyone.if.no.acl.found",
        False,
        "Whether every user may use a resource that no ACL names.",
        reloads=True,
    )
    super_users_revoke_any: bool = option(
        "kafka.dt.super.users.revoke.any",
        True,
        "Whether super users may expire every token. In Kafka only the owner and the renewers may expire a token.",
        reloads=True,
    )
