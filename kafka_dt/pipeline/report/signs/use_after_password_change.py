"""A token is used away from work after another principal has changed its owner's password, and the owner is silent.

Who leaves a company loses the password on the last day. The tokens stay until they end, and the audit has no event for
a person who leaves. So the rule looks for a change or a deletion of an owner's SCRAM credentials by another principal,
or by a command. The owner had logged in without a token before. It does not do so for `back_within` after the change,
nor, if the use comes later, until then. A token that was made before the change is used more than `change_known` after
it, in one of these places:

- *a new one*: the owner came to this zone and this large network (/16, of IPv6 /48) for the first time. The severity is
  high, because who has left should have no token that works.
- *over the Internet*: the owner works by day, and uses the token in a public network that is not the one it uses most,
  and that the file of networks does not call an office, a VPN or a cluster. The severity is medium: a person whose
  password was only reset may go on working at home with the token, and then be away for a week.

If there are several changes, the last one that is `change_known` older than this counts: the owner's arrival in the
new place, or its last use of the public network.

A new place is not strange if `change_moves` owners came to it on the same day from the same place. A principal that
changes the credentials of `mass_change` users on a day rotates passwords, and none of these has left.

Not seen: an owner that goes on in the company's networks, or in the network that it uses most, as who always works at
home does; one without SCRAM credentials; and changes made in ZooKeeper by other tools than kafka-dt, which have no
event.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType
from kafka_dt.pipeline.report.deeds import changed_user
from kafka_dt.pipeline.report.expressions import (
    as_text,
    distinct,
    distinct_over,
    first_and_last,
    is_public,
    ok,
    some,
    union,
    with_most,
)
from kafka_dt.pipeline.report.signs.finding import SHOWN, SubjectType, finding_rows, high_if
from kafka_dt.pipeline.report.signs.sign import Sign, advise, end_all_of_owner, end_token, follow_address, threshold

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed

_COMMAND: Final = "a command"
"""The event of a change that an operator makes without a node names no principal."""


@dataclass(frozen=True, slots=True)
class PasswordChangeThresholds:
    """When an owner has lost its password for good."""

    back_within: timedelta = threshold(timedelta(days=7), "Time within which an owner logs in with a new password")
    """Whose password was reset needs it soon, and comes back from a week of holidays."""
    change_moves: int = threshold(3, "Owners that came to a place on the same day move together")
    """A cluster that moves or fails over takes several along."""
    mass_change: int = threshold(10, "Users whose password one principal changes on a day")
    """Few leave on one day."""
    change_known: timedelta = threshold(timedelta(hours=1), "Time from the change to a use away from work")
    """Who resets the password of a person on a trip does so while the person is on the telephone."""


def uses_after_password_change(seen: Observed, thresholds: PasswordChangeThresholds) -> DataFrame:
    """Find such tokens; one finding a token."""
    changes = seen.work("changes", _changes(seen, thresholds))
    known_at = F.col("changed_at") + F.lit(thresholds.change_known)
    alone = seen.network_arrivals.where(F.col("others_moved") < thresholds.change_moves - 1)
    place = ["who", "wide", "outside"]
    arrivals = alone.select("who", "wide", F.lit(False).alias("outside"), F.col("since").alias("came"))
    came = union(arrivals, _outside(seen))
    later = came.join(changes, "who").where(F.col("came") > known_at)
    last = later.groupBy(*place, "came").agg(F.max(F.struct("changed_at", "by")).alias("change"))
    last = last.select(*place, "came", "change.changed_at", "change.by")
    silent = seen.work("silent", last.join(_returns(last, seen, thresholds), place, "left_anti"))
    new = silent.where(~F.col("outside"))
    places = union(new, silent.where("outside").join(new, ["who", "wide"], "left_anti"))
    zones = seen.arrivals.select("who", "zone", F.col("since").alias("zone_since"))
    made = seen.lives.select("token_id", "created_at")
    uses = seen.usage.join(places, ["who", "wide"]).join(zones, ["who", "zone"]).join(made, "token_id")
    is_new = F.col("zone_since") > F.col("changed_at")
    is_late = F.when(F.col("outside"), F.col("last_seen") > known_at).otherwise(is_new)
    return _findings(uses.where((F.col("created_at") < F.col("changed_at")) & is_late))


def _outside(seen: Observed) -> DataFrame:
    """Give the networks of the Internet, but no homes, in which people used tokens, and when for the last time."""
    people = seen.workdays.select("who")
    homes = seen.homes.select("who", F.col("home_wide").alias("wide"))
    public = seen.usage.where(is_public(F.col("wide"))).join(people, "who", "left_semi")
    elsewhere = public.join(homes, ["who", "wide"], "left_anti").groupBy("who", "wide")
    return elsewhere.agg(F.lit(True).alias("outside"), F.max("last_seen").alias("came"))


def _changes(seen: Observed, thresholds: PasswordChangeThresholds) -> DataFrame:
    """Give the changes by others (`who`, `changed_at`, `by`), without those of a principal that rotates passwords."""
    by = F.coalesce("principal", F.lit(_COMMAND))
    changed = seen.deeds.where(ok(EventType.SCRAM_USER_CHANGED) & ~F.col("principal").eqNullSafe(changed_user()))
    of_day = distinct_over("user", "principal", "date")
    few = changed.withColumn("users", of_day).where(F.col("users") < thresholds.mass_change)
    return few.select(changed_user().alias("who"), F.col("last_seen").alias("changed_at"), by.alias("by"))


def _returns(last: DataFrame, seen: Observed, thresholds: PasswordChangeThresholds) -> DataFrame:
    """Give the rows (`who`, `wide`, `outside`) of owners that came back, or that never logged in before."""
    own = seen.deeds.where(ok(EventType.LOGIN)).groupBy(F.col("principal").alias("who"), "date")
    days = own.agg(F.min("first_seen").alias("own_first"), F.max("last_seen").alias("own_last"))
    until = F.greatest(F.col("changed_at") + F.lit(thresholds.back_within), F.col("came"))
    is_back = (F.col("own_last") > F.col("changed_at")) & (F.col("own_first") < until)
    rows = last.join(days, "who", "left").groupBy("who", "wide", "outside", "changed_at")
    told = rows.agg(F.bool_or(is_back).alias("is_back"), F.min("own_first").alias("own_since"))
    never = F.col("own_since").isNull() | (F.col("own_since") >= F.col("changed_at"))
    return told.where(F.col("is_back") | never).select("who", "wide", "outside")


def _findings(uses: DataFrame) -> DataFrame:
    since = F.greatest("first_seen", "changed_at")
    tokens = (
        uses.withColumn("first_seen", since)
        .groupBy("token_id", F.col("who").alias("owner"))
        .agg(
            *first_and_last(),
            F.max("changed_at").alias("changed_at"),
            F.bool_and("outside").alias("outside"),
            F.slice(distinct("by"), 1, SHOWN).alias("by"),
            F.sum("logins").alias("events"),
            with_most("address", "logins").alias("address"),
            F.slice(distinct("address"), 1, SHOWN).alias("addresses"),
            F.slice(distinct("zone"), 1, SHOWN).alias("zones"),
            F.slice(distinct("software"), 1, SHOWN).alias("clients"),
            F.min("created_at").alias("made"),
        )
    )
    return finding_rows(
        tokens,
        subject="token_id",
        severity=high_if(~F.col("outside")),
        evidence=[
            ("password changed", as_text(F.col("changed_at"))),
            ("changed by", some(F.col("by"))),
            ("the token was made", as_text(F.col("made"))),
            ("used since from addresses", some(F.col("addresses"))),
            ("in zones", some(F.col("zones"))),
            ("with libraries", some(F.col("clients"))),
        ],
    )


USE_AFTER_PASSWORD_CHANGE: Final = Sign(
    kind="use_after_password_change",
    title="Used after its owner's password was changed",
    meaning="The token is used away from work after its owner's password was changed, and the owner does not log in.",
    finds="a token that is used away from work after its owner has lost the password, as people do who leave",
    misses="an owner that goes on in the company's networks or where it mostly is, and one without SCRAM credentials",
    subject_type=SubjectType.TOKEN,
    thresholds=PasswordChangeThresholds(),
    rule=uses_after_password_change,
    about_use=True,
    steps=(
        advise("Ask who changed the password whether the owner has left. If so:"),
        end_token,
        end_all_of_owner,
        follow_address,
    ),
)
