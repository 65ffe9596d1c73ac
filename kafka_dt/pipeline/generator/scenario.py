"""What the generator makes: the period, the number of events, the owners, and the seed.

    Scenario.of_size(1_000_000, start=datetime(2026, 10, 1, tzinfo=UTC))

These values alone determine every event. `chance` gives each small part (an owner, a day, a token) a
generator of random numbers of its own, named after it, so that any part can be made without the others, on any machine,
and comes out the same.

The server whose events they are has Kafka's defaults for tokens: a day to the expiry, a week at most, and a look for
expired ones every hour.

Source: delegation.token.expiry.time.ms, .max.lifetime.ms, .expiry.check.interval.ms of Kafka's broker
"""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Self

from kafka_dt.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from collections.abc import Mapping

SECOND_MS: Final = 1000
MINUTE_MS: Final = 60 * SECOND_MS
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS
EXPIRY_MS: Final = DAY_MS
"""How long a token lives unless it is renewed."""
MAX_LIFE_MS: Final = 7 * DAY_MS
CHECK_MS: Final = HOUR_MS
"""How often nodes look for expired tokens."""

_EVENTS_AN_OWNER: Final = 8_000
_EVENTS_A_TOKEN: Final = 80
_EVENTS_A_WORKER: Final = 1_000_000
_FEWEST_OWNERS: Final = 12
_FEWEST_EVENTS_A_TOKEN: Final = 12
_LONGEST_DAYS: Final = 366
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class ScenarioError(PipelineError):
    """The numbers of a scenario contradict each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A cluster's days.

    Raises:
        ScenarioError: the numbers do not go together.
    """

    start: datetime
    """Midnight in UTC."""
    days: int = 30
    owners: int = 30
    """How many teams, services and people have tokens."""
    tokens_a_day: int = 100
    """How many are made on a day, about: on a working day more, on Sunday less."""
    events: int = 250_000
    """How many there are in all, about: the target that the number of logins is fitted to."""
    seed: int = 1
    incidents: int = 4
    """How many are planted of each kind; in a few days there may be room for less."""
    nodes: int = 3
    workers: int = 2
    """Of each node; as many parts of a day can be made side by side."""

    def __post_init__(self) -> None:
        if self.start.utcoffset() != timedelta() or self.start.timestamp() % (DAY_MS / SECOND_MS):
            raise ScenarioError(f"start has to be midnight in UTC, not {self.start.isoformat()}")
        if not 2 <= self.days <= _LONGEST_DAYS:  # noqa: PLR2004 - of one day there is no history
            raise ScenarioError(f"2 to {_LONGEST_DAYS} days, not {self.days}")
        if self.owners < _FEWEST_OWNERS:
            raise ScenarioError(f"at least {_FEWEST_OWNERS} owners, not {self.owners}")
        if min(self.nodes, self.workers, self.tokens_a_day) < 1 or self.incidents < 0:
            raise ScenarioError("nodes, workers and tokens a day begin with 1, incidents with 0")
        fewest = self.days * self.tokens_a_day * _FEWEST_EVENTS_A_TOKEN
        if self.events < fewest:
            tokens = self.days * self.tokens_a_day
            raise ScenarioError(f"{self.events:,} events are too few for {tokens:,} tokens; {fewest:,} are enough")

    @classmethod
    def of_size(cls, events: int, *, start: datetime, days: int = 30, seed: int = 1) -> Self:
        """Give a scenario with as many owners and tokens as fit a number of events.

        Raises:
            ScenarioError: there are too few events for so many days.
        """
        return cls(
            start=start,
            days=days,
            owners=max(_FEWEST_OWNERS, events // _EVENTS_AN_OWNER),
            tokens_a_day=max(1, events // days // _EVENTS_A_TOKEN),
            events=events,
            seed=seed,
            # A part is one worker's day, and has to fit into memory; many small files make every reader slow.
            workers=1 + min(3, events // _EVENTS_A_WORKER),
        )

    @property
    def start_ms(self) -> int:
        """Its beginning, in milliseconds since 1970."""
        return (self.start - _EPOCH) // timedelta(milliseconds=1)

    @property
    def end_ms(self) -> int:
        """Its end, which belongs to the next day."""
        return self.begin_ms(self.days)

    def begin_ms(self, day: int) -> int:
        """Say when a day begins; the first one is 0, those before it are negative."""
        return self.start_ms + day * DAY_MS

    def is_working_day(self, day: int) -> bool:
        """Whether people work: Monday to Friday."""
        return (self.start + timedelta(days=day)).isoweekday() <= 5  # noqa: PLR2004 - Friday

    def chance(self, *names: object) -> random.Random:
        """Give the random numbers of a part: always the same ones for the same names."""
        return random.Random("/".join(map(str, (self.seed, *names))))  # noqa: S311 - no secret

    def document(self) -> Mapping[str, Any]:
        """Give it as JSON's types."""
        return {**asdict(self), "start": self.start.isoformat()}


def utc(instant_ms: int) -> datetime:
    """Give an instant as a date and time."""
    return _EPOCH + timedelta(milliseconds=instant_ms)
