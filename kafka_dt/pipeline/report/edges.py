"""What leads to what: principals, tokens and addresses, and why one leads to another.

| from | to | because | |
|---|---|---|---|
| address | token | it logged in there | its secret is on that machine |
| address | principal | it logged in there without a token | its password or keytab is on that machine |
| principal | token | it owns, requested or may renew it | describing it shows its HMAC |
| token | address | it logged in from there | whoever has it may be there |
| principal | address | it logged in from there without a token | the same |

The first three give a thief a secret; the last two tell where to look for him, and which machines to doubt next. A
token does not lead to its owner's other tokens: a connection that was logged in by a token may not describe any.

Each edge is there once, however often it was used.

Source: KIP-48, "Describing Tokens", "Security Considerations"; kafka_dt/tokens/token.py
"""

from __future__ import annotations

from enum import StrEnum
from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

if TYPE_CHECKING:
    from pyspark.sql import Column

    _End = tuple["NodeType", Column]


class NodeType(StrEnum):
    """What can be reached."""

    PRINCIPAL = "principal"
    TOKEN = "token"  # noqa: S105 - the name of a type
    ADDRESS = "address"


class Relation(StrEnum):
    """Why one thing leads to another; the words for `from relation to`."""

    OWNS = "owns"
    REQUESTED = "requested"
    MAY_RENEW = "may renew"
    HAS_SECRET_OF = "has the secret of"  # noqa: S105 - the name of a relation
    USED_FROM = "logged in from"


GIVING: Final = (Relation.OWNS, Relation.REQUESTED, Relation.MAY_RENEW, Relation.HAS_SECRET_OF)
"""Relations that give a thief a secret."""


def edges(lives: DataFrame, usage: DataFrame) -> DataFrame:
    """Make all edges: `from_type`, `from_node`, `relation`, `to_type`, `to_node`.

    Args:
        lives: as `lives.token_lives` makes them.
        usage: as `usage.logins_by_place` makes it.
    """
    by_token = F.col("token_id").isNotNull()
    requested = lives.where(F.col("requester") != F.col("owner"))
    renewable = lives.select(F.explode(F.array_distinct("renewers")).alias("renewer"), "token_id")
    with_token = usage.where(by_token).select("token_id", "address").distinct()
    without = usage.where(~by_token).select("who", "address").distinct()
    token = (NodeType.TOKEN, F.col("token_id"))
    address = (NodeType.ADDRESS, F.col("address"))
    owner, requester, renewer, who = (
        (NodeType.PRINCIPAL, F.col(name)) for name in ("owner", "requester", "renewer", "who")
    )
    made = (
        _edge(lives, owner, Relation.OWNS, token),
        _edge(requested, requester, Relation.REQUESTED, token),
        _edge(renewable, renewer, Relation.MAY_RENEW, token),
        _edge(with_token, address, Relation.HAS_SECRET_OF, token),
        _edge(with_token, token, Relation.USED_FROM, address),
        _edge(without, address, Relation.HAS_SECRET_OF, who),
        _edge(without, who, Relation.USED_FROM, address),
    )
    return reduce(DataFrame.unionByName, made).where(F.col("from_node").isNotNull() & F.col("to_node").isNotNull())


def gives() -> Column:
    """Whether an edge gives a thief a secret."""
    return F.col("relation").isin([relation.value for relation in GIVING])


def _edge(rows: DataFrame, start: _End, relation: Relation, end: _End) -> DataFrame:
    (from_type, from_node), (to_type, to_node) = start, end
    return rows.select(
        F.lit(from_type.value).alias("from_type"),
        from_node.alias("from_node"),
        F.lit(relation.value).alias("relation"),
        F.lit(to_type.value).alias("to_type"),
        to_node.alias("to_node"),
    )
