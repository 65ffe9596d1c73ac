"""A principal changes users or ACLs as only one would that has an administrator's password.

The rule looks at changes of SCRAM users and ACLs that a node made. The changes of a principal on a day are one finding.
The cases:

- *from a new place*: the principal was known for `admin_known_for`, and changes something within `admin_arrival` of its
  first login in a zone where no administrator was before. No large network (/16, of IPv6 /48) with an administrator is
  around the zone; if one is, the library has to be new to the principal, too. Fewer than `admin_colleagues` others
  that log in without a token where the principal does so usually are in the new zone, too: the administrator's
  colleagues use the same VPN.
- *a password that it set*: the principal changes another user, which was known for `admin_known_for`, and within
  `admin_use` that user logs in where it never was. Either this is the zone of the change, and the user makes, changes
  or describes tokens there, or changes rights, or stays for `admin_test`: who only tests a new password logs in once.
  Or the user was silent for `admin_silent`, and no colleagues are there.
- *a user for some hours*: the principal makes a user and gives it rights over others, the user logs in, and within
  `admin_short` the principal changes it again or takes a right from it. It never logs in after that.
- *a right for some hours*: the principal gives a right and takes the same one away again, within `admin_right_for`, but
  not within `admin_mistake`, in which mistakes are noticed. It did so on `admin_right_days` days at most. A user that
  was made or changed within `admin_short` before may have a wrong name, and a right that was given before was not given
  for that time.
- *rights over others at a strange hour*: the principal gives a user all topics or groups, the cluster, or tokens of
  others, at an hour of the day (UTC) at which it did nothing on `admin_days` days before or more. With two hours before
  and after, these have `admin_hours` different hours. Who is called at night gives a right to one topic.
- *rights for everybody*: an ACL allows every user (`User:*`) all of something, to change something, or anything of all
  topics, of the cluster or of other users.

*Rights for everybody*, *a user for some hours* and *a right for some hours* are quiet in the first days of the table
(`admin_settled`), in which a company sets up its users. *From a new place* is quiet for a principal that moves with
`admin_moves` others, or that never comes back from there.

The severity is high if two cases hold on a day.

Not seen: an administrator's password in the hands of one who works where the administrator or colleagues do; rights
that are only taken away or denied; and changes by commands that work on ZooKeeper (`kafka-dt user --config`), which
name no principal.
"""

# The work is on changes of users and ACLs, which are few, and on one row for each principal and zone.

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType
from kafka_dt.pipeline.report.deeds import ADMINISTRATION, TOKEN_CHANGES, changed_user
from kafka_dt.pipeline.report.expressions import (
    as_text,
    distinct,
    distinct_over,
    first_and_last,
    hours_at_work,
    of_type,
    ok,
    some,
    went_well,
    with_most,
)
from kafka_dt.pipeline.report.signs.finding import SHOWN, SubjectType, finding_rows, high_if
from kafka_dt.pipeline.report.signs.sign import Sign, advise, follow_address, follow_principal, threshold

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed

NEW_PLACE: Final = "from a new place"
SET_PASSWORD: Final = "a password that it set"  # noqa: S105 - the name of a case
SOME_HOURS: Final = "a user for some hours"
RIGHT_FOR_HOURS: Final = "a right for some hours"
STRANGE_HOUR: Final = "rights over others at a strange hour"
EVERYBODY: Final = "rights for everybody"
_RIGHTS_OVER_OTHERS: Final = (
    r"(?s)^ALLOW (?:All|Alter|AlterConfigs|ClusterAction|CreateTokens|DescribeTokens) of [A-Za-z]+ "
    r"(?:(?:Topic|Group):'\*'|Cluster:'[^']*'|User:'[^']*') to (.*) from [^ ]+$"
)
_TO_WHOM: Final = r"(?s)^ALLOW .* to (.*) from [^ ]+$"
TO_EVERYBODY: Final = (
    r"(?s)^ALLOW (?:(?:All|Alter|AlterConfigs|Delete|ClusterAction|CreateTokens|DescribeTokens) of "
    r"[A-Za-z]+ [A-Za-z]+:'[^']*'"
    r"|[A-Za-z]+ of [A-Za-z]+ (?:Topic:'\*'|Cluster:'[^']*'|User:'[^']*')) to User:\* from [^ ]+$"
)
_USED: Final = (*TOKEN_CHANGES, EventType.TOKENS_DESCRIBED, *ADMINISTRATION)
"""What shows that a user is used, not only tested."""
_CASE: Final = (
    "principal",
    "date",
    "case",
    "counts",
    "address",
    "software",
    "what",
    "first_seen",
    "last_seen",
    "deeds",
)


