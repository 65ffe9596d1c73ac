"""What principals did, and what they were refused: the aggregate of the signs that are about principals.

    deeds = deeds_by_day(events)
    since = known_since(deeds, clients)
    refused = of_strangers(deeds.where(...), usage)

`deeds_by_day` makes one row for each day, request, principal and thing that belong together:

| column | |
|---|---|
| `date`, `type`, `outcome`, `reason` | the day in UTC, and the request as the events say it |
| `principal`, `mechanism`, `address` | of the client; for a refused login the claimed principal |
| `token_id`, `owner`, `requester` | the token that it was about, if it was about one |
| `acl`, `user`, `software` | that was changed; the SCRAM user that was changed; the library of the client |
| `first_seen`, `last_seen`, `deeds` | when, and how often |
| `node` | that ended a token which no client had asked to end: the name of the command that did; else null |
| `described` | the largest number of tokens in an answer |
| `expiry` | the earliest expiry that these requests gave the token |

Successful logins by token are not in it: `lives.logins_by_place` counts them. Without them few events are left, so the
signs read these rows again and again, and the events only once.

Source: kafka_dt/audit/event.py
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType
from kafka_dt.pipeline.report.expressions import (
    UNKNOWN,
    first_and_last,
    login_by_token,
    of_first,
    of_type,
    ok,
    software,
    went_well,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

TOKEN_CHANGES: Final = (EventType.TOKEN_CREATED, EventType.TOKEN_RENEWED, EventType.TOKEN_EXPIRED)
"""Changes of tokens that clients ask for."""
ADMINISTRATION: Final = (EventType.ACL_CREATED, EventType.ACL_DELETED, EventType.SCRAM_USER_CHANGED)
"""Changes of users and rights."""
ALLOWS_TOKENS: Final = r"(?s)^ALLOW (CreateTokens|All) of ([A-Za-z]+) User:'(.*)' to (.*) from [^ ]+$"
"""The text of an ACL that lets a principal create tokens for a user (KIP-373): operation, pattern type, user,
and principal."""
ALLOWS_DESCRIBING: Final = (
    r"(?s)^ALLOW (?:Describe|DescribeTokens|All) of [A-Za-z]+ (?:DelegationToken|User):'.*' to (.*) from [^ ]+$"
)
"""The text of an ACL that lets a principal describe tokens of others (KIP-48, KIP-373): the principal."""
_SETTLING: Final = timedelta(days=3)
"""In so many days most addresses of a company have logged in once."""
_DEED: Final = (
    *("date", "type", "outcome", "reason", "principal", "mechanism", "address"),
    *("token_id", "owner", "requester", "acl", "user", "software", "node"),
)


def deeds_by_day(events: DataFrame) -> DataFrame:
    """Count everything but successful logins by token, and what nodes do without a client."""
    told = ~login_by_token() & ~of_type(EventType.TOKEN_REMOVED)
    named = {
        "address": F.coalesce("client_address", F.lit(UNKNOWN)),
        "software": software(F.col("client_software")),
        "node": F.when(F.col("principal").isNull() & of_type(EventType.TOKEN_EXPIRED), F.col("node")),
    }
    return (
        events.where(told)
        .withColumns(named)
        .groupBy(*_DEED)
        .agg(
            *first_and_last("time", "time"),
            F.count("*").alias("deeds"),
            F.max("count").alias("described"),
            F.min("expiry_time").alias("expiry"),
        )
    )


def changed_user() -> Column:
    """Give the principal of the SCRAM user that a deed has changed: `User:alice`."""
    return F.concat(F.lit("User:"), F.col("user"))


def own_logins(deeds: DataFrame) -> DataFrame:
    """Give the successful logins of principals without a token, with the columns that `lives.logins_by_place` has.

    Returns:
        `who`, `address`, `token_id` (null), `software`, `first_seen`, `last_seen` and `logins`.
    """
    return deeds.where(ok(EventType.LOGIN)).select(
        F.col("principal").alias("who"),
        "address",
        "token_id",
        "software",
        "first_seen",
        "last_seen",
        F.col("deeds").alias("logins"),
    )


def token_grants(deeds: DataFrame) -> DataFrame:
    """Give the ACLs that let a principal create tokens for others.

    Returns:
        A row for each: the `requester`, the `pattern` type and the `resource` that name the owners, when it was made
        (`granted_at`), and by which `operator`.
    """
    acl = F.col("acl")
    groups = enumerate(("pattern", "resource", "requester"), start=2)
    return deeds.where(ok(EventType.ACL_CREATED) & acl.rlike(ALLOWS_TOKENS)).select(
        *(F.regexp_extract(acl, ALLOWS_TOKENS, number).alias(name) for number, name in groups),
        F.col("first_seen").alias("granted_at"),
        F.col("principal").alias("operator"),
    )


def describe_grants(deeds: DataFrame) -> DataFrame:
    """Give the ACLs that let a principal describe tokens of others.

    Returns:
        A row for each: the `principal`, when it was made first (`granted_at`), and by which `operator`.
    """
    acl = F.col("acl")
    grants = deeds.where(ok(EventType.ACL_CREATED) & acl.rlike(ALLOWS_DESCRIBING)).groupBy("acl")
    first = grants.agg(F.min("first_seen").alias("granted_at"), of_first("principal", "first_seen").alias("operator"))
    return first.select(F.regexp_extract(acl, ALLOWS_DESCRIBING, 1).alias("principal"), "granted_at", "operator")


def known_since(deeds: DataFrame, clients: DataFrame) -> DataFrame:
    """Tell since when each `principal` works here (`known_since`): it, or a client with a token of it."""
    own = deeds.where(went_well() & F.col("principal").isNotNull()).select("principal", "first_seen")
    by_token = clients.select(F.col("who").alias("principal"), "first_seen")
    return own.unionByName(by_token).groupBy("principal").agg(F.min("first_seen").alias("known_since"))


def of_strangers(tries: DataFrame, usage: DataFrame) -> DataFrame:
    """Keep what comes from addresses from which no client had logged in before; nothing of the first days in the table.

    Args:
        tries: has `address` and `first_seen`.
        usage: the successful logins, as `lives.logins_by_place` makes them.
    """
    tried = tries.select("address").distinct()
    there = usage.join(tried, "address", "left_semi")
    since = there.groupBy("address").agg(F.min("first_seen").alias("address_since"))
    known = F.coalesce(F.col("address_since") <= F.col("first_seen"), F.lit(False))
    strange = tries.join(since, "address", "left").where(~known).drop("address_since")
    return after_first_days(strange, usage)


def after_first_days(tries: DataFrame, usage: DataFrame) -> DataFrame:
    """Leave out what was tried in the first days of the table, in which little is known of addresses and principals."""
    began = usage.agg((F.min("first_seen") + F.lit(_SETTLING)).alias("settled"))
    return tries.crossJoin(F.broadcast(began)).where(F.col("settled") < F.col("first_seen")).drop("settled")
