"""A token is created for an owner by a principal that never created one for it.

The tokens of an owner are created by the same principals again and again: by the owner, or by its scheduler. The rule
looks at the first token that a requester creates for an owner. The new requester of a day and all its owners are one
finding. The cases:

- *allowed after other work*: an ACL allowed the requester to create tokens for the owner after it had done other work
  for `other_work`, and it never created tokens for others until then. The severity is high if the requester allowed it
  itself, and did so or made the token outside the hours of the company (`workdays.office_hours`): by day administrators
  help out.
- *unknown before*: when the requester creates its first token for the owner, it has created tokens for others for
  `other_work` at most. Others, or the owner itself, created tokens of the owner before, and they were created or used
  over more than `requester_history`. The severity is high if the requester begins with `new_owners` owners on one day,
  after other work for `other_work`: no operator made it a scheduler then.
- *for a renewer of its own*: the usual requester creates one token with a library with which it creates no other one of
  the owner, and allows a principal to renew it that no other token names but that principal's own. A thief has the
  requester's password, and keeps the token alive by another account. The owner has `renewer_tokens` other tokens, since
  `requester_history` before.
- *the first token of a service, made elsewhere*: the owner has logged in without tokens for `without_tokens`, on as
  many days, and makes its first one in a zone where it never was (`first_tokens.py`). A thief has its password or its
  certificate. People who work by day try tokens; they are quiet.
- *once, while others go on*: a requester that creates tokens for `scheduled` other owners for longer than a day
  creates them for a service within one day only. Other requesters created `renewer_tokens` tokens of the service
  before, the first more than `requester_history` earlier, and at least one more than a day later (`made_once.py`). A
  thief who has the password of a scheduler can create a token for any owner. The rule leaves out people, a login for
  emergencies, which does so again and again, and tokens that are used only in zones and with libraries in which tokens
  of the service, or of the requester's other owners, were used before.

- *once, and used where its owner never was*: the requester creates tokens of a program on one day only, and one of
  them is used in a large network in which the program, known for `without_tokens`, never was (`used_elsewhere.py`).
- *the first token of a service, used elsewhere*: the same of tokens that a program makes itself, on one day only.
- *the first token that its owner makes itself*: others made three tokens of the owner or more, which used tokens for
  longer than `requester_history`. It makes one itself within a day after it came over the Internet to a large network
  in which it never was. Who has phished the password of a person who works in a hub of notebooks does so.

*Allowed after other work* and *unknown before* are quiet if no ACL of the requester itself allows it, and its tokens of
the owner are all used, where the owner's others were before, with their libraries, and nowhere else: an engineer stands
in for a scheduler, or a new scheduler takes over. Who begins with `new_owners` owners after other work is not quiet.

*Unknown before* is quiet if an operator makes the token at work (`operators_tokens.operators_tokens`). It is quiet as
well if another principal allowed the requester to create for several owners within an hour.

Not seen: a thief that creates tokens as the owner's usual requester does, for a person as a hub of notebooks does, or
for a service over more than a day; one with an administrator's password and a second account that uses the token at the
job's place with its library; one with the password of a scheduler that creates tokens for an owner for more than a day,
or of an owner whose tokens another principal created until then; and a new requester of an owner that is new.
"""

# The work is on one row for each owner and requester; only new ones are looked up elsewhere.

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType
from kafka_dt.pipeline.report.deeds import known_since, token_grants
from kafka_dt.pipeline.report.expressions import (
    as_text,
    distinct,
    distinct_in,
    of_first,
    ok,
    some,
    union,
)
from kafka_dt.pipeline.report.signs.finding import SHOWN, SubjectType, finding_rows, high_if
from kafka_dt.pipeline.report.signs.first_tokens import first_own_tokens, first_tokens
from kafka_dt.pipeline.report.signs.made_once import made_once
from kafka_dt.pipeline.report.signs.sign import Sign, advise, end_token, follow_address, threshold
from kafka_dt.pipeline.report.signs.used_elsewhere import used_elsewhere
from kafka_dt.pipeline.report.workdays import with_in_office

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed

_HOUR_S: Final = 3600
ALLOWED: Final = "allowed after other work"
UNKNOWN_BEFORE: Final = "unknown before"
RENEWER: Final = "for a renewer of its own"
FIRST: Final = "the first token of a service, made elsewhere"
ONCE: Final = "once, while others go on"
FIRST_OWN: Final = "the first token that its owner makes itself"
FIRST_USED: Final = "the first token of a service, used elsewhere"
USED_ELSEWHERE: Final = "once, and used where its owner never was"


