"""A principal renews a token, or tries to, that never did so, or in an unusual way.

To renew a token, a principal needs the token's HMAC, and has to be its owner or one of its renewers. So there are these
cases:

- *stranger*: a principal that may not renew the token asked for it. The node answers
  `DELEGATION_TOKEN_OWNER_MISMATCH` only to a client that has the token's HMAC, so one request is enough. The principal
  that requested the token for its owner (KIP-373) is no stranger: it has the HMAC, and may not renew the token either.
  Neither is an operator that describes tokens of others on `operator_days` other days, from the same zone and with the
  same library: the answers have the HMACs, and a super user may end a token but not renew it. Nor is a service that
  renews tokens of `served_owners` other owners on `operator_days` other days, from there and with this library, if it
  tries to renew one that does not name it, and these are few (`tried_share`).
- *new renewer*: a principal renews the token that never renewed a token of this owner before, although it is clear
  which principals do: others have renewed this token several times (`earlier_renewals`), or once and the owner's tokens
  for longer than `renewal_history`. The owner allowed it, so the severity is medium.
- *kept alive*: the owner gets a new token for each run, and one of them does not end: a principal that neither owns it
  nor asked for it renews it `kept_renewals` times. Of the owner's tokens before, `kept_tokens` or more in
  `kept_history`, hardly any (`kept_share`) was ever renewed. A service that renews tokens of `kept_owners` other owners
  as often, from the same zone, is quiet: there a job takes longer. The severity is medium.
- *kept alive by its owner*: the owner renews a token `kept_renewals` times, over a day or longer, and of its tokens
  before, `kept_by_owner` or more in `kept_history`, hardly any (`kept_share`) was ever renewed. Who has the password of
  a job makes a token of their own with it. The severity is medium.
- *kept and used beside newer ones*: the owner or the requester renews a token `kept_beside_newer` times, over
  `kept_beside_for` or longer. The owner gets a newer token; after that, the old one is renewed again and a client logs
  in with it. Of the owner's tokens before, `kept_tokens` or more in `kept_history`, hardly any (`kept_share`) was ever
  renewed. If the requester renews it, as a scheduler does for a back-fill, one of these later logins has to come from
  an address that first used the token more than three hours after the token's first login. Owners that work by day are
  left out. A job that renews the token of its only back-fill itself looks the same, and so does a back-fill whose
  machines are replaced. The severity is medium.
- *kept alive away from home*: an owner that works by day, and has made tokens for `kept_history`, makes a token in a
  zone or with a library that it has not had for a day (`renewed_at_home`). It renews this token itself `kept_by_person`
  times, on two days and 20 hours apart or more, at least once away from home. Of at least `makers` people who make
  their tokens, a share `keepers_share` at most keeps one so long. Who has a person's password can do this. The severity
  is medium.
- *its renewer elsewhere*: a service renews tokens of others, `elsewhere_tokens` or more in the table. It renews this
  one in a zone and from a large network (/16, of IPv6 /48) from which it renews at most `elsewhere_few` tokens, or
  `elsewhere_share` of its tokens if that is more. The service renews from another network later, so it has not moved
  or failed over: a thief may have its keytab or password. The severity is medium.
- *kept without use*: the same as *kept alive*, of a token that its job has used for the last time, if another principal
  than the owner renews it `kept_renewals` times after that, over a day or longer. The severity is medium.

A renewer that is new together with the token, or that takes its turn from the beginning, is usual. So is one that
renewed other tokens of the owner before, such as a second resource manager that takes over. A principal that several
owners name as a renewer, or one owner in `named_tokens` tokens, and that renews three of four tokens `earlier_renewals`
times at most, is an engineer on call: it is there to renew a token now and then, from the office or from home. But a
token that it renews more often is not excused, and neither is one that it renews elsewhere although it logs in from one
zone only. The owner or the requester of the token is usual as well, if it renews where it works: in a zone and with a
library in which it logged in `renewed_at_home` before. It is usual, too, if it renews `earlier_renewals` times at most,
on a machine from which `administrators` principals change users and rights: there an engineer on call uses the login of
a service.

Not seen: a thief that renews as the usual renewer, as an engineer, an operator or a service at its place, or as the
owner at its home, and the first renewals of a token that was never renewed. A principal that takes over for good looks
like a new renewer, once for each owner. A service that renews over IPv4 and IPv6, with no file that calls both one
zone, looks like two.
"""