@dataclass(frozen=True, slots=True)
class StrangeAdministrationThresholds:
    """When a change is none of the administrator's own."""

    admin_known_for: timedelta = threshold(timedelta(days=3), "How long a principal or user works that has a place")
    """Programs log in every day, and a weekend is two days long."""
    admin_arrival: timedelta = threshold(timedelta(days=1), "Time in a new place in which changes are told")
    """What goes on for longer is known by then."""
    admin_colleagues: int = threshold(2, "Others in both places that make the new one a usual one")
    """One may be the same thief with another password."""
    admin_moves: int = threshold(3, "Principals that came to a place on the same day move together")
    """A department moves, or its network changes."""
    admin_use: timedelta = threshold(timedelta(hours=2), "Time from a new password to its first login elsewhere")
    """Who forgot a password waits for the new one."""
    admin_test: timedelta = threshold(timedelta(hours=1), "Logins with a new password that are no test of it")
    """A test takes minutes."""
    admin_silent: timedelta = threshold(timedelta(days=14), "Silence after which a new password wakes an account up")
    """Longer than most absences in which a password is forgotten."""
    admin_short: timedelta = threshold(timedelta(days=2), "Life of a user that is made for one thing")
    """Who needs an account for work needs it for longer."""
    admin_right_for: timedelta = threshold(timedelta(hours=6), "Time for which a right is given that is for one thing")
    """Who needs a right for work needs it tomorrow, too. In four months no administrator took one away so soon."""
    admin_mistake: timedelta = threshold(timedelta(minutes=10), "... and after which it is no mistake")
    """Who has mistyped a name sees it when the command has answered."""
    admin_right_days: int = threshold(2, "... on so many days at most")
    """A program that tests rights does so again and again."""
    admin_days: int = threshold(7, "Days that show the hours of an administrator")
    """A week has shifts and a weekend."""
    admin_hours: int = threshold(9, "... and their different hours, with two before and after")
    """Who is seen at fewer hours has none that are strange."""
    admin_settled: timedelta = threshold(timedelta(days=3), "First days, in which users and rights are set up")
    """A company that begins with kafka-dt."""


def strange_administration(seen: Observed, thresholds: StrangeAdministrationThresholds) -> DataFrame:
    """Find principals whose changes of users and ACLs are those of a stranger; one finding for each and day."""
    made = seen.deeds.where(ok(*ADMINISTRATION) & F.col("principal").isNotNull())
    changes = seen.work("changes", seen.zones.of(made).withColumn("what", F.coalesce("acl", "user")))
    began = seen.deeds.agg((F.min("first_seen") + F.lit(thresholds.admin_settled)).alias("settled"))
    late = changes.crossJoin(F.broadcast(began)).where(F.col("settled") < F.col("first_seen")).drop("settled")
    everybody = late.where(ok(EventType.ACL_CREATED) & F.col("acl").rlike(TO_EVERYBODY))
    cases = (
        _from_new_places(seen, changes, thresholds)
        .unionByName(_told(everybody, EVERYBODY, F.lit(None).cast("string")))
        .unionByName(_passwords_set(seen, changes, thresholds))
        .unionByName(_users_for_hours(seen, late, changes, thresholds))
        .unionByName(_rights_for_hours(late, changes, thresholds))
        .unionByName(_at_strange_hours(seen, changes, thresholds))
    )
    return _findings(cases)


def _told(changes: DataFrame, case: str, counts: Column) -> DataFrame:
    return changes.withColumns({"case": F.lit(case), "counts": counts}).select(*_CASE)


