"""Keep a connection to one of the brokers that have the topic, and do steps over it again and again.

    leader = Member("__kafka_dt_revocations", connect, leader_of)
    await for_ever(step, leader, words, monotonic)     # step: asks leader.ready() for the connection

A step that fails is repeated after a pause, over a new connection to the broker that is the one then. A failure that
lasts is logged once, and its end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from kafka_dt.client import ConnectionFailed, LoginFailed, TokenClientError
from kafka_dt.client.errors import NoServerReached
from kafka_dt.kraft.news.topic import TopicState, describe
from kafka_dt_protocol import RemoteProtocolError

if TYPE_CHECKING:
    from uuid import UUID

    from kafka_dt.client import Address
    from kafka_dt.client.connection import Connection
    from kafka_dt.client.session import ClientSession

_LOG = logging.getLogger(__name__)

SHORTEST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 3.0
AWAY_S: Final = 1.0
"""The longest pause while no broker can be reached, which costs the cluster nothing."""
REFUSED_S: Final = 10.0
"""The pause after the cluster has refused the gateway's login: it may lock out who guesses."""
PATIENCE_S: Final = 3.0
"""A failure is logged after this time: a new leader is found within it."""


class NoMember(ConnectionFailed):
    """The broker that is meant is not there now."""


class NoBroker(ConnectionFailed):
    """No broker of the cluster can be reached."""


Choose = Callable[[TopicState], "Address | None"]
"""Chooses a broker that has the topic; None: there is none, for now."""


def leader_of(state: TopicState) -> Address | None:
    """Choose the broker that leads, which alone takes records."""
    return state.leader


class Member:
    """A broker that has the topic; not for several tasks at once.

    Args:
        topic: its name.
        connect: makes the session of a broker, or of any bootstrap server (None).
        choose: says which broker.
    """

    def __init__(self, topic: str, connect: Callable[[Address | None], ClientSession], choose: Choose) -> None:
        self.topic: Final = topic
        self.topic_id: UUID | None = None
        """Of the topic that the broker has; another one has the same name when it was deleted and made again."""
        self._connect = connect
        self._choose = choose
        self._session: ClientSession | None = None

    async def ready(self) -> Connection:
        """Return a connection that is logged in.

        Raises:
            TokenClientError: there is none, or no such topic.
        """
        connection = None if self._session is None else self._session.connection
        if connection is not None and not connection.usable:
            await self.leave()
        if self._session is None:
            state = await self.look()
            address = self._choose(state)
            if address is None:
                raise NoMember(f"the broker that is asked for topic {self.topic} is not there")
            self.topic_id = state.topic_id
            self._session = self._connect(address)
        return await self._session.ready()

    async def look(self) -> TopicState:
        """Ask any broker what it knows of the topic; raises TokenClientError."""
        asking = self._connect(None)
        try:
            return await describe(await asking.ready(), self.topic)
        except NoServerReached as error:
            raise NoBroker(str(error)) from error
        finally:
            await asking.close()

    async def leave(self) -> None:
        """End the connection; the next one goes to the broker that is the one then."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()


async def for_ever(
    step: Callable[[], Awaitable[None]], member: Member, words: str, monotonic: Callable[[], float]
) -> None:
    """Do steps one after the other.

    Args:
        step: one of them.
        member: whose connection they use.
        words: what the node cannot do while they fail, for the log.
        monotonic: seconds of a clock that never goes back.
    """
    failing_since_s: float | None = None
    complained = False
    pause_s = SHORTEST_PAUSE_S
    while True:
        try:
            await step()
        except (TokenClientError, RemoteProtocolError) as error:
            failing_since_s = monotonic() if failing_since_s is None else failing_since_s
            if not complained and monotonic() - failing_since_s >= PATIENCE_S:
                complained = True
                _LOG.warning("The worker cannot %s and tries again: %s", words, error)
            await member.leave()
            longest_s = AWAY_S if isinstance(error, NoBroker) else LONGEST_PAUSE_S
            await asyncio.sleep(REFUSED_S if isinstance(error, LoginFailed) else min(pause_s, longest_s))
            pause_s = min(2 * pause_s, longest_s)
        except Exception:  # noqa: BLE001 - whatever it is, the news must go on
            _LOG.exception("The worker could not %s; it tries again", words)
            await member.leave()
            await asyncio.sleep(LONGEST_PAUSE_S)
        else:
            if complained:
                _LOG.warning("The worker can %s again", words)
            failing_since_s, complained, pause_s = None, False, SHORTEST_PAUSE_S