# The work is on renewals; each window is over one token.

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType
from kafka_dt.pipeline.report.deeds import ADMINISTRATION
from kafka_dt.pipeline.report.expressions import (
    UNKNOWN,
    as_text,
    at_share,
    distinct,
    first_and_last,
    nth,
    of_first,
    of_type,
    ok,
    software,
    some,
    went_well,
)
from kafka_dt.pipeline.report.signs.finding import SHOWN, SubjectType, finding_rows, high_if
from kafka_dt.pipeline.report.signs.kept_alive import WITHOUT_USE, with_kept_alive
from kafka_dt.pipeline.report.signs.kept_by_people import kept_by_people
from kafka_dt.pipeline.report.signs.machines import with_at_home
from kafka_dt.pipeline.report.signs.new_describer import NEW_DESCRIBER, answers_of_others
from kafka_dt.pipeline.report.signs.renewed_elsewhere import renewed_elsewhere
from kafka_dt.pipeline.report.signs.sign import Sign, advise, end_token, follow_address, threshold

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed

ELSEWHERE: Final = "its renewer elsewhere"
OWNER_MISMATCH: Final = "DELEGATION_TOKEN_OWNER_MISMATCH"
_AS_A_RULE: Final = 0.75
"""The share of a principal's tokens that show how often it renews one."""
PLACE: Final = ["principal", "zone", "software"]
"""Who, from where and with which library."""


@dataclass(frozen=True, slots=True)
class RenewalThresholds:
    """When it is clear which principals renew a token."""

    earlier_renewals: int = threshold(2, "Renewals by others that show who renews")
    """How many renewals of a token by others are enough."""
    renewal_history: timedelta = threshold(timedelta(days=1), "... or one, if the owner's tokens were renewed for")
    """After this time one renewal of the token is enough."""
    renewed_at_home: timedelta = threshold(
        timedelta(days=1), "Time for which an owner logs in where it renews its token"
    )
    """A thief with a password renews within hours, before the token expires."""
    administrators: int = threshold(2, "... or principals that change users and rights from the machine")
    """What one of them uses may be a notebook."""
    operator_days: int = threshold(3, "Other days on which an operator describes, or a service renews, from there")
    """Who does so as work does it every week."""
    served_owners: int = threshold(5, "... and owners whose tokens the service renews")
    """A renewer of one team has fewer."""
    tried_share: float = threshold(0.1, "... and refusals for each renewal, at most")
    """Who has got hold of many HMACs tries them all."""
    named_tokens: int = threshold(5, "Tokens that name a renewer who is on call for one owner")
    """Those of a working week."""
    kept_renewals: int = threshold(3, "Renewals that keep a token alive whose owner's tokens are not renewed")
    """An engineer on call renews once or twice, until a late job is over."""
    kept_tokens: int = threshold(5, "... tokens before that show it, at least")
    """Those of a working week."""
    kept_by_owner: int = threshold(8, "... or of an owner that renews one itself")
    """A job that is new may be a stream, which renews."""
    kept_beside_newer: int = threshold(2, "Renewals, by owner or requester, of a token whose owner has a newer one")
    """A run that takes longer than usual needs one."""
    kept_beside_for: timedelta = threshold(timedelta(hours=12), "... from the first to the last of them")
    """A run that is twice as long as usual is over by then."""
    kept_by_person: int = threshold(2, "Renewals that keep the token of an owner that works by day")
    """People make another one."""
    makers: int = threshold(20, "... people who make their tokens, at least")
    """A team has its own habits."""
    keepers_share: float = threshold(0.1, "... and the share of them that keeps a token so, at most")
    """Where people keep their tokens, one of six does so."""
    kept_history: timedelta = threshold(timedelta(days=3), "... and for how long")
    """A weekend is two days long."""
    kept_share: float = threshold(0.1, "... and the share of them that was renewed, at most")
    """A job is late now and then."""
    kept_owners: int = threshold(3, "Other owners whose tokens a service renews as often from there")
    """It renews for all jobs of a cluster."""
    elsewhere_tokens: int = threshold(20, "Tokens that show from where a service renews one")
    """Engineers on call renew fewer."""
    elsewhere_few: int = threshold(2, "... and of them those from a network that is not its own, at most")
    """Who fails over goes on with many tokens."""
    elsewhere_share: float = threshold(0.05, "... or this share of them")
    """A service of two data centres renews its tokens from both."""


