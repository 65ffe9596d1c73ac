"""The upstream identity of a client: the login that the gateway uses for it in the cluster.

    identities.login(principal)              # what to log in with there; None for no login at all
    identities.refused(principal, login)     # the cluster did not take it: the next call looks for another

`OneForAll` has the same for every client, `MappedIdentities` the users that a file names, in the syntax of Java's login
files, and `owner_tokens.py` a token of each principal.

    "User:alice" {
      org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" password="...";
    };

PlainLoginModule is PLAIN; ScramLoginModule is the mechanism of the settings. A file that cannot be used is an error at
the start; later the users stay as they are, and the reason is one line in the log. No text here shows a password.

Source: KIP-48, KIP-373 (tokens for other owners); javax.security.auth.login.Configuration;
org.apache.kafka.common.security.JaasContext.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol

from kafka_dt.client import Credentials, LoginFailed
from kafka_dt.clock import is_recent
from kafka_dt.config import ConfigError
from kafka_dt.config.gateway import IDENTITY_FILE
from kafka_dt.files import stamp
from kafka_dt.jaas import PLAIN_LOGIN_MODULE, SCRAM_LOGIN_MODULE, JaasError, LoginModule, parse_login_file
from kafka_dt.tokens import InvalidPrincipal, Principal
from kafka_dt.tokens.principal import USER_TYPE
from kafka_dt_protocol.sasl import PLAIN, ScramMechanism
from kafka_dt_protocol.sasl.text import printable

if TYPE_CHECKING:
    from pathlib import Path

_LOG = logging.getLogger(__name__)

REFUSED_MS: Final = 5_000
"""How long the gateway does not repeat a login that the cluster refused: clients come back without a pause."""
LOOK_S: Final = 1.0
"""How often the gateway checks the file of identities, while clients need it."""


class NoIdentity(Exception):
    """The principal has no upstream identity; the text says why, is one line of the log, and holds no secret."""

    def __init__(self, principal: Principal, reason: str) -> None:
        super().__init__(f"{printable(str(principal))} has no identity upstream: {reason}")


class IdentityRefused(NoIdentity):
    """The principal has none because the cluster refused the gateway's user its login, or a token for the principal."""


def require_user(owner: Principal) -> None:
    """Refuse the owner of a token that is no user: brokers forget the type, and take it for the user of that name.

    Raises:
        NoIdentity: the owner is no user.
    """
    if owner.type != USER_TYPE:
        raise NoIdentity(owner, f"brokers take the owner of a token for a {USER_TYPE}, whatever its type is")


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
        return is_recent(self.at_ms, now_ms, REFUSED_MS)

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
            NoIdentity: the principal has no upstream identity; IdentityRefused if the cluster refused it.
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

    def __init__(self, credentials: Callable[[], Credentials | None]) -> None:
        self._credentials = credentials

    async def login(self, principal: Principal) -> UpstreamLogin | None:  # noqa: ARG002 - the same for all
        """Return it."""
        credentials = self._credentials()
        return None if credentials is None else UpstreamLogin(credentials)

    async def refused(self, principal: Principal, login: UpstreamLogin) -> None:
        """Nothing can be done about it."""

    async def close(self) -> None:
        """Nothing is open."""


class MappedIdentities:
    """The users of a file.

    Args:
        path: the file.
        mechanism: of users with a ScramLoginModule.
        monotonic: seconds of a clock that never goes back.

    Raises:
        ConfigError: the file cannot be used.
    """

    def __init__(
        self, path: Path, mechanism: ScramMechanism, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._path = path
        self._mechanism = mechanism
        self._monotonic = monotonic
        # Taken before the file is read: a change in between is then seen as one.
        self._seen = stamp(path)
        self._logins = read(path, mechanism)
        self._looked = monotonic()
        self._look_under_way: asyncio.Task[None] | None = None
        self._problem = ""

    async def login(self, principal: Principal) -> UpstreamLogin:
        """Return the user of a principal, as the file has it, or had it a second ago.

        Raises:
            NoIdentity: the file has no section for it.
        """
        if self._monotonic() - self._looked >= LOOK_S:
            await self._look()
        login = self._logins.get(principal)
        if login is None:
            raise NoIdentity(principal, f'there is no section "{printable(str(principal))}" in {self._path}')
        return login

    async def refused(self, principal: Principal, login: UpstreamLogin) -> None:  # noqa: ARG002 - the file has all of them
        """Check the file at once: perhaps the password has changed in both places."""
        await self._look()

    async def close(self) -> None:
        """Nothing is open."""

    async def _look(self) -> None:
        """Read the file again if it has changed; many callers share it."""
        if self._look_under_way is None:
            self._look_under_way = asyncio.create_task(self._refresh(), name="file of upstream identities")
        await asyncio.shield(self._look_under_way)

    async def _refresh(self) -> None:
        try:
            seen = await asyncio.to_thread(stamp, self._path)
            if seen != self._seen or self._problem:
                self._logins = await asyncio.to_thread(read, self._path, self._mechanism)
                self._seen, self._problem = seen, ""
                _LOG.info("The gateway has read its upstream identities again: %d", len(self._logins))
        except ConfigError as error:
            if str(error) != self._problem:
                self._problem = str(error)
                _LOG.error("The gateway keeps its upstream identities, the changed file cannot be used: %s", error)
        finally:
            self._looked = self._monotonic()
            self._look_under_way = None


def read(path: Path, mechanism: ScramMechanism) -> Mapping[Principal, UpstreamLogin]:
    """Read a file of identities.

    Raises:
        ConfigError: it cannot be read or used; the reason holds no secret.
    """
    try:
        sections = parse_login_file(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(IDENTITY_FILE, f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(IDENTITY_FILE, f"{path} is not UTF-8 text") from None
    except JaasError as error:
        raise ConfigError(IDENTITY_FILE, f"{path}: {error}") from None
    if not sections:
        raise ConfigError(IDENTITY_FILE, f"{path} names no principal")
    logins: dict[Principal, UpstreamLogin] = {}
    for number, (section, modules) in enumerate(sections.items(), start=1):
        place = f"{path}, section {number}"
        logins[_principal(place, section)] = UpstreamLogin(_credentials(place, modules, mechanism))
    return MappingProxyType(logins)


def _principal(place: str, section: str) -> Principal:
    try:
        return Principal.parse(section)
    except InvalidPrincipal:
        # Not quoted: with a quotation mark in the wrong place it may be a piece of a password.
        raise ConfigError(IDENTITY_FILE, f'{place}: its name is no principal, such as "User:alice"') from None


def _credentials(place: str, modules: Sequence[LoginModule], mechanism: ScramMechanism) -> Credentials:
    module = modules[0]
    if len(modules) != 1 or module.name not in {PLAIN_LOGIN_MODULE, SCRAM_LOGIN_MODULE}:
        wanted = f"one login module, {PLAIN_LOGIN_MODULE} or {SCRAM_LOGIN_MODULE}"
        raise ConfigError(IDENTITY_FILE, f"{place}: it needs {wanted}")
    if not module.username or not module.password:
        missing = "password" if module.username else "username"
        raise ConfigError(IDENTITY_FILE, f'{place}: there is no {missing}="..." in it')
    plain = module.name == PLAIN_LOGIN_MODULE
    return Credentials(
        PLAIN if plain else mechanism, module.username, module.password, token_auth=module.token_auth and not plain
    )