@dataclass(frozen=True, slots=True)
class RequesterThresholds:
    """When it is clear which principals create an owner's tokens."""

    requester_history: timedelta = threshold(timedelta(days=3), "Time in which an owner shows its requesters")
    """Schedulers work every day, and a weekend is two days long."""
    scheduled: int = threshold(5, "Other owners for which a scheduler creates tokens, each for longer than a day")
    """A hub of notebooks, or what starts a company's jobs."""
    other_work: timedelta = threshold(timedelta(days=1), "Time of other work before a principal is allowed to create")
    """An operator makes a scheduler's user and its ACLs on one day."""
    renewer_tokens: int = threshold(5, "Other tokens of an owner that show who creates and who may renew them")
    """Those of a working week."""
    without_tokens: timedelta = threshold(timedelta(days=5), "Time in which a service shows that it uses no tokens")
    """A working week."""
    new_owners: int = threshold(5, "Owners for which a principal with other work begins to create on one day")
    """A program that takes over from a scheduler begins with one owner."""


def new_requesters(seen: Observed, thresholds: RequesterThresholds) -> DataFrame:
    """Find requesters that are new to owners; one finding for each requester, case and day."""
    by_others = seen.lives.where(F.col("owner") != F.col("requester"))
    pairs = by_others.groupBy("owner", "requester").agg(
        F.min("created_at").alias("since"), of_first("created_known", "created_at").alias("created")
    )
    habits = pairs.groupBy("requester").agg(F.min("since").alias("requests_since"))
    known = known_since(seen.deeds, seen.clients).withColumnRenamed("principal", "requester")
    first = pairs.where("created").join(habits, "requester").join(known, "requester", "left")
    new = _with_grants(_with_others(first, seen.lives), seen.deeds)
    judged = seen.work("judged", new.withColumn("case", _case(thresholds)).where(F.col("case").isNotNull()))
    judged = judged.join(_stand_ins(judged, seen, thresholds), ["owner", "requester"], "left_anti")
    created = _not_by_operators(_created(judged, seen.deeds), seen)
    made = _made(seen.deeds)
    first = first_tokens(seen, made, thresholds.without_tokens).withColumn("case", F.lit(FIRST))
    once = made_once(seen, made, thresholds).withColumn("case", F.lit(ONCE))
    own = first_own_tokens(seen, made, thresholds.requester_history).withColumn("case", F.lit(FIRST_OWN))
    others = union(union(union(_with_own_renewers(seen, thresholds), first), once), own)
    is_first = F.col("first") & (F.col("owner") == F.col("requester"))
    elsewhere = used_elsewhere(seen, made, thresholds)
    named = F.when(is_first, F.lit(FIRST_USED)).otherwise(F.lit(USED_ELSEWHERE))
    elsewhere = elsewhere.withColumn("case", named).drop("first")
    others = union(others, elsewhere.join(others.select("token_id"), "token_id", "left_anti"))
    others = others.join(created.select("token_id"), "token_id", "left_anti")
    return _findings(union(created, others), thresholds)


def _case(thresholds: RequesterThresholds) -> Column:
    never_before = F.coalesce(F.col("requests_since") >= F.col("granted_at"), F.lit(True))
    worked = never_before & (F.col("known_since") + F.lit(thresholds.other_work) < F.col("granted_at"))
    planned = F.coalesce((F.col("granted_together") > 1) & ~F.col("by_itself"), F.lit(False))
    shown = F.col("others_until") > F.col("others_since") + F.lit(thresholds.requester_history)
    begins = F.col("requests_since") + F.lit(thresholds.other_work) >= F.col("since")
    return F.when(worked, F.lit(ALLOWED)).when(~planned & shown & begins, F.lit(UNKNOWN_BEFORE))


def _with_others(new: DataFrame, lives: DataFrame) -> DataFrame:
    """Add how many of the owner's tokens others created before, since when, and until when these were used."""
    tokens = lives.select("owner", "created_at", F.greatest("created_at", "last_login").alias("used_until"))
    earlier = (
        tokens.join(new.select("owner", "requester", "since"), "owner")
        .where(F.col("created_at") < F.col("since"))
        .groupBy("owner", "requester")
        .agg(
            F.min("created_at").alias("others_since"),
            F.max(F.least("used_until", "since")).alias("others_until"),
            F.count("*").alias("others_tokens"),
        )
    )
    return new.join(earlier, ["owner", "requester"], "left")