def _from_new_places(seen: Observed, changes: DataFrame, thresholds: StrangeAdministrationThresholds) -> DataFrame:
    """Give the changes of principals that have just come to a place of no administrator and of no colleague."""
    arrival = F.lit(thresholds.admin_arrival)
    stays = (F.col("elsewhere_until") <= F.col("since")) & (F.col("until") > F.col("since") + arrival)
    alone = (F.col("owner_before") > 0) & (F.col("others_moved") < thresholds.admin_moves - 1) & ~stays
    known = F.col("owner_since") + F.lit(thresholds.admin_known_for) < F.col("since")
    came = seen.arrivals.where(alone & known).select(
        F.col("who").alias("principal"), "zone", "since", "owner_since", "owner_before", "origin"
    )
    soon = F.col("first_seen").between(F.col("since"), F.col("since") + arrival)
    new = changes.join(came, ["principal", "zone"]).where(soon)
    arrived = new.select(F.col("principal").alias("who"), "zone", "since", "origin")
    with_colleagues = _with_colleagues(seen, arrived, thresholds.admin_colleagues).withColumnRenamed("who", "principal")
    administrators = changes.select(F.col("principal").alias("who")).distinct()
    places = _own_places(seen).join(F.broadcast(administrators), "who")
    with_zone = _before(new, places, "zone")
    with_wide = _before(new, places, "wide")
    library = (
        seen.clients.where(~F.col("by_token"))
        .groupBy(F.col("who").alias("principal"), "software")
        .agg(F.min("first_seen").alias("library_since"))
    )
    of_change = ["principal", "zone"]
    judged = (
        new.join(with_colleagues, of_change, "left_anti")
        .join(with_zone, of_change, "left_anti")
        .join(with_wide.withColumn("near", F.lit(True)), of_change, "left")
        .join(library, ["principal", "software"], "left")
    )
    new_library = F.coalesce(F.col("library_since") >= F.col("since"), F.lit(True))
    counts = F.format_string(
        "no administrator was in %s before; it is in %d other zones since %s, and most in %s",
        "zone",
        "owner_before",
        as_text(F.col("owner_since")),
        "origin",
    )
    return _told(judged.where(F.col("near").isNull() | new_library), NEW_PLACE, counts)


def _own_places(seen: Observed) -> DataFrame:
    """Give where principals log in without a token, and since when."""
    own = seen.clients.where(~F.col("by_token"))
    return own.groupBy("who", "zone", "wide").agg(F.min("first_seen").alias("there_since"))


def _before(new: DataFrame, places: DataFrame, name: str) -> DataFrame:
    """Give the principals and zones around which others, or the principal itself, were before."""
    there = places.select("who", F.col(name), "there_since")
    came = new.select("principal", "zone", "wide", "since").distinct()
    return came.join(there, name).where(F.col("there_since") < F.col("since")).select("principal", "zone").distinct()


def _with_colleagues(seen: Observed, arrived: DataFrame, fewest: int) -> DataFrame:
    """Give the principals and zones to which others came before that log in where the principal usually does."""
    places = _own_places(seen).select(F.col("who").alias("other"), "zone", "there_since")
    usual = places.select("other", F.col("zone").alias("origin"))
    return (
        arrived.distinct()
        .join(places, "zone")
        .where((F.col("other") != F.col("who")) & (F.col("there_since") < F.col("since")))
        .join(usual, ["other", "origin"])
        .groupBy("who", "zone")
        .agg(F.count_distinct("other").alias("colleagues"))
        .where(F.col("colleagues") >= fewest)
        .drop("colleagues")
    )


