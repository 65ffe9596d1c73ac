"""A principal ends tokens of others: of many owners, or in use, or from a place or with a library that is new to it.

An owner ends its tokens, a scheduler those that it asked for, and an operator one now and then. A token that is given
an expiry earlier than it had is ended, too; a renewal ends it if nothing but `ended_soon` is left. The cases:

- *tokens of many owners*: a principal that did not ask for the tokens ends those of `ended_owners` owners in a day,
  and of `ended_factor` times more owners than on any day before. It stops the work of all of them. `ended_few_owners`
  owners are enough if the principal renewed tokens of others on `ended_seldom` days for each day on which it ended
  some, this one included, and if there were less than `ended_days` such days before: a service that renews does not
  end. Who works by day tidies up: it is quiet if that principal ends all of them in the hours of the company, and if no
  client tries one again within `ended_used`.
- *tokens in use*: a principal that did not ask for the tokens ends those of `ended_in_use` owners or more on a day
  (UTC). Clients had logged in with these tokens within `ended_used` before, and a node refuses a login with them
  afterwards. These are half of the owners whose tokens the principal ends on that day, or more. An operator who tidies
  up ends tokens that are not used, so most of the owners are not in use. A platform that ends running jobs as its work
  does so on more than `ended_days` days; only the first of these are reported.
- *in use, and not replaced*: one such token of a service is enough if the service got no new token from
  `ended_replaced_before` the end to `ended_replaced_after` it, and if the principal ended tokens of others on less than
  `ended_days` days before. A client has to try the token within `ended_used` after its end, in a zone where the service
  used a token more than `ended_used` before the end: if the tries come only from elsewhere, the operator may have ended
  a stolen token. The service is quiet if it uses another token when it is refused, or within `ended_replaced_after`.
  Owners that work by day (`workdays`) are left out, because people leave.
- *its own, in one hour, of more owners than before*: a principal ends, within `ended_within`, tokens of `ended_owners`
  owners for which it had asked, and of `ended_factor` times more owners than in any such time before. Clients still use
  those of `ended_few_owners` owners, as in *tokens in use*. A scheduler ends the token of a job when the job is over.
- *by night*: a principal that did not ask for the tokens ends `ended_by_night` of them within `ended_within`, outside
  the hours of the company (`workdays.office_hours`, which are the same at weekends). It ended tokens of others on less
  than `ended_days` days before.
- *from a place that is new to it*: a principal that was known for `ending_history` elsewhere comes to a large network
  and a zone in which it never was, and ends `ended_tokens` tokens there within a day, or those of `ended_few_owners`
  owners. So few are enough, because who has the password of an operator or a scheduler needs no more. The tokens may be
  ones that it asked for.
- *with another library*: a principal ends, within `ended_within`, tokens of `ended_owners` owners for which it had
  asked, with a library that it never used for anything. It is `ended_factor` times more owners than in any hour before,
  and most of the tokens had `ended_early` left.

The severity is high if both place and library are new, and medium otherwise.

It is quiet for some hours before and after a change of the secret keys (`rotation`): an operator who rotates the key
ends the tokens that the old one made. It is quiet, too, in the first days of a company in the table
(`ending_history`): nothing is known of what is usual. A new place is quiet

- if `ended_colleagues` others were there before, who were in a place of the principal as well: an office has a VPN;
- if as many others moved there on the same day, or the principal stays there and leaves its other places: a move;
- if a principal that ends its requests makes new ones there, and none elsewhere meanwhile: its standby took over;
- if it is not the first such place: the principal travels.

And a new library is quiet if the principal asks for tokens with it within a day: an upgrade.

Not seen: tokens ended by commands that work on ZooKeeper (`kafka-dt token revoke --config`), which name no principal
(`ended_by_command` looks at these); ends before and after midnight (UTC), which count apart; a thief that ends few
tokens a day in a place of the principal, if their owners have others, or ends them around a rotation; and one that ends
a scheduler's tokens as the scheduler does, from its network and with its library.
"""

