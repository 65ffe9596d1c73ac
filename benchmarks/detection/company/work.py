"""What programs do all day: batch jobs, programs that run for months, builds, and logins without tokens.

Source: KIP-48 ("Token Usage"); org.apache.hadoop.yarn.server.resourcemanager.security.DelegationTokenRenewer;
org.apache.spark.deploy.security.HadoopDelegationTokenManager, which gets a new token after three quarters of a life.
"""

from __future__ import annotations

from random import Random
from typing import Final

from benchmarks.detection.company.cluster import Client, Cluster, Session, Token
from benchmarks.detection.company.owners import Calendar, Owner
from benchmarks.detection.company.timeline import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, Process

RENEWED_AT: Final = 0.75
"""After which part of its time a token is renewed."""
REPLACED_AT: Final = 0.75
"""After which part of its life a running program gets a new token."""

MOST_A_RUN: Final = 500
"""How many logins a run of a batch job has at most."""


class Work:
    """The work of programs.

    Args:
        cluster: where they log in.
        calendar: the company's days.
        rng: draws what they do.
    """

    def __init__(self, cluster: Cluster, calendar: Calendar, rng: Random) -> None:
        self.cluster = cluster
        self.calendar = calendar
        self.rng = rng
        self._timeline = cluster.timeline

    def of(self, owner: Owner) -> Process:
        """Give what an owner's programs do."""
        match owner.kind:
            case "batch":
                return self._batch(owner)
            case "builds":
                return self._builds(owner)
            case "plain":
                return self._plain(owner)
            case _:
                return self._running(owner)

    def session(self, owner: Owner) -> Session:
        """Log in as the one that creates the owner's tokens."""
        if owner.requester is None:
            return self.cluster.login(owner.client(self.rng), owner.name, owner.mechanism)
        agent = owner.requester
        return self.cluster.login(agent.client(owner.story), agent.name, agent.mechanism)

    def renew(self, owner: Owner, token: Token) -> None:
        """Renew a token as the one that usually does."""
        agent = owner.renewer
        session = (
            self.session(owner)
            if agent is None
            else self.cluster.login(agent.client(owner.story), agent.name, agent.mechanism)
        )
        self.cluster.renew(session, token)

    def run(self, owner: Owner, logins: int, duration_ms: int) -> Process:
        """Run a batch job once: a token, executors that log in with it, renewals, and its end."""
        token = self.cluster.create(self.session(owner), owner.name, owner.renewers)
        if token is None:
            return
        start_ms = self._timeline.now_ms + 5 * SECOND_MS
        instants = sorted(start_ms + int(self.rng.betavariate(1, 4) * duration_ms) for _ in range(logins))
        renewal_ms = start_ms + int((token.expiry_ms - start_ms) * RENEWED_AT)
        hosts = [owner.client(self.rng, number) for number in range(max(1, min(logins, 40)))]
        if self.rng.random() < 0.02:  # it fails before it uses its token
            return
        for instant_ms in instants:
            while renewal_ms < instant_ms:
                yield renewal_ms
                self.renew(owner, token)
                renewal_ms += int(self.cluster.expiry_ms * RENEWED_AT)
            yield instant_ms
            self.cluster.token_login(self.rng.choice(hosts), token)
        yield start_ms + duration_ms
        if self.rng.random() < 0.03:  # a stage failed, and runs again
            yield self._timeline.now_ms + self.rng.randint(5, 40) * MINUTE_MS
            self.cluster.token_login(self.rng.choice(hosts), token)
        if self.rng.random() < owner.tidy and not token.removed:
            self.cluster.expire(self.session(owner), token)

    def deploy(self, owner: Owner, pods: int, *, overlap_ms: int = 0) -> None:
        """Replace the pods of a program that runs; with an overlap the old ones stay for a while (blue/green)."""
        owner.generation += 1
        for number in range(pods):
            client = owner.client(self.rng, number)
            delay_ms = self.rng.randrange(1, 4 * MINUTE_MS)
            process = self._pod(owner, client, owner.generation, pods, overlap_ms)
            self._timeline.start(process, self._timeline.now_ms + delay_ms)

    def _batch(self, owner: Owner) -> Process:
        starts = self._schedule(owner)
        runs = max(1, sum(map(len, starts)))
        per_run = min(MOST_A_RUN, max(1.0, owner.per_day * self.calendar.days / runs))
        usual_ms = int(self.rng.lognormvariate(2.8, 1.1) * MINUTE_MS)
        lasting = range(1 + usual_ms // HOUR_MS)
        owner.hours = frozenset((hour + after) % 24 for hour in owner.hours or () for after in lasting)
        for day, hours in enumerate(starts):
            for hour in hours:
                begin_ms = self.calendar.instant(day, hour, owner.utc_offset_h)
                yield begin_ms + self.rng.randrange(4 * MINUTE_MS)
                logins = max(1, int(self.rng.gauss(per_run, per_run / 5)))
                duration_ms = max(MINUTE_MS, int(usual_ms * self.rng.lognormvariate(0, 0.25)))
                self._timeline.start(self.run(owner, logins, duration_ms))

    def _schedule(self, owner: Owner) -> list[list[float]]:
        """Draw when a job runs: for each day the hours, by the local clock."""
        days = range(self.calendar.days)
        style = self.rng.random()
        minute = self.rng.choice((0, 5, 10, 15, 30, 45)) / 60
        if style < 0.35:
            every = self.rng.choice((1, 2, 3, 4, 6, 8))
            hours = [hour + minute for hour in range(0, 24, every)]
        else:
            hours = sorted(
                self.rng.choice((0, 1, 2, 3, 4, 5, 6, 7, 12, 18, 22)) + minute for _ in range(1 + (style < 0.5))
            )
        owner.hours = frozenset(int(hour - owner.utc_offset_h) % 24 for hour in hours)
        if style < 0.75:
            return [hours for _ in days]
        if style < 0.88:
            owner.weekends = False
            return [hours if self.calendar.is_working_day(day) else [] for day in days]
        if style < 0.96:
            weekday = self.rng.randrange(7)
            return [hours if self.calendar.weekday(day) == weekday else [] for day in days]
        return [hours if self.calendar.date(day).day in {1, 2, 28} else [] for day in days]

    def _running(self, owner: Owner) -> Process:
        """Run a program that never ends: its pods, and its tokens one after the other."""
        pods = min(40, max(2, int(owner.per_day / self.rng.uniform(4, 30))))
        owner.token = self.cluster.token_from_before(owner.name, owner.creator, owner.renewers)
        self.deploy(owner, pods)
        if owner.kind == "service":
            self._timeline.start(self._releases(owner, pods))
            self._timeline.start(self._rush_hours(owner, pods))
        while True:
            yield from self._renewals(owner, owner.token)
            before, owner.token = owner.token, self.cluster.create(self.session(owner), owner.name, owner.renewers)
            assert owner.token is not None
            if self.rng.random() < owner.tidy:
                self._timeline.start(self._end_later(owner, before))

    def _renewals(self, owner: Owner, token: Token) -> Process:
        """Renew a token until most of its life is over."""
        until_ms = token.issue_ms + int((token.max_ms - token.issue_ms) * REPLACED_AT)
        while self._timeline.now_ms < until_ms:
            due_ms = self._timeline.now_ms + int((token.expiry_ms - self._timeline.now_ms) * RENEWED_AT)
            yield min(max(due_ms, self._timeline.now_ms + MINUTE_MS), until_ms)
            if token.removed:
                return
            if self._timeline.now_ms < until_ms:
                self.renew(owner, token)

    def _end_later(self, owner: Owner, token: Token) -> Process:
        yield self._timeline.now_ms + self.rng.randint(1, 6) * HOUR_MS
        if not token.removed:
            self.cluster.expire(self.session(owner), token)

    def _pod(self, owner: Owner, client: Client, generation: int, pods: int, overlap_ms: int) -> Process:
        """Log in with the owner's token, and again and again, until the next deployment."""
        mean_ms = pods / owner.per_day * DAY_MS
        token, session = owner.token, None
        ends_ms: int | None = None
        while True:
            if owner.generation > generation:
                ends_ms = self._timeline.now_ms + overlap_ms if ends_ms is None else ends_ms
                if self._timeline.now_ms >= ends_ms:
                    return
            if token is not None and token.removed and self.rng.random() < 0.3:  # it has not read the new one yet
                self.cluster.token_login(client, token)
            if token is None or token.removed or (token is not owner.token and self.rng.random() < 0.6):
                token, session = owner.token, None
            if token is not None:
                if session is None or self.rng.random() < 0.1:  # the connection was lost
                    session = self.cluster.token_login(client, token)
                else:
                    session = self.cluster.login_again(session, token)
            yield self._timeline.now_ms + int(self.rng.uniform(0.7, 1.3) * mean_ms)

    def _releases(self, owner: Owner, pods: int) -> Process:
        """Deploy on some working days."""
        often = self.rng.uniform(0.03, 0.5)
        for day in range(self.calendar.days):
            if self.calendar.is_working_day(day) and self.rng.random() < often:
                yield self.calendar.instant(day, self.rng.uniform(9, 17.5), owner.utc_offset_h)
                self.deploy(owner, pods, overlap_ms=self.rng.choice((0, 0, HOUR_MS)))

    def _rush_hours(self, owner: Owner, pods: int) -> Process:
        """Add pods around noon."""
        more = int(pods * self.rng.uniform(0, 0.7))
        for day in range(self.calendar.days):
            yield self.calendar.instant(day, self.rng.uniform(9, 11), owner.utc_offset_h)
            for number in range(more if self.calendar.is_working_day(day) else more // 3):
                if owner.token is not None:
                    self.cluster.token_login(owner.client(self.rng, pods + number), owner.token)
                yield self._timeline.now_ms + self.rng.randrange(1, 20 * MINUTE_MS)

    def _builds(self, owner: Owner) -> Process:
        """Build: a token, some logins, and its end; some builds are tried again, and some run at night."""
        for day in range(self.calendar.days):
            working = self.calendar.is_working_day(day)
            builds = max(1, int(self.rng.gauss(owner.per_day / 4, owner.per_day / 12) * (1 if working else 0.15)))
            hours = sorted(self.rng.triangular(7, 21, 14) for _ in range(builds))
            for hour in [2.0, *hours]:
                yield self.calendar.instant(day, hour, owner.utc_offset_h) + self.rng.randrange(2 * MINUTE_MS)
                self._timeline.start(self._build(owner))

    def _build(self, owner: Owner) -> Process:
        client = owner.client(self.rng, self.rng.randrange(10_000))
        session = self.cluster.login(client, owner.name, owner.mechanism)
        token = self.cluster.create(session, owner.name, (), HOUR_MS * self.rng.choice((1, 2, 4)))
        if token is None:
            return
        for _ in range(self.rng.randint(1, 5)):
            yield self._timeline.now_ms + self.rng.randrange(10, 400) * SECOND_MS
            self.cluster.token_login(client, token)
        if self.rng.random() < owner.tidy and not token.removed:
            self.cluster.expire(session, token)

    def _plain(self, owner: Owner) -> Process:
        """Log in with a password, from a few hosts; some of them have an old password for a while."""
        clients = [owner.client(self.rng, number) for number in range(self.rng.randint(1, 6))]
        stale_day = self.rng.randrange(self.calendar.days) if self.rng.random() < 0.15 else None
        while True:
            yield self._timeline.now_ms + int(self.rng.expovariate(owner.per_day) * DAY_MS)
            day = (self._timeline.now_ms - self.calendar.start_ms) // DAY_MS
            stale = day == stale_day and self.rng.random() < 0.5
            refused = "wrong_credentials" if stale else None
            self.cluster.login(self.rng.choice(clients), owner.name, owner.mechanism, refused)
