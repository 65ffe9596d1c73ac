"""Requests to the server's end of one connection, and the handlers and logins that answer them.

    shell = Shell(gate := Gate())
    shell.send(find(shell, "group"))          # waits for gate.let_through()
    shell = Shell(at_once, SASL, lambda _: StubLogin(outcome, later=True))
    log_in(shell)

The requests are FindCoordinator: its answer has room for what the test has asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kio.schema.errors import ErrorCode

from kafka_dt.config import SecurityProtocol
from kafka_dt.identity.login.login import LoggedIn, LoginOutcome, LoginRefused
from kafka_dt.server.handlers import RequestContext
from kafka_dt_protocol import ApiKey, refused_coordinators, response_type
from tests.support.server.fake_transport import FakeLogin, Shell, listener, turns

FIND = ApiKey.FIND_COORDINATOR
SASL = listener(SecurityProtocol.SASL_PLAINTEXT)
TIMEOUT_S = 60


class Gate:
    """A handler whose requests wait until they are let through; refuses every coordinator under the key's name."""

    def __init__(self) -> None:
        self.asked: list[tuple[RequestContext, Any]] = []
        self.served = 0
        self._open = asyncio.Semaphore(0)

    async def __call__(self, context: RequestContext, body: Any) -> Any:
        self.asked.append((context, body))
        await self._open.acquire()
        self.served += 1
        return refused_coordinators(response_type(context.header), body, lambda key: (ErrorCode.invalid_request, key))

    def let_through(self, count: int = 1) -> None:
        for _ in range(count):
            self._open.release()


async def at_once(context: RequestContext, body: Any) -> Any:
    """Refuse every coordinator under the key's name, without waiting."""
    return refused_coordinators(response_type(context.header), body, lambda key: (ErrorCode.invalid_request, key))


def find(shell: Shell, key: str) -> bytes:
    """Give a request that is told by its key."""
    return shell.request(FIND, 3, key=key, key_type=0)


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop turn until a condition holds."""
    async with asyncio.timeout(TIMEOUT_S):
        while not condition():
            await turns(1)


async def answered(shell: Shell, count: int) -> list[Any]:
    """Wait for so many answers."""
    answers: list[Any] = []
    async with asyncio.timeout(TIMEOUT_S):
        while len(answers) < count:
            await turns(1)
            answers += shell.answers()
    return answers


@dataclass(eq=False)
class StubLogin(FakeLogin):
    """Gives one outcome, or raises it, at once or later."""

    outcome: LoginOutcome | Exception
    later: bool
    foregone: LoginRefused | None = None

    def evaluate(self, _message: bytes) -> Any:
        return self._given_later() if self.later else self._given()

    async def _given_later(self) -> LoginOutcome:
        await asyncio.sleep(0)
        return self._given()

    def _given(self) -> LoginOutcome:
        if isinstance(self.outcome, Exception):
            raise self.outcome
        if isinstance(self.outcome, LoggedIn):
            self.identity = self.outcome.identity
        return self.outcome


def log_in(shell: Shell, message: bytes = b"\0alice\0alice's") -> None:
    shell.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")
    shell.ask(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=message)
