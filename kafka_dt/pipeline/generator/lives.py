"""The life of a token, as it is planned before any event is made of it.

A life says who asks for the token, who renews it and when, how it ends, and which processes log in with it from where
and from when to when (`TokenSession`). A workload plans lives; `recording.py` makes a day's events of them.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafka_dt.pipeline.generator.scenario import CHECK_MS, EXPIRY_MS, MAX_LIFE_MS

if TYPE_CHECKING:
    import random

    from kafka_dt.pipeline.generator.clients import Place, Software


@dataclass(frozen=True, slots=True)
class Account:
    """A client that logs in without a token, always from the same place."""

    principal: str
    """`User:airflow`."""
    mechanism: str
    place: Place
    software: Software
    client_id: str


@dataclass(frozen=True, slots=True)
class TokenSession:
    """A process that has a token."""

    place: Place
    client_id: str
    software: Software
    begin_ms: int
    end_ms: int
    port: int
    """Of the connection that it keeps for its whole life; it opens others beside it."""
    bursty: bool = False
    """Whether it logs in above all when it begins, as an executor does, and not evenly over its life."""


@dataclass(frozen=True, slots=True)
class Granted:
    """A request to renew or to end a token that was granted."""

    at_ms: int
    by: Account


@dataclass(frozen=True, slots=True)
class Retries:
    """A process that goes on with a token that has ended."""

    session: TokenSession
    instants_ms: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TokenLife:
    """Everything that happens to one token."""

    token_id: str
    requester: Account
    renewers: tuple[str, ...]
    issued_ms: int
    renewals: tuple[Granted, ...] = ()
    cancelled: Granted | None = None
    sessions: tuple[TokenSession, ...] = ()
    retries: tuple[Retries, ...] = ()

    @property
    def max_ms(self) -> int:
        """The end that no renewal moves."""
        return self.issued_ms + MAX_LIFE_MS

    def expiry_ms(self, now_ms: int) -> int:
        """Say when it ends, as it is known at an instant."""
        last_ms = max([self.issued_ms, *(each.at_ms for each in self.renewals if each.at_ms <= now_ms)])
        return min(last_ms + EXPIRY_MS, self.max_ms)

    @property
    def end_ms(self) -> int:
        """When it can no longer log in."""
        return self.cancelled.at_ms if self.cancelled else self.expiry_ms(self.max_ms)

    @property
    def removed_ms(self) -> int | None:
        """When a node removes it by its age; None if a request has ended it."""
        return None if self.cancelled else (self.end_ms // CHECK_MS + 1) * CHECK_MS

    @property
    def last_ms(self) -> int:
        """When the last of it happens."""
        late = [each.instants_ms[-1] for each in self.retries]
        return max([self.removed_ms or self.end_ms, *late])


def token_id(chance: random.Random) -> str:
    """Draw an id as Kafka makes it: 22 characters."""
    return base64.urlsafe_b64encode(chance.randbytes(16)).rstrip(b"=").decode()


def port(chance: random.Random) -> int:
    """Draw a client's port."""
    return chance.randrange(32_768, 60_999)