def foreign_renewals(seen: Observed, thresholds: RenewalThresholds) -> DataFrame:
    """Find tokens that a stranger renews, or tries to renew; one finding a token."""
    renewals = seen.work("renewals", _with_homes(_renewals(seen.events, seen.lives), seen, thresholds))
    renewers = seen.work("renewers", _with_owners(_renewers(renewals), thresholds))
    known = with_kept_alive(_with_duties(renewers, seen), seen, thresholds)
    known = _with_services(_with_operators(known, seen, thresholds), seen, thresholds)
    known = known.join(kept_by_people(renewers, seen, thresholds), ["token_id", "principal"], "left")
    known = known.join(renewed_elsewhere(renewals, thresholds), ["token_id", "principal"], "left")
    # A principal that renewed before it was clear which ones do is usual for the owner.
    in_turn = known.where((F.col("renewals") > 0) & ~F.col("late"))
    habits = in_turn.groupBy("owner", "principal").agg(F.min("first_seen").alias("usual_since"))
    never_before = F.coalesce(F.col("usual_since") > F.col("first_seen"), F.lit(True))
    on_call_there = F.col("on_jump_host") & (F.col("renewals") <= thresholds.earlier_renewals)
    its_own = F.col("principal").isin(F.col("owner"), F.col("requester")) & (F.col("at_home") | on_call_there)
    new = F.col("late") & never_before & (F.col("renewals") > 0) & ~_on_call(thresholds) & ~its_own
    case = (
        F.when((F.col("mismatches") > 0) & ~F.col("operator") & ~F.col("service"), F.lit("stranger"))
        .when(new, F.lit("new renewer"))
        .when(F.col("kept").isNotNull(), F.col("kept"))
        .when(F.col("kept_by_person"), F.lit("kept alive away from home"))
        .when(F.col("elsewhere").isNotNull(), F.lit(ELSEWHERE))
    )
    rows = known.join(habits, ["owner", "principal"], "left").withColumn("case", case)
    # The service's other renewals of the token are not the thief's.
    strange = ("address", "first_seen", "last_seen", "renewals")
    there = {
        each: F.when(F.col("case") == ELSEWHERE, F.col("elsewhere")[each]).otherwise(F.col(each)) for each in strange
    }
    return _findings(rows.withColumns(there))


def _with_operators(renewers: DataFrame, seen: Observed, thresholds: RenewalThresholds) -> DataFrame:
    """Say whether a principal describes tokens of others on other days, in the same zone and with the same library."""
    answers = seen.deeds.where(ok(EventType.TOKENS_DESCRIBED) & F.col("principal").isNotNull())
    of_others = seen.zones.of(answers_of_others(answers, seen.lives, NEW_DESCRIBER.thresholds))
    operators = of_others.groupBy(*PLACE).agg(F.collect_set("date").alias("days"))
    others = F.size(F.array_remove("days", F.to_date("first_seen")))
    is_one = F.coalesce(others >= thresholds.operator_days, F.lit(False))
    return renewers.join(operators, PLACE, "left").withColumn("operator", is_one).drop("days")


def services(seen: Observed, thresholds: RenewalThresholds) -> DataFrame:
    """Find services: principals that renew tokens of many owners and are refused few.

    Returns:
        A row for each principal, `zone` and `software`, with the days on which it renews from there (`service_days`).
    """
    of_others = of_type(EventType.TOKEN_RENEWED) & (F.col("owner") != F.col("principal"))
    is_its_own = F.coalesce(F.col("requester") == F.col("principal"), F.lit(False))
    renewed, refused = went_well(), (F.col("reason") == OWNER_MISMATCH) & ~is_its_own
    there = seen.zones.of(seen.deeds.where(of_others & (renewed | refused))).groupBy(*PLACE)
    return (
        there.agg(
            F.count_distinct(F.when(renewed, F.col("owner"))).alias("served"),
            F.collect_set(F.when(renewed, F.col("date"))).alias("service_days"),
            F.sum(F.when(renewed, F.col("deeds")).otherwise(0)).alias("renewed"),
            F.sum(F.when(refused, F.col("deeds")).otherwise(0)).alias("tried"),
        )
        .where(F.col("served") >= thresholds.served_owners)
        .where(F.col("tried") <= F.col("renewed") * F.lit(thresholds.tried_share))
        .select(*PLACE, "service_days")
    )


def serves(day: Column, thresholds: RenewalThresholds) -> Column:
    """Say whether a row of `services` renews tokens on enough days besides `day`."""
    others = F.size(F.array_remove("service_days", day))
    return F.coalesce(others >= thresholds.operator_days, F.lit(False))


def _with_services(renewers: DataFrame, seen: Observed, thresholds: RenewalThresholds) -> DataFrame:
    """Say whether a service tries to renew a token that does not name it."""
    is_one = serves(F.to_date("first_seen"), thresholds) & (F.col("ends") == 0)
    rows = renewers.join(services(seen, thresholds), PLACE, "left").withColumn("service", is_one)
    return rows.drop("service_days")