# The work is on ends of tokens by others than the owner, and on what those that end some did and where.

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType, Outcome
from kafka_dt.pipeline.report.deeds import TOKEN_CHANGES
from kafka_dt.pipeline.report.expressions import (
    distinct,
    distinct_in,
    distinct_within,
    first_and_last,
    hour_number,
    of_type,
    ok,
    some,
    went_well,
    with_most,
)
from kafka_dt.pipeline.report.signs.ended_in_new_places import FIRST_DAY, ended_in_new_places
from kafka_dt.pipeline.report.signs.finding import SHOWN, SubjectType, finding_rows, high_if
from kafka_dt.pipeline.report.signs.sign import Sign, advise, follow_address, follow_principal, threshold
from kafka_dt.pipeline.report.workdays import out_of_office, with_in_office

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, WindowSpec

    from kafka_dt.pipeline.report.signs.sign import Observed

MANY: Final = "tokens of many owners"
IN_USE: Final = "tokens in use"
NOT_REPLACED: Final = "in use, and not replaced"
BY_NIGHT: Final = "by night"
AT_ONCE: Final = "its own, in one hour, of more owners than before"
_LOGINS: Final = ("last_attempt", "last_login")
_END: Final = ("token_id", "principal", "date")
NEW_PLACE: Final = "from a place that is new to it"
NEW_LIBRARY: Final = "with another library"


@dataclass(frozen=True, slots=True)
class EndedForManyThresholds:
    """How many ends are no tidying up."""

    ended_owners: int = threshold(5, "Owners whose tokens one principal ends in a day")
    """An operator who tidies up looks at each owner."""
    ended_factor: float = threshold(2.0, "... and times its largest day, or hour, before")
    """An operator who tidies up every week has such days."""
    ended_seldom: int = threshold(7, "Days of renewals, for each day of ends, of a principal that seldom ends a token")
    """A service that renews for some jobs ends the tokens of those that are over, every few days."""
    ended_days: int = threshold(3, "... and days of ends by which these are its work")
    """Who tidies up does so again."""
    ended_in_use: int = threshold(3, "Owners whose clients try a token again that a principal ended on a day")
    """Who ends a token by mistake does so for one owner."""
    ended_used: timedelta = threshold(timedelta(days=1), "... after a use within this time")
    """Most jobs run every day."""
    ended_replaced_before: timedelta = threshold(
        timedelta(hours=1), "A service with a new token is quiet if it got it within this time before the end"
    )
    """Who replaces a token makes the new one first."""
    ended_replaced_after: timedelta = threshold(timedelta(minutes=15), "... or within this time after it")
    """A job that is started anew makes its token within minutes; one that fails waits for a colleague."""
    ended_tokens: int = threshold(3, "Tokens that a principal ends in a place that is new to it")
    """Who is called on a journey ends a token, and once more the one that came in its place."""
    ended_few_owners: int = threshold(2, "... or owners of tokens; so many of a service that seldom ends one, too")
    """A call is about one job."""
    ended_colleagues: int = threshold(2, "Others that make a new place an ordinary one")
    """One may be a program that runs everywhere."""
    ended_within: timedelta = threshold(
        timedelta(hours=1), "Time in which tokens are ended by another library, or by night"
    )
    """Jobs end when they are done, and not all at once."""
    ended_by_night: int = threshold(5, "Tokens of others that a principal ends outside the hours of the company")
    """Who is called at night ends one, or a few."""
    ended_early: timedelta = threshold(timedelta(hours=1), "Life that was left to most tokens ended by another library")
    """A tool that tidies up ends what is nearly over."""
    ended_soon: timedelta = threshold(timedelta(hours=1), "Life that a renewal leaves to a token that it ends")
    """Nodes renew for a day, unless they are told otherwise."""
    rotation: timedelta = threshold(timedelta(hours=10), "Time around a change of keys in which tokens are ended")
    """An operator does all of a rotation on a working day."""
    ending_history: timedelta = threshold(timedelta(days=3), "Days that show what is usual")
    """Operators tidy up on some working days."""


