"""What a change of a token does to the connections that logged in with it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace

import pytest

from kafka_dt.server.connections.sessions import Sessions
from kafka_dt.tokens import Principal, Token
from tests.support.tokens.nodes import START, Clock

SOON_MS = 20
TOKEN = Token(
    token_id="qe9NVyTyRGKwPVvXpmXvyQ",
    owner=Principal.user("alice"),
    requester=Principal.user("alice"),
    renewers=(),
    issue_timestamp_ms=START - 1000,
    max_timestamp_ms=START + 100_000,
    expiry_timestamp_ms=START + 50_000,
)


@dataclass(eq=False)
class RecordedSession:
    revoked: asyncio.Event = field(default_factory=asyncio.Event)
    closed: bool = False
    ends: list[int] = field(default_factory=list)

    def revoke(self) -> None:
        self.revoked.set()

    def end_session(self) -> None:
        self.closed = True

    def end_session_at(self, when_ms: int) -> None:
        self.ends.append(when_ms)


class World:
    """A token, the sessions that depend on it, and a clock."""

    def __init__(self, *, end_on_expiry: bool = False) -> None:
        self.clock = Clock()
        self.token: Token | None = TOKEN
        self.looked = asyncio.Event()
        self.sessions = Sessions(self._find, self.clock, end_on_expiry=end_on_expiry)

    def session(self, token_id: str = TOKEN.token_id) -> RecordedSession:
        session = RecordedSession()
        self.sessions.add(token_id, session)
        return session

    def _find(self, token_id: str) -> Token | None:
        self.looked.set()
        return self.token if token_id == TOKEN.token_id else None

    def change(self, after: Token | None) -> None:
        before, self.token = self.token, after
        self.sessions.token_changed(TOKEN.token_id, before, after)

    def expiring_at(self, expiry_ms: int) -> None:
        self.change(replace(TOKEN, expiry_timestamp_ms=expiry_ms))


async def test_a_token_that_is_only_shown_with_another_hmac_ends_no_session() -> None:
    world = World()
    session = world.session()
    world.clock.now_ms = TOKEN.expiry_timestamp_ms + 1
    world.change(TOKEN)
    assert (session.revoked.is_set(), session.ends) == (False, [])


async def test_a_deleted_token_ends_all_its_sessions_and_no_others() -> None:
    world = World()
    first, second, other = world.session(), world.session(), world.session("another")
    world.change(None)
    assert first.revoked.is_set()
    assert second.revoked.is_set()
    assert not other.revoked.is_set()


async def test_a_token_expired_by_a_request_ends_its_sessions() -> None:
    world = World()
    session = world.session()
    world.clock.now_ms += 1
    world.expiring_at(START)
    assert session.revoked.is_set()


async def test_a_token_that_is_made_to_expire_soon_ends_its_sessions_then() -> None:
    world = World()
    session = world.session()
    world.expiring_at(START + SOON_MS)
    assert session.ends == [START + SOON_MS]
    assert not session.revoked.is_set()
    world.clock.now_ms += SOON_MS + 1
    async with asyncio.timeout(60):
        await session.revoked.wait()


async def test_a_loop_that_runs_ahead_of_the_clock_looks_again() -> None:
    world = World()
    session = world.session()
    world.expiring_at(START + 1)
    async with asyncio.timeout(60):
        await world.looked.wait()  # the timer has fired, and the clock has stood still
    assert not session.revoked.is_set()
    world.clock.now_ms += 2
    async with asyncio.timeout(60):
        await session.revoked.wait()


async def test_a_token_that_is_renewed_in_between_keeps_its_sessions() -> None:
    world = World()
    session = world.session()
    world.expiring_at(START + SOON_MS)
    world.expiring_at(START + 60_000)
    world.clock.now_ms += 2 * SOON_MS
    witness = world.session()
    world.expiring_at(START + 2 * SOON_MS + 1)
    world.clock.now_ms += 2 * SOON_MS
    async with asyncio.timeout(60):
        await witness.revoked.wait()
    assert session.ends == [START + SOON_MS, START + 60_000, START + 2 * SOON_MS + 1]


async def test_a_renewal_alone_revokes_nothing() -> None:
    world = World()
    session = world.session()
    world.expiring_at(START + 60_000)
    world.clock.now_ms = START + 70_000
    assert session.ends == [START + 60_000]
    assert not session.revoked.is_set()


async def test_the_max_timestamp_ends_a_session_where_it_comes_first() -> None:
    world = World()
    session = world.session()
    world.change(replace(TOKEN, expiry_timestamp_ms=START + 500_000, max_timestamp_ms=START + 30_000))
    assert session.ends == [START + 30_000]


async def test_sessions_of_tokens_that_are_too_stale_end_and_no_others() -> None:
    world = World(end_on_expiry=True)
    ending, staying = [world.session(), world.session()], world.session("another")
    assert world.sessions.end_if(lambda token_id: token_id == TOKEN.token_id) == 2
    assert all(session.closed for session in ending)
    assert not staying.closed
    assert not world.sessions._timers
    assert world.sessions.end_if(lambda token_id: token_id == TOKEN.token_id) == 0
    world.change(None)
    assert not any(session.revoked.is_set() for session in ending)


async def test_a_session_that_has_ended_hears_no_more() -> None:
    world = World()
    session, other = world.session(), world.session()
    world.sessions.remove(TOKEN.token_id, session)
    world.sessions.remove("another", session)
    world.change(None)
    assert not session.revoked.is_set()
    assert other.revoked.is_set()


async def test_a_session_that_leaves_while_it_is_revoked_does_no_harm() -> None:
    world = World()

    class Leaving(RecordedSession):
        def revoke(self) -> None:
            super().revoke()
            world.sessions.remove(TOKEN.token_id, self)

    leaving, other = Leaving(), world.session()
    world.sessions.add(TOKEN.token_id, leaving)
    world.change(None)
    assert leaving.revoked.is_set()
    assert other.revoked.is_set()


@pytest.mark.parametrize("after", [None, replace(TOKEN, expiry_timestamp_ms=START - 1)])
async def test_changes_of_tokens_without_sessions_cost_nothing(after: Token | None) -> None:
    world = World()
    world.change(after)
    assert world.session().ends == []


async def test_a_token_that_reaches_its_end_ends_its_sessions_where_that_is_asked_for() -> None:
    world = World(end_on_expiry=True)
    world.token = replace(TOKEN, expiry_timestamp_ms=START + SOON_MS)
    session, other = world.session(), world.session()
    world.clock.now_ms += SOON_MS + 1
    async with asyncio.timeout(60):
        await session.revoked.wait()
    assert other.revoked.is_set()


async def test_a_renewed_token_ends_its_sessions_at_its_new_end_alone() -> None:
    world = World(end_on_expiry=True)
    world.token = replace(TOKEN, expiry_timestamp_ms=START + 1)
    session = world.session()
    world.expiring_at(START + 2 * SOON_MS)
    world.clock.now_ms += 2 * SOON_MS
    await asyncio.sleep(3 * SOON_MS / 1000)
    assert not session.revoked.is_set()
    world.clock.now_ms += 1
    async with asyncio.timeout(60):
        await session.revoked.wait()


async def test_a_token_that_is_heard_of_after_the_login_ends_its_sessions_as_well() -> None:
    world = World(end_on_expiry=True)
    world.token = None
    session = world.session()
    world.expiring_at(START + SOON_MS)
    world.clock.now_ms += SOON_MS + 1
    async with asyncio.timeout(60):
        await session.revoked.wait()


@pytest.mark.parametrize("end_on_expiry", [True, False])
async def test_a_token_without_sessions_is_not_watched(end_on_expiry: bool) -> None:
    world = World(end_on_expiry=end_on_expiry)
    for _ in range(3):
        session = world.session()
        world.expiring_at(START + 1000)
        world.sessions.remove(TOKEN.token_id, session)
        world.token = TOKEN
    revoked = world.session()
    world.change(None)
    assert revoked.revoked.is_set()
    assert world.sessions._timers == {}
