"""Keep a token alive in the background until its maximum lifetime.

    async with client.keep_renewed(token, on_renewed=store, on_end=replace) as renewal:
        ...                      # renewal.token is the token with its present expiry

It renews a token when 75 to 80 % of the time to its expiry has passed. If the renewal fails for a reason that may pass
(no server, a time-out), it tries again after 1 s, 2 s, 4 s ... up to a minute, as long as the token lives. It ends with

- MAX_LIFETIME: the last renewal has brought the expiry to the token's maximum, so there is nothing more to renew; the
  token lives on until then, which is the time to create its successor;
- REFUSED: the server says that this token or this caller can have no renewal;
- EXPIRED: the token's expiry passed before a renewal succeeded.

Limits: instants are compared with this machine's clock, so it should agree with the servers' within minutes.
Callbacks run in the event loop and must not block; an exception of theirs ends the renewal and is raised at the
end of the block.

Source: KIP-48, "Token renewal"; Hadoop's DelegationTokenRenewer (renews at a share of the lifetime).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from enum import Enum
from types import TracebackType
from typing import Final, Self, TypeAlias

from kafka_dt.client.errors import TokenClientError, TokenExpired, TokenNotFound, TokenOwnerMismatch
from kafka_dt.client.tokens import DelegationToken
from kafka_dt.clock import now_ms

_FIRST_RETRY_MS: Final = 1_000
_LONGEST_RETRY_MS: Final = 60_000
_SHORTEST_WAIT_MS: Final = 50
_FINAL_REFUSALS: Final = (TokenNotFound, TokenOwnerMismatch, TokenExpired)


class EndReason(Enum):
    """The reason for which no further renewal follows."""

    MAX_LIFETIME = "the token's maximum lifetime is reached"
    REFUSED = "the server refused the renewal"
    EXPIRED = "the token expired before it could be renewed"


@dataclass(frozen=True, slots=True)
class RenewalEnd:
    """The argument of `on_end`."""

    reason: EndReason
    token: DelegationToken
    """The token with its last expiry."""
    error: TokenClientError | None = None
    """The last failure, when there was one."""


OnRenewed: TypeAlias = Callable[[DelegationToken], object]
OnEnd: TypeAlias = Callable[[RenewalEnd], object]


class Renewal:
    """Renews one token while its `async with` block runs.

    token: what to renew
    renew: takes the raw HMAC and a period in milliseconds, returns the new expiry; as TokenClient.renew
    on_renewed: called with the token, its new expiry in it, after each renewal
    on_end: called once, when there will be no further renewal
    period_ms: what to ask for; -1 = the server's default
    now_ms: milliseconds since 1970; sleep: waits for seconds; jitter: a number from 0 up to 1
    """

    def __init__(
        self,
        token: DelegationToken,
        renew: Callable[[bytes, int], Awaitable[int]],
        *,
        on_renewed: OnRenewed | None = None,
        on_end: OnEnd | None = None,
        period_ms: int = -1,
        now_ms: Callable[[], int] = now_ms,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.token = token
        """The token with its present expiry."""
        self.end: RenewalEnd | None = None
        """The end of the renewals; None while they go on."""
        self._renew = renew
        self._on_renewed = on_renewed
        self._on_end = on_end
        self._period_ms = period_ms
        self._now_ms = now_ms
        self._sleep = sleep
        self._jitter = jitter
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Start in the background."""
        self._task = asyncio.create_task(self._keep(), name=f"renewal of {self.token.token_id}")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop; raises what a callback raised."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled():
                await task

    async def _keep(self) -> None:
        while self.end is None:
            if self.token.expiry_timestamp_ms >= self.token.max_timestamp_ms:
                self._finish(EndReason.MAX_LIFETIME)
            else:
                await self._wait(self._left_ms() * (0.75 + 0.05 * self._jitter()))
                await self._renew_while_alive()

    async def _renew_while_alive(self) -> None:
        retry_ms = _FIRST_RETRY_MS
        error: TokenClientError | None = None
        while self._left_ms() > 0:
            try:
                expiry_timestamp_ms = await self._renew(self.token.hmac, self._period_ms)
            except _FINAL_REFUSALS as refusal:
                return self._finish(EndReason.REFUSED, refusal)
            except TokenClientError as failure:
                error = failure
            else:
                return self._renewed(expiry_timestamp_ms)
            # Half of the wait is by chance, so that clients do not return all at once to a server that is back.
            await self._wait(min(retry_ms * (0.5 + 0.5 * self._jitter()), self._left_ms()))
            retry_ms = min(2 * retry_ms, _LONGEST_RETRY_MS)
        return self._finish(EndReason.EXPIRED, error)

    def _renewed(self, expiry_timestamp_ms: int) -> None:
        self.token = replace(self.token, expiry_timestamp_ms=expiry_timestamp_ms)
        if self._on_renewed is not None:
            self._on_renewed(self.token)

    def _finish(self, reason: EndReason, error: TokenClientError | None = None) -> None:
        self.end = RenewalEnd(reason, self.token, error)
        if self._on_end is not None:
            self._on_end(self.end)

    def _left_ms(self) -> int:
        return self.token.expiry_timestamp_ms - self._now_ms()

    async def _wait(self, duration_ms: float) -> None:
        await self._sleep(max(duration_ms, _SHORTEST_WAIT_MS) / 1000)
