"""Requests about tokens of the upstream cluster: a broker that does not answer holds up no other request.

    requests = TokenRequests(lambda address: TokenClient(at(address)), servers)
    await requests.describe(["User:alice"])
    await requests.close()

Each connection goes to one broker and carries one request at a time. A request that is not answered within
`PATIENCE_S` is sent to a second broker, then to a third; the first answer counts. A broker that was slow or out of
reach is asked last for `AVOIDED_S`. Until the cluster has accepted the gateway's own login, one request is sent at a
time, and none for some seconds after a refusal: a cluster may lock out a user whose login fails again and again.

A create that went to two brokers can make two tokens. The second one is expired as soon as its broker answers. A
token of a broker that never answers stays until it expires; `describe` finds it meanwhile, so it is used instead of
the next create.

Source: KIP-48; KIP-590 (a KRaft broker forwards changes to the controller and answers describes itself).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from kafka_dt.client import (
    ConnectionFailed,
    ConnectionLost,
    LoginFailed,
    NoServerReached,
    RequestRefused,
    TokenClientError,
)
from kafka_dt.clock import now_ms
from kafka_dt.gateway.identities import RefusedLogin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_dt.client import Address, DelegationToken

_LOG = logging.getLogger(__name__)
_T = TypeVar("_T")

PATIENCE_S: Final = 1.0
"""How long a request waits for one broker before a further broker is asked as well, in seconds."""
AVOIDED_S: Final = 30.0
"""How long a broker that was slow or out of reach is asked after all others, in seconds."""
MOST_AT_ONCE: Final = 4
"""How many describes run at once, and how many changes: changes may wait for a controller, describes need not."""
MOST_IDLE: Final = 4
"""How many connections are kept for the requests to come."""
MOST_BROKERS: Final = 3
"""How many brokers one request goes to while none of them answers."""


class Tokens(Protocol):
    """What the gateway asks about tokens."""

    async def describe(self, owners: Sequence[str]) -> list[DelegationToken]:
        """Return the tokens of some owners."""
        ...

    async def create(self, owner: str, renewers: Sequence[str]) -> DelegationToken:
        """Make a token."""
        ...

    async def renew(self, hmac: bytes) -> int:
        """Move a token's expiry and return it."""
        ...

    async def close(self) -> None:
        """End the connections."""
        ...


class TokensAtBroker(Tokens, Protocol):
    """The same of one broker; a TokenClient with one address."""

    async def expire(self, hmac: bytes) -> int:
        """End a token."""
        ...


Request = Callable[[TokensAtBroker], Awaitable[_T]]
TooLate = Callable[["Address", _T], Awaitable[object]]
"""Takes the broker that answered after another one, and its answer."""


@dataclass(slots=True, eq=False)
class _Line:
    """A connection to one broker."""

    address: Address
    tokens: TokensAtBroker


