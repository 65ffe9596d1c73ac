"""What is usual, learned from the table: for each owner, principal and network.

    habits = learn(table.events(spark), until=now, since=now - timedelta(days=30))
    habits.owners["User:alice"].networks        # {"10.20.0.0/16"}

The rules of the watch ask these on the driver. What an alert is about is not usual: `without` leaves it out, although
it is in the table.

Limits: all of it is in the memory of the driver, some hundred bytes for each owner, network, token and address of the
time that it is learned from.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType, RefusalReason
from kafka_dt.pipeline.report.deeds import ADMINISTRATION, ALLOWS_TOKENS, TOKEN_CHANGES, deeds_by_day
from kafka_dt.pipeline.report.expressions import (
    EPOCH,
    TOKEN_EVENTS,
    client_shape,
    of_type,
    ok,
    rows_of,
    software,
    until,
    wide_network,
)
from kafka_dt.pipeline.report.lives import known_end, revoked_at
from kafka_dt.pipeline.report.signs.foreign_renewal import FOREIGN_RENEWAL
from kafka_dt.pipeline.report.signs.new_describer import NEW_DESCRIBER, PURGED, answers_of_others
from kafka_dt.pipeline.report.signs.refused_changes import NO_LOGIN

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from pyspark.sql import DataFrame

ALLOWS: Final = re.compile(ALLOWS_TOKENS)
"""The text of an ACL that lets a principal create tokens for a user (KIP-373)."""
HISTORY: Final = timedelta(days=30)
"""From how much of the table is learned."""
SETTLED: Final = timedelta(days=1)
"""How long a principal is in a network of which it is a neighbour."""
MIGRATION: Final = timedelta(days=7)
"""Within which time principals that begin with a mechanism migrate together."""
MOST_GUESSERS: Final = 20_000
"""Of how many addresses unknown ids are usual, those with the most ids; a client of IPv6 has as many as it likes."""
MOST_NAMES: Final = 1_000
"""How many libraries and client ids of an owner are usual, those that it had first; a client makes up as many as it
likes."""
CROWD: Final = 4
"""So many principals of an address are worth noting: cases ask who shares an address."""
NETWORKS, PROGRAMS, CLIENTS = "networks", "programs", "clients"
"""What is known of an owner: the fields of `Owner`."""


@dataclass(frozen=True, slots=True)
class Owner:
    """What an owner of tokens did, or a principal without one."""

    since: datetime
    networks: frozenset[str]
    """The large networks from which it logged in."""
    programs: frozenset[str]
    """The libraries with which it did."""
    clients: frozenset[str]
    """The shapes of its client ids."""


@dataclass(frozen=True, slots=True)
class Principal:
    """What a principal asked for."""

    since: datetime
    mechanisms: Mapping[str, datetime] = field(default_factory=dict)
    """Those by which it logs in without a token, each since when."""
    describes: bool = False
    """Whether it described tokens of others."""
    administers: datetime | None = None
    """Since when it changes rights, users or tokens of others, or may renew some; None if it does not."""
    creates_for: frozenset[str] = frozenset()
    """The other owners for which it created tokens."""
    ended: int = 0
    """The owners whose tokens it ended, on its largest day."""
    renews_for: int = 0
    """The other owners whose tokens it renewed."""


@dataclass(frozen=True, slots=True)
class Revoked:
    """A token that a request has ended."""

    owner: str
    at: datetime
    """When it ended, or was to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """What is usual."""

    since: datetime = EPOCH
    """The first event."""
    at: datetime = EPOCH
    """The instant at which it was learned."""
    owners: Mapping[str, Owner] = field(default_factory=dict)
    neighbours: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Large network -> who has been there for a day."""
    principals: Mapping[str, Principal] = field(default_factory=dict)
    tokens: Mapping[str, str] = field(default_factory=dict)
    """Id of a token -> the large network of its first login; empty if it had none."""
    revoked: Mapping[str, Revoked] = field(default_factory=dict)
    """Id of a token that a request has ended."""
    owned: Mapping[str, int] = field(default_factory=dict)
    """Principal -> of how many tokens it is the owner or the requester; those that ended lately count, too."""
    crowds: Mapping[str, int] = field(default_factory=dict)
    """Address -> principals that log in from there, of addresses with several."""
    addresses: Collection[str] = frozenset()
    """From which any client has logged in."""
    guesses: Mapping[str, int] = field(default_factory=dict)
    """Address -> different unknown token ids on its largest day."""
    refused_by_token: Mapping[str, int] = field(default_factory=dict)
    """Principal -> days on which it was refused what needs a login without a token."""
    grants: Mapping[str, tuple[datetime, ...]] = field(default_factory=dict)
    """Principal -> when ACLs allowed it to create tokens for others."""
    rotated: datetime = EPOCH
    """When secret keys were changed last."""

    def knows(self, principal: str | None, before: datetime) -> bool:
        """Whether a principal was seen before an instant."""
        known = self.principals.get(principal or "")
        return known is not None and known.since < before

    def administers(self, principal: str) -> bool:
        """Whether a principal changed rights, users or tokens of others, or may renew some."""
        known = self.principals.get(principal)
        return known is not None and known.administers is not None

    def was_in(self, principal: str, network: str) -> bool:
        """Whether a principal logged in from a large network."""
        owner = self.owners.get(principal)
        return owner is not None and network in owner.networks

    def renews_for_many(self, principal: str, network: str) -> bool:
        """Whether a principal renews tokens of many, and was in a large network before."""
        known = self.principals.get(principal)
        many = FOREIGN_RENEWAL.thresholds.served_owners
        return known is not None and known.renews_for >= many and self.was_in(principal, network)

    def others_in(self, network: str, name: str) -> frozenset[str]:
        """Give the principals that have been in a large network for a day, without one of them."""
        return self.neighbours.get(network, frozenset()) - {name}

    def travels(self, name: str) -> bool:
        """Whether an owner is often in networks where no other principal is."""
        networks = self.owners[name].networks
        return len(networks) > 1 and any(not self.others_in(each, name) for each in networks)

    def without(self, strange: Iterable[tuple[str, str, str]]) -> Habits:
        """Leave out what is not an owner's: its name, `networks`, `programs` or `clients`, and one of these."""
        owners, neighbours = dict(self.owners), dict(self.neighbours)
        for name, what, thing in strange:
            if name in owners:
                owners[name] = replace(owners[name], **{what: getattr(owners[name], what) - {thing}})
            if what == NETWORKS and thing in neighbours:
                neighbours[thing] -= {name}
        return replace(self, owners=owners, neighbours=neighbours)


