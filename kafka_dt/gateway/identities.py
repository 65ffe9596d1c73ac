"""The upstream identity of a client: the login that the gateway uses for it in the cluster.

    identities.login(principal)              # what to log in with there; None for no login at all
    identities.refused(principal, login)     # the cluster did not take it: the next call looks for another

`owner_tokens.py` and `mapped.py` have an identity for each principal; `OneForAll` has the same for every client.
`connecting.py` makes connections with them.

Source: KIP-48, KIP-373 (tokens for other owners).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from kafka_dt.client.errors import LoginFailed
from kafka_dt_protocol.sasl.text import printable

if TYPE_CHECKING:
    from kafka_dt.client.config import Credentials
    from kafka_dt.tokens import Principal


REFUSED_MS: Final = 5_000
"""How long the gateway does not repeat a login that the cluster refused: clients come back without a pause."""


class NoIdentity(Exception):
    """The principal has no upstream identity; the text says why, is one line of the log, and holds no secret."""

    def __init__(self, principal: Principal, reason: str) -> None:
        super().__init__(f"{printable(str(principal))} has no identity upstream: {reason}")


@dataclass(frozen=True, slots=True)
class UpstreamLogin:
    """What to log in with upstream."""

    credentials: Credentials
    known_by_ms: int = 0
    """Until then (milliseconds since 1970) a broker may refuse it because it has not heard of it yet."""


@dataclass(frozen=True, slots=True)
class RefusedLogin:
    """A refused login, not repeated at once: the cluster may lock out users with many failures."""

    refusal: LoginFailed
    at_ms: int
    """Milliseconds since 1970."""

    def recent(self, now_ms: int) -> bool:
        """Say whether it still holds."""
        return now_ms < self.at_ms + REFUSED_MS

    def raise_if_recent(self, now_ms: int) -> None:
        """Refuse the login again in the cluster's place.

        Raises:
            LoginFailed: as the cluster did.
        """
        if self.recent(now_ms):
            refusal = self.refusal
            raise LoginFailed(refusal.server, refusal.mechanism, refusal.reason, refusal.code)


class Identities(Protocol):
    """Finds what a client logs in with upstream."""

    async def login(self, principal: Principal) -> UpstreamLogin | None:
        """Return the login of a principal; None if the gateway does not log in upstream.

        Raises:
            NoIdentity: the principal has no upstream identity.
            ConnectionFailed: the cluster had to be asked, and cannot be reached.
        """
        ...

    async def refused(self, principal: Principal, login: UpstreamLogin) -> None:
        """Note that the cluster refused a login, so that the next call returns another, if there is one."""
        ...

    async def close(self) -> None:
        """End what is under way, and connections."""
        ...


class OneForAll:
    """The same identity for every client, even one that is not logged in: the gateway's own, or none."""

    def __init__(self, credentials: Credentials | None) -> None:
        self._login = UpstreamLogin(credentials) if credentials is not None else None

    async def login(self, principal: Principal) -> UpstreamLogin | None:  # noqa: ARG002 - the same for all
        """Return it."""
        return self._login

    async def refused(self, principal: Principal, login: UpstreamLogin) -> None:
        """Nothing can be done about it."""

    async def close(self) -> None:
        """Nothing is open."""
