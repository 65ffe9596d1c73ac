"""Honest events that look like thefts: moves, upgrades, load tests, restored backups, journeys, and more.

Each is a story that is no incident: who reports it is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from benchmarks.detection.company.cluster import Client
from benchmarks.detection.company.owners import Owner
from benchmarks.detection.company.people import People, Staff
from benchmarks.detection.company.software import next_release
from benchmarks.detection.company.timeline import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, Process
from benchmarks.detection.company.work import Work
from benchmarks.detection.stories import Story


@dataclass(frozen=True, slots=True)
class Changes:
    """The honest look-alikes of a company, each a method that tells one story."""

    work: Work
    people: People
    owners: list[Owner]
    staff: Staff

    @property
    def rng(self) -> Random:
        """What draws the details."""
        return self.work.rng

    def kinds(self) -> dict[str, Callable[[Story, int], Process]]:
        """Give each kind and what plays it, from a story and the day on which it begins."""
        return {
            "cluster-move": self.cluster_move,
            "library-upgrade": self.library_upgrade,
            "blue-green": self.blue_green,
            "load-test": self.load_test,
            "restored-backup": self.restored_backup,
            "key-rotation": self.key_rotation,
            "on-call-renewal": self.on_call_renewal,
            "journey": self.journey,
            "flaky-client": self.flaky_client,
            "new-team": self.new_team,
            "backfill": self.backfill,
            "run-again": self.run_again,
            "inventory": self.inventory,
            "fail-over": self.fail_over,
            "night-shift": self.night_shift,
        }

    def cluster_move(self, story: Story, day: int) -> Process:
        """Move the owners of one cluster to another, some or all of them, within hours."""
        yield self._office_hours(day)
        old = self.rng.choice([each.place for each in self._running()])
        new = self.rng.choice([each for each in self.people.networks.clusters if each is not old])
        movers = [each for each in self._jobs() if each.place is old]
        for owner in self.rng.sample(movers, max(1, int(len(movers) * self.rng.uniform(0.1, 0.6)))):
            owner.place = new
            self._redeploy(owner, story)
            yield self._now_ms + self.rng.randrange(20 * MINUTE_MS)

    def library_upgrade(self, story: Story, day: int) -> Process:
        """Give several owners of one library its next version."""
        yield self._office_hours(day)
        leader = self.rng.choice(self._jobs())
        users = [each for each in self._jobs() if each.software == leader.software]
        for owner in self.rng.sample(users, max(1, len(users) // 2)):
            owner.software = next_release(owner.software)
            self._redeploy(owner, story)
            yield self._now_ms + self.rng.randrange(3 * HOUR_MS)

    def blue_green(self, story: Story, day: int) -> Process:
        """Run a program twice for some hours: the old one, and the new one in another place with a new library."""
        yield self._office_hours(day)
        owner = self.rng.choice(self._running())
        owner.place = self.rng.choice(self.people.networks.clusters)
        owner.software = next_release(owner.software)
        owner.story, story.until_ms = story, self._now_ms + DAY_MS
        self.work.deploy(owner, self.rng.randint(3, 15), overlap_ms=self.rng.randint(1, 12) * HOUR_MS)

    def load_test(self, story: Story, day: int) -> Process:
        """Create and use many tokens within an hour or two."""
        yield self._office_hours(day)
        owner = self.rng.choice([each for each in self.owners if each.requester is None and each.kind != "analyst"])
        client = Client(owner.place.address(self.rng), owner.software, f"{owner.short}-load", story)
        session = self.work.cluster.login(client, owner.name, owner.mechanism)
        for _ in range(self.rng.randint(30, 250)):
            token = self.work.cluster.create(session, owner.name, (), HOUR_MS)
            yield self._now_ms + self.rng.randrange(20 * SECOND_MS)
            if token is not None:
                self.work.cluster.token_login(client, token)

    def restored_backup(self, story: Story, day: int) -> Process:
        """Start pods from a backup, which try tokens that ended long ago until an operator stops them."""
        owner = self.rng.choice(self._running())
        yield self._office_hours(max(0, day - 4))
        tokens = self.work.cluster.live(owner.name)
        yield self._office_hours(day)
        clients = [
            Client(owner.place.address(self.rng), owner.software, owner.short, story)
            for _ in range(self.rng.randint(1, 8))
        ]
        for _ in range(self.rng.randint(5, 60)):
            for client in clients:
                for token in tokens:
                    if token.expiry_ms <= self._now_ms:
                        self.work.cluster.token_login(client, token)
            yield self._now_ms + self.rng.randint(10, 120) * SECOND_MS

    def key_rotation(self, story: Story, day: int) -> Process:
        """Rotate the secret key, end the tokens of the old one and let programs get new ones."""
        yield self._office_hours(day)
        operator = self.rng.choice(self.staff.operators)
        self.work.cluster.rotate_key(story)
        story.until_ms = self._now_ms + DAY_MS
        session = self.people.log_in(operator, story=story)
        for owner in self.rng.sample(self._running(), max(1, len(self._running()) // 3)):
            for token in self.work.cluster.live(owner.name):
                self.work.cluster.expire(session, token)
            owner.story = story
            owner.token = self.work.cluster.create(self.work.session(owner), owner.name, owner.renewers)
            yield self._now_ms + self.rng.randrange(1, 4 * MINUTE_MS)

    def on_call_renewal(self, story: Story, day: int) -> Process:
        """Renew a token at night, from home by the VPN or from a journey, because its job takes longer."""
        yield self._night(day)
        agent = self.rng.choice(self.staff.on_call)
        places = (self.people.networks.vpn, self.people.networks.vpn, self.people.networks.home)
        session = self.people.log_in(agent, self.rng.choice(places), story)
        self.work.cluster.describe(session, self.rng.randint(1, 30))
        tokens = [each for each in self.work.cluster.tokens.values() if agent.name in each.renewers]
        for token in self.rng.sample(tokens, min(len(tokens), self.rng.randint(1, 3))):
            self.work.cluster.renew(session, token)
            yield self._now_ms + self.rng.randint(1, 20) * MINUTE_MS

    def journey(self, story: Story, day: int) -> Process:
        """Travel: a notebook in hotels and trains, in another time zone, for some days."""
        owner = self.rng.choice([each for each in self.owners if each.kind == "analyst"])
        offset_h = owner.utc_offset_h + self.rng.choice((-8, -5, -2, 0, 1, 3, 7))
        for trip_day in range(day, day + self.rng.randint(1, 6)):
            yield self.people.calendar.instant(trip_day, self.rng.uniform(7, 22), offset_h)
            address = self.people.networks.road.address(self.rng)
            yield from self.people.notebook(
                owner, Client(address, owner.software, owner.short, story), self.rng.randint(1, 12)
            )

    def flaky_client(self, story: Story, day: int) -> Process:
        """Log in with a token that has ended, hundreds of times, because a program does not read its new one."""
        owner = self.rng.choice(self._running())
        yield self._office_hours(day)
        tokens = self.work.cluster.live(owner.name)
        if not tokens:
            return
        client = Client(owner.place.address(self.rng), owner.software, owner.short, story)
        token, backoff_ms = tokens[0], self.rng.choice((10, 30, 60, 300)) * SECOND_MS
        if token is not owner.token:
            self.work.cluster.expire(self.work.session(owner), token)
        while token.expiry_ms > self._now_ms:
            yield token.expiry_ms + MINUTE_MS
        for _ in range(self.rng.randint(20, 300)):
            self.work.cluster.token_login(client, token)
            yield self._now_ms + int(backoff_ms * self.rng.uniform(0.8, 1.2))

    def new_team(self, story: Story, day: int) -> Process:
        """Let a new scheduler create tokens for owners: an operator allows it, and it begins with a burst."""
        yield self._office_hours(day)
        cluster = self.work.cluster
        team = [each for each in self._jobs() if each.kind == "batch" and each.requester is not None]
        chosen = self.rng.sample(team, min(len(team), self.rng.randint(2, 8)))
        scheduler = Client(self.people.networks.admin.address(self.rng), chosen[0].software, "new-scheduler", story)
        name = f"User:scheduler-{day}"
        session = self.people.log_in(self.rng.choice(self.staff.operators), story=story)
        cluster.change_user(session, name.partition(":")[2])
        for owner in chosen:
            cluster.allow_create(session, name, owner.name)
        yield self._now_ms + self.rng.randint(2, 90) * MINUTE_MS
        session = cluster.login(scheduler, name, chosen[0].mechanism)
        for owner in chosen:
            token = cluster.create(session, owner.name, (name,))
            yield self._now_ms + self.rng.randrange(1, 5 * MINUTE_MS)
            if token is not None:
                cluster.token_login(Client(owner.place.address(self.rng), owner.software, owner.short, story), token)

    def backfill(self, story: Story, day: int) -> Process:
        """Run a job again for many days of the past: many runs, at unusual hours, with many executors."""
        yield self._night(day)
        owner = self.rng.choice([each for each in self._jobs() if each.kind == "batch"])
        owner.story, story.until_ms = story, self._now_ms + DAY_MS
        for _ in range(self.rng.randint(4, 25)):
            self.work.cluster.timeline.start(self.work.run(owner, self.rng.randint(3, 60), HOUR_MS))
            yield self._now_ms + self.rng.randint(5, 50) * MINUTE_MS

    def run_again(self, story: Story, day: int) -> Process:
        """Run the last stage of a job again by hand, hours after its end, with the token that is still valid."""
        yield self._office_hours(day)
        idle = [
            (owner, tokens[-1])
            for owner in self._jobs()
            if owner.kind == "batch" and (tokens := self.work.cluster.live(owner.name))
        ]
        if not idle:
            return
        owner, token = self.rng.choice(idle)
        for number in range(self.rng.randint(1, 8)):
            client = Client(owner.place.address(self.rng), owner.software, f"{owner.short}-{number}", story)
            self.work.cluster.token_login(client, token)
            yield self._now_ms + self.rng.randint(1, 90) * SECOND_MS

    def inventory(self, story: Story, day: int) -> Process:
        """Describe all tokens for an audit, some times, as an operator who seldom does."""
        yield self._office_hours(day)
        session = self.people.log_in(self.rng.choice(self.staff.operators), story=story)
        for _ in range(self.rng.randint(1, 12)):
            self.work.cluster.describe(session, len(self.work.cluster.tokens))
            yield self._now_ms + self.rng.randint(1, 30) * MINUTE_MS

    def fail_over(self, story: Story, day: int) -> Process:
        """Practise the loss of a cluster: all its owners run in another one for some hours."""
        yield self._office_hours(day)
        lost = self.rng.choice([each.place for each in self._running()])
        refuge = self.rng.choice([each for each in self.people.networks.clusters if each is not lost])
        moved = [each for each in self._jobs() if each.place is lost]
        story.until_ms = self._now_ms + DAY_MS // 2
        for owner in moved:
            owner.place, owner.story = refuge, story
            if owner.token is not None:
                self.work.deploy(owner, self.rng.randint(1, 5))
        yield self._now_ms + self.rng.randint(1, 6) * HOUR_MS
        for owner in moved:
            owner.place = lost
            if owner.token is not None:
                self.work.deploy(owner, self.rng.randint(2, 8))

    def night_shift(self, story: Story, day: int) -> Process:
        """Work through a night before a deadline, by the VPN."""
        owner = self.rng.choice([each for each in self.owners if each.kind == "analyst"])
        yield self._night(day)
        client = Client(self.people.networks.vpn.address(self.rng), owner.software, owner.short, story)
        yield from self.people.notebook(owner, client, self.rng.randint(5, 25))

    def _redeploy(self, owner: Owner, story: Story) -> None:
        """Let an owner's work of the next two days belong to a story; a program that runs all the time starts anew."""
        owner.story, story.until_ms = story, self._now_ms + 2 * DAY_MS
        if owner.token is not None:
            self.work.deploy(owner, self.rng.randint(2, 12))

    @property
    def _now_ms(self) -> int:
        return self.work.cluster.timeline.now_ms

    def _jobs(self) -> list[Owner]:
        return [each for each in self.owners if each.kind in {"batch", "streaming", "service"}]

    def _running(self) -> list[Owner]:
        return [each for each in self.owners if each.kind in {"streaming", "service"}]

    def _office_hours(self, day: int) -> int:
        return self.people.calendar.instant(day, self.rng.triangular(8, 18, 11))

    def _night(self, day: int) -> int:
        return self.people.calendar.instant(day, self.rng.uniform(21, 28))