def learn(events: DataFrame, at: datetime, history: timedelta) -> Habits:
    """Learn what is usual from the events of some time before an instant."""
    known = until(events, at).where((F.col("date") >= F.to_date(F.lit(at - history))) & (F.col("time") >= at - history))
    owners, neighbours, crowds, addresses = _owners(known, at)
    principals, grants, rotated = _principals(known, at)
    tokens, revoked, owned, describers = _tokens(known, at)
    begun = [*(each.since for each in owners.values()), *(each.since for each in principals.values())]
    return Habits(
        since=min(begun, default=at),
        at=at,
        owners=owners,
        neighbours=neighbours,
        principals=_with_describers(_with_owners(principals, owners), describers),
        tokens=tokens,
        revoked=revoked,
        owned=owned,
        crowds=crowds,
        addresses=addresses,
        guesses={row["client_address"]: row["ids"] for row in guessers(known).collect()},
        refused_by_token=_refused_by_token(known),
        grants=grants,
        rotated=rotated,
    )


def _owners(
    events: DataFrame, at: datetime
) -> tuple[dict[str, Owner], dict[str, frozenset[str]], dict[str, int], frozenset[str]]:
    logins = events.where(ok(EventType.LOGIN)).select(
        "time",
        F.coalesce("owner", "principal").alias("who"),
        "client_address",
        wide_network(F.col("client_address")).alias("wide"),
        software(F.col("client_software")).alias("software"),
        client_shape(F.col("client_id")).alias("client"),
    )
    rows = logins.groupBy("who").agg(F.min("time").alias("since"))
    software_of, clients_of = _first_names(logins, "software"), _first_names(logins, "client")
    places = logins.groupBy("who", "wide").agg(F.min("time").alias("since"))
    networks: dict[str, set[str]] = defaultdict(set)
    neighbours: dict[str, set[str]] = defaultdict(set)
    for place in rows_of(places):
        networks[place["who"]].add(place["wide"])
        if place["since"] <= at - SETTLED:
            neighbours[place["wide"]].add(place["who"])
    owners = {
        row["who"]: Owner(
            row["since"], frozenset(networks[row["who"]]), software_of[row["who"]], clients_of[row["who"]]
        )
        for row in rows_of(rows)
        if row["who"] is not None
    }
    there = logins.groupBy("client_address").agg(F.count_distinct("who").alias("principals")).collect()
    crowds = {row[0]: row[1] for row in there if row[0] is not None and row[1] >= CROWD}
    settled = {network: frozenset(names) for network, names in neighbours.items()}
    return owners, settled, crowds, frozenset(row[0] for row in there if row[0] is not None)