def ended_for_many(seen: Observed, thresholds: EndedForManyThresholds) -> DataFrame:
    """Find principals that end tokens of others unlike before; one finding for each principal and day."""
    all_ends = without_rotations(_ends_of_others(seen.deeds, thresholds), seen.deeds, thresholds.rotation)
    began = seen.deeds.agg((F.min("first_seen") + F.lit(thresholds.ending_history)).alias("settled"))
    ends = seen.work("ends", seen.zones.of(all_ends.crossJoin(F.broadcast(began))))
    acts = seen.work("acts", _acts(seen, ends))
    libraries = acts.groupBy("principal", "software").agg(F.min("first_seen").alias("library_since"))
    known = acts.groupBy("principal").agg(F.min("first_seen").alias("known_since"))
    with_habits = ends.join(libraries, ["principal", "software"]).join(known, "principal")
    is_known = F.col("library_since") >= F.col("known_since") + F.lit(thresholds.ending_history)
    is_first = F.col("first_seen") < F.col("library_since") + F.lit(FIRST_DAY)
    told = with_habits.withColumn("new_library", is_known & is_first)
    places = ended_in_new_places(told, acts, seen, thresholds)
    cases = (
        told.join(_of_many_owners(ends, seen.deeds, thresholds), ["principal", "date"], "left")
        .join(_in_use(ends, seen.lives, thresholds), ["principal", "date"], "left")
        .join(_tidied(ends, seen, thresholds), ["principal", "date"], "left")
        .join(_not_replaced(ends, seen, thresholds), [*_END], "left")
        .join(_by_night(ends, seen, thresholds), ["principal", "date"], "left")
        .join(_at_once(ends, seen, thresholds), ["principal", "date"], "left")
        .join(places, ["principal", "zone", "wide"], "left")
        .join(_by_new_library(told, acts, seen.lives, thresholds), ["principal", "software"], "left")
    )
    in_place = F.col("place_since").isNotNull() & (F.col("first_seen") < F.col("place_since") + F.lit(FIRST_DAY))
    case = F.array_compact(
        F.array(
            F.when(F.col("usual").isNotNull() & ~F.col("asked") & F.col("tidied").isNull(), F.lit(MANY)),
            F.when(F.col("owners_in_use").isNotNull() & ~F.col("asked"), F.lit(IN_USE)),
            F.when(F.col("owners_in_use").isNull() & ~F.col("asked") & F.col("not_replaced"), F.lit(NOT_REPLACED)),
            F.when(F.col("by_night") & ~F.col("asked"), F.lit(BY_NIGHT)),
            F.when(F.col("at_once") & F.col("asked"), F.lit(AT_ONCE)),
            F.when(in_place, F.lit(NEW_PLACE)),
            F.when(F.col("new_library") & F.col("asked") & F.col("most").isNotNull(), F.lit(NEW_LIBRARY)),
        )
    )
    is_late = F.col("settled") < F.col("first_seen")
    return _findings(cases.withColumns({"case": case, "in_place": in_place}).where((F.size("case") > 0) & is_late))


def _ends_of_others(deeds: DataFrame, thresholds: EndedForManyThresholds) -> DataFrame:
    """Give the requests of others than the owner that ended a token earlier than it would have.

    They have the expiry that it had (`expiry_before`), and tell whether the principal `asked` for the token.
    """
    earlier = Window.partitionBy("token_id").orderBy("first_seen").rowsBetween(Window.unboundedPreceding, -1)
    changes = deeds.where(ok(*TOKEN_CHANGES)).withColumn(
        "expiry_before", F.last("expiry", ignorenulls=True).over(earlier)
    )
    soon, before = F.lit(thresholds.ended_soon), F.col("expiry_before")
    is_end = of_type(EventType.TOKEN_EXPIRED) & F.coalesce(F.col("expiry") < before, F.lit(True))
    leaves_little = (F.col("expiry") <= F.col("last_seen") + soon) & (F.col("expiry") + soon < before)
    is_short = of_type(EventType.TOKEN_RENEWED) & leaves_little
    ends = changes.where((is_end | is_short) & (F.col("principal") != F.col("owner")))
    asked = F.coalesce(F.col("principal") == F.col("requester"), F.lit(False))
    return ends.withColumn("asked", asked)