class TokenRequests:
    """Asks the brokers of a cluster.

    Args:
        connect: makes the client of one broker; it may connect when it is first used.
        servers: where the cluster can be asked now, best first.
        monotonic: seconds of a clock that never goes back.
        now_ms: milliseconds since 1970.
        patience_s: seconds after which a further broker is asked.
    """

    def __init__(
        self,
        connect: Callable[[Address], TokensAtBroker],
        servers: Callable[[], Sequence[Address]],
        *,
        monotonic: Callable[[], float] = time.monotonic,
        now_ms: Callable[[], int] = now_ms,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._connect = connect
        self._servers = servers
        self._monotonic = monotonic
        self._now_ms = now_ms
        self._patience_s = patience_s
        self._describes = asyncio.Semaphore(MOST_AT_ONCE)
        self._changes = asyncio.Semaphore(MOST_AT_ONCE)
        self._first = asyncio.Lock()
        """Held by the request that finds out whether the cluster accepts our login."""
        self._accepted = False
        self._refused: RefusedLogin | None = None
        """That the cluster refused our login."""
        self._idle: list[_Line] = []
        self._avoided: dict[Address, float] = {}
        """Until when a broker is asked after all others."""
        self._tasks: set[asyncio.Task[object]] = set()
        """Attempts, and what is done about late answers."""

    async def describe(self, owners: Sequence[str]) -> list[DelegationToken]:
        """Return the tokens of some owners.

        Raises:
            ConnectionFailed: no broker can be asked.
            LoginFailed: the cluster refuses our login, or did so a moment ago.
            TokenClientError: as TokenClient.describe.
        """
        async with self._describes:
            return await self._ask(lambda broker: broker.describe(owners))

    async def create(self, owner: str, renewers: Sequence[str]) -> DelegationToken:
        """Make a token; one that a second broker makes as well is expired.

        Raises:
            TokenClientError: as `describe`, and TokenClient.create.
        """
        async with self._changes:
            return await self._ask(lambda broker: broker.create(owner, renewers), too_late=self._expire_second)

    async def renew(self, hmac: bytes) -> int:
        """Move a token's expiry and return it.

        Raises:
            TokenClientError: as `describe`, and TokenClient.renew.
        """
        async with self._changes:
            return await self._ask(lambda broker: broker.renew(hmac))

    async def close(self) -> None:
        """End all connections and what is under way."""
        while self._tasks:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        idle, self._idle = self._idle, []
        for line in idle:
            await line.tokens.close()

    # One request

    async def _ask(self, request: Request[_T], too_late: TooLate[_T] | None = None) -> _T:
        """Ask; alone, while it is not known whether the cluster accepts our login.

        Args:
            request: asks one broker.
            too_late: undoes what a broker did that answered after another one; given for requests that must not be
                repeated after they may have taken effect.
        """
        if not self._accepted:
            async with self._first:
                if not self._accepted:
                    if self._refused is not None:
                        self._refused.raise_if_recent(self._now_ms())
                    return await self._raced(request, too_late)
        return await self._raced(request, too_late)

    async def _raced(self, request: Request[_T], too_late: TooLate[_T] | None) -> _T:
        """Ask one broker after the other until one answers."""
        asked: list[Address] = []
        running: dict[asyncio.Task[_T], Address] = {}
        failures: list[ConnectionFailed] = []
        try:
            while True:
                address = self._next(asked) if len(running) < MOST_BROKERS else None
                if address is not None:
                    asked.append(address)
                    running[self._begin(self._at(address, request))] = address
                elif not running:
                    raise _joined(failures)
                patience_s = None if address is None else self._patience_s
                await asyncio.wait(running, timeout=patience_s, return_when=asyncio.FIRST_COMPLETED)
                done = next((answer for answer in running if answer.done()), None)
                if done is None:
                    self._avoid(asked[-1], f"no answer within {self._patience_s:g} s")
                    continue
                answered = running.pop(done)
                try:
                    return done.result()
                except ConnectionFailed as failure:
                    self._avoid(answered, str(failure))
                    if too_late is not None and not isinstance(failure, NoServerReached):
                        raise  # the request may have been sent
                    failures.append(failure)
        finally:
            for answer, broker in running.items():
                self._begin(self._see_off(answer, broker, too_late))

    async def _see_off(self, answer: asyncio.Task[_T], address: Address, too_late: TooLate[_T] | None) -> None:
        """Wait for an answer that came too late, and undo its change."""
        with suppress(TokenClientError):
            found = await answer
            if too_late is not None:
                await too_late(address, found)

    async def _expire_second(self, address: Address, token: DelegationToken) -> None:
        try:
            await self._at(address, lambda broker: broker.expire(token.hmac))
        except TokenClientError as failure:
            _LOG.warning("The second upstream token %s stays until it expires: %s", token.token_id, failure)
        else:
            _LOG.info("Expired the second upstream token %s, which %s created late", token.token_id, address)

    # Brokers and connections

    def _next(self, asked: Sequence[Address]) -> Address | None:
        """Choose a broker that was not asked: one that answers, and best one with a connection."""
        now, connected = self._monotonic(), {line.address for line in self._idle}
        return min(
            (address for address in self._servers() if address not in asked),
            key=lambda address: (max(now, self._avoided.get(address, now)), address not in connected),
            default=None,
        )

    def _avoid(self, address: Address, reason: str) -> None:
        now = self._monotonic()
        if self._avoided.get(address, now) <= now:
            _LOG.warning("The gateway asks upstream broker %s last for tokens, for a while: %s", address, reason)
        self._avoided = {other: until for other, until in self._avoided.items() if until > now}
        self._avoided[address] = now + AVOIDED_S

    async def _at(self, address: Address, request: Request[_T]) -> _T:
        """Ask one broker, over an idle connection or a new one."""
        line = next((line for line in reversed(self._idle) if line.address == address), None)
        if line is None:
            line = _Line(address, self._connect(address))
        else:
            self._idle.remove(line)
        try:
            answer = await request(line.tokens)
        except RequestRefused:
            self._put_back(line)
            raise
        except LoginFailed as refusal:
            self._accepted, self._refused = False, RefusedLogin(refusal, self._now_ms())
            await line.tokens.close()
            raise
        except BaseException:
            await line.tokens.close()
            raise
        self._put_back(line)
        return answer

    def _put_back(self, line: _Line) -> None:
        """Keep a connection that has carried an answer; close the oldest ones, and those to brokers that have gone."""
        self._accepted = True
        known = set(self._servers())
        lines = [*self._idle, line]
        self._idle = [each for each in lines if each.address in known][-MOST_IDLE:]
        for each in lines:
            if each not in self._idle:
                self._begin(each.tokens.close())

    def _begin(self, work: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _joined(failures: Sequence[ConnectionFailed]) -> ConnectionFailed:
    """Make one error of those of several brokers."""
    if not failures:
        return ConnectionFailed("no address of the upstream cluster is known")
    if len(failures) == 1:
        return failures[0]
    reasons: list[tuple[str, str]] = []
    for failure in failures:
        if isinstance(failure, NoServerReached):
            reasons += failure.reasons
        elif isinstance(failure, ConnectionLost):
            reasons.append((failure.server, failure.reason))
    return NoServerReached(reasons)