def _first_names(logins: DataFrame, column: str) -> dict[str, frozenset[str]]:
    """Give the names in a column of each owner that it had first."""
    begun = logins.groupBy("who", column).agg(F.min("time").alias("since"))
    order = F.row_number().over(Window.partitionBy("who").orderBy("since", column))
    first = begun.withColumn("order", order).where(F.col("order") <= MOST_NAMES)
    rows = first.groupBy("who").agg(F.collect_list(column).alias("names")).collect()
    return {row["who"]: frozenset(row["names"]) for row in rows}


def _principals(
    events: DataFrame, at: datetime
) -> tuple[dict[str, Principal], dict[str, tuple[datetime, ...]], datetime]:
    """Tell what principals asked for, when ACLs allowed some to create, and when keys were changed last."""
    rows = rows_of(
        events.where(ok(*EventType) & ~(of_type(EventType.LOGIN) & F.col("token_id").isNotNull()))
        .groupBy("type", "principal", "mechanism", "owner", "requester", "acl", "renewers", "date")
        .agg(F.min("time").alias("first_seen"), F.max("time").alias("last_seen"))
    )
    made: dict[str, _Made] = defaultdict(_Made)
    grants: dict[str, list[datetime]] = defaultdict(list)
    rotated = EPOCH
    for row in rows:
        for name in row["renewers"] or ():
            made[name].administers_since(row["first_seen"])
        if row["type"] == EventType.KEYS_CHANGED:
            rotated = max(rotated, row["last_seen"])
        elif row["principal"] is not None:
            made[row["principal"]].add(row)
        if row["type"] == EventType.ACL_CREATED and (allowed := ALLOWS.fullmatch(row["acl"] or "")):
            grants[allowed[4]].append(row["first_seen"])
    principals = {name: each.principal(at) for name, each in made.items()}
    return principals, {name: tuple(sorted(instants)) for name, instants in grants.items()}, rotated


class _Made:
    """A principal while its rows are read."""

    def __init__(self) -> None:
        self.since: datetime | None = None
        self.mechanisms: dict[str, datetime] = {}
        self.administers: datetime | None = None
        self.creates_for: set[str] = set()
        self.renews_for: set[str] = set()
        self.ended: dict[Any, set[str]] = defaultdict(set)

    def add(self, row: Mapping[str, Any]) -> None:
        kind, principal, owner = EventType(row["type"]), row["principal"], row["owner"] or row["principal"]
        first = row["first_seen"]
        self.since = first if self.since is None else min(self.since, first)
        if kind in ADMINISTRATION or (kind in TOKEN_CHANGES and owner != principal):
            self.administers_since(first)
        if kind is EventType.LOGIN and row["mechanism"] is not None:
            self.mechanisms[row["mechanism"]] = min(self.mechanisms.get(row["mechanism"], first), first)
        if kind is EventType.TOKEN_CREATED and owner != principal:
            self.creates_for.add(owner)
        if kind is EventType.TOKEN_RENEWED and owner != principal:
            self.renews_for.add(owner)
        if kind is EventType.TOKEN_EXPIRED and principal not in {owner, row["requester"]}:
            self.ended[row["date"]].add(owner)

    def administers_since(self, since: datetime) -> None:
        self.administers = since if self.administers is None else min(self.administers, since)

    def principal(self, at: datetime) -> Principal:
        return Principal(
            since=self.since or at,
            mechanisms=self.mechanisms,
            administers=self.administers,
            creates_for=frozenset(self.creates_for),
            ended=max(map(len, self.ended.values()), default=0),
            renews_for=len(self.renews_for),
        )


