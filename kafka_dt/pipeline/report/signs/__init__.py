"""Signs of theft: what a stolen token, or somebody who looks for one, does differently.

    findings = signs_of_theft(events, usage, lives, store.work)

Each module says what it sees and what it cannot: `stolen.py` (more places or clients than a token's history says),
`revoked.py` (use after revocation), `guesses.py` (bursts of unknown ids), `renewals.py` (renewals by who never did).
`thresholds.py` has the lines that they draw, `rows.py` the shape of a finding.

A finding is a reason to look, not a proof. What all of them share: they see what a node sees. Behind a proxy that hides
addresses every client is in one place.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from kafka_dt.pipeline.report.signs.guesses import guessed_ids
from kafka_dt.pipeline.report.signs.renewals import foreign_renewals
from kafka_dt.pipeline.report.signs.revoked import used_after_revocation
from kafka_dt.pipeline.report.signs.stolen import stolen_tokens
from kafka_dt.pipeline.report.signs.thresholds import Thresholds

if TYPE_CHECKING:
    from kafka_dt.pipeline.report.store import Work

__all__ = ["Thresholds", "signs_of_theft"]


def signs_of_theft(
    events: DataFrame, usage: DataFrame, lives: DataFrame, work: Work, thresholds: Thresholds | None = None
) -> DataFrame:
    """Look for all of them; columns as in `kafka_dt.pipeline.findings.Finding`.

    Args:
        events: of the table, up to the instant of the report.
        usage: as `usage.logins_by_place` makes it.
        lives: as `lives.token_lives` makes them.
        work: keeps what is used more than once.
        thresholds: where the lines are; None = as they are by default.
    """
    lines = thresholds or Thresholds()
    return reduce(
        DataFrame.unionByName,
        (
            stolen_tokens(usage, lives, lines, work),
            used_after_revocation(events, usage, lives, lines),
            guessed_ids(events, lives, lines, work),
            foreign_renewals(events, lives, lines),
        ),
    )
