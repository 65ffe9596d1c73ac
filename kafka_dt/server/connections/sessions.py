"""End the sessions of a token when the token is revoked or its expiry is moved earlier.

A token that is deleted, or expired by a request, ends the sessions that logged in with it; one whose expiry was moved
earlier ends them then, unless it is renewed in between. A token that just reaches its expiry does not: as at a broker
an idle connection stays, and its next request closes it, unless it logs in again. A gateway closes it at the expiry
(`end_on_expiry`), because an upstream connection belongs to each of its sessions.

A node that cannot know any more which tokens were revoked ends their sessions by `end_if`, if it is set to do so.

Source: docs/architecture.md#revocation-is-bounded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from kafka_dt.tokens import Token, ends_sooner


class Session(Protocol):
    """A connection that logged in with a token."""

    def revoke(self) -> None:
        """Close the connection: its token was revoked or has expired."""

    def end_session(self) -> None:
        """Close the connection as `revoke` does; the caller logs why."""

    def end_session_at(self, when_ms: int) -> None:
        """Let the session end at an instant, milliseconds since the epoch, unless its lifetime ends before."""


class Sessions:
    """The live sessions of tokens; with `end_on_expiry` a token that just reaches its end ends its sessions, too."""

    def __init__(
        self, find: Callable[[str], Token | None], now_ms: Callable[[], int], *, end_on_expiry: bool = False
    ) -> None:
        self._find = find
        self._now_ms = now_ms
        self._end_on_expiry = end_on_expiry
        self._by_token: dict[str, set[Session]] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def add(self, token_id: str, session: Session) -> None:
        """Note that a session logged in with a token."""
        self._by_token.setdefault(token_id, set()).add(session)
        if self._end_on_expiry and token_id not in self._timers and (token := self._find(token_id)) is not None:
            self._end_later(token_id, token.end_timestamp_ms)

    def remove(self, token_id: str, session: Session) -> None:
        """Note that a session ended or logged in with another token."""
        sessions = self._by_token.get(token_id)
        if sessions is not None:
            sessions.discard(session)
            if not sessions:
                del self._by_token[token_id]
                self._stop_timer(token_id)

    def token_changed(self, token_id: str, before: Token | None, after: Token | None) -> None:
        """Apply a change of a token to its sessions; the cache calls this."""
        if token_id not in self._by_token or (after is not None and after == before):
            return
        if after is None or after.is_expired(self._now_ms()):
            self._revoke(token_id)
            return
        end_ms = after.end_timestamp_ms
        for session in self._by_token[token_id]:
            session.end_session_at(end_ms)
        if self._end_on_expiry or ends_sooner(before, after):
            self._end_later(token_id, end_ms)

    def end_by(self, token_id: str, end_ms: int) -> None:
        """End the sessions of a token at an instant, or at once if it is past: another worker knows that it ends."""
        if end_ms < self._now_ms():
            self._revoke(token_id)
        for session in self._by_token.get(token_id, ()):
            session.end_session_at(end_ms)

    def end_if(self, condition: Callable[[str], bool]) -> int:
        """End the sessions of each token whose id fulfils a condition, and return how many these were."""
        ended = 0
        for token_id in [token_id for token_id in self._by_token if condition(token_id)]:
            for session in self._taken_out(token_id):
                session.end_session()
                ended += 1
        return ended

    def _end_later(self, token_id: str, end_ms: int) -> None:
        self._stop_timer(token_id)
        # A millisecond later, for in that of its end a token has not ended.
        delay = max(1, end_ms + 1 - self._now_ms()) / 1000
        timer = asyncio.get_running_loop().call_later(delay, self._end_if_due, token_id, end_ms)
        self._timers[token_id] = timer

    def _end_if_due(self, token_id: str, end_ms: int) -> None:
        """End the sessions, unless the token was renewed in the meantime."""
        del self._timers[token_id]
        token = self._find(token_id)
        if token is None or token.is_expired(self._now_ms()):
            self._revoke(token_id)
        elif token.end_timestamp_ms == end_ms:
            # The loop's clock and the wall's do not run alike.
            self._end_later(token_id, end_ms)

    def _stop_timer(self, token_id: str) -> None:
        timer = self._timers.pop(token_id, None)
        if timer is not None:
            timer.cancel()

    def _revoke(self, token_id: str) -> None:
        for session in self._taken_out(token_id):
            session.revoke()

    def _taken_out(self, token_id: str) -> set[Session]:
        """Return the sessions of a token, which are to end, and forget them."""
        self._stop_timer(token_id)
        return self._by_token.pop(token_id, set())
