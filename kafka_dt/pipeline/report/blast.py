"""The blast radius: what a thief could reach that has an owner's credentials, or a machine.

    radius = blast_radius(lives, usage, Start.owner("User:alice"), steps=4, work=store.work)

It goes from the start along edges, step by step, and keeps of each thing the shortest way there (`path`):

| from | to | because | |
|---|---|---|---|
| address | token | it logged in there | its secret is on that machine |
| address | principal | it logged in there without a token | its password or keytab is on that machine |
| principal | token | it owns, requested or may renew it | describing it shows its HMAC |
| token | address | it logged in from there | a client that has it may be there |
| principal | address | it logged in from there without a token | the same |

The first three give a thief a secret; the last two tell where to look for the thief, and which machines to doubt next.
A token does not lead to its owner's other tokens: a connection that was logged in by a token may not describe any.

A thing is `exposed` if there is a way on which each step gives a secret: a thief at the start could have it. Look at
the others: if the thief is there, too, they are next. The number of steps is bounded, because in most clusters many
steps connect every thing with every other. Four are enough from a machine to the machines on which tokens of its owners
are used, and to what these hold.

Limits: the table knows only logins of its own time. The blast radius ignores ACLs.

Source: KIP-48, "Describing Tokens", "Security Considerations"; docs/how-to/pipeline-report.md
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.contents import ROWS, Blast, Hop, ReachableLogin, Reached, ReachedCount
from kafka_dt.pipeline.report.expressions import first_and_last, rows_of
from kafka_dt.pipeline.report.lives import alive_at

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import Column

    from kafka_dt.pipeline.report.store import WriteAndRead

    _End = tuple["NodeType", Column]

DEFAULT_STEPS: Final = 4
_PATH: Final = "array<struct<relation: string, type: string, node: string>>"


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


_GIVING: Final = (Relation.OWNS, Relation.REQUESTED, Relation.MAY_RENEW, Relation.HAS_SECRET_OF)
"""Relations that give a thief a secret."""
_NAMED_IN: Final[Mapping[NodeType, tuple[str, ...]]] = {
    NodeType.ADDRESS: ("client_address",),
    NodeType.PRINCIPAL: ("principal", "owner", "requester"),
    NodeType.TOKEN: ("token_id",),
}
"""Columns of the events that name one."""


@dataclass(frozen=True, slots=True)
class Start:
    """Where it begins."""

    type: NodeType
    node: str

    @classmethod
    def owner(cls, principal: str) -> Start:
        """Begin at an owner of tokens: `User:alice`."""
        return cls(NodeType.PRINCIPAL, principal)

    @classmethod
    def address(cls, address: str) -> Start:
        """Begin at a machine."""
        return cls(NodeType.ADDRESS, address)


def blast_radius(lives: DataFrame, usage: DataFrame, start: Start, steps: int, work: WriteAndRead) -> DataFrame:
    """Follow what leads to what, so many steps far.

    Returns `type`, `node`, `exposed`, `step`, `path`: a row for each thing that can be reached, the start included.
    `path` has what led there: relation, type and node of each step. Empty if the table does not know the start.
    """
    ways = work("edges", edges(lives, usage))
    reached = frontier = work("reached-0", _at(ways, start))
    for step in range(1, steps + 1):
        frontier = work(f"reached-{step}", _new(_next(ways, frontier, step), reached))
        if frontier.isEmpty():
            break
        reached = reached.unionByName(frontier)
    # Reached in both ways, it is exposed.
    best = F.min(F.struct((~F.col("exposed")).alias("hidden"), "step", "path")).alias("best")
    return (
        reached.groupBy("type", "node")
        .agg(best)
        .select("type", "node", (~F.col("best.hidden")).alias("exposed"), "best.step", "best.path")
    )


def with_alive(radius: DataFrame, lives: DataFrame, at: datetime) -> DataFrame:
    """Say of each token whether it lives at an instant, in the column `alive`; it is null of everything else."""
    tokens = lives.select(
        F.lit(NodeType.TOKEN.value).alias("type"), F.col("token_id").alias("node"), alive_at(at).alias("alive")
    )
    return radius.join(tokens, ["type", "node"], "left")


def is_named(events: DataFrame, start: Start) -> bool:
    """Whether any event names the start; one that is named and reaches nothing has only been refused."""
    named = reduce(or_, (F.col(column) == start.node for column in _NAMED_IN[start.type]))
    return not events.where(named).isEmpty()


def reachable_logins(usage: DataFrame, radius: DataFrame) -> DataFrame:
    """Find the logins with what is exposed: `usage`'s columns, summed over versions and clients."""

    def exposed(type_: NodeType, name: str) -> DataFrame:
        return radius.where(F.col("exposed") & (F.col("type") == type_.value)).select(F.col("node").alias(name))

    by_token = usage.join(exposed(NodeType.TOKEN, "token_id"), "token_id", "left_semi")
    principals = exposed(NodeType.PRINCIPAL, "who")
    without = usage.where(F.col("token_id").isNull()).join(principals, "who", "left_semi")
    return (
        by_token.unionByName(without)
        .groupBy("who", "token_id", "address", "software")
        .agg(*first_and_last(), F.sum("logins").alias("logins"))
    )


