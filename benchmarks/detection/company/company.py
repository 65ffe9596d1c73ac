"""A company: draw its networks, its owners and its habits from a seed, let it work for a month, and write it down.

    stories = write_company(folder, CompanyPlan(seed=7))    # folder/events/*.jsonl and folder/truth.jsonl

Everything that makes a company what it is comes from the seed, so two seeds are two companies, not two months of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import cycle, islice
from pathlib import Path
from random import Random
from typing import BinaryIO, Final

from benchmarks.detection.company.changes import Changes
from benchmarks.detection.company.cluster import Cluster
from benchmarks.detection.company.networks import Place, draw_networks
from benchmarks.detection.company.owners import (
    DUTIES,
    FIRST_NAMES,
    LAST_NAMES,
    SUBJECTS,
    Agent,
    Calendar,
    Owner,
    working_hours,
)
from benchmarks.detection.company.people import People, Staff
from benchmarks.detection.company.software import draw_software
from benchmarks.detection.company.thefts import Thefts
from benchmarks.detection.company.timeline import DAY_MS, HOUR_MS, Process, Timeline
from benchmarks.detection.company.work import Work
from benchmarks.detection.stories import EVENTS, TRUTH, Story, save_stories
from kafka_dt.audit import AuditEvent
from kafka_dt.audit.encoding import encode

FIRST_DAY: Final = datetime(2026, 1, 1, tzinfo=UTC)
SHARES: Final = {"batch": 6.0, "streaming": 2.5, "service": 3.5, "analyst": 4.0, "builds": 1.2, "plain": 2.0}
"""How many owners of each kind a company has, as parts of all, before its seed changes them."""
PACES: Final = {"batch": 1.0, "streaming": 1.6, "service": 1.6}
"""How much an owner of a kind logs in compared with others; people and builds have a pace of their own."""

SCHEDULED: Final = {"batch": 0.6, "streaming": 0.3, "service": 0.3}
"""How many owners of a kind have their tokens created by a scheduler."""


@dataclass(frozen=True, slots=True)
class CompanyPlan:
    """Which company, for how long, and how much of everything."""

    seed: int
    days: int = 30
    events: int = 340_000
    """About how many events."""
    owners: int | None = None
    """How many owners; the seed draws 100 to 500 if it is None."""
    incidents: int | None = None
    """How many incidents; the seed draws 25 to 60 if it is None."""
    look_alikes: int | None = None
    """How many honest stories; the seed draws 30 to 70 if it is None."""


class EventFolder:
    """The closed files of all workers: one for each worker and day.

    Args:
        folder: where they are written.
        timeline: says which day it is.
    """

    def __init__(self, folder: Path, timeline: Timeline) -> None:
        self._folder = folder
        self._timeline = timeline
        self._files: dict[str, tuple[int, BinaryIO]] = {}

    def write(self, worker: str, event: AuditEvent) -> None:
        """Write an event of a worker."""
        day = (self._timeline.now_ms - self._timeline.start_ms) // DAY_MS
        found = self._files.get(worker)
        if found is None or found[0] != day:
            if found is not None:
                found[1].close()
            start = datetime.fromtimestamp(self._timeline.now_ms / 1000, UTC)
            path = self._folder / f"audit-{worker}-{start:%Y%m%dT%H%M%SZ}-0.jsonl"
            found = self._files[worker] = day, path.open("wb")
        found[1].write(encode(event))

    def close(self) -> None:
        """Close all files."""
        for _, file in self._files.values():
            file.close()


def write_company(folder: Path, plan: CompanyPlan) -> list[Story]:
    """Write the events of a company into `folder/events`, and what really happened into `folder/truth.jsonl`."""
    events = folder / EVENTS
    events.mkdir(parents=True)
    rng = Random(plan.seed)  # noqa: S311 - no secret
    start_ms = int(FIRST_DAY.timestamp() * 1000) + rng.randrange(330) * DAY_MS
    timeline = Timeline(start_ms)
    files = EventFolder(events, timeline)
    try:
        stories = Company(plan, timeline, rng, files.write).stories
        timeline.run(start_ms + plan.days * DAY_MS)
    finally:
        files.close()
    told = [each for each in stories if each.event_ids]
    save_stories(folder / TRUTH, told)
    return told


class Company:
    """A company that is about to work: its processes wait in the timeline.

    Args:
        plan: which company.
        timeline: takes its processes.
        rng: draws everything.
        write: takes the events.
    """

    def __init__(
        self, plan: CompanyPlan, timeline: Timeline, rng: Random, write: Callable[[str, AuditEvent], None]
    ) -> None:
        self._plan = plan
        self._rng = rng
        self._timeline = timeline
        self.stories: list[Story] = []
        self.cluster = Cluster(timeline, rng, write, rng.choice(("SASL_SSL", "CLIENTS", "EXTERNAL", "SASL_PLAINTEXT")))
        self.cluster.expiry_ms = rng.choice((8, 12, 24, 24, 24, 48)) * HOUR_MS
        self.networks = draw_networks(rng)
        self._mechanism = rng.choice(("GSSAPI", "SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"))
        holidays = frozenset(rng.randrange(plan.days) for _ in range(rng.randrange(3)))
        self.calendar = Calendar(timeline.start_ms, plan.days, holidays)
        self._home_h = rng.choice((-8, -5, 0, 1, 1, 2, 5, 9))
        self.schedulers = self._services("scheduler", rng.randint(2, 5), self.networks.clusters)
        renewers = self._services("renewer", rng.randint(1, 3), self.networks.clusters)
        self.staff = Staff(
            self._people("ops", rng.randint(2, 8)),
            self._people("oncall", rng.randint(3, 9)),
            self._services("inventory", rng.randint(1, 2), (self.networks.admin,)),
        )
        self.cluster.super_users |= {each.name for each in self.staff.operators}
        self.owners = self._owners(plan.owners or rng.randint(100, 500), renewers)
        self._set_paces()
        self._allow_schedulers()
        self._start()

    def _start(self) -> None:
        work = Work(self.cluster, self.calendar, self._rng)
        people = People(self.cluster, self.calendar, self.networks, self._rng)
        for owner in self.owners:
            self._timeline.start(people.analyst(owner) if owner.kind == "analyst" else work.of(owner))
        for operator in self.staff.operators:
            self._timeline.start(people.operator(operator, self.owners))
        for monitor in self.staff.monitors:
            self._timeline.start(people.monitor(monitor))
        self._timeline.start(people.on_call(self.staff.on_call, self.owners))
        self._timeline.start(people.knocking(self._story("scan", incident=False)))
        self._timeline.start(self._restarts())
        changes = Changes(work, people, self.owners, self.staff).kinds()
        thefts = Thefts(people, self.owners, self.staff, self.schedulers).kinds()
        plan, rng = self._plan, self._rng
        self._tell(thefts, plan.incidents if plan.incidents is not None else rng.randint(25, 60), incident=True)
        self._tell(changes, plan.look_alikes if plan.look_alikes is not None else rng.randint(30, 70), incident=False)

    def _tell(self, kinds: dict[str, Callable[[Story, int], Process]], number: int, *, incident: bool) -> None:
        """Let stories begin on days of the month; no kind comes twice before each has come once."""
        order = self._rng.sample(list(kinds), len(kinds))
        for kind in islice(cycle(order), number):
            day = self._rng.randrange(min(2, self._plan.days - 1), self._plan.days)
            self._timeline.start(kinds[kind](self._story(kind, incident=incident), day))

    def _story(self, kind: str, *, incident: bool) -> Story:
        story = Story(f"{kind}-{len(self.stories)}", kind, incident)
        self.stories.append(story)
        return story

    def _restarts(self) -> Process:
        """Restart nodes on some nights."""
        for day in range(self.calendar.days):
            if self._rng.random() < 0.08:
                for node in sorted({each.name.rpartition("-")[0] for each in self.cluster.workers}):
                    yield self.calendar.instant(day, 3) + self._rng.randrange(HOUR_MS)
                    self.cluster.restart(node)

    def _owners(self, number: int, renewers: list[Agent]) -> list[Owner]:
        weights = [share * self._rng.gammavariate(4, 0.25) for share in SHARES.values()]
        kinds = [*SHARES, *self._rng.choices(list(SHARES), weights, k=max(0, number - len(SHARES)))]
        names = self._names(kinds)
        return [self._owner(name, kind, renewers) for name, kind in zip(names, kinds, strict=True)]

    def _owner(self, name: str, kind: str, renewers: list[Agent]) -> Owner:
        rng = self._rng
        scheduled = rng.random() < SCHEDULED.get(kind, 0.0)
        offset_h = self._home_h if rng.random() < 0.75 else rng.choice((-8, -5, 0, 1, 5, 9))
        on_call = [each.name for each in rng.sample(self.staff.on_call, rng.randrange(3))]
        return Owner(
            name=name,
            kind=kind,
            place=self._place(kind),
            software=draw_software(rng, kind),
            mechanism=self._mechanism if rng.random() < 0.8 else rng.choice(("SCRAM-SHA-512", "GSSAPI")),
            utc_offset_h=offset_h,
            per_day=rng.lognormvariate(0, 1),
            requester=rng.choice(self.schedulers) if scheduled else None,
            renewer=rng.choice(renewers) if kind != "analyst" and rng.random() < 0.5 else None,
            on_call=tuple(on_call) if kind in {"batch", "streaming", "service"} else (),
            tidy=rng.choice((0.0, 0.3, 0.9, 1.0)),
            hours=self._hours(kind, offset_h),
            weekends=kind != "analyst",
        )

    @staticmethod
    def _hours(kind: str, offset_h: int) -> frozenset[int] | None:
        """Give the hours of people, and of builds, which run at night too; a batch job draws its own."""
        hours = {"analyst": working_hours(offset_h), "builds": working_hours(offset_h) | working_hours(offset_h, 2, 2)}
        return hours.get(kind)

    def _place(self, kind: str) -> Place:
        if kind == "builds":
            return self.networks.builds
        return self.networks.vpn if kind == "analyst" else self._rng.choice(self.networks.clusters)

    def _names(self, kinds: Iterable[str]) -> list[str]:
        """Draw a name for each owner; a company names its programs in one of several ways."""
        style = self._rng.choice(
            ("{duty}-{subject}", "svc_{subject}_{duty}", "{subject}.{duty}", "prod-{subject}-{duty}")
        )
        found: dict[str, None] = {}
        for kind in kinds:
            person = kind == "analyst"
            name = self._person() if person else style.format(duty=self._duty(kind), subject=self._rng.choice(SUBJECTS))
            number = 2
            while f"User:{name}" in found:
                name = f"{name.rstrip('0123456789')}{number}"
                number += 1
            found[f"User:{name}"] = None
        return list(found)

    def _duty(self, kind: str) -> str:
        return "ci" if kind == "builds" else self._rng.choice(DUTIES)

    def _person(self) -> str:
        return f"{self._rng.choice(FIRST_NAMES)}.{self._rng.choice(LAST_NAMES)}"

    def _services(self, role: str, number: int, places: tuple[Place, ...]) -> list[Agent]:
        return self._agents([f"{role}{each + 1}" for each in range(number)], places)

    def _people(self, role: str, number: int) -> list[Agent]:
        names = [f"{self._person()}-{role}{each + 1}" for each in range(number)]
        return self._agents(names, (self.networks.admin, self.networks.vpn))

    def _agents(self, names: list[str], places: tuple[Place, ...]) -> list[Agent]:
        software = draw_software(self._rng, "tools")
        chosen = self._rng.choices(places, k=len(names))
        return [
            Agent(f"User:{name}", self._mechanism, place, software, place.address(self._rng))
            for name, place in zip(names, chosen, strict=True)
        ]

    def _set_paces(self) -> None:
        """Turn the drawn paces into logins a day, so that the month has about as many events as planned."""
        left = self._plan.events / self._plan.days
        for owner in self.owners:
            match owner.kind:
                case "analyst":
                    owner.per_day = self._rng.uniform(4, 40)
                case "builds":
                    owner.per_day = self._rng.uniform(20, 160)
                case "plain":
                    owner.per_day = self._rng.uniform(2, 40)
        scale = min(1.0, left / 2 / max(1.0, sum(each.per_day for each in self.owners if each.kind not in PACES)))
        jobs = [each for each in self.owners if each.kind in PACES]
        for owner in self.owners:
            if owner.kind not in PACES:
                owner.per_day = max(1.0, owner.per_day * scale)
                left -= owner.per_day
        total = sum(each.per_day * PACES[each.kind] for each in jobs)
        for owner in jobs:
            owner.per_day = max(2.0, owner.per_day * PACES[owner.kind] / total * left * 0.9)

    def _allow_schedulers(self) -> None:
        """Let schedulers create for their owners, and the first one for all."""
        for owner in self.owners:
            self.cluster.may_create.add((self.schedulers[0].name, owner.name))
            if owner.requester is not None:
                self.cluster.may_create.add((owner.requester.name, owner.name))