def _on_call(thresholds: RenewalThresholds) -> Column:
    """Whether a principal is there to renew a token now and then, and is in its own place."""
    few = thresholds.earlier_renewals
    rarely = (F.col("usual_renewals") <= few) & (F.col("renewals") <= few)
    elsewhere = F.col("logins") - F.col("logins_here")
    stays = F.col("zones") - (F.col("logins_here") > 0).cast("int") == 1
    away = stays & (elsewhere > F.greatest(F.col("logins_here"), F.lit(thresholds.earlier_renewals)))
    by_one = (F.col("named_before") >= thresholds.named_tokens) & F.col("at_home")
    return ((F.col("named_by") > 1) | by_one) & rarely & ~away


def _with_duties(renewers: DataFrame, seen: Observed) -> DataFrame:
    """Add to each renewer how many owners name it, in how many tokens before, how often it renews, and its logins."""
    names = seen.lives.select("owner", "created_at", F.explode("renewers").alias("principal"))
    named = names.groupBy("principal").agg(F.count_distinct("owner").alias("named_by"))
    named_then = renewers.select("token_id", "owner", "principal", "first_seen").join(names, ["owner", "principal"])
    before = named_then.where(F.col("created_at") < F.col("first_seen")).groupBy("token_id", "principal")
    named_before = before.agg(F.count("*").alias("named_before"))
    usual = renewers.groupBy("principal").agg(at_share("renewals", _AS_A_RULE).alias("usual_renewals"))
    there = seen.clients.groupBy(F.col("who").alias("principal"), "zone").agg(F.sum("logins").alias("logins_here"))
    everywhere = there.groupBy("principal").agg(F.sum("logins_here").alias("logins"), F.count("*").alias("zones"))
    rows = renewers.join(usual, "principal").join(named, "principal", "left").join(everywhere, "principal", "left")
    rows = rows.join(named_before, ["token_id", "principal"], "left")
    return rows.join(there, ["principal", "zone"], "left").fillna(
        0, ["named_by", "named_before", "logins", "logins_here", "zones"]
    )


def _with_owners(renewers: DataFrame, thresholds: RenewalThresholds) -> DataFrame:
    """Say whether it was clear who renews a token, or the tokens of its owner, when a principal first did."""
    renewed_since = F.when(F.col("renewals") > 0, F.col("first_seen"))
    owner_since = F.min(renewed_since).over(Window.partitionBy("owner"))
    by_others = F.col("renewals_before")
    owner_is_known = owner_since + F.lit(thresholds.renewal_history) < F.col("first_seen")
    late = (by_others >= thresholds.earlier_renewals) | ((by_others > 0) & owner_is_known)
    return renewers.withColumn("late", F.coalesce(late, F.lit(False)))


def _renewals(events: DataFrame, lives: DataFrame) -> DataFrame:
    mismatch = of_type(EventType.TOKEN_RENEWED, EventType.TOKEN_EXPIRED) & (F.col("reason") == OWNER_MISMATCH)
    renewed = of_type(EventType.TOKEN_RENEWED) & went_well()
    concerned = (renewed | mismatch) & F.col("token_id").isNotNull() & F.col("principal").isNotNull()
    rows = events.where(concerned).select(
        *("token_id", "time", "principal"),
        F.coalesce("client_address", F.lit(UNKNOWN)).alias("address"),
        software(F.col("client_software")).alias("software"),
        mismatch.alias("mismatch"),
        (mismatch & of_type(EventType.TOKEN_EXPIRED)).alias("ends"),
    )
    known = rows.join(lives.select("token_id", "owner", "requester", "last_login"), "token_id")
    is_its_own = F.col("mismatch") & F.col("principal").eqNullSafe(F.col("requester"))
    return known.where(~F.coalesce(is_its_own, F.lit(False))).drop("requester")


def _with_homes(renewals: DataFrame, seen: Observed, thresholds: RenewalThresholds) -> DataFrame:
    """Add the zone of each renewal, and how usual it is.

    The principal has worked there with this library for a while (`at_home`), or administrators share the machine
    (`on_jump_host`).
    """
    administration = seen.deeds.where(ok(*ADMINISTRATION) & (F.col("address") != UNKNOWN))
    each = administration.groupBy("address", "principal").agg(F.min("first_seen").alias("since"))
    since = nth("since", thresholds.administrators).alias("jump_host_since")
    jump_hosts = each.groupBy("address").agg(since)
    rows = with_at_home(renewals, seen, "time", thresholds.renewed_at_home).join(jump_hosts, "address", "left")
    return rows.withColumn("on_jump_host", F.coalesce(F.col("jump_host_since") <= F.col("time"), F.lit(False)))


