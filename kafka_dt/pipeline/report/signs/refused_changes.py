"""A principal is refused tokens of others, or changes of rights: it tries what it can get.

A program works on the tokens of its owner, so a missing right shows for one owner. So a principal that is refused to
create, renew or end tokens of several owners is reported: of `refused_owners` in 24 hours, or of `refused_in_week`. The
severity is high if it had worked here for `refused_history`; a principal that is new may be a scheduler whose ACLs are
still missing.

So is a principal that is refused changes of ACLs or of users again and again (`refused_rights`): it tries to give
itself rights. A few times are a mistake, such as a command with the wrong login. The severity is medium, because a
program that keeps ACLs as they are declared, and has lost its own right, does the same.

So is a principal that is refused several different things in a day (`refused_kinds`), of describing, creating, renewing
and ending tokens, and changing ACLs and users: it tries what its session may do. A program that lacks a right asks for
one thing.

If a principal logged in with a token, two such requests in a day are enough (`refused_by_token`), if the node refused
them with `DELEGATION_TOKEN_REQUEST_NOT_ALLOWED`: they need a login without a token. A program that logs in with a
token by mistake sends one kind of request, or the same ones each day. So the rule ignores the refusals of a client
that has logged in there with this library for a day and has them on more than `refused_token_days` days. What such a
program is refused in its first day stays reported. The severity is medium. One such request is enough with a library
that is new to the principal, which has used tokens for `refused_known`: who broke into a service tries what its token
may do.

So is a principal that is known for `refused_history` and asks `refused_names` times in a day to log in as another one:
its password is right, and the authorization id is not its own, or the session is another principal's. Common clients do
neither.

Some principals are refused on purpose: tests in CI that check who may do what. So the same requests are quiet in a zone
where a principal is refused from the beginning on: since `refused_settling` after it began to work here, or after the
table begins. They are those that are refused there on `refused_days` days. Refused renewals are quiet as well where a
service renews tokens of many, as *Renewed by a stranger* says.

A refused renewal or end of a token also says that the client has the token's HMAC; *Renewed by a stranger* reports it
token by token.

Not seen: a principal that tries the tokens of one owner only, or is refused one request before midnight (UTC) and the
other after it; a thief with the login of tests, in their zone, that is refused what they are refused; and a client
that describes tokens it may not see, because the node answers it with an empty list.
"""

# The work is on refused requests, and there are few of them.

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType, Outcome, RefusalReason
from kafka_dt.pipeline.report.deeds import ADMINISTRATION, TOKEN_CHANGES, known_since
from kafka_dt.pipeline.report.expressions import (
    as_text,
    distinct,
    distinct_over,
    distinct_within,
    first_and_last,
    of_type,
    some,
    with_most,
)
from kafka_dt.pipeline.report.peers import SETTLED
from kafka_dt.pipeline.report.signs.finding import SHOWN, SubjectType, finding_rows, high_if
from kafka_dt.pipeline.report.signs.foreign_renewal import FOREIGN_RENEWAL, OWNER_MISMATCH, PLACE, serves, services
from kafka_dt.pipeline.report.signs.machines import with_at_home
from kafka_dt.pipeline.report.signs.sign import Sign, advise, follow_address, follow_principal, threshold

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed

NOT_ALLOWED: Final = ("DELEGATION_TOKEN_OWNER_MISMATCH", "DELEGATION_TOKEN_AUTHORIZATION_FAILED")
NO_RIGHT: Final = "CLUSTER_AUTHORIZATION_FAILED"
NO_LOGIN: Final = "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"
"""Who came with a token asks for what needs a login without one."""


@dataclass(frozen=True, slots=True)
class RefusedChangesThresholds:
    """When refusals are no mistake."""

    refused_owners: int = threshold(2, "Owners whose tokens a principal is refused in 24 hours")
    """A program without its right is refused for the owner that it works for."""
    refused_in_week: int = threshold(3, "... or in a week")
    """People name a wrong owner now and then."""
    refused_history: timedelta = threshold(timedelta(days=1), "... by a principal that is known for")
    """A new program has got its rights after its first day."""
    refused_rights: int = threshold(10, "Changes of ACLs and users that a principal is refused")
    """A user with the wrong login notices that after a few."""
    refused_names: int = threshold(3, "Logins of a known principal in a day that ask to be another one")
    """Who set up a client by hand has noticed by then."""
    refused_settling: timedelta = threshold(timedelta(days=3), "Time within which refusals of tests begin")
    """Tests run on each working day, and a weekend is two days long."""
    refused_days: int = threshold(5, "... and days on which they are refused the same, at least")
    """Those of a working week."""
    refused_kinds: int = threshold(3, "Different things that a principal is refused in a day")
    """A program asks for one thing; one that makes a token for another needs an ACL, which is a second."""
    refused_by_token: int = threshold(2, "... or that need a login without a token, if it logged in with one")
    """With a token, no program gets as far as the ACL."""
    refused_known: timedelta = threshold(timedelta(days=3), "... or once with a library that is new after this time")
    """A service shows its libraries within a weekend."""
    refused_token_days: int = threshold(2, "... on at most so many days, if the client has worked there for a day")
    """A program does it each time that it runs."""


