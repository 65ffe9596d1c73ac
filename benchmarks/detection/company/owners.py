"""The owners of tokens, and the principals that create, renew and watch tokens."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Final

from benchmarks.detection.company.cluster import Client, Token
from benchmarks.detection.company.networks import Place, PlaceKind
from benchmarks.detection.company.software import Software
from benchmarks.detection.company.timeline import DAY_MS, HOUR_MS
from benchmarks.detection.stories import Story

DUTIES: Final = ("etl", "ingest", "export", "rollup", "enrich", "dedup", "score", "report", "sync", "index")
SUBJECTS: Final = (
    *("orders", "payments", "stock", "clicks", "ads", "fraud", "risk", "ledger", "claims", "fleet", "meter"),
    *("sensor", "profile", "consent", "search", "catalog", "price", "billing", "churn", "audit", "parcel"),
    *("route", "crew", "ticket", "mail", "media", "session", "device", "tax", "loan", "quote"),
)
FIRST_NAMES: Final = (
    *("anna", "bo", "chen", "dana", "emil", "fatima", "greta", "hugo", "ines", "jonas", "kemal", "lena", "mika"),
    *("noor", "olga", "pavel", "quinn", "rosa", "sven", "tara", "umar", "vera", "wim", "xu", "yuki", "zoe"),
)
LAST_NAMES: Final = (
    *("abel", "bauer", "costa", "diaz", "evans", "fischer", "gupta", "haas", "ito", "jansen", "khan", "lopez"),
    *("meyer", "novak", "okafor", "peters", "rossi", "silva", "tanaka", "weber", "yilmaz", "zhang"),
)


@dataclass(slots=True)
class Agent:
    """A principal that has a password or a ticket, and where it connects from: a scheduler, a renewer, an operator."""

    name: str
    mechanism: str
    place: Place
    software: Software
    address: str
    """Its host."""

    def client(self, story: Story | None = None) -> Client:
        """Give the agent at its usual place."""
        return Client(self.address, self.software, self.name.partition(":")[2], story)


@dataclass(slots=True)
class Owner:
    """A principal for which tokens are made."""

    name: str
    kind: str
    place: Place
    software: Software
    mechanism: str
    utc_offset_h: int
    per_day: float
    """About how many logins its work makes in a day."""
    requester: Agent | None
    """Who creates its tokens, if it does not itself."""
    renewer: Agent | None
    """Who usually renews its tokens, if it does not itself."""
    on_call: tuple[str, ...]
    """The people who may renew its tokens too."""
    tidy: float
    """How likely it expires a token that it no longer needs."""
    hours: frozenset[int] | None
    """The hours of the day, in UTC, in which it works; None for all."""
    weekends: bool = True
    places: set[str] = field(default_factory=set)
    """Where its honest logins come from."""
    softwares: set[Software] = field(default_factory=set)
    token: Token | None = None
    """What its running pods log in with."""
    generation: int = 0
    """How often it was deployed."""
    story: Story | None = None
    """What its work belongs to until the story ends, if it is more than daily work."""

    @property
    def short(self) -> str:
        """The name without its type."""
        return self.name.partition(":")[2]

    @property
    def creator(self) -> str:
        """The principal that creates its tokens in daily work."""
        return self.name if self.requester is None else self.requester.name

    @property
    def renewers(self) -> tuple[str, ...]:
        """Who may renew its tokens besides itself."""
        return (*self.on_call, *(() if self.renewer is None else (self.renewer.name,)))

    def client(self, rng: Random, number: int | None = None) -> Client:
        """Give a program of the owner at a new address of its place."""
        self.places.add(self.place.name)
        self.softwares.add(self.software)
        name = self.short if number is None else f"{self.short}-{number}"
        return Client(self.place.address(rng), self.software, name, self.story)

    def works_at(self, instant_ms: int) -> bool:
        """Say whether an instant is within its hours, or an hour away from them."""
        moment = datetime.fromtimestamp(instant_ms / 1000, UTC)
        local = moment.timestamp() + self.utc_offset_h * 3600
        if not self.weekends and datetime.fromtimestamp(local, UTC).weekday() >= 5:
            return False
        return self.hours is None or any((moment.hour + by) % 24 in self.hours for by in (-1, 0, 1))


def differences(owner: Owner, place: Place, software: Software, instant_ms: int) -> set[str]:
    """Say in what a login differs from those of the owner and, for people, of all people: zone, software, hour."""
    found = set()
    roaming = owner.kind == "analyst" and place.kind in {PlaceKind.OFFICE, PlaceKind.VPN}
    if place.name not in owner.places and not roaming:
        found.add("zone")
    if software not in owner.softwares:
        found.add("software" if software.name not in {each.name for each in owner.softwares} else "version")
    if not owner.works_at(instant_ms):
        found.add("hour")
    return found


def working_hours(utc_offset_h: int, first: int = 8, last: int = 19) -> frozenset[int]:
    """Give the hours of a working day in UTC."""
    return frozenset((hour - utc_offset_h) % 24 for hour in range(first, last + 1))


@dataclass(frozen=True, slots=True)
class Calendar:
    """The days of a company: which are working days, and when an hour of the clock is."""

    start_ms: int
    days: int
    holidays: frozenset[int]
    """Numbers of days, from the start, on which people do not work."""

    def instant(self, day: int, hour: float, utc_offset_h: int = 0) -> int:
        """Give the instant of an hour of a day, by a local clock."""
        return self.start_ms + day * DAY_MS + int((hour - utc_offset_h) * HOUR_MS)

    def is_working_day(self, day: int) -> bool:
        """Say whether people work on a day."""
        return self.weekday(day) < 5 and day not in self.holidays

    def weekday(self, day: int) -> int:
        """Give the day of the week, 0 for Monday."""
        return self.date(day).weekday()

    def date(self, day: int) -> datetime:
        """Give the date of a day."""
        return datetime.fromtimestamp((self.start_ms + day * DAY_MS) / 1000, UTC)