def _renewers(renewals: DataFrame) -> DataFrame:
    """Make one row for each token and principal that renewed it or tried to."""
    in_order = Window.partitionBy("token_id").orderBy("time", "principal")
    renewed = (~F.coalesce("mismatch", F.lit(False))).cast("int")
    is_idle = F.when((F.col("renewed") == 1) & (F.col("time") > F.col("last_login")), F.col("time"))
    counted = renewals.withColumn("renewed", renewed).withColumn(
        # In the first row of a principal all renewals before it are others'.
        "before",
        F.coalesce(F.sum("renewed").over(in_order.rowsBetween(Window.unboundedPreceding, -1)), F.lit(0)),
    )
    return counted.groupBy("token_id", "owner", "principal").agg(
        *first_and_last("time", "time"),
        F.min("before").alias("renewals_before"),
        F.sum("renewed").alias("renewals"),
        F.count(is_idle).alias("idle_renewals"),
        F.min(is_idle).alias("idle_since"),
        F.count(F.when(F.col("renewed") == 0, 1)).alias("mismatches"),
        F.count(F.when(F.col("ends"), 1)).alias("ends"),
        *(F.bool_and(name).alias(name) for name in ("at_home", "on_jump_host")),
        # The place that is not its home tells more.
        of_first("address", "at_home").alias("address"),
        of_first("zone", "at_home", "address").alias("zone"),
        of_first("software", "at_home", "address").alias("software"),
    )


def _findings(renewers: DataFrame) -> DataFrame:
    odd = F.col("case").isNotNull()
    usual = ~odd & (F.col("renewals") > 0)
    rows = (
        renewers.groupBy("token_id", "owner")
        .agg(
            F.min(F.when(odd, F.col("first_seen"))).alias("first_seen"),
            F.max(F.when(odd, F.col("last_seen"))).alias("last_seen"),
            F.sum(F.when(odd, F.col("renewals") + F.col("mismatches"))).alias("events"),
            F.min(F.when(odd, F.col("address"))).alias("address"),
            _names(F.when(odd, F.col("case"))).alias("cases"),
            _names(F.when(odd, F.col("principal"))).alias("strangers"),
            _names(F.when(odd, F.col("address"))).alias("addresses"),
            _names(F.when(odd, F.col("software"))).alias("clients"),
            _names(F.when(usual, F.col("principal"))).alias("usual"),
            F.max(F.when(usual, F.col("last_seen"))).alias("usual_until"),
            F.sum(F.when(odd, F.col("mismatches"))).alias("mismatches"),
            F.max(F.when(F.col("case") == WITHOUT_USE, F.col("idle_renewals"))).alias("idle_renewals"),
        )
        .where(F.size("cases") > 0)
    )
    return finding_rows(
        rows,
        subject="token_id",
        severity=high_if(F.col("mismatches") > 0),
        evidence=[
            ("what is unusual", some(F.col("cases"))),
            ("renewed or tried by", some(F.col("strangers"))),
            ("from addresses", some(F.col("addresses"))),
            ("clients", some(F.col("clients"))),
            ("renewals after the last use", F.col("idle_renewals")),
            ("refused, the HMAC was right", F.when(F.col("mismatches") > 0, F.col("mismatches"))),
            ("usually renewed by", F.when(F.size("usual") > 0, some(F.col("usual")))),
            ("last by them", as_text(F.col("usual_until"))),
        ],
    )


def _names(name: Column) -> Column:
    """Collect names; of a token there are as many as have asked to renew it."""
    return F.slice(distinct(name), 1, SHOWN)


FOREIGN_RENEWAL: Final = Sign(
    kind="foreign_renewal",
    title="Renewed by a stranger",
    meaning="A principal renews the token, or tries to, that never did, or in an unusual way; it has the token's HMAC.",
    finds="a new principal that renews a token or tries to, the usual one elsewhere, and one renewed unlike others",
    misses="a thief with the keytab of the usual renewer, an engineer on call or the owner, in the place of its owner",
    subject_type=SubjectType.TOKEN,
    thresholds=RenewalThresholds(),
    rule=foreign_renewals,
    steps=(
        advise("Ask the owner who should renew this token. If it is another principal:"),
        end_token,
        advise("Make the next token with only the renewers that it needs (--renewer-principal)."),
        follow_address,
    ),
)