def _passwords_set(seen: Observed, changes: DataFrame, thresholds: StrangeAdministrationThresholds) -> DataFrame:
    """Give the changes of users that log in soon after them where they never were."""
    resets = changes.where(of_type(EventType.SCRAM_USER_CHANGED) & (changed_user() != F.col("principal")))
    came = seen.arrivals.where(F.col("owner_before") > 0).select(
        *("who", "since", "until", "origin", "elsewhere_until", "owner_since"), F.col("zone").alias("user_zone")
    )
    known = F.col("owner_since") + F.lit(thresholds.admin_known_for) < F.col("first_seen")
    soon = F.col("since").between(F.col("first_seen"), F.col("first_seen") + F.lit(thresholds.admin_use))
    taken = seen.work("taken", resets.withColumn("who", changed_user()).join(came, "who").where(known & soon))
    did = seen.deeds.where(ok(*_USED)).join(taken.select("who").distinct(), F.col("principal") == F.col("who"))
    used = seen.zones.of(did).select("who", F.col("zone").alias("user_zone"), F.lit(True).alias("used")).distinct()
    there = taken.join(used, ["who", "user_zone"], "left")
    stays = F.col("until") > F.col("since") + F.lit(thresholds.admin_test)
    by_changer = (F.col("user_zone") == F.col("zone")) & (F.coalesce("used", F.lit(False)) | stays)
    awake = F.col("elsewhere_until") + F.lit(thresholds.admin_silent) < F.col("first_seen")
    arrived = there.select("who", F.col("user_zone").alias("zone"), "since", "origin")
    with_colleagues = _with_colleagues(seen, arrived, thresholds.admin_colleagues)
    woken = there.where(awake & ~by_changer).join(
        with_colleagues.withColumnRenamed("zone", "user_zone"), ["who", "user_zone"], "left_anti"
    )
    counts = F.format_string(
        "%s logged in from %s at %s for the first time, and was in other zones since %s",
        "who",
        "user_zone",
        as_text(F.col("since")),
        as_text(F.col("owner_since")),
    )
    return _told(there.where(by_changer).unionByName(woken), SET_PASSWORD, counts)


def _users_for_hours(
    seen: Observed, late: DataFrame, changes: DataFrame, thresholds: StrangeAdministrationThresholds
) -> DataFrame:
    """Give the changes that made a user with rights over others, which was gone soon."""
    made = (
        changes.where(of_type(EventType.SCRAM_USER_CHANGED))
        .groupBy(changed_user().alias("who"))
        .agg(F.min("first_seen").alias("made_at"), F.max("last_seen").alias("changed_until"))
    )
    acl = F.col("acl")
    strong = (
        changes.where(of_type(EventType.ACL_CREATED) & acl.rlike(_RIGHTS_OVER_OTHERS))
        .groupBy(F.regexp_extract(acl, _RIGHTS_OVER_OTHERS, 1).alias("who"))
        .agg(F.max("acl").alias("right"))
    )
    taken = (
        changes.where(of_type(EventType.ACL_DELETED) & acl.rlike(_TO_WHOM))
        .groupBy(F.regexp_extract(acl, _TO_WHOM, 1).alias("who"))
        .agg(F.max("last_seen").alias("taken_at"))
    )
    logins = seen.arrivals.groupBy("who").agg(F.min("since").alias("came"), F.max("until").alias("gone"))
    gone_at = F.greatest("changed_until", "taken_at")
    short = gone_at < F.col("made_at") + F.lit(thresholds.admin_short)
    lived = (F.col("made_at") <= F.col("came")) & (F.col("gone") <= gone_at) & short
    users = made.join(strong, "who").join(taken, "who", "left").join(logins, "who").where(lived)
    counts = F.format_string(
        "%s had %s, and logged in from %s to %s only",
        "who",
        "right",
        as_text(F.col("came")),
        as_text(F.col("gone")),
    )
    first = late.where(of_type(EventType.SCRAM_USER_CHANGED)).withColumn("who", changed_user()).join(users, "who")
    return _told(first, SOME_HOURS, counts)


