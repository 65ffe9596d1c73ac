"""The mechanisms of a worker, open on its listeners, and the threads for what blocks.

opened = OpenMechanisms(settings, listeners, MECHANISMS, now_ms)
await opened.start(users, tokens, credentials, salts)
login = opened.new_login(listener)      # for each connection
await opened.close()
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Final

from kafka_dt.config import Listener, Settings
from kafka_dt.identity.credentials.derivation import Salts, TokenCredentials
from kafka_dt.identity.credentials.scram import ScramAccounts, ScramUsers
from kafka_dt.identity.login.login import Login
from kafka_dt.identity.login.tokens import LoginTokens
from kafka_dt.identity.mechanisms import Accounts, Mechanism, Resources, open_mechanisms
from kafka_dt.identity.mechanisms.mechanism import OpenMechanism
from kafka_dt_protocol.sasl import PLAIN, ScramMechanism

NONCE_BYTES: Final = 18
"""144 bits, more than the 130 of Kafka's."""


class OpenMechanisms:
    """Opens the mechanisms of all listeners, and makes the logins of a worker's connections.

    Raises:
        ConfigError: a setting of a mechanism cannot be used.
    """

    def __init__(
        self,
        settings: Settings,
        listeners: Sequence[Listener],
        mechanisms: Mapping[str, Mechanism[Any]],
        now_ms: Callable[[], int],
    ) -> None:
        self._without_extension = settings.auth_without_extension
        self._now_ms = now_ms
        self._threads = ThreadPoolExecutor(thread_name_prefix="logins")
        self._mechanisms = mechanisms
        self._resources = Resources(self._threads, now_ms, _nonce)
        self._by_listener = {each.name: dict(self._opened(each)) for each in listeners}
        self._all = [mechanism for opened in self._by_listener.values() for mechanism in opened.values()]
        self._accounts: Accounts | None = None

    @property
    def scram(self) -> Sequence[ScramMechanism]:
        """The SCRAM mechanisms that a listener has."""
        return [each for each in ScramMechanism if any(each in opened for opened in self._by_listener.values())]

    async def start(self, users: ScramUsers, tokens: LoginTokens, credentials: TokenCredentials, salts: Salts) -> None:
        """Start the mechanisms, as to fetch the keys of bearer tokens."""
        scram = ScramAccounts(users, tokens, credentials, salts, without_extension=self._without_extension)
        self._accounts = Accounts(tokens, scram)
        for mechanism in self._all:
            await mechanism.start()

    def new_login(self, listener: Listener) -> Login:
        """Make the login of a connection that comes by a listener."""
        if self._accounts is None:
            raise RuntimeError("the mechanisms have not been started")
        return Login(self._by_listener[listener.name], self._accounts, self._now_ms)

    def prepare(self, listeners: Sequence[Listener]) -> Callable[[], None]:
        """Check new users of PLAIN, and return what takes them over.

        They are those of logins that begin then, also on connections that are open.

        Raises:
            ConfigError: a listener's users cannot be used.
        """
        opened = {
            each.name: self._opened(replace(each, mechanisms={PLAIN: each.mechanisms[PLAIN]}))
            for each in listeners
            if PLAIN in each.mechanisms
        }

        def take_over() -> None:
            for name, mechanisms in opened.items():
                self._by_listener[name].update(mechanisms)

        return take_over

    def _opened(self, listener: Listener) -> Mapping[str, OpenMechanism]:
        return open_mechanisms(listener, self._mechanisms, self._resources)

    async def close(self) -> None:
        """Close the mechanisms and end the threads."""
        await asyncio.gather(*(mechanism.close() for mechanism in self._all))
        self._threads.shutdown(cancel_futures=True)


def _nonce() -> str:
    return secrets.token_urlsafe(NONCE_BYTES)
