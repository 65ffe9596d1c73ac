"""The part of the option table that is about delegation tokens: their keys, their lifetimes, and their limits.

Source: KIP-48 and its drafts (`.sec` spellings), KIP-395; org.apache.kafka.server.config.DelegationTokenManagerConfigs.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka_dt.config.options.option import Kind, Secret, Section, Source, option


@dataclass(frozen=True, kw_only=True)
class TokenOptions:
    """How tokens are made and sealed, how long they live, and what an owner, a requester and a token may take."""

    tokens_per_owner_max: int = option(
        "kafka.dt.tokens.per.owner.max",
        Kind.LONG,
        10_000,
        "How many live tokens one owner may have; one more is refused with error 44 (POLICY_VIOLATION). Tokens of all "
        "nodes count. Those that are made on several workers at the same moment may exceed it. -1 is no limit.",
        section=Section.TOKENS,
        source=Source.KAFKA_DT,
        minimum=-1,
    )
    token_creates_per_minute_max: int = option(
        "kafka.dt.token.creates.per.minute.max",
        Kind.LONG,
        6_000,
        "How many tokens one principal may ask for on one node in a minute, for all owners together; one more is "
        "refused with error 89 (THROTTLING_QUOTA_EXCEEDED) until the next minute begins. Attempts that fail because "
        "of another limit or of ZooKeeper count. All workers of the node count together, each node for itself. -1 is "
        "no limit.",
        section=Section.TOKENS,
        source=Source.KAFKA_DT,
        minimum=-1,
    )
    token_renewers_max: int = option(
        "kafka.dt.token.renewers.max",
        Kind.INT,
        100,
        "How many renewers a new token may have; more are refused with error 44 (POLICY_VIOLATION). -1 is no limit.",
        section=Section.TOKENS,
        source=Source.KAFKA_DT,
        minimum=-1,
    )
    token_bytes_max: int = option(
        "kafka.dt.token.bytes.max",
        Kind.INT,
        16_384,
        "How large the znode of a new token may be; a larger one is refused with error 44 (POLICY_VIOLATION). Names of "
        "principals make up most of it. Tokens that are there already can be renewed whatever their size. -1 is no "
        "limit but that of ZooKeeper, about a million.",
        section=Section.TOKENS,
        source=Source.KAFKA_DT,
        unit="bytes",
        minimum=-1,
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