def refused_changes(seen: Observed, thresholds: RefusedChangesThresholds) -> DataFrame:
    """Find principals that try what they may not; one finding a principal."""
    of_others = of_type(*TOKEN_CHANGES) & F.col("reason").isin(*NOT_ALLOWED) & (F.col("owner") != F.col("principal"))
    without_right = of_type(*ADMINISTRATION) & (F.col("reason") == NO_RIGHT)
    rights = F.sum(F.when(without_right, F.col("deeds"))).over(Window.partitionBy("principal"))
    as_another = of_type(EventType.LOGIN) & (F.col("reason") == RefusalReason.NOT_ALLOWED.value)
    of_day = Window.partitionBy("principal", "date")
    names = F.sum(F.when(as_another & F.col("token_id").isNull(), F.col("deeds"))).over(of_day)
    kinds = distinct_over(F.when(~of_type(EventType.LOGIN), F.col("type")), "principal", "date")
    token_days = distinct_over(F.when(_needs_login(), F.col("date")), "principal", "zone", "software")
    is_usual = F.col("at_home") & (token_days > thresholds.refused_token_days)
    kinds_by_token = distinct_over(F.when(_needs_login() & ~F.col("usual"), F.col("type")), "principal", "date")
    in_order = Window.partitionBy("principal").orderBy(F.unix_seconds("first_seen"))
    in_a_day, in_a_week = (
        distinct_within(F.when(of_others, F.col("owner")), in_order.rangeBetween(-int(time.total_seconds()), 0))
        for time in (timedelta(days=1), timedelta(weeks=1))
    )
    many = F.col("rights") >= thresholds.refused_rights
    several = (F.col("in_a_day") >= thresholds.refused_owners) | (F.col("in_a_week") >= thresholds.refused_in_week)
    by_token = F.col("kinds_by_token") >= thresholds.refused_by_token
    probes = (F.col("kinds") >= thresholds.refused_kinds) | by_token | (_needs_login() & F.col("new_library"))
    asked = of_type(*TOKEN_CHANGES, *ADMINISTRATION, EventType.TOKENS_DESCRIBED)
    not_allowed = F.col("reason").isin(*NOT_ALLOWED, NO_RIGHT, NO_LOGIN)
    named = as_another & (F.col("names") >= thresholds.refused_names)
    known = F.coalesce(F.col("known_since") + F.lit(thresholds.refused_history) < F.col("first_seen"), F.lit(False))
    refused = seen.deeds.where((F.col("outcome") == Outcome.REFUSED.value) & ((asked & not_allowed) | as_another))
    since = known_since(seen.deeds, seen.clients)
    refused = _with_new_library(refused.join(since, "principal", "left"), seen, thresholds)
    placed = with_at_home(refused, seen, "first_seen", SETTLED)
    rows = (
        _without_services(_without_tests(placed, seen, thresholds), seen)
        .withColumn("usual", is_usual)
        .withColumns({"rights": rights, "kinds": kinds, "kinds_by_token": kinds_by_token, "names": names})
        .withColumns({"in_a_day": in_a_day, "in_a_week": in_a_week})
        .where(of_others | many | probes | named)
        .withColumn("of_address", F.sum("deeds").over(Window.partitionBy("principal", "address")))
        .groupBy("principal", "known_since")
        .agg(
            *first_and_last(),
            F.sum("deeds").alias("events"),
            F.max(F.when(many, F.col("rights"))).alias("rights"),
            F.max(F.when(probes, F.greatest("kinds", "kinds_by_token"))).alias("kinds"),
            F.max(F.when(named, F.col("names"))).alias("names"),
            F.count_distinct(F.when(of_others, F.col("owner"))).alias("owners"),
            F.max("in_a_day").alias("in_a_day"),
            F.max("in_a_week").alias("in_a_week"),
            F.slice(distinct("owner"), 1, SHOWN).alias("some_owners"),
            F.slice(distinct("type"), 1, SHOWN).alias("types"),
            F.slice(distinct("address"), 1, SHOWN).alias("addresses"),
            F.slice(distinct("software"), 1, SHOWN).alias("clients"),
            with_most("address", "of_address").alias("address"),
        )
        .where(several | many | F.col("kinds").isNotNull() | (known & F.col("names").isNotNull()))
        .withColumns({"token_id": F.lit(None).cast("string"), "owner": F.col("principal")})
    )
    return finding_rows(
        rows,
        subject="principal",
        severity=high_if(several & known),
        evidence=[
            ("tried", some(F.col("types"))),
            ("different things in a day", F.col("kinds")),
            ("refused", F.col("events")),
            ("of them changes of ACLs and users", F.col("rights")),
            ("of them logins as another principal, in a day", F.col("names")),
            ("different owners", F.when(F.col("owners") > 0, F.col("owners"))),
            ("tokens of", F.when(F.size("some_owners") > 0, some(F.col("some_owners")))),
            ("from addresses", some(F.col("addresses"))),
            ("clients", some(F.col("clients"))),
            ("the principal is known since", as_text(F.col("known_since"))),
        ],
    )


