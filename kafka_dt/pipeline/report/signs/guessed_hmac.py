"""Wrong HMACs of one token are tried where its owner never logs in.

A token's id is no secret: descriptions and logs have it. A client that has the id alone, or a damaged copy of the
token, tries HMACs. `wrong_hmacs` wrong ones in a day are a sign, if they come from zones in which the owner never
logged in, neither before nor later. It does not matter from how many addresses they come.

A job with a mangled secret is quiet, because its owner logs in from its network, at the latest after the repair. So is
a token that is older than a change of the secret keys: its HMAC may be another one since then. And so are owners that
were not known for `hmac_history`.

The severity is medium, because nothing that was tried opens the token. Tries with HMACs of several tokens are *Guessing
token ids*, too.

Not seen: a client in a network of the owner, and one that tries a few HMACs a day.
"""

# The work is on refused logins by token with a wrong HMAC, and there are few of them.

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType, RefusalReason
from kafka_dt.pipeline.report.deeds import known_since
from kafka_dt.pipeline.report.expressions import as_text, distinct, first_and_last, of_type, ok, some, with_most
from kafka_dt.pipeline.report.signs.finding import SHOWN, Severity, SubjectType, finding_rows
from kafka_dt.pipeline.report.signs.sign import Sign, advise, follow_address, follow_owner, threshold

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed


@dataclass(frozen=True, slots=True)
class GuessedHmacThresholds:
    """How many wrong HMACs are no slip."""

    wrong_hmacs: int = threshold(8, "Wrong HMACs of one token in a day, where its owner never logs in")
    """A person with a damaged copy notices at the second or third try."""
    hmac_history: timedelta = threshold(timedelta(days=1), "Time in which an owner shows where it logs in")
    """A job that runs every day has been there."""


def guessed_hmacs(seen: Observed, thresholds: GuessedHmacThresholds) -> DataFrame:
    """Find tokens whose HMAC is guessed; one finding a token."""
    tries = _strange_tries(seen, thresholds)
    in_a_day = F.sum("deeds").over(Window.partitionBy("token_id", "date"))
    of_address = F.sum("deeds").over(Window.partitionBy("token_id", "address"))
    found = (
        tries.withColumns({"in_a_day": in_a_day, "of_address": of_address})
        .where(F.col("in_a_day") >= thresholds.wrong_hmacs)
        .groupBy("token_id", "owner", "known_since")
        .agg(
            *first_and_last(),
            F.sum("deeds").alias("events"),
            F.max("in_a_day").alias("most"),
            with_most("address", "of_address").alias("address"),
            F.slice(distinct("address"), 1, SHOWN).alias("addresses"),
            F.slice(distinct("zone"), 1, SHOWN).alias("zones"),
            F.slice(distinct("software"), 1, SHOWN).alias("clients"),
        )
    )
    return _findings(found.join(_homes(seen, found), "owner", "left"))


def _strange_tries(seen: Observed, thresholds: GuessedHmacThresholds) -> DataFrame:
    """Give the wrong HMACs from zones where the owner of the token never logs in, though it does elsewhere."""
    wrong = of_type(EventType.LOGIN) & (F.col("reason") == RefusalReason.WRONG_CREDENTIALS.value)
    tokens = seen.lives.select("token_id", "owner", "created_at")
    tries = (
        seen.deeds.where(wrong & F.col("token_id").isNotNull())
        .select("token_id", "date", "address", "software", "first_seen", "last_seen", "deeds")
        .join(tokens, "token_id")
    )
    homes = seen.clients.select(F.col("who").alias("owner"), "zone").distinct()
    known = F.col("known_since") + F.lit(thresholds.hmac_history) < F.col("first_seen")
    changes = seen.deeds.where(ok(EventType.KEYS_CHANGED)).select(
        F.col("first_seen").alias("change_begin"), F.col("last_seen").alias("change_end")
    )
    is_old = (F.col("created_at") <= F.col("change_end")) & (F.col("change_begin") <= F.col("last_seen"))
    return (
        seen.zones.of(tries)
        .join(homes, ["owner", "zone"], "left_anti")
        .join(F.broadcast(changes), is_old, "left_anti")
        .join(known_since(seen.deeds, seen.clients).withColumnRenamed("principal", "owner"), "owner")
        .where(known)
    )


def _homes(seen: Observed, found: DataFrame) -> DataFrame:
    """Tell where the owners log in."""
    there = seen.clients.withColumnRenamed("who", "owner").join(found.select("owner"), "owner", "left_semi")
    return there.groupBy("owner").agg(F.slice(distinct("zone"), 1, SHOWN).alias("homes"))


def _findings(found: DataFrame) -> DataFrame:
    return finding_rows(
        found,
        subject="token_id",
        severity=F.lit(Severity.MEDIUM.value),
        evidence=[
            ("wrong HMACs in a day", F.col("most")),
            ("from addresses", some(F.col("addresses"))),
            ("in zones", some(F.col("zones"))),
            ("the owner logs in from zones", some(F.col("homes"))),
            ("clients", some(F.col("clients"))),
            ("the owner is known since", as_text(F.col("known_since"))),
        ],
    )


GUESSED_HMAC: Final = Sign(
    kind="guessed_hmac",
    title="Guessing the HMAC of a token",
    meaning="A client tries wrong HMACs of this token again and again, where its owner never logs in.",
    finds="many wrong HMACs of one token, from networks in which its owner never logs in",
    misses="tries from a network of the owner, and a few a day",
    subject_type=SubjectType.TOKEN,
    thresholds=GuessedHmacThresholds(),
    rule=guessed_hmacs,
    steps=(
        advise("Ask the owner whether the client is theirs. If not, block the address at the listeners."),
        advise("Find out who can see the ids of this owner's tokens: in logs, and by descriptions."),
        follow_address,
        follow_owner,
    ),
)
