"""Tokens that an operator at work makes for another's program.

    made = operators_tokens(deeds, days)            # `token_id`, `made_at`
    usage = without_first_day(usage, made, work)

An operator who looks into a job, stands in for a colleague, or helps a supplier makes a token of the job's owner, by
hand and by day, and uses it or hands it on. That is a new requester, often in a strange place and with a strange tool.
Who misuses the rights of an operator comes in the evening or at night, or gets these rights first.

An operator's token is one for another owner that changes neither users nor rights. The requester works by day
(`workdays.py`), and makes this token in its day and in the hours of the company. In all it made `_FEW` tokens for the
owner at most, for fewer than `_OWNERS` owners on that day, and for `_OWNERS_IN_ALL` at most. No ACL allowed this in the
day before (`_ALLOWED`), and none of its own did at any time.

Uses of such a token that are over within a day are left out.

Limits: an operator who misuses given rights in the hours of the company, at a weekend as well, is left out, and so are
a thief with the password of one, and one that takes such a token on its first day.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType
from kafka_dt.pipeline.report.deeds import ADMINISTRATION, token_grants
from kafka_dt.pipeline.report.expressions import (
    distinct_over,
    ok,
)
from kafka_dt.pipeline.report.workdays import is_in_day, with_in_office

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.store import WriteAndRead

_FEW: Final = 3
"""Who makes more is the owner's scheduler."""
_OWNERS: Final = 5
"""Who makes tokens for so many owners on a day looks into none of their jobs."""
_OWNERS_IN_ALL: Final = 10
"""Who does so for more is a scheduler."""
_DAY: Final = timedelta(days=1)
"""For which an operator needs the token."""
_SKEW: Final = timedelta(minutes=5)
"""How far apart the clocks of two nodes may be."""
_ALLOWED: Final = timedelta(days=1)
"""Who prepares a theft does so at once."""


def operators_tokens(deeds: DataFrame, days: DataFrame) -> DataFrame:
    """Give the ids of such tokens, and when each was made (`made_at`).

    Args:
        deeds: what each principal did, as `deeds.deeds_by_day` makes it.
        days: which principals work by day, as `workdays.workdays` makes it.
    """
    made = deeds.where(ok(EventType.TOKEN_CREATED) & (F.col("owner") != F.col("principal"))).select(
        *("token_id", "owner", "date", F.col("principal").alias("who"), F.col("first_seen").alias("made_at"))
    )
    counts = {
        "tokens": F.count("*").over(Window.partitionBy("who", "owner")),
        "owners": distinct_over("owner", "who", "date"),
        "owners_in_all": distinct_over("owner", "who"),
    }
    few = (F.col("tokens") <= _FEW) & (F.col("owners") < _OWNERS) & (F.col("owners_in_all") <= _OWNERS_IN_ALL)
    of_people = made.join(F.broadcast(days), "who").withColumns(counts).where(few & is_in_day(F.col("made_at")))
    by_hand = with_in_office(of_people, "made_at", days).where("in_office")
    administrators = deeds.where(ok(*ADMINISTRATION)).select(F.col("principal").alias("owner")).distinct()
    of_programs = by_hand.join(administrators, "owner", "left_anti")
    allowed = _just_allowed(of_programs, deeds)
    return of_programs.join(allowed, "token_id", "left_anti").select("token_id", "made_at")


def without_first_day(usage: DataFrame, tokens: DataFrame, work: WriteAndRead) -> DataFrame:
    """Leave out uses of some tokens that are over within a day; where there is none, the usage is not written again."""
    if tokens.isEmpty():
        return usage
    rows = usage.join(F.broadcast(tokens), "token_id", "left")
    on_first_day = F.coalesce(F.col("last_seen") <= F.col("made_at") + F.lit(_DAY), F.lit(False))
    return work("usage_of_owners", rows.where(~on_first_day).drop("made_at"))


def _just_allowed(made: DataFrame, deeds: DataFrame) -> DataFrame:
    """Give the tokens whose requesters had just been allowed to make tokens for others, or allowed it themselves."""
    is_allowed = (F.col("requester") == F.col("who")) | (F.col("requester") == "User:*")
    before = F.col("granted_at") <= F.col("made_at") + F.lit(_SKEW)
    just_now = F.col("granted_at") >= F.col("made_at") - F.lit(_ALLOWED)
    by_itself = F.col("operator") == F.col("who")
    grants = F.broadcast(token_grants(deeds))
    pairs = made.select("token_id", "who", "made_at").join(grants, is_allowed & before)
    return pairs.where(just_now | by_itself).select("token_id")