def _with_grants(new: DataFrame, deeds: DataFrame) -> DataFrame:
    """Add when an ACL first allowed it, and how many ACLs for the requester came within an hour of that one."""
    within_an_hour = (
        Window.partitionBy("requester").orderBy(F.unix_seconds("granted_at")).rangeBetween(-_HOUR_S, _HOUR_S)
    )
    counted = token_grants(deeds).withColumn("together", F.count("*").over(within_an_hour))
    begins = (F.col("pattern") == "PREFIXED") & F.col("owner").startswith(F.col("resource"))
    covers = (F.col("resource") == F.col("owner")) | (F.col("resource") == "*") | begins
    first = (
        new.select("owner", "requester", "since")
        .join(counted, "requester")
        .where(covers & (F.col("granted_at") <= F.col("since")))
        .groupBy("owner", "requester")
        .agg(
            F.min("granted_at").alias("granted_at"),
            of_first("together", "granted_at").alias("granted_together"),
            of_first("operator", "granted_at", "together").alias("operator"),
            F.max(F.col("operator") == F.col("requester")).alias("by_itself"),
        )
    )
    return new.join(first, ["owner", "requester"], "left")


def _created(new: DataFrame, deeds: DataFrame) -> DataFrame:
    """Give what the new requesters created for these owners in their first day."""
    return (
        _made(deeds)
        .join(new, ["owner", "requester"])
        .where(
            # A token's time of issue may be that of another node's clock, so nothing is compared with the beginning.
            F.col("first_seen") <= F.col("since") + F.expr("INTERVAL 1 DAY")
        )
    )


def _worked(thresholds: RequesterThresholds) -> Column:
    """Whether a requester had done other work before it created tokens for others."""
    return F.col("known_since") + F.lit(thresholds.other_work) < F.col("requests_since")


def _stand_ins(judged: DataFrame, seen: Observed, thresholds: RequesterThresholds) -> DataFrame:
    """Give the requesters whose tokens of the owner are used as its others were; they did not allow it themselves."""
    by_itself = F.coalesce("by_itself", F.lit(False))
    owners = F.count("*").over(Window.partitionBy("requester", "case", F.to_date("since")))
    counted = judged.withColumn("taken_over", (owners >= thresholds.new_owners) & _worked(thresholds))
    allowed = counted.where(~by_itself & ~F.col("taken_over"))
    others = seen.lives.join(seen.operators_tokens, "token_id", "left_anti")
    tokens = others.select("token_id", "owner", "requester").join(allowed, ["owner", "requester"])
    homes = seen.clients.where("by_token").groupBy(F.col("who").alias("owner"), "zone", "software")
    used = tokens.join(seen.usage.select("token_id", "zone", "software"), "token_id", "left")
    placed = used.join(homes.agg(F.min("first_seen").alias("home_since")), ["owner", "zone", "software"], "left")
    at_home = F.coalesce(F.col("home_since") < F.col("since"), F.lit(False))
    return placed.groupBy("owner", "requester").agg(F.bool_and(at_home).alias("usual")).where("usual").drop("usual")


def _with_own_renewers(seen: Observed, thresholds: RequesterThresholds) -> DataFrame:
    """Give the tokens with another library and another renewer than all other tokens of their owners."""
    named = seen.lives.select("token_id", "owner", "requester", F.explode("renewers").alias("renewer"))
    others = F.col("renewer") != F.col("owner")
    once = (
        named.where(others)
        .groupBy("renewer")
        .agg(F.count("*").alias("times"), *(F.min(name).alias(name) for name in ("token_id", "owner", "requester")))
    )
    lone = once.where((F.col("times") == 1) & (F.col("renewer") != F.col("requester")))
    lone = seen.work("lone_renewers", lone.select("token_id", "owner", "renewer"))
    made = _made(seen.deeds).join(lone.select("owner").distinct(), "owner", "left_semi")
    libraries = made.groupBy("owner", "requester", "software").agg(
        F.count("*").alias("made"), F.min("first_seen").alias("since")
    )
    of_owner, of_requester, of_library = (
        Window.partitionBy("owner", *more) for more in ((), ("requester",), ("software",))
    )
    counted = libraries.select(
        *("owner", "requester", "software"),
        F.sum("made").over(of_library).alias("with_library"),
        F.sum("made").over(of_requester).alias("by_it"),
        (F.sum("made").over(of_owner) - 1).alias("others_tokens"),
        F.min("since").over(of_owner).alias("others_since"),
    )
    unlike = (F.col("with_library") == 1) & (F.col("by_it") > 1)
    known = (F.col("others_tokens") >= thresholds.renewer_tokens) & (
        F.col("others_since") + F.lit(thresholds.requester_history) < F.col("first_seen")
    )
    return (
        made.join(lone.drop("owner"), "token_id")
        .join(counted, ["owner", "requester", "software"])
        .where(unlike & known)
        .drop("with_library", "by_it")
        .withColumns({"case": F.lit(RENEWER), "since": F.col("first_seen")})
    )