def without_rotations(ends: DataFrame, deeds: DataFrame, rotation: timedelta) -> DataFrame:
    """Leave out the tokens that were ended around a change of keys."""
    around = F.lit(rotation)
    rotations = deeds.where(ok(EventType.KEYS_CHANGED)).select(
        (F.col("first_seen") - around).alias("rotation_begin"), (F.col("last_seen") + around).alias("rotation_end")
    )
    planned = F.col("first_seen").between(F.col("rotation_begin"), F.col("rotation_end"))
    return ends.join(F.broadcast(rotations), planned, "left_anti")


def _acts(seen: Observed, ends: DataFrame) -> DataFrame:
    """Tell what those that end tokens of others did, where and with what; `asks` is a token for another owner."""
    who = ends.select("principal").distinct()
    asks = ok(EventType.TOKEN_CREATED) & (F.col("principal") != F.col("owner"))
    columns = ("principal", "zone", "wide", "software", "first_seen", "last_seen", "asks")
    done = seen.zones.of(seen.deeds.where(went_well()).join(F.broadcast(who), "principal", "left_semi"))
    logins = seen.clients.withColumnRenamed("who", "principal").join(F.broadcast(who), "principal", "left_semi")
    done, logins = done.withColumn("asks", F.coalesce(asks, F.lit(False))), logins.withColumn("asks", F.lit(False))
    return done.select(*columns).unionByName(logins.select(*columns))


def _of_many_owners(ends: DataFrame, deeds: DataFrame, thresholds: EndedForManyThresholds) -> DataFrame:
    """Give the days on which principals ended tokens of many owners for which they had not asked."""
    days = (
        ends.where(~F.col("asked")).groupBy("principal", "date").agg(F.count_distinct("owner").alias("owners_of_day"))
    )
    before = Window.partitionBy("principal").orderBy("date").rowsBetween(Window.unboundedPreceding, -1)
    usual = F.coalesce(F.max("owners_of_day").over(before), F.lit(0))
    owners = F.col("owners_of_day")
    told = days.withColumns({"usual": usual, "days_before": F.count("*").over(before)})
    with_renewals = told.join(_renewals(deeds), "principal", "left")
    renewed = F.count(F.when(F.col("renewed_on") < F.col("date"), 1))
    seldom = F.col("renewed") >= F.lit(thresholds.ended_seldom) * (F.col("days_before") + 1)
    few = seldom & (owners >= thresholds.ended_few_owners) & (F.col("days_before") < thresholds.ended_days)
    many = (owners >= thresholds.ended_owners) & (owners >= F.col("usual") * thresholds.ended_factor)
    return (
        with_renewals.groupBy("principal", "date", "owners_of_day", "usual", "days_before")
        .agg(renewed.alias("renewed"))
        .where(many | few)
        .select("principal", "date", "usual")
    )


def _in_use(ends: DataFrame, lives: DataFrame, thresholds: EndedForManyThresholds) -> DataFrame:
    """Give the days on which principals ended tokens in use, of how many owners (`owners_in_use`)."""
    not_asked = ends.where(~F.col("asked")).join(lives.select("token_id", *_LOGINS), "token_id")
    before = Window.partitionBy("principal").orderBy("date").rowsBetween(Window.unboundedPreceding, -1)
    days = not_asked.groupBy("principal", "date").agg(
        F.count_distinct("owner").alias("owners_of_day"),
        F.count_distinct(F.when(_was_in_use(thresholds), F.col("owner"))).alias("owners_in_use"),
    )
    owners = F.col("owners_in_use")
    many = days.where((owners >= thresholds.ended_in_use) & (owners * 2 >= F.col("owners_of_day")))
    first = many.withColumn("days_before", F.count("*").over(before)).where(
        F.col("days_before") < thresholds.ended_days
    )
    return first.select("principal", "date", "owners_in_use")


