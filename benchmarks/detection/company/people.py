"""What people do: analysts with notebooks, operators, on-call engineers; and what knocks at every listener."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from benchmarks.detection.company.cluster import PASSWORDS, Client, Cluster, Session
from benchmarks.detection.company.networks import Networks, Place
from benchmarks.detection.company.owners import Agent, Calendar, Owner
from benchmarks.detection.company.software import NAMELESS
from benchmarks.detection.company.timeline import MINUTE_MS, SECOND_MS, Process
from benchmarks.detection.stories import Story


@dataclass(slots=True)
class Staff:
    """The principals of people and watchers who do not own the tokens that they work on."""

    operators: list[Agent]
    on_call: list[Agent]
    monitors: list[Agent]


class People:
    """The work of people.

    Args:
        cluster: where they log in.
        calendar: the company's days.
        networks: where they are.
        rng: draws what they do.
    """

    def __init__(self, cluster: Cluster, calendar: Calendar, networks: Networks, rng: Random) -> None:
        self.cluster = cluster
        self.calendar = calendar
        self.networks = networks
        self.rng = rng
        self._timeline = cluster.timeline

    def analyst(self, owner: Owner) -> Process:
        """Work with notebooks: on most working days, from an office or the VPN, sometimes in the evening."""
        diligence, office_share = self.rng.uniform(0.5, 0.95), self.rng.uniform(0.1, 0.95)
        office = self.rng.choice(self.networks.offices)
        for day in range(self.calendar.days):
            chance = diligence if self.calendar.is_working_day(day) else 0.04
            if self.rng.random() > chance:
                continue
            owner.place = office if self.rng.random() < office_share else self.networks.vpn
            sessions = sorted(self.rng.triangular(8, 19.5, 11) for _ in range(self.rng.randint(1, 4)))
            client = owner.client(self.rng)
            for hour in sessions:
                yield self.calendar.instant(day, hour, owner.utc_offset_h)
                if self.rng.random() < 0.1:  # from the office to home
                    owner.place = self.networks.vpn
                    client = owner.client(self.rng)
                yield from self.notebook(owner, client, max(1, int(owner.per_day / len(sessions))))

    def notebook(self, owner: Owner, client: Client, logins: int) -> Process:
        """Open a notebook: create a token if the last one has ended, and log in with it again and again."""
        if owner.token is None or owner.token.expiry_ms <= self._timeline.now_ms:
            if self.rng.random() < 0.05:
                self.cluster.login(client, owner.name, owner.mechanism, "wrong_credentials")
                yield self._timeline.now_ms + self.rng.randint(5, 60) * SECOND_MS
            elif owner.token is not None and self.rng.random() < 0.25:  # yesterday's token is still in the notebook
                for _ in range(self.rng.randint(1, 4)):
                    self.cluster.token_login(client, owner.token)
                    yield self._timeline.now_ms + self.rng.randint(2, 90) * SECOND_MS
            session = self.cluster.login(client, owner.name, owner.mechanism)
            owner.token = self.cluster.create(session, owner.name)
        for _ in range(logins):
            if owner.token is not None:
                self.cluster.token_login(client, owner.token)
            yield self._timeline.now_ms + int(self.rng.expovariate(1) * 15 * MINUTE_MS)

    def operator(self, agent: Agent, owners: list[Owner]) -> Process:
        """Look at tokens, change ACLs and users, and end tokens that are not needed, in working hours."""
        offset_h = self.rng.choice((-5, 0, 1, 5))
        for day in range(self.calendar.days):
            if not self.calendar.is_working_day(day):
                continue
            hours = sorted(self.rng.triangular(8, 18, 10) for _ in range(self.rng.randrange(4)))
            for hour in hours:
                yield self.calendar.instant(day, hour, offset_h)
                self.chore(self.log_in(agent), owners)

    def chore(self, session: Session, owners: list[Owner]) -> None:
        """Do one of an operator's chores."""
        owner = self.rng.choice(owners)
        match self.rng.randrange(6):
            case 0 | 1:
                self.cluster.describe(session, len(self.cluster.tokens))
            case 2:
                topic = f"{owner.short}-{self.rng.randrange(9)}"
                self.cluster.change_acl(session, f"ALLOW Read of LITERAL Topic:'{topic}' to {owner.name} from *")
            case 3:
                topic = f"{owner.short}-{self.rng.randrange(9)}"
                acl = f"ALLOW Write of LITERAL Topic:'{topic}' to {owner.name} from *"
                self.cluster.change_acl(session, acl, deleted=True)
            case 4:
                self.cluster.change_user(session, owner.short)
            case _:
                old = [each for each in self.cluster.live(owner.name) if each is not owner.token]
                if old:
                    self.cluster.expire(session, old[0])

    def on_call(self, agents: list[Agent], owners: list[Owner]) -> Process:
        """Take turns by the week; on some nights renew a token of a job that takes longer than planned."""
        for day in range(self.calendar.days):
            agent = agents[day // 7 % len(agents)]
            if self.rng.random() < 0.35:
                yield self.calendar.instant(day, self.rng.uniform(19, 30), 0)
                tokens = [token for owner in owners for token in self.cluster.live(owner.name)]
                mine = [token for token in tokens if agent.name in token.renewers]
                session = self.log_in(agent)
                self.cluster.describe(session, self.rng.randint(1, 12))
                for token in self.rng.sample(mine, min(len(mine), self.rng.randint(0, 2))):
                    self.cluster.renew(session, token)

    def monitor(self, agent: Agent) -> Process:
        """Describe all tokens at regular intervals."""
        every_ms = self.rng.choice((15, 30, 60, 240)) * MINUTE_MS
        while True:
            yield self._timeline.now_ms + every_ms + self.rng.randrange(5 * SECOND_MS)
            self.cluster.describe(
                self.cluster.login(agent.client(), agent.name, agent.mechanism), len(self.cluster.tokens)
            )

    def knocking(self, story: Story) -> Process:
        """Knock at the listener as health checks, scanners of the security team and wrong protocols do."""
        checker = self.networks.admin.address(self.rng)
        for day in range(self.calendar.days):
            for hour in sorted(self.rng.uniform(0, 24) for _ in range(self.rng.randint(1, 6))):
                yield self.calendar.instant(day, hour)
                self.cluster.login(Client(checker, NAMELESS), None, PASSWORDS, "broken_exchange")
            if self.calendar.weekday(day) == 6:
                yield from self._scan(Client(checker, NAMELESS, None, story))

    def log_in(self, agent: Agent, place: Place | None = None, story: Story | None = None) -> Session:
        """Log in as a person: from one's host if it is in the admins' network, else from a new address."""
        client = agent.client(story)
        if place is not None or agent.place is not self.networks.admin:
            client = replace(client, address=(place or agent.place).address(self.rng))
        return self.cluster.login(client, agent.name, agent.mechanism)

    def _scan(self, client: Client) -> Process:
        """Try what a scanner for weak points tries."""
        for mechanism in ("PLAIN", "GSSAPI", "DIGEST-MD5", PASSWORDS, PASSWORDS):
            for user in ("admin", "kafka", "guest", "test"):
                yield self._timeline.now_ms + self.rng.randrange(1, 5 * SECOND_MS)
                reason = "unknown_user" if mechanism == PASSWORDS else "unsupported_mechanism"
                self.cluster.login(client, f"User:{user}", mechanism, reason)
