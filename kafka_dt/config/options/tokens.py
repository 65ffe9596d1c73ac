"""The options of delegation tokens: their keys, their lifetimes, and their limits.

Source: KIP-48 and its drafts (`.sec` spellings), KIP-395; org.apache.kafka.server.config.DelegationTokenManagerConfigs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kafka_dt.config.options.option import Kind, Secret, Source, option


class TokenStore(StrEnum):
    """Where the tokens of a node are."""

    ZOOKEEPER = "zookeeper"
    UPSTREAM = "upstream"
    MOVING = "zookeeper,upstream"
    """Both; new tokens are made upstream."""
    READY_TO_MOVE = "upstream,zookeeper"
    """Both; new tokens are made in ZooKeeper."""

    @property
    def has_zookeeper(self) -> bool:
        """Whether a node serves tokens in ZooKeeper."""
        return self is not TokenStore.UPSTREAM

    @property
    def has_upstream(self) -> bool:
        """Whether a node serves the tokens of the cluster behind the gateway."""
        return self is not TokenStore.ZOOKEEPER

    @property
    def makes_upstream(self) -> bool:
        """Whether new tokens are made in that cluster."""
        return self in {TokenStore.UPSTREAM, TokenStore.MOVING}


@dataclass(frozen=True, kw_only=True)
class TokenOptions:
    """How tokens are made and sealed, how long they live, and what an owner, a requester and a token may take."""

    token_store: str = option(
        "kafka.dt.token.store",
        "zookeeper",
        "Where the tokens are. `zookeeper`: in the ZooKeeper of `zookeeper.connect`. `upstream`: in the Kafka cluster "
        "behind the gateway, whose own delegation tokens the node then serves (Kafka 3.6 or later without ZooKeeper; "
        "needs the settings of a gateway, and no ZooKeeper). `zookeeper,upstream` and "
        "`upstream,zookeeper`: in both, to move from one to the other. The last one makes new tokens; those of the "
        "first are served until they end.",
        choices=tuple(TokenStore),
    )
    tokens_per_owner_max: int = option(
        "kafka.dt.tokens.per.owner.max",
        10_000,
        "How many live tokens one owner may have on all nodes together; the node refuses a further one with error 44 "
        "(POLICY_VIOLATION). Tokens that several workers create at the same moment may exceed the limit. -1 means no "
        "limit.",
        minimum=-1,
        kind=Kind.LONG,
    )
    token_creates_per_minute_max: int = option(
        "kafka.dt.token.creates.per.minute.max",
        6_000,
        "How many tokens one principal may create on one node in a minute, for all owners together; the node refuses "
        "a further one with error 89 (THROTTLING_QUOTA_EXCEEDED) until the next minute begins. Attempts that fail "
        "because of another limit or of ZooKeeper count. The workers of a node count together; each node counts for "
        "itself. -1 means no limit.",
        minimum=-1,
        kind=Kind.LONG,
    )
    token_renewers_max: int = option(
        "kafka.dt.token.renewers.max",
        100,
        "How many renewers a new token may have; the node refuses a token with more with error 44 (POLICY_VIOLATION). "
        "-1 means no limit.",
        minimum=-1,
    )
    token_bytes_max: int = option(
        "kafka.dt.token.bytes.max",
        16_384,
        "How large the znode of a new token may be; the node refuses a larger one with error 44 (POLICY_VIOLATION). "
        "Names of principals are most of its size. Tokens that exist can be renewed whatever their size. -1 leaves "
        "only the limit of ZooKeeper, about a million.",
        unit="bytes",
        minimum=-1,
    )
    secret_key: Secret | None = option(
        "delegation.token.secret.key",
        None,
        "The key that makes the HMACs of tokens, the same on all nodes and brokers. Without it, or with an empty one, "
        "the node refuses every request about tokens. The node checks a file (`file:/path`) every second and uses a "
        "new key in it at once; `kafka-dt keys rotate` changes the key.",
        aliases=("delegation.token.master.key",),
    )
    previous_secret_keys: Secret | None = option(
        "kafka.dt.secret.keys.previous",
        None,
        "Older secret keys, one a line, the newest first. The tokens that they made keep working, and tokens that "
        "they seal stay readable. The node checks a file every second; the file must exist, and may be empty.",
        empty_file=True,
    )
    metadata_encryption: bool = option(
        "delegation.token.metadata.encryption.enable",
        True,
        "Whether the node seals tokens in ZooKeeper (encrypts, then authenticates them). Brokers cannot read sealed "
        "tokens: set it to false beside brokers. The node reads plain and sealed tokens in both cases.",
        source=Source.KIP_395,
    )
    sealing_ahead: int = option(
        "kafka.dt.sealing.ahead",
        16_384,
        "How many changes of sealed tokens each worker prepares while it is idle, so that they need not wait for half "
        "a millisecond of PBKDF2. The default takes 8 seconds of CPU time and 2 MiB in each worker, at the start and "
        "again when the secret key changes. A small machine with few changes needs less; 0 prepares none.",
        minimum=0,
    )
    max_lifetime_ms: int = option(
        "delegation.token.max.lifetime.ms",
        604800000,
        "The maximum lifetime of a token: no renewal moves its expiry beyond this time after its creation.",
        minimum=1,
        seconds_alias="delegation.token.max.lifetime.sec",
        kind=Kind.LONG,
    )
    expiry_time_ms: int = option(
        "delegation.token.expiry.time.ms",
        86400000,
        "How long a token lives after its creation, and after a renewal that asks for no other time.",
        minimum=1,
        seconds_alias="delegation.token.expiry.time.sec",
        kind=Kind.LONG,
    )
    expiry_check_interval_ms: int = option(
        "delegation.token.expiry.check.interval.ms",
        3600000,
        "How often the node deletes expired tokens from ZooKeeper.",
        minimum=1,
        kind=Kind.LONG,
    )
    hmac_algorithm: str = option(
        "kafka.dt.token.hmac.algorithm",
        "HmacSHA512",
        "The algorithm of a token's HMAC. Brokers use HmacSHA512; the text of KIP-48 has HmacSHA1.",
        choices=("HmacSHA512", "HmacSHA256", "HmacSHA1"),
    )
    auth_without_extension: bool = option(
        "kafka.dt.token.auth.without.extension",
        True,
        "Whether a SCRAM login counts as a login by token without `tokenauth=true`, if its user name is a live token "
        "id and not a SCRAM user. librdkafka, aiokafka, kafka-python and sarama cannot send `tokenauth=true`.",
    )
    token_sessions_end_when_stale: bool = option(
        "kafka.dt.token.sessions.end.when.stale",
        False,
        "Whether a worker that refuses every login by token because it cannot know which tokens were revoked "
        "(`kafka.dt.zookeeper.max.staleness.ms`, `kafka.dt.upstream.max.staleness.ms`) also closes, within a second, "
        "the connections that have logged in by token before. With the tokens of two stores it closes those of the "
        "tokens whose store is away. Clients log in again as soon as the worker can ask the store. `false`: these "
        "connections stay open, and an outage of the store does not stop clients that work.",
    )