def _tidied(ends: DataFrame, seen: Observed, thresholds: EndedForManyThresholds) -> DataFrame:
    """Give the days on which people ended tokens at work that were not in use (`tidied`)."""
    by_people = ends.where(~F.col("asked")).join(
        seen.workdays.select(F.col("who").alias("principal")), "principal", "left_semi"
    )
    used = by_people.join(seen.lives.select("token_id", *_LOGINS), "token_id", "left")
    judged = with_in_office(used, "first_seen", seen.workdays)
    ended = F.greatest("last_seen", "last_login")
    is_tried = F.col("last_attempt").between(ended + F.expr("INTERVAL 1 SECOND"), ended + F.lit(thresholds.ended_used))
    is_tidy = F.bool_and(F.col("in_office") & ~F.coalesce(is_tried, F.lit(False)))
    days = judged.groupBy("principal", "date").agg(is_tidy.alias("tidied")).where("tidied")
    return days.select("principal", "date", "tidied")


def _not_replaced(ends: DataFrame, seen: Observed, thresholds: EndedForManyThresholds) -> DataFrame:
    """Give the ends of tokens in use whose services got no new token, and do not go on without it.

    Returns:
        `token_id`, `principal` and `date` of each, with `not_replaced`.
    """
    services = _of_services_in_use(ends, seen, thresholds)
    tried = seen.work("ended_in_use", _tried_at_home(services, seen, thresholds))
    prepared, restarted = F.lit(thresholds.ended_replaced_before), F.lit(thresholds.ended_replaced_after)
    is_other = F.col("other_id") != F.col("token_id")
    made = seen.lives.where("created_known").select("owner", "created_at", F.col("token_id").alias("other_id"))
    near = F.col("created_at").between(F.col("ended_at") - prepared, F.col("ended_at") + restarted)
    replaced = tried.join(made, "owner").where(near & is_other)
    others = seen.usage.select(
        F.col("who").alias("owner"), "first_seen", "last_seen", F.col("token_id").alias("other_id")
    )
    then = (F.col("first_seen") <= F.col("tried_at") + restarted) & (F.col("last_seen") >= F.col("tried_at"))
    goes_on = tried.join(others, "owner").where(then & is_other)
    explained = replaced.select(*_END).unionByName(goes_on.select(*_END)).distinct()
    return tried.join(explained, [*_END], "left_anti").select(*_END, F.lit(True).alias("not_replaced"))


def _of_services_in_use(ends: DataFrame, seen: Observed, thresholds: EndedForManyThresholds) -> DataFrame:
    """Give the ends of tokens in use by principals that neither asked for them nor end tokens often."""
    return (
        _seldom_ended(ends, thresholds)
        .join(seen.lives.select("token_id", *_LOGINS), "token_id")
        .where(_was_in_use(thresholds))
        .join(seen.workdays.select(F.col("who").alias("owner")), "owner", "left_anti")
        .select("token_id", "principal", "date", "owner", F.col("first_seen").alias("ended_at"))
    )


def _tried_at_home(ended: DataFrame, seen: Observed, thresholds: EndedForManyThresholds) -> DataFrame:
    """Keep the ends after which the token is tried, for the first time `tried_at`, in a zone that its owner had."""
    refused = of_type(EventType.LOGIN) & (F.col("outcome") == Outcome.REFUSED.value)
    tries = seen.deeds.where(refused).select("token_id", "address", "first_seen", "last_seen")
    placed = seen.zones.of(ended.join(tries, "token_id").where(F.col("last_seen") > F.col("ended_at")))
    homes = seen.clients.where("by_token").groupBy(F.col("who").alias("owner"), "zone")
    known = placed.join(homes.agg(F.min("first_seen").alias("home_since")), ["owner", "zone"])
    soon = F.lit(thresholds.ended_used)
    there = known.where(F.col("home_since") + soon < F.col("ended_at"))
    tried_at = F.when(F.col("first_seen") > F.col("ended_at"), F.col("first_seen")).otherwise(F.col("last_seen"))
    first = there.groupBy(*_END, "owner", "ended_at").agg(F.min(tried_at).alias("tried_at"))
    return first.where(F.col("tried_at") <= F.col("ended_at") + soon)


