"""The logins of a worker: what each mechanism is checked against, and the threads for it.

logins = Logins(settings, listeners, MECHANISMS, executor, now_ms)
await logins.start(users, tokens, salt_secret)
login = logins.new_login(listener)      # for each connection
await logins.close()
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, Final

from kafka_dt.config import Listener, Settings
from kafka_dt.identity.credentials.derivation import Salts, TokenCredentials
from kafka_dt.identity.credentials.scram import ScramSubjects, ScramUsers
from kafka_dt.identity.login.login import Login
from kafka_dt.identity.login.tokens import LoginTokens
from kafka_dt.identity.mechanisms import Mechanism, Resources, Subjects, open_mechanisms

NONCE_BYTES: Final = 18
"""144 bits, more than the 130 of Kafka's."""


class Logins:
    """Makes the logins of a worker's connections.

    Args:
        settings: of the node.
        listeners: all of them; each has mechanisms of its own.
        mechanisms: the SASL mechanisms that a listener can offer, by name.
        executor: threads for PBKDF2.
        now_ms: the wall clock, milliseconds since 1970.

    Raises:
        ConfigError: a setting of a mechanism cannot be used.
    """

    def __init__(
        self,
        settings: Settings,
        listeners: Sequence[Listener],
        mechanisms: Mapping[str, Mechanism[Any]],
        executor: Executor,
        now_ms: Callable[[], int],
    ) -> None:
        self._without_extension = settings.auth_without_extension
        self._executor = executor
        self._now_ms = now_ms
        self._threads = ThreadPoolExecutor(thread_name_prefix="logins")
        resources = Resources(self._threads, now_ms, _nonce)
        self._offers = {each.name: open_mechanisms(each, mechanisms, resources) for each in listeners}
        self._opened = [offer.opened for offers in self._offers.values() for offer in offers.values()]
        self._subjects: Subjects | None = None

    async def start(self, users: ScramUsers, tokens: LoginTokens, salt_secret: bytes) -> None:
        """Start the mechanisms, as to fetch the keys of bearer tokens; `new_login` may be called after that.

        Args:
            users: the SCRAM users.
            tokens: the tokens.
            salt_secret: makes the salts of tokens and unknown names, the same on all nodes.
        """
        salts = Salts(salt_secret)
        credentials = TokenCredentials(salts, self._executor)
        scram = ScramSubjects(users, tokens, credentials, salts, without_extension=self._without_extension)
        self._subjects = Subjects(tokens, scram)
        for mechanism in self._opened:
            await mechanism.start()

    def new_login(self, listener: Listener) -> Login:
        """Make the login of a connection that comes by a listener."""
        if self._subjects is None:
            raise RuntimeError("the logins have not been started")
        return Login(self._offers[listener.name], self._subjects, self._now_ms)

    async def close(self) -> None:
        """Close the mechanisms and end the threads."""
        await asyncio.gather(*(mechanism.close() for mechanism in self._opened))
        self._threads.shutdown(cancel_futures=True)


def _nonce() -> str:
    return secrets.token_urlsafe(NONCE_BYTES)
