"""What a batch of events has for the rules: rows that each stand for events which are alike.

    rows = seen_rows(good_events(checked, cluster_id), networks)

Successful logins by token are most events, and of them the rules ask who used which token from which network with which
program. So a batch has one row for each of these, however many logins and machines there are, and one row for all else
that has the same names in it. These rows come to the driver.

Source: kafka_dt/audit/event.py
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType, Outcome
from kafka_dt.pipeline.report.expressions import (
    UNKNOWN,
    address_key,
    client_shape,
    first_and_last,
    is_public,
    login_by_token,
    of_type,
    rows_of,
    software,
    wide_network,
)
from kafka_dt.pipeline.report.networks import ZoneKind

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from pyspark.sql import Column, DataFrame

    from kafka_dt.pipeline.report.networks import Network

MOST_ROWS: Final = 200_000
"""How many rows of a batch come to the driver; a batch has a million events at most. Refused logins are left out first:
a client without any rights chooses the names in them."""
_NAMES: Final = ("type", "outcome", "reason", "mechanism", "principal", "token_id", "owner", "requester", "acl", "user")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Some events of a batch that are alike; what does not apply is None."""

    type: str
    outcome: str
    first_seen: datetime
    last_seen: datetime
    events: int = 1
    """How many there are."""
    reason: str | None = None
    mechanism: str | None = None
    principal: str | None = None
    token_id: str | None = None
    owner: str | None = None
    requester: str | None = None
    acl: str | None = None
    user: str | None = None
    """The SCRAM user that was changed."""
    address: str = UNKNOWN
    """Of the client; of logins by token, of one of them."""
    wide: str = UNKNOWN
    """The large network around it."""
    is_public: bool = False
    """Whether that network is one of the Internet."""
    machines: int = 1
    """How many addresses they came from."""
    is_nat: bool = False
    """Whether the file of networks says that many machines share the address."""
    is_foreign: bool = False
    """Whether the file of networks says that it is not of the company."""
    software: str = UNKNOWN
    client: str = UNKNOWN
    """The shape of the client id."""
    described: int = 0
    """Tokens in an answer."""
    expiry: datetime | None = None
    """When a token ends by these requests; None if they do not say."""

    def is_ok(self, kind: EventType) -> bool:
        """Whether they are of a type, and were done."""
        return self.type == kind.value and self.outcome == Outcome.OK.value

    def is_refused(self, *kinds: EventType) -> bool:
        """Whether they are of one of some types, and were refused."""
        return self.type in {kind.value for kind in kinds} and self.outcome == Outcome.REFUSED.value


def seen_rows(events: DataFrame, networks: Sequence[Network]) -> list[Seen]:
    """Bring the rows of a batch of events to the driver, the oldest first.

    Args:
        events: as EVENT_SCHEMA.
        networks: those that a file names, the smallest first.
    """
    address = F.coalesce("client_address", F.lit(UNKNOWN))
    refused_login = of_type(EventType.LOGIN) & (F.col("outcome") == Outcome.REFUSED.value)
    rows = (
        events.where(~of_type(EventType.TOKEN_REMOVED))
        .select(
            *_NAMES,
            "time",
            "count",
            "expiry_time",
            address.alias("address"),
            wide_network(address).alias("wide"),
            _is_kind(ZoneKind.NAT, address, networks).alias("is_nat"),
            _is_kind(ZoneKind.FOREIGN, address, networks).alias("is_foreign"),
            software(F.col("client_software")).alias("software"),
            client_shape(F.col("client_id")).alias("client"),
            F.when(~login_by_token(), address).alias("each_address"),
        )
        .groupBy(*_NAMES, "wide", "is_nat", "is_foreign", "software", "client", "each_address")
        .agg(
            *first_and_last("time", "time"),
            F.min("address").alias("address"),
            F.count_distinct("address").alias("machines"),
            F.count("*").alias("events"),
            F.coalesce(F.max("count"), F.lit(0)).alias("described"),
            F.min("expiry_time").alias("expiry"),
        )
        .drop("each_address")
        .withColumn("is_public", is_public(F.col("wide")))
        .orderBy(refused_login, "first_seen")
        .limit(MOST_ROWS)
    )
    return sorted((Seen(**row) for row in rows_of(rows)), key=lambda row: row.first_seen)


def _is_kind(kind: ZoneKind, address: Column, networks: Sequence[Network]) -> Column:
    """Whether the smallest named network around an address is of a kind."""
    key = address_key(address)
    found = F.when(F.lit(False), F.lit(False))
    for each in networks:
        is_inside = key.between(f"{each.first:032x}", f"{each.last:032x}")
        found = found.when(is_inside, F.lit(each.kind is kind))
    return found.otherwise(F.lit(False))