def _rights_for_hours(late: DataFrame, changes: DataFrame, thresholds: StrangeAdministrationThresholds) -> DataFrame:
    """Give the rights that principals gave, and took away again some hours later."""
    first = changes.where(of_type(EventType.ACL_CREATED)).groupBy("acl").agg(F.min("first_seen").alias("first_seen"))
    given = late.where(of_type(EventType.ACL_CREATED) & F.col("acl").startswith("ALLOW "))
    given = given.join(first, ["acl", "first_seen"], "left_semi")
    taken = changes.where(of_type(EventType.ACL_DELETED)).select(
        "principal", "acl", F.col("last_seen").alias("taken_at")
    )
    apart = F.col("taken_at").between(
        F.col("last_seen") + F.lit(thresholds.admin_mistake), F.col("first_seen") + F.lit(thresholds.admin_right_for)
    )
    pairs = given.join(taken, ["principal", "acl"]).where(apart)
    made = changes.where(of_type(EventType.SCRAM_USER_CHANGED))
    made = made.select(changed_user().alias("who"), F.col("first_seen").alias("made_at"))
    just = F.col("made_at").between(F.col("first_seen") - F.lit(thresholds.admin_short), F.col("first_seen"))
    new = pairs.withColumn("who", F.regexp_extract("acl", _TO_WHOM, 1)).join(made, "who").where(just)
    old = pairs.join(new.select("principal", "acl"), ["principal", "acl"], "left_anti")
    days = distinct_over("date", "principal")
    few = old.withColumn("days", days).where(F.col("days") <= thresholds.admin_right_days)
    counts = F.format_string("it took the right away at %s", as_text(F.col("taken_at")))
    return _told(few, RIGHT_FOR_HOURS, counts)


def _at_strange_hours(seen: Observed, changes: DataFrame, thresholds: StrangeAdministrationThresholds) -> DataFrame:
    """Give the rights over others that principals gave at hours at which they never worked before."""
    given = changes.where(of_type(EventType.ACL_CREATED) & F.col("acl").rlike(_RIGHTS_OVER_OTHERS))
    worked = seen.deeds.where(went_well()).select("principal", F.col("date").alias("day"), "first_seen", "last_seen")
    before = (
        given.select("principal", "date")
        .distinct()
        .join(worked, "principal")
        .where(F.col("day") < F.col("date"))
        .groupBy("principal", "date")
        .agg(F.count_distinct("day").alias("days"), hours_at_work(around=2).alias("hours"))
        .where((F.col("days") >= thresholds.admin_days) & (F.size("hours") >= thresholds.admin_hours))
    )
    odd = given.join(before, ["principal", "date"]).where(~F.array_contains("hours", F.hour("first_seen")))
    counts = F.format_string("on %d days before it did nothing at that hour (UTC) or within two hours of it", "days")
    return _told(odd, STRANGE_HOUR, counts)


def _findings(cases: DataFrame) -> DataFrame:
    rows = (
        cases.groupBy("principal", "date")
        .agg(
            *first_and_last(),
            F.sum("deeds").alias("events"),
            distinct("case").alias("cases"),
            distinct("counts").alias("counts"),
            F.slice(distinct("what"), 1, SHOWN).alias("changes"),
            F.slice(distinct("address"), 1, SHOWN).alias("addresses"),
            F.slice(distinct("software"), 1, SHOWN).alias("clients"),
            with_most("address", "last_seen").alias("address"),
        )
        .withColumns({"token_id": F.lit(None).cast("string"), "owner": F.col("principal")})
    )
    return finding_rows(
        rows,
        subject="principal",
        severity=high_if(F.size("cases") > 1),
        evidence=[
            ("what is unusual", F.array_join("cases", ", ")),
            ("changed", some(F.col("changes"))),
            ("from addresses", some(F.col("addresses"))),
            ("counted", F.when(F.size("counts") > 0, some(F.col("counts")))),
            ("clients", some(F.col("clients"))),
        ],
    )


STRANGE_ADMINISTRATION: Final = Sign(
    kind="strange_administration",
    title="Administered by a stranger",
    meaning="A principal changes users or ACLs as one does who has the administrator's password.",
    finds="changes of users and ACLs from a strange place, at a strange hour, for some hours or for everybody",
    misses="a thief who works where the administrator does, and commands that work on ZooKeeper",
    subject_type=SubjectType.PRINCIPAL,
    thresholds=StrangeAdministrationThresholds(),
    rule=strange_administration,
    steps=(
        advise(
            "Ask the administrator whose name it is whether these changes are theirs. If not, change that password at "
            "once, undo the changes (kafka-dt acl, kafka-dt user), and end the tokens that the users made since."
        ),
        follow_principal,
        follow_address,
    ),
)
