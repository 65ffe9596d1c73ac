"""Wrong HMACs of one token are tried where its owner never logs in.

A token's id is no secret: descriptions and logs have it. A client that has the id alone, or a damaged copy of the
token, tries HMACs. `wrong_hmacs` wrong ones in a day are a sign, if they come from zones in which the owner never
logged in, neither before nor later; or, in a zone of the owner, from a machine and with a library that it never had. A
client that does not name its library counts as one with such a library if all clients of the owner name theirs. It does
not matter from how many addresses the tries come.

A job with a mangled secret is quiet, because its owner logs in from its network, at the latest after the repair. So is
a token that is older than a change of the secret keys: its HMAC may be another one since then. So is an owner that was
not known for `hmac_history`, unless the tries come over the Internet from a zone where no principal logs in, and at
most one other owner is tried there.

The severity is medium, because nothing that was tried opens the token. Tries with HMACs of several tokens are *Guessing
token ids*, too.

Not seen: a client in a network of the owner with the owner's library, and one that tries a few HMACs a day.
"""

# The work is on refused logins by token with a wrong HMAC, and there are few of them.

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType, RefusalReason
from kafka_dt.pipeline.report.expressions import as_text, of_type, ok, some
from kafka_dt.pipeline.report.signs.finding import Severity, SubjectType, finding_rows
from kafka_dt.pipeline.report.signs.guesses import guesses
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
    tries = _tries(seen)
    many, history = thresholds.wrong_hmacs, thresholds.hmac_history
    return _findings(guesses(tries, seen, of="token_id", many=many, history=history, nameless=True))


def _tries(seen: Observed) -> DataFrame:
    """Give the wrong HMACs of tokens that are younger than the last change of the secret keys."""
    wrong = of_type(EventType.LOGIN) & (F.col("reason") == RefusalReason.WRONG_CREDENTIALS.value)
    tries = seen.deeds.where(wrong & F.col("token_id").isNotNull()).drop("owner")
    changes = seen.deeds.where(ok(EventType.KEYS_CHANGED)).select(
        F.col("first_seen").alias("change_begin"), F.col("last_seen").alias("change_end")
    )
    is_old = (F.col("created_at") <= F.col("change_end")) & (F.col("change_begin") <= F.col("last_seen"))
    return tries.join(seen.lives.select("token_id", "owner", "created_at"), "token_id").join(
        F.broadcast(changes), is_old, "left_anti"
    )


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
    finds="many wrong HMACs of one token, by clients in places or with libraries that its owner never has",
    misses="tries from a network of the owner with its library, and a few a day",
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