def _not_by_operators(created: DataFrame, seen: Observed) -> DataFrame:
    """Leave out what operators make at work; adds whether a token was made and allowed in the hours of the company."""
    tokens = seen.operators_tokens.select("token_id", F.lit(True).alias("by_operator"))
    rows = created.join(F.broadcast(tokens), "token_id", "left")
    is_help = F.col("by_operator").isNotNull() & (F.col("case") == UNKNOWN_BEFORE)
    made = with_in_office(rows.where(~is_help), "first_seen", seen.workdays).withColumnRenamed("in_office", "made_then")
    allowed = with_in_office(made, "granted_at", seen.workdays)
    return allowed.withColumn("in_office", F.col("made_then") & F.coalesce("in_office", F.lit(False)))


def _made(deeds: DataFrame) -> DataFrame:
    """Give each token that was created, with its owner, its requester and the client."""
    return deeds.where(ok(EventType.TOKEN_CREATED)).select(
        F.coalesce("owner", "principal").alias("owner"),
        F.col("principal").alias("requester"),
        *("token_id", "address", "software", "first_seen", "last_seen"),
    )


def _findings(created: DataFrame, thresholds: RequesterThresholds) -> DataFrame:
    run = F.to_date("since")
    rows = created.groupBy("requester", "case", run.alias("day")).agg(
        of_first("token_id", "first_seen").alias("token_id"),
        of_first("owner", "first_seen", "token_id").alias("owner"),
        of_first("address", "first_seen", "token_id").alias("address"),
        F.min("first_seen").alias("first_seen"),
        F.max("last_seen").alias("last_seen"),
        F.count("*").alias("events"),
        F.count_distinct("owner").alias("different"),
        F.slice(distinct("owner"), 1, SHOWN).alias("owners"),
        F.slice(distinct("address"), 1, SHOWN).alias("addresses"),
        F.slice(distinct("software"), 1, SHOWN).alias("clients"),
        F.min("others_since").alias("others_since"),
        F.min("others_tokens").alias("others_tokens"),
        F.min("known_since").alias("known_since"),
        F.min("requests_since").alias("requests_since"),
        F.min("granted_at").alias("granted_at"),
        F.max("granted_together").alias("granted_together"),
        F.min("operator").alias("operator"),
        F.max((F.col("operator") == F.col("requester")) & ~F.col("in_office")).alias("by_itself"),
        F.slice(distinct("renewer"), 1, SHOWN).alias("renewers"),
        F.min("zone").alias("zone"),
        F.slice(distinct_in("others"), 1, SHOWN).alias("go_on"),
    )
    late = (F.col("case") == ALLOWED) & F.col("by_itself")
    many = F.col("different") >= thresholds.new_owners
    at_once = (F.col("case") == UNKNOWN_BEFORE) & many & _worked(thresholds)
    own = F.col("case").isin(RENEWER, FIRST, FIRST_USED, FIRST_OWN)
    new = F.concat(F.lit("a new requester: "), F.col("case"))
    return finding_rows(
        rows,
        subject="token_id",
        severity=high_if(late | at_once),
        evidence=[
            ("what is unusual", F.when(own, F.col("case")).otherwise(new)),
            ("created by", F.col("requester")),
            ("different owners", F.col("different")),
            ("for owners", some(F.col("owners"))),
            ("tokens in its first day", F.col("events")),
            ("from addresses", some(F.col("addresses"))),
            ("in zone", F.col("zone")),
            ("clients", some(F.col("clients"))),
            ("may be renewed by", F.when(F.size("renewers") > 0, some(F.col("renewers")))),
            ("tokens of an owner that others created before", F.when(~own, F.col("others_tokens"))),
            ("other tokens of the owner", F.when(own, F.col("others_tokens"))),
            ("others that create them afterwards", F.when(F.size("go_on") > 0, some(F.col("go_on")))),
            ("they are created since", as_text(F.col("others_since"))),
            ("the requester is known since", as_text(F.col("known_since"))),
            ("allowed", as_text(F.col("granted_at"))),
            ("allowed by", F.col("operator")),
            ("ACLs for it in that hour", F.col("granted_together")),
        ],
    )


NEW_REQUESTER: Final = Sign(
    kind="new_requester",
    title="Created by a new requester",
    meaning="A principal creates tokens for an owner as neither of the two did until now.",
    finds="a requester's first token for an owner, a scheduler's single one, and a service's first one in a new place",
    misses="the usual requester's password in the hands of one who creates as it does",
    subject_type=SubjectType.TOKEN,
    thresholds=RequesterThresholds(),
    rule=new_requesters,
    about_use=True,
    steps=(
        advise(
            "Ask the owner, and the operator who allowed it, if any, whether this principal should create them. If not:"
        ),
        end_token,
        advise("Change the password of the principal, and remove the ACL if one allows it (kafka-dt acl remove)."),
        follow_address,
    ),
)