def _by_night(ends: DataFrame, seen: Observed, thresholds: EndedForManyThresholds) -> DataFrame:
    """Give the days on which principals that seldom end tokens of others ended several of them by night."""
    night = out_of_office(_seldom_ended(ends, thresholds), "first_seen", seen.workdays)
    within = _an_hour(thresholds)
    many = night.withColumn("together", distinct_within("token_id", within))
    many = many.where(F.col("together") >= thresholds.ended_by_night)
    return many.select("principal", "date", F.lit(True).alias("by_night")).distinct()


def _at_once(ends: DataFrame, seen: Observed, thresholds: EndedForManyThresholds) -> DataFrame:
    """Give the days on which requesters ended more of their tokens in an hour than before, though clients used them."""
    asked = ends.where("asked").join(seen.lives.select("token_id", *_LOGINS), "token_id")
    within = _an_hour(thresholds)
    counted = asked.select(
        *("principal", "date", "first_seen"),
        distinct_within("owner", within).alias("together"),
        distinct_within(F.when(_was_in_use(thresholds), F.col("owner")), within).alias("in_use"),
    )
    in_order = Window.partitionBy("principal").orderBy(F.unix_seconds("first_seen"))
    earlier = in_order.rangeBetween(Window.unboundedPreceding, -int(thresholds.ended_within.total_seconds()))
    before = F.coalesce(F.max("together").over(earlier), F.lit(0))
    many = (F.col("together") >= thresholds.ended_owners) & (
        F.col("together") >= F.col("before") * thresholds.ended_factor
    )
    used = F.col("in_use") >= thresholds.ended_few_owners
    found = counted.withColumn("before", before).where(many & used)
    return found.select("principal", "date", F.lit(True).alias("at_once")).distinct()


def _an_hour(thresholds: EndedForManyThresholds) -> WindowSpec:
    """Give the window of what a principal did within `ended_within` before a row."""
    seconds = int(thresholds.ended_within.total_seconds())
    return Window.partitionBy("principal").orderBy(F.unix_seconds("first_seen")).rangeBetween(-seconds, 0)


def _seldom_ended(ends: DataFrame, thresholds: EndedForManyThresholds) -> DataFrame:
    """Keep ends by principals that did not ask for the tokens, and ended such ones on few days before."""
    not_asked = ends.where(~F.col("asked"))
    before = Window.partitionBy("principal").orderBy("date").rowsBetween(Window.unboundedPreceding, -1)
    days = not_asked.select("principal", "date").distinct().withColumn("days_before", F.count("*").over(before))
    seldom = days.where(F.col("days_before") < thresholds.ended_days).drop("days_before")
    return not_asked.join(seldom, ["principal", "date"])


def _was_in_use(thresholds: EndedForManyThresholds) -> Column:
    """Whether a token was used shortly before its end, and tried afterwards."""
    used = F.col("last_login") > F.col("first_seen") - F.lit(thresholds.ended_used)
    return used & (F.col("last_attempt") > F.greatest("last_seen", "last_login"))


def _renewals(deeds: DataFrame) -> DataFrame:
    """Give the days (`renewed_on`) on which principals renewed tokens of others for which they had not asked."""
    of_others = (F.col("principal") != F.col("owner")) & (F.col("principal") != F.col("requester"))
    renewals = deeds.where(ok(EventType.TOKEN_RENEWED) & of_others)
    return renewals.select("principal", F.col("date").alias("renewed_on")).distinct()


