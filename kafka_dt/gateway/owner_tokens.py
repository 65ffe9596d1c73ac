"""Log clients in upstream as their own principals, by delegation tokens that the upstream cluster creates for them.

The gateway, a user there with CREATE_TOKENS on its clients' names, asks for a token that the principal owns and that
the gateway may renew (KIP-373). Before it makes one it looks for one: other processes of the gateway, and this one
before its restart, have made some, and tokens should not pile up. A token is used until a quarter of its longest
lifetime is left, and renewed when three quarters of the time to its expiry are over. A token that no client has needed
is not renewed and expires: other processes may use it, so the gateway never ends it.

Renewals begin when a client needs a token, which is often enough: a client with an open connection has to log in again
before the token expires (KIP-368). A renewal changes neither id nor secret, so no client waits for it.

Source: KIP-48, KIP-373; kafka.server.DelegationTokenManager,
org.apache.kafka.common.security.authenticator.SaslServerAuthenticator (a session ends with its token).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from kafka_dt.client import (
    ConnectionFailed,
    Credentials,
    DelegationToken,
    InvalidArgument,
    LoginFailed,
    RequestRefused,
    TokenAuthorizationFailed,
    TokenClientError,
    UnsupportedByServer,
)
from kafka_dt.clock import is_recent, now_ms
from kafka_dt.gateway.identities import IdentityRefused, NoIdentity, UpstreamLogin, require_user
from kafka_dt.tokens import ANONYMOUS
from kafka_dt_protocol.sasl.text import printable

if TYPE_CHECKING:
    from kafka_dt.gateway.token_requests import Tokens
    from kafka_dt.tokens import Principal
    from kafka_dt_protocol.sasl import ScramMechanism

_LOG = logging.getLogger(__name__)

KNOWN_WITHIN_MS: Final = 5_000
"""How long it may take until every broker knows of a new token; in KRaft it is the metadata log that tells them."""
FORGOTTEN_AFTER_MS: Final = 3_600_000
SWEEP_MS: Final = 60_000
DENIED_MS: Final = 5_000
"""So long after the cluster has made no token for a principal it is not asked again: clients try without a pause."""
TOLD_MS: Final = 60_000
"""How often the log tells at most that the cluster makes no token for a principal."""
RETRY_MS: Final = 10_000
"""So long after a renewal that failed the next is tried; the token lives on meanwhile."""
LAST_MOMENT_MS: Final = 5_000
"""With less than this left a token is not logged in with any more."""
MARKS: Final = 2
"""How often the gateway names itself among the renewers of a token, to know its own among those of clients."""
ANOTHER_WITHIN_MS: Final = 60_000
"""No two tokens are given up within this time because they were refused: they would pile up."""


@dataclass(slots=True)
class _Held:
    token: DelegationToken
    due_ms: int
    """When to renew or replace it."""
    known_by_ms: int
    used_ms: int

    @property
    def replace_at_ms(self) -> int:
        """When it is time for another, since this one cannot be renewed for much longer."""
        token = self.token
        return token.max_timestamp_ms - (token.max_timestamp_ms - token.issue_timestamp_ms) // 4

    def serves(self, now_ms: int) -> bool:
        """Whether it can be logged in with for a moment still."""
        return now_ms < self.token.expiry_timestamp_ms - LAST_MOMENT_MS


@dataclass(frozen=True, slots=True)
class _Denial:
    """The cluster has made no token for an owner."""

    reason: str
    asked_ms: int
    """When the cluster was asked last; it is asked again after `DENIED_MS`."""
    told_ms: int
    """When the log told of it last."""


class OwnerTokens:
    """The tokens of clients in the upstream cluster.

    Args:
        tokens: asks the cluster, as the gateway's own user.
        gateway: that user, as a principal there; it may renew the tokens.
        mechanism: how tokens log in.
        marks: how often the gateway is named among the renewers. Where the gateway may also renew its clients' own
            tokens, twice marks those that it has made for itself: clients cannot make such a token.
        now_ms: milliseconds since 1970; it should agree with the cluster's clocks within minutes.
    """

    def __init__(
        self,
        tokens: Tokens,
        gateway: str,
        mechanism: ScramMechanism,
        *,
        marks: int = 1,
        now_ms: Callable[[], int] = now_ms,
    ) -> None:
        self._tokens = tokens
        self._gateway = gateway
        self._mechanism = mechanism
        self._marks = marks
        self._now_ms = now_ms
        self._held: dict[str, _Held] = {}
        self._refused: dict[str, tuple[str, int]] = {}
        """Owner -> the id of the token that was refused, and when."""
        self._denied: dict[str, _Denial] = {}
        """By owner."""
        self._under_way: dict[str, asyncio.Task[_Held]] = {}
        self._swept_ms = now_ms()
        self._closed = False

    async def login(self, principal: Principal) -> UpstreamLogin:
        """Return the token of a principal; a renewal that is due runs in the background.

        Raises:
            IdentityRefused: the cluster makes no token for it.
            NoIdentity: the principal can have no token, or the cluster would take its token for another principal's.
            ConnectionFailed: the cluster cannot be reached, or this is closed.
        """
        if self._closed:
            raise ConnectionFailed("the gateway ends")
        if principal == ANONYMOUS:
            raise NoIdentity(principal, "a client that is not logged in cannot have a token")
        require_user(principal)
        self._sweep()
        owner = str(principal)
        now_ms = self._now_ms()
        held = self._held.get(owner)
        if held is None or not held.serves(now_ms):
            held = await self._awaited(principal)
        elif now_ms >= held.due_ms:
            self._looking_after(owner)
        held.used_ms = now_ms
        token = held.token
        credentials = Credentials(self._mechanism, token.token_id, token.hmac_base64, token_auth=True)
        return UpstreamLogin(credentials, held.known_by_ms)

    async def refused(self, principal: Principal, login: UpstreamLogin) -> None:
        """Forget a token that the cluster does not take; but something else must be wrong if that goes on and on."""
        owner, token_id = str(principal), login.credentials.username
        held = self._held.get(owner)
        if held is not None and held.token.token_id == token_id:
            del self._held[owner]
        _, before_ms = self._refused.get(owner, ("", -ANOTHER_WITHIN_MS))
        now_ms = self._now_ms()
        if not is_recent(before_ms, now_ms, ANOTHER_WITHIN_MS):
            self._refused[owner] = token_id, now_ms

    async def close(self) -> None:
        """Send no more requests; the tokens stay for the next start, and expire if there is none."""
        self._closed = True
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._tokens.close()

    async def _awaited(self, principal: Principal) -> _Held:
        """Wait for a token, unless the cluster has just made none."""
        owner = str(principal)
        denied = self._denied.get(owner)
        if denied is not None and is_recent(denied.asked_ms, self._now_ms(), DENIED_MS):
            raise IdentityRefused(principal, denied.reason)
        try:
            return await asyncio.shield(self._looking_after(owner))
        except (RequestRefused, UnsupportedByServer, LoginFailed, InvalidArgument) as refusal:
            self._note_denial(owner, refusal)
            raise IdentityRefused(principal, str(refusal)) from refusal

    def _note_denial(self, owner: str, refusal: TokenClientError) -> None:
        """Remember that there is no token for an owner; the log tells of it now and then, however many clients wait."""
        now_ms, before = self._now_ms(), self._denied.get(owner)
        if before is None or not is_recent(before.told_ms, now_ms, TOLD_MS):
            self._warn(owner, refusal)
            told_ms = now_ms
        else:
            told_ms = before.told_ms
        self._denied[owner] = _Denial(str(refusal), now_ms, told_ms)

    def _warn(self, owner: str, refusal: TokenClientError) -> None:
        user, client = printable(self._gateway), printable(owner)
        way_out = ""
        if isinstance(refusal, TokenAuthorizationFailed):
            way_out = f"; {user} needs an ACL of the upstream cluster that allows CreateTokens on {client}"
        _LOG.warning(
            "The gateway's user %s got no upstream token for %s, whose connections are closed: %s%s",
            *(user, client, refusal, way_out),
        )

    def _looking_after(self, owner: str) -> asyncio.Task[_Held]:
        """Start the work that a caller needs, once for all callers, even if that caller does not wait for it."""
        task = self._under_way.get(owner)
        if task is None:
            task = asyncio.create_task(self._look_after(owner), name=f"upstream token of {owner}")
            self._under_way[owner] = task
            task.add_done_callback(lambda done: self._done(owner, done))
        return task

    def _done(self, owner: str, task: asyncio.Task[_Held]) -> None:
        del self._under_way[owner]
        if not task.cancelled():
            task.exception()  # mark it as retrieved: perhaps no client waits

    async def _look_after(self, owner: str) -> _Held:
        """Hold a token that can be used for a good while, and that was not refused in the meantime."""
        held = await self._good_for_a_while(owner)
        if held.token.token_id == self._unfit(owner):
            held = await self._found(owner) or await self._made(owner)
        self._held[owner] = held
        return held

    async def _good_for_a_while(self, owner: str) -> _Held:
        """Return the token there is, another one, or a new one."""
        held = self._held.get(owner)
        if held is None or self._now_ms() >= held.token.expiry_timestamp_ms:
            return await self._found(owner) or await self._made(owner)
        try:
            if self._now_ms() < held.replace_at_ms:
                return await self._renewed(held)
            return await self._found(owner) or await self._made(owner)
        except TokenClientError as failure:
            return self._as_it_is(held, failure)

    async def _found(self, owner: str) -> _Held | None:
        """Take the longest-lived of the principal's tokens that we may renew, unless it is too near to its end."""
        tokens = await self._tokens.describe([owner])
        now_ms, unfit = self._now_ms(), self._unfit(owner)
        ours = [
            self._hold(token, token.issue_timestamp_ms)
            for token in tokens
            if token.owner == owner and token.token_id != unfit and self._is_ours(token)
        ]
        usable = [held for held in ours if now_ms < min(held.replace_at_ms, held.token.expiry_timestamp_ms)]
        best = max(usable, key=lambda held: held.token.max_timestamp_ms, default=None)
        return await self._renewed(best) if best else None

    def _is_ours(self, token: DelegationToken) -> bool:
        if self._marks > 1:
            return token.renewers.count(self._gateway) >= self._marks
        return self._gateway in (token.owner, *token.renewers)

    def _unfit(self, owner: str) -> str:
        """Return the id of an owner's token that was refused; empty if none was."""
        return self._refused.get(owner, ("", 0))[0]

    async def _made(self, owner: str) -> _Held:
        token = await self._tokens.create(owner, [self._gateway] * self._marks)
        _LOG.info("Made the upstream token %s for %s", token.token_id, printable(owner))
        return replace(self._hold(token, token.issue_timestamp_ms), known_by_ms=self._now_ms() + KNOWN_WITHIN_MS)

    async def _renewed(self, held: _Held) -> _Held:
        """Renew a token if that is due; another takes the place of one that the cluster will not renew."""
        asked_ms = self._now_ms()
        if asked_ms < held.due_ms:
            return held
        token = held.token
        try:
            expiry_timestamp_ms = await self._tokens.renew(token.hmac)
        except RequestRefused as refusal:
            _LOG.warning(
                "The upstream cluster refused to renew token %s of %s; the gateway creates another: %s",
                *(token.token_id, printable(token.owner), refusal),
            )
            return await self._made(token.owner)
        except ConnectionFailed as failure:
            return self._as_it_is(held, failure)
        return self._hold(replace(token, expiry_timestamp_ms=expiry_timestamp_ms), asked_ms)

    def _as_it_is(self, held: _Held, failure: TokenClientError) -> _Held:
        """Keep using a valid token whose renewal or replacement has failed."""
        _LOG.warning(
            "The gateway could not renew or replace upstream token %s of %s and tries again: %s",
            *(held.token.token_id, printable(held.token.owner), failure),
        )
        return replace(held, due_ms=self._now_ms() + RETRY_MS)

    def _hold(self, token: DelegationToken, since_ms: int) -> _Held:
        """Hold a token whose expiry was moved last at an instant, as far as that is known."""
        now_ms = self._now_ms()
        held = _Held(
            token,
            due_ms=min(
                since_ms + (token.expiry_timestamp_ms - since_ms) * 3 // 4, token.expiry_timestamp_ms - LAST_MOMENT_MS
            ),
            # Its creator may have created it this moment.
            known_by_ms=min(token.issue_timestamp_ms, now_ms) + KNOWN_WITHIN_MS,
            used_ms=now_ms,
        )
        if token.expiry_timestamp_ms >= token.max_timestamp_ms:
            held.due_ms = held.replace_at_ms
        return held

    def _sweep(self) -> None:
        """Forget, now and then, the tokens that no client has needed for a while."""
        now_ms = self._now_ms()
        if now_ms - self._swept_ms < SWEEP_MS:
            return
        self._swept_ms = now_ms
        since_ms = now_ms - FORGOTTEN_AFTER_MS
        self._held = {owner: held for owner, held in self._held.items() if held.used_ms > since_ms}
        self._refused = {owner: refusal for owner, refusal in self._refused.items() if refusal[1] > since_ms}
        denied = self._denied.items()
        self._denied = {owner: denial for owner, denial in denied if is_recent(denial.told_ms, now_ms, TOLD_MS)}
