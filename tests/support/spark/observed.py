"""What the rules of a report look at, for a test that runs rules alone: `observed(events, work)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_dt.pipeline.report.deeds import deeds_by_day
from kafka_dt.pipeline.report.lives import logins_by_place, token_lives
from kafka_dt.pipeline.report.signs import Observed
from kafka_dt.pipeline.report.zones import Zones

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.networks import Network
    from kafka_dt.pipeline.report.store import WriteAndRead


def observed(events: DataFrame, work: WriteAndRead, networks: Sequence[Network] = ()) -> Observed:
    """Make the aggregates of some events, as a report does."""
    places = work("places", logins_by_place(events))
    deeds = work("deeds", deeds_by_day(events))
    zones = Zones.learned(places, deeds, networks, work)
    usage = work("usage", zones.of(places))
    lives = work("tokens", token_lives(events, usage))
    return Observed.of(events, usage, lives, deeds=deeds, zones=zones, work=work)