def _with_new_library(refused: DataFrame, seen: Observed, thresholds: RefusedChangesThresholds) -> DataFrame:
    """Add whether a principal that has used tokens for long came with the library on that day (`new_library`)."""
    libraries = seen.clients.groupBy(F.col("who").alias("principal"), "software").agg(
        F.min("first_seen").alias("library_since"),
        F.min(F.when(F.col("by_token"), F.col("first_seen"))).alias("with_tokens_since"),
    )
    tokens_since = F.min("with_tokens_since").over(Window.partitionBy("principal"))
    is_late = F.col("library_since") >= tokens_since + F.lit(thresholds.refused_known)
    late = libraries.withColumn("is_late", is_late).where("is_late").select("principal", "software", "library_since")
    rows = refused.join(late, ["principal", "software"], "left")
    is_new = F.col("first_seen") < F.col("library_since") + F.lit(SETTLED)
    return rows.withColumn("new_library", F.coalesce(is_new, F.lit(False))).drop("library_since")


def _needs_login() -> Column:
    """Whether who came with a token is refused what needs a login without one."""
    return F.col("reason") == NO_LOGIN


def _without_tests(refused: DataFrame, seen: Observed, thresholds: RefusedChangesThresholds) -> DataFrame:
    """Leave out what principals are refused in their zones again and again from the beginning on."""
    begin = seen.deeds.agg(F.min("first_seen").alias("table_since"))
    there = Window.partitionBy("principal", "zone")
    days = distinct_over("date", "principal", "zone", "type")
    # What was refused before a principal did anything does not say that it belongs here.
    known = F.when(F.col("known_since") <= F.col("begun"), F.col("known_since"))
    from_the_start = F.col("begun") <= F.coalesce(known, "table_since") + F.lit(thresholds.refused_settling)
    return (
        refused.withColumns({"begun": F.min("first_seen").over(there), "days": days})
        .crossJoin(F.broadcast(begin))
        .where(~(from_the_start & (F.col("days") >= thresholds.refused_days)))
    )


def _without_services(refused: DataFrame, seen: Observed) -> DataFrame:
    """Leave out refused renewals of a service: it tries to renew a token that does not name it."""
    thresholds = FOREIGN_RENEWAL.thresholds
    rows = refused.join(services(seen, thresholds), PLACE, "left")
    of_others = (F.col("reason") == OWNER_MISMATCH) & (F.col("owner") != F.col("principal"))
    is_its_work = of_type(EventType.TOKEN_RENEWED) & F.coalesce(of_others, F.lit(False))
    return rows.where(~(is_its_work & serves(F.col("date"), thresholds))).drop("service_days")


REFUSED_CHANGES: Final = Sign(
    kind="refused_changes",
    title="Refused changes",
    meaning="A principal tries tokens of several owners, ACLs, users or another name often, or several things.",
    finds="refused tokens of several owners, ACLs, users or another name tried often, several refusals in a day",
    misses="tries with one owner's tokens only, a few tries to change rights, and what tests are refused all the time",
    subject_type=SubjectType.PRINCIPAL,
    thresholds=RefusedChangesThresholds(),
    rule=refused_changes,
    steps=(
        advise("Ask the principal's team what it tried. If it was not the team, change the password or the keytab."),
        follow_principal,
        follow_address,
    ),
)
