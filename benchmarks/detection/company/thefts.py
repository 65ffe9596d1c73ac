"""Incidents: tokens, passwords and rights in the wrong hands.

Each method tells one story, and draws how loud it is: from where, with which program, at which hour, how often. What of
that differs from honest work is noted while it happens (`Story.differs`); if nothing does, the incident is not visible.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from benchmarks.detection.company.cluster import PASSWORDS, Client, Cluster, Session, Token
from benchmarks.detection.company.networks import Place
from benchmarks.detection.company.owners import Agent, Owner, differences
from benchmarks.detection.company.people import People, Staff
from benchmarks.detection.company.software import Software, other_software
from benchmarks.detection.company.timeline import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, Process
from benchmarks.detection.stories import Story

MANY = 3
"""How many times an owner's usual number of logins differs from honest work."""


@dataclass(frozen=True, slots=True)
class Thief:
    """A person who is not the owner: where, and with which program."""

    client: Client
    place: Place

    @property
    def story(self) -> Story:
        """What the thief's events belong to."""
        assert self.client.story is not None
        return self.client.story


@dataclass(frozen=True, slots=True)
class Thefts:
    """The incidents of a company."""

    people: People
    owners: list[Owner]
    staff: Staff
    schedulers: list[Agent]
    """The first one may create tokens for every owner."""

    @property
    def rng(self) -> Random:
        """What draws the details."""
        return self.people.rng

    def kinds(self) -> dict[str, Callable[[Story, int], Process]]:
        """Give each kind and what plays it, from a story and the day on which it begins."""
        return {
            "stolen-outside": self.stolen_outside,
            "stolen-inside": self.stolen_inside,
            "peer-pod": self.peer_pod,
            "two-places": self.two_places,
            "slow-guessing": self.slow_guessing,
            "daily-stranger": self.daily_stranger,
            "mass-describe": self.mass_describe,
            "acl-then-create": self.acl_then_create,
            "create-burst": self.create_burst,
            "after-end": self.after_end,
            "kept-alive": self.kept_alive,
            "forged-user": self.forged_user,
            "password-spray": self.password_spray,
            "after-revocation": self.after_revocation,
            "insider": self.insider,
            "scheduler-abuse": self.scheduler_abuse,
            "sabotage": self.sabotage,
            "refused-changes": self.refused_changes,
            "jump-host": self.jump_host,
        }

    def stolen_outside(self, story: Story, day: int) -> Process:
        """Use a stolen token from a machine outside the company."""
        yield self._some_time(day)
        yield from self._steal(story, self.people.networks.outside)

    def stolen_inside(self, story: Story, day: int) -> Process:
        """Use a stolen token from another place of the company."""
        networks = self.people.networks
        yield self._some_time(day)
        yield from self._steal(
            story, self.rng.choice((*networks.clusters, networks.builds, networks.vpn, *networks.offices))
        )

    def peer_pod(self, story: Story, day: int) -> Process:
        """Use a stolen token from a pod or host of a neighbour, in the place where the owner runs too."""
        yield self._some_time(day)
        yield from self._steal(story, None)

    def two_places(self, story: Story, day: int) -> Process:
        """Use an analyst's token while the analyst uses it, from where other people work."""
        yield self.people.calendar.instant(day, self.rng.uniform(9, 16))
        victims = self._victims("analyst")
        if not victims:
            return
        owner, token = self.rng.choice(victims)
        places = [each for each in self.people.networks.where_people_are() if each is not owner.place]
        thief = self._thief(owner, story, self.rng.choice(places), disguise=0.8)
        honest = owner.client(self.rng)
        for _ in range(self.rng.randint(2, 15)):
            if token.expiry_ms > self._now_ms:
                self._cluster.token_login(honest, token)
                story.differs.add("concurrency")
            yield self._now_ms + self.rng.randint(20, 400) * SECOND_MS
            self._use(thief, owner, token)
            yield self._now_ms + self.rng.randint(1, 30) * MINUTE_MS

    def slow_guessing(self, story: Story, day: int) -> Process:
        """Guess token ids or HMACs for days, a few times an hour or a day, mostly from a new address."""
        story.differs.add("outcome")
        known = self.rng.random() < 0.3
        per_address = self.rng.choice((1, 1, 2, 10))
        gap_ms = int(self.rng.lognormvariate(3.4, 1.0) * MINUTE_MS)
        software = self._anything()
        yield self._some_time(day)
        until_ms = self._now_ms + int(self.rng.uniform(1, 9) * DAY_MS)
        client = Client(self.people.networks.outside.address(self.rng), software, None, story)
        tried = 0
        while self._now_ms < until_ms:
            if tried % per_address == 0:
                client = Client(self.people.networks.outside.address(self.rng), software, None, story)
            tried += 1
            tokens = list(self._cluster.tokens.values())
            token = self.rng.choice(tokens) if known and tokens else None
            self._cluster.guess(client, self._cluster.unknown_id() if token is None else token.token_id, token)
            yield self._now_ms + int(self.rng.expovariate(1) * gap_ms)

    def daily_stranger(self, story: Story, day: int) -> Process:
        """Use the owner's present token once a day, for days, with the owner's library."""
        yield self._some_time(day)
        victims = self._victims("streaming", "service", "batch")
        if not victims:
            return
        owner, _ = self.rng.choice(victims)
        networks = self.people.networks
        place = self.rng.choice((networks.outside, networks.outside, networks.vpn, *networks.clusters))
        thief = self._thief(owner, story, place, disguise=0.8)
        for _ in range(self.rng.randint(4, 16)):
            tokens = self._cluster.live(owner.name)
            if tokens:
                self._use(thief, owner, tokens[-1])
            yield self._now_ms + DAY_MS + self.rng.randint(-90, 90) * MINUTE_MS

    def mass_describe(self, story: Story, day: int) -> Process:
        """Describe tokens as a principal that does not do so: all at once, or some at a time."""
        yield self._some_time(day)
        owner = self.rng.choice([each for each in self.owners if each.kind in {"analyst", "batch", "plain"}])
        session = self._log_in_as(owner, story)
        story.differs.add("describe")
        share, parts = self.rng.choice(((1.0, 1), (1.0, 3), (0.3, 8), (0.05, 20)))
        for _ in range(parts):
            self._cluster.describe(session, max(1, int(len(self._cluster.tokens) * share)))
            yield self._now_ms + int(self.rng.expovariate(1) * self.rng.choice((1, 30)) * MINUTE_MS)

    def acl_then_create(self, story: Story, day: int) -> Process:
        """Let an operator's stolen password allow an accomplice to create for others; then use such a token."""
        yield self._some_time(day)
        accomplice = self.rng.choice([each for each in self.owners if each.kind in {"analyst", "plain", "builds"}])
        owner = self.rng.choice(self._jobs())
        place = self.rng.choice((None, self.people.networks.vpn, self.people.networks.outside))
        session = self.people.log_in(self.rng.choice(self.staff.operators), place, story)
        self._cluster.allow_create(session, accomplice.name, owner.name)
        story.differs |= {"acl", "requester"}
        yield self._now_ms + int(self.rng.lognormvariate(3, 1.5) * MINUTE_MS)
        token = self._cluster.create(self._log_in_as(accomplice, story), owner.name)
        thief = self._thief(owner, story, self._anywhere(), disguise=0.4)
        if token is not None:
            yield from self._use_for_a_while(thief, owner, token)

    def create_burst(self, story: Story, day: int) -> Process:
        """Create tokens with the stolen password of an owner that does not create its own."""
        yield self._some_time(day)
        owners = [each for each in self._jobs() if each.requester is not None]
        if not owners:
            return
        owner = self.rng.choice(owners)
        session = self._log_in_as(owner, story)
        story.differs.add("requester")
        pause_s = self.rng.choice((1, 10, 120, 1200))
        for _ in range(int(self.rng.lognormvariate(2.7, 1)) + 1):
            self._cluster.create(session, owner.name)
            yield self._now_ms + int(self.rng.expovariate(1) * pause_s * SECOND_MS)

    def after_end(self, story: Story, day: int) -> Process:
        """Use a job's token hours after the job's end, from where the job ran, with its library."""
        yield self._some_time(day)
        over = [
            (owner, token)
            for owner, token in self._victims("batch")
            if self._now_ms - token.issue_ms > 5 * HOUR_MS and not owner.works_at(self._now_ms)
        ]
        if not over:
            return
        owner, token = self.rng.choice(over)
        story.differs.add("after-end")
        thief = self._thief(owner, story, owner.place, disguise=0.9)
        yield from self._use_for_a_while(thief, owner, token)

    def kept_alive(self, story: Story, day: int) -> Process:
        """Renew a stolen token with a renewer's password, again and again, and use it in between."""
        yield self._some_time(day)
        victims = [(owner, token) for owner, token in self._victims("batch") if owner.on_call]
        if not victims:
            return
        owner, token = self.rng.choice(victims)
        story.differs.add("renewal")
        agent = next(each for each in self.staff.on_call if each.name == owner.on_call[0])
        place = self.rng.choice((None, self.people.networks.home, self.people.networks.outside))
        thief = self._thief(owner, story, self._anywhere(), disguise=0.6)
        while token.expiry_ms > self._now_ms and not token.removed:
            self._cluster.renew(self.people.log_in(agent, place, story), token)
            self._use(thief, owner, token)
            if token.expiry_ms >= token.max_ms:
                return
            yield self._now_ms + int((token.expiry_ms - self._now_ms) * self.rng.uniform(0.3, 0.95))

    def forged_user(self, story: Story, day: int) -> Process:
        """Log in by PLAIN as a principal that uses another mechanism, with a password of one's own; create a token."""
        yield self._some_time(day)
        owners = [each for each in self._jobs() if each.mechanism != "PLAIN"]
        if not owners:
            return
        owner = self.rng.choice(owners)
        story.differs.add("mechanism")
        if self.rng.random() < 0.4:
            session = self.people.log_in(self.rng.choice(self.staff.operators), None, story)
            self._cluster.change_user(session, owner.short)
        thief = self._thief(owner, story, self._anywhere(), disguise=0.5)
        session = self._cluster.login(thief.client, owner.name, "PLAIN")
        yield self._now_ms + self.rng.randint(1, 600) * SECOND_MS
        token = self._cluster.create(session, owner.name)
        if token is not None:
            yield from self._use_for_a_while(thief, owner, token)

    def password_spray(self, story: Story, day: int) -> Process:
        """Try a password for many users; sometimes one is right."""
        yield self._some_time(day)
        story.differs.add("outcome")
        software, gap_ms = self._anything(), self.rng.choice((1, 20, 300, 2400)) * SECOND_MS
        addresses = [self.people.networks.outside.address(self.rng) for _ in range(self.rng.choice((1, 3, 20)))]
        tried = self.rng.sample(self.owners, min(len(self.owners), self.rng.randint(8, 120)))
        for owner in tried:
            client = Client(self.rng.choice(addresses), software, None, story)
            self._cluster.login(client, owner.name, PASSWORDS, "wrong_credentials")
            yield self._now_ms + int(self.rng.expovariate(1) * gap_ms)
        if self.rng.random() < 0.5:
            client = Client(self.rng.choice(addresses), software, None, story)
            self._cluster.create(self._cluster.login(client, tried[-1].name, PASSWORDS), tried[-1].name)

    def after_revocation(self, story: Story, day: int) -> Process:
        """Go on with a stolen token after its owner has ended it."""
        yield self._some_time(day)
        victims = self._victims("batch", "analyst", "service")
        if not victims:
            return
        owner, token = self.rng.choice(victims)
        thief = self._thief(owner, story, self._anywhere(), disguise=0.5)
        story.differs.add("outcome")
        if self.rng.random() < 0.6:
            self._use(thief, owner, token)
        operator = self.people.log_in(self.rng.choice(self.staff.operators))
        yield self._now_ms + self.rng.randint(1, 120) * MINUTE_MS
        if not token.removed:
            self._cluster.expire(operator, token)
        pause_s = self.rng.choice((5, 60, 1800, 14_400))
        for _ in range(int(self.rng.lognormvariate(2, 1)) + 1):
            yield self._now_ms + int(self.rng.expovariate(1) * pause_s * SECOND_MS)
            self._use(thief, owner, token)

    def insider(self, story: Story, day: int) -> Process:
        """Read with one's own token what one should not: often at unusual hours, and much of it."""
        owner = self.rng.choice([each for each in self.owners if each.kind == "analyst"])
        yield self._some_time(day)
        thief = self._thief(owner, story, self.people.networks.vpn, disguise=0.85)
        session = self._cluster.login(thief.client, owner.name, owner.mechanism)
        token = self._cluster.create(session, owner.name)
        if token is not None:
            yield from self._use_for_a_while(thief, owner, token)

    def scheduler_abuse(self, story: Story, day: int) -> Process:
        """Create a token for an owner as the scheduler that may create for all but never did for this one."""
        yield self._some_time(day)
        scheduler = self.schedulers[0]
        owners = [each for each in self._jobs() if each.requester is not scheduler]
        if not owners:
            return
        owner = self.rng.choice(owners)
        story.differs.add("requester")
        session = self._cluster.login(scheduler.client(story), scheduler.name, scheduler.mechanism)
        token = self._cluster.create(session, owner.name, (scheduler.name,))
        thief = self._thief(owner, story, self._anywhere(), disguise=0.6)
        if token is not None:
            yield from self._use_for_a_while(thief, owner, token)

    def sabotage(self, story: Story, day: int) -> Process:
        """End the tokens of others with an operator's password."""
        yield self._some_time(day)
        place = self.rng.choice((None, self.people.networks.vpn, self.people.networks.outside))
        session = self.people.log_in(self.rng.choice(self.staff.operators), place, story)
        pause_s = self.rng.choice((1, 15, 300))
        tokens = list(self._cluster.tokens.values())
        story.differs.add("rate")
        for token in self.rng.sample(tokens, min(len(tokens), self.rng.randint(6, 80))):
            if not token.removed:
                self._cluster.expire(session, token)
            yield self._now_ms + int(self.rng.expovariate(1) * pause_s * SECOND_MS)

    def refused_changes(self, story: Story, day: int) -> Process:
        """Try to renew, end or create tokens of others without the right to."""
        yield self._some_time(day)
        owner = self.rng.choice([each for each in self.owners if each.kind in {"analyst", "plain", "service"}])
        session = self._log_in_as(owner, story)
        story.differs.add("outcome")
        pause_s = self.rng.choice((2, 60, 3600))
        for _ in range(int(self.rng.lognormvariate(1.8, 0.9)) + 1):
            token = self.rng.choice([each for each in self._cluster.tokens.values() if each.owner != owner.name])
            match self.rng.randrange(3):
                case 0:
                    self._cluster.renew(session, token)
                case 1:
                    self._cluster.expire(session, token)
                case _:
                    self._cluster.create(session, token.owner)
            yield self._now_ms + int(self.rng.expovariate(1) * pause_s * SECOND_MS)

    def jump_host(self, story: Story, day: int) -> Process:
        """Use a token on a machine of its owner, with another program."""
        yield self._some_time(day)
        victims = self._victims("streaming", "service", "batch")
        if not victims:
            return
        owner, token = self.rng.choice(victims)
        thief = self._thief(owner, story, owner.place, disguise=0.0)
        yield from self._use_for_a_while(thief, owner, token)

    def _steal(self, story: Story, place: Place | None) -> Process:
        """Use the live token of any owner from a place, or from the owner's own."""
        victims = self._victims("batch", "streaming", "service", "analyst", "builds")
        if not victims:
            return
        owner, token = self.rng.choice(victims)
        thief = self._thief(owner, story, place or owner.place, disguise=self.rng.choice((0.2, 0.6, 1.0)))
        yield from self._use_for_a_while(thief, owner, token)

    def _use_for_a_while(self, thief: Thief, owner: Owner, token: Token) -> Process:
        """Use a token some times, as long as it lives; a patient thief waits for hours in between."""
        times = int(self.rng.lognormvariate(1.5, 1.1)) + 1
        pause_ms = self.rng.choice((10 * SECOND_MS, 2 * MINUTE_MS, 20 * MINUTE_MS, 3 * HOUR_MS))
        if times > MANY * max(1.0, owner.per_day) and pause_ms < HOUR_MS:
            thief.story.differs.add("rate")
        for _ in range(times):
            if token.expiry_ms <= self._now_ms:
                return
            self._use(thief, owner, token)
            yield self._now_ms + int(self.rng.expovariate(1) * pause_ms)

    def _use(self, thief: Thief, owner: Owner, token: Token) -> None:
        thief.story.differs.update(differences(owner, thief.place, thief.client.software, self._now_ms))
        self._cluster.token_login(thief.client, token)

    def _thief(self, owner: Owner, story: Story, place: Place, disguise: float) -> Thief:
        """Draw a thief at a place; `disguise` is how likely it uses the owner's library in the owner's version."""
        disguised = self.rng.random() < disguise
        software = owner.software if disguised else other_software(self.rng, owner.software)
        name = (
            owner.short if disguised and self.rng.random() < 0.7 else self.rng.choice((None, "rdkafka", "consumer-1"))
        )
        return Thief(Client(place.address(self.rng), software, name, story), place)

    def _log_in_as(self, owner: Owner, story: Story) -> Session:
        """Log in with an owner's password: from where the owner works, or from elsewhere."""
        thief = self._thief(owner, story, self.rng.choice((owner.place, self._anywhere())), disguise=0.7)
        return self._cluster.login(thief.client, owner.name, owner.mechanism)

    def _victims(self, *kinds: str) -> list[tuple[Owner, Token]]:
        """Give the owners of some kinds that have a live token, with the newest one."""
        live = (
            (owner, self._cluster.live(owner.name)) for owner in self.owners if owner.kind in kinds and owner.places
        )
        return [(owner, tokens[-1]) for owner, tokens in live if tokens and tokens[-1].requester == owner.creator]

    def _jobs(self) -> list[Owner]:
        return [each for each in self.owners if each.kind in {"batch", "streaming", "service"}]

    def _anywhere(self) -> Place:
        networks = self.people.networks
        return self.rng.choice((networks.outside, networks.outside, networks.vpn, networks.builds, *networks.clusters))

    def _anything(self) -> Software:
        return other_software(self.rng, Software(None, None))

    def _some_time(self, day: int) -> int:
        """Draw an instant of a day: any hour, or a working hour."""
        hour = self.rng.uniform(0, 24) if self.rng.random() < 0.5 else self.rng.uniform(8, 18)
        return self.people.calendar.instant(day, hour)

    @property
    def _cluster(self) -> Cluster:
        return self.people.cluster

    @property
    def _now_ms(self) -> int:
        return self._cluster.timeline.now_ms