def collected_blast(radius: DataFrame, logins: DataFrame, start: Start, steps: int) -> Blast:
    """Collect the rows of `with_alive` and `reachable_logins`."""
    ended = ~F.coalesce("alive", F.lit(True))
    counts = radius.groupBy("step", "type", "exposed").agg(
        F.count("*").alias("count"), F.count(F.when(ended, 1)).alias("ended")
    )
    nearest = radius.orderBy(F.desc("exposed"), ended, "step", "type", "node").limit(ROWS)
    latest = logins.orderBy(F.desc("last_seen"), "address", "token_id").limit(ROWS)
    total = logins.agg(F.coalesce(F.sum("logins"), F.lit(0)).alias("total"))
    return Blast(
        type=start.type.value,
        start=start.node,
        steps=steps,
        counts=tuple(
            ReachedCount(**row) for row in sorted(rows_of(counts), key=lambda row: (row["step"], row["type"]))
        ),
        reached=tuple(Reached(**{**row, "path": tuple(Hop(**hop) for hop in row["path"])}) for row in rows_of(nearest)),
        logins=tuple(ReachableLogin(**row) for row in rows_of(latest)),
        login_total=rows_of(total)[0]["total"],
    )


def _at(ways: DataFrame, start: Start) -> DataFrame:
    """Give the start, if anything leads on from it."""
    here = (F.col("from_type") == start.type.value) & (F.col("from_node") == start.node)
    nothing = F.array().cast(_PATH)
    node = ways.where(here).select(F.col("from_type").alias("type"), F.col("from_node").alias("node")).distinct()
    return node.withColumns({"exposed": F.lit(True), "step": F.lit(0), "path": nothing})


def _next(ways: DataFrame, frontier: DataFrame, step: int) -> DataFrame:
    """Go one step on; of several ways to one thing the first in the order of text is kept."""
    from_here = (F.col("type") == F.col("from_type")) & (F.col("node") == F.col("from_node"))
    hop = F.struct("relation", F.col("to_type").alias("type"), F.col("to_node").alias("node"))
    way = F.struct("relation", "from_node", F.concat("path", F.array(hop).cast(_PATH)).alias("path"))
    gives = F.col("relation").isin([relation.value for relation in _GIVING])
    return (
        frontier.join(ways, from_here)
        .groupBy("to_type", "to_node", (F.col("exposed") & gives).alias("exposed"))
        .agg(F.min(way).alias("way"))
        .select(
            F.col("to_type").alias("type"),
            F.col("to_node").alias("node"),
            "exposed",
            F.lit(step).alias("step"),
            F.col("way.path").alias("path"),
        )
    )


def _new(found: DataFrame, reached: DataFrame) -> DataFrame:
    """Leave out what was reached before, unless it is exposed only now."""
    before = reached.select(
        F.col("type").alias("type_before"), F.col("node").alias("node_before"), F.col("exposed").alias("exposed_before")
    )
    same = (F.col("type") == F.col("type_before")) & (F.col("node") == F.col("node_before"))
    return found.join(before, same & (F.col("exposed_before") | ~F.col("exposed")), "left_anti")


def edges(lives: DataFrame, usage: DataFrame) -> DataFrame:
    """Make all edges: `from_type`, `from_node`, `relation`, `to_type`, `to_node`."""
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


def _edge(rows: DataFrame, start: _End, relation: Relation, end: _End) -> DataFrame:
    (from_type, from_node), (to_type, to_node) = start, end
    return rows.select(
        F.lit(from_type.value).alias("from_type"),
        from_node.alias("from_node"),
        F.lit(relation.value).alias("relation"),
        F.lit(to_type.value).alias("to_type"),
        to_node.alias("to_node"),
    )