def _with_owners(principals: Mapping[str, Principal], owners: Mapping[str, Owner]) -> dict[str, Principal]:
    """Let owners of tokens be known since their first login, also by a token."""
    known = dict(principals)
    for name, owner in owners.items():
        each = known.get(name)
        known[name] = Principal(owner.since) if each is None else replace(each, since=min(each.since, owner.since))
    return known


def _with_describers(principals: Mapping[str, Principal], describers: Collection[str]) -> dict[str, Principal]:
    return {name: replace(each, describes=name in describers) for name, each in principals.items()}


def _tokens(
    events: DataFrame, at: datetime
) -> tuple[dict[str, str], dict[str, Revoked], dict[str, int], frozenset[str]]:
    """Tell where tokens were used first, which were revoked, whose how many are, and who described those of others."""
    time, expiry, logged_in = F.col("time"), F.col("expiry_time"), ok(EventType.LOGIN)
    asked = F.when(ok(EventType.TOKEN_EXPIRED), time)
    tokens = (
        _of_tokens(events)
        .groupBy("token_id")
        .agg(
            F.max("owner").alias("owner"),
            F.max(F.coalesce("requester", "owner")).alias("requester"),
            F.min("time").alias("created_at"),
            F.min_by(wide_network(F.col("client_address")), F.when(logged_in, time)).alias("first"),
            F.max_by(expiry, F.when(expiry.isNotNull(), time)).alias("ended_at"),
            F.max(F.when(logged_in, time)).alias("last_login"),
            F.max_by(F.coalesce(expiry, time), asked).alias("requested_end"),
            F.max(asked).alias("last_request"),
            F.max(F.when(ok(EventType.TOKEN_RENEWED), time)).alias("last_renewal"),
        )
    )
    answers = deeds_by_day(events.where(ok(EventType.TOKENS_DESCRIBED)))
    described = answers_of_others(answers, tokens, NEW_DESCRIBER.thresholds)
    describers = described.select("principal").distinct().collect()
    is_described = known_end() + F.lit(PURGED) > F.lit(at)
    more = (is_described.alias("is_described"), revoked_at().alias("revoked_at"))
    rows = rows_of(tokens.select("token_id", "owner", "requester", "first", *more))
    owned = Counter(name for row in rows if row["is_described"] for name in {row["owner"], row["requester"]})
    homes = {row["token_id"]: row["first"] or "" for row in rows}
    revoked = {
        row["token_id"]: Revoked(row["owner"], row["revoked_at"]) for row in rows if row["owner"] and row["revoked_at"]
    }
    return homes, revoked, dict(owned), frozenset(row[0] for row in describers)


def _refused_by_token(events: DataFrame) -> dict[str, int]:
    refused = events.where((F.col("reason") == NO_LOGIN) & F.col("principal").isNotNull())
    rows = refused.groupBy("principal").agg(F.count_distinct("date").alias("days")).collect()
    return {row["principal"]: row["days"] for row in rows}


def guessers(events: DataFrame) -> DataFrame:
    """Count the different unknown ids of each address on its largest day: `client_address` and `ids`."""
    refused = of_type(EventType.LOGIN) & (F.col("reason") == RefusalReason.UNKNOWN_TOKEN.value)
    tries = events.where(refused & F.col("token_id").isNotNull() & F.col("client_address").isNotNull())
    unknown = tries.join(_of_tokens(events).select("token_id"), "token_id", "left_anti")
    days = unknown.groupBy("client_address", "date").agg(F.count_distinct("token_id").alias("ids"))
    most = days.groupBy("client_address").agg(F.max("ids").alias("ids"))
    return most.orderBy(F.desc("ids"), "client_address").limit(MOST_GUESSERS)


def _of_tokens(events: DataFrame) -> DataFrame:
    return events.where(F.col("token_id").isNotNull() & ok(*TOKEN_EVENTS))
