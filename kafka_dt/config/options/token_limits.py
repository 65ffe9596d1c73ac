"""The part of the option table that bounds the tokens: how many, how often and how large.

It stands upon the options of connections only because the table is one class.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka_dt.config.options.connections import ConnectionOptions
from kafka_dt.config.options.option import Kind, Section, Source, option


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLimitOptions(ConnectionOptions):
    """What an owner, a requester and a token may take; they hold for super users as well."""

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
