"""What logins prepare some time after their challenges: one timer for all logins of a listener.

With a timer for each login, a login on 16 connections took a fifth more CPU time, although nearly every proof was here
before its timer (docs/decisions/0009-the-challenge-tells-nothing.md).

    preparations.begin(login)      # the challenge has been written
    preparations.forget(login)     # the proof is here, or the client has gone
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

AFTER_S: Final = 0.002
"""How long after the challenge the search for a token begins at the earliest; it begins within twice that time. A
client on this machine may share a core with this process. It read the challenge later when the search, which not every
name needs, kept the core busy. Clients compute their proofs for about as long as this."""


class Preparing(Protocol):
    """A login under way."""

    def prepare(self) -> None:
        """Look for what the next message is checked against."""


class Preparations:
    """The logins that wait for the time of their preparation."""

    def __init__(self) -> None:
        self._new: set[Preparing] = set()
        """Begun since the timer was set."""
        self._due: set[Preparing] = set()
        """Begun before that: the timer is theirs."""
        self._is_set = False

    def begin(self, login: Preparing) -> None:
        """Have a login prepare when its challenge has had its time."""
        self._new.add(login)
        if not self._is_set:
            self._set()

    def forget(self, login: Preparing) -> None:
        """Let a login prepare nothing any more."""
        self._new.discard(login)
        self._due.discard(login)

    def _set(self) -> None:
        self._is_set = True
        asyncio.get_running_loop().call_later(AFTER_S, self._turn)

    def _turn(self) -> None:
        due, self._due, self._new = self._due, self._new, set()
        self._is_set = False
        if self._due:
            self._set()
        for login in due:
            # So an error of one of them keeps no other one from it.
            asyncio.get_running_loop().call_soon(login.prepare)