def _by_new_library(
    ends: DataFrame, acts: DataFrame, lives: DataFrame, thresholds: EndedForManyThresholds
) -> DataFrame:
    """Give the libraries, new to a requester, with which it ends tokens of more owners than in any hour (`most`)."""
    asked = ends.where("asked").withColumn("hour", hour_number(F.col("first_seen")))
    in_hours = asked.groupBy("principal", "hour").agg(F.count_distinct("owner").alias("owners_of_hour"))
    ends_at = F.coalesce("expiry_before", "max_time")
    early = F.coalesce(F.col("first_seen") + F.lit(thresholds.ended_early) < ends_at, F.lit(True))
    tools = (
        asked.where("new_library")
        .join(lives.select("token_id", "max_time"), "token_id", "left")
        .groupBy("principal", "software")
        .agg(
            *first_and_last(),
            F.count_distinct("owner").alias("owners"),
            F.avg(early.cast("int")).alias("early"),
        )
        .where((F.col("owners") >= thresholds.ended_owners) & (F.col("early") > 1 / 2))
        .where(F.col("last_seen") <= F.col("first_seen") + F.lit(thresholds.ended_within))
    )
    asks_with = acts.where("asks").groupBy("principal", "software").agg(F.min("first_seen").alias("asks_at"))
    takes_over = F.col("asks_at") < F.col("first_seen") + F.lit(FIRST_DAY)
    before = F.col("hour") < hour_number(F.col("first_seen"))
    return (
        tools.join(asks_with, ["principal", "software"], "left")
        .where(~F.coalesce(takes_over, F.lit(False)))
        .join(in_hours, "principal")
        .groupBy("principal", "software", "owners")
        .agg(F.coalesce(F.max(F.when(before, F.col("owners_of_hour"))), F.lit(0)).alias("most"))
        .where(F.col("owners") >= F.col("most") * thresholds.ended_factor)
        .select("principal", "software", "most")
    )


def _findings(ends: DataFrame) -> DataFrame:
    later = F.col("expiry") > F.col("last_seen") + F.expr("INTERVAL 1 MINUTE")
    days = ends.groupBy("principal", "date").agg(
        *first_and_last(),
        F.sum("deeds").alias("events"),
        distinct_in("case").alias("cases"),
        F.max(F.col("in_place") & F.col("new_library")).alias("both_new"),
        F.sum(F.when(later, F.col("deeds"))).alias("shortened"),
        F.count_distinct("owner").alias("owners"),
        F.max("usual").alias("usual"),
        F.max("owners_in_use").alias("owners_in_use"),
        F.max("most").alias("most"),
        F.min("counts").alias("counts"),
        F.slice(distinct("owner"), 1, SHOWN).alias("some_owners"),
        F.slice(distinct("address"), 1, SHOWN).alias("addresses"),
        F.slice(distinct("software"), 1, SHOWN).alias("clients"),
        with_most("address", "last_seen").alias("address"),
    )
    rows = days.withColumns({"token_id": F.lit(None).cast("string"), "owner": F.col("principal")})
    return finding_rows(
        rows,
        subject="principal",
        severity=high_if(F.col("both_new")),
        evidence=[
            ("what is unusual", F.array_join("cases", ", ")),
            ("tokens ended", F.col("events")),
            ("by an earlier expiry that was still to come", F.col("shortened")),
            ("of different owners", F.col("owners")),
            ("of owners whose clients tried them again", F.col("owners_in_use")),
            ("the most on a day before", F.col("usual")),
            ("the most in an hour before", F.col("most")),
            ("counted", F.col("counts")),
            ("owners", some(F.col("some_owners"))),
            ("from addresses", some(F.col("addresses"))),
            ("clients", some(F.col("clients"))),
        ],
    )


ENDED_FOR_MANY: Final = Sign(
    kind="ended_for_many",
    title="Ending the tokens of others",
    meaning="A principal ends tokens of others: of many owners, in use, from a new place, or with a new library.",
    finds="a principal that ends tokens of others unlike before, with no change of keys around it",
    misses="ends on ZooKeeper, which name no principal, and those that look like a scheduler's own",
    subject_type=SubjectType.PRINCIPAL,
    thresholds=EndedForManyThresholds(),
    rule=ended_for_many,
    steps=(
        advise("Ask the operator whose name it is whether this was planned. If not, change that password at once."),
        follow_principal,
        follow_address,
    ),
)
