"""The logins of a worker: what each mechanism is checked against, and the threads for it.

logins = Logins(settings, listeners, executor, now_ms)
await logins.start(Subjects(...))
login = logins.new_login(listener)      # for each connection
await logins.close()
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Final

from kafka_dt.config import Listener, OAuthBearerSettings, Settings
from kafka_dt.identity.credentials.derivation import Salts, TokenCredentials
from kafka_dt.identity.credentials.digest_md5 import DigestSubjects
from kafka_dt.identity.credentials.scram import ScramSubjects, ScramUsers, Subjects
from kafka_dt.identity.kerberos.contexts import Kerberos
from kafka_dt.identity.login.login import Login
from kafka_dt.identity.login.tokens import LoginTokens
from kafka_dt.identity.oauth.bearer import BearerTokens
from kafka_dt.identity.oauth.jwks import Jwks

NONCE_BYTES: Final = 18
"""144 bits, more than the 130 of Kafka's."""


class Logins:
    """Makes the logins of a worker's connections.

    Args:
        settings: of the node.
        listeners: all of them; each has its own Kerberos and its own rules for bearer tokens.
        executor: threads for PBKDF2 and signatures.
        now_ms: the wall clock, milliseconds since 1970.

    Raises:
        ConfigError: a setting of a mechanism cannot be used.
    """

    def __init__(
        self, settings: Settings, listeners: Sequence[Listener], executor: Executor, now_ms: Callable[[], int]
    ) -> None:
        self._without_extension = settings.auth_without_extension
        self._executor = executor
        self._now_ms = now_ms
        self._gss_executor = ThreadPoolExecutor(thread_name_prefix="gssapi")
        self._kerberos = {
            each.name: Kerberos.from_settings(each.name, each.kerberos, self._gss_executor)
            for each in listeners
            if each.kerberos
        }
        self._bearer = {each.name: self._bearer_tokens(each.oauthbearer) for each in listeners if each.oauthbearer}
        self._subjects: Subjects | None = None

    async def start(self, users: ScramUsers, tokens: LoginTokens, salt_secret: bytes) -> None:
        """Fetch the keys of bearer tokens; `new_login` may be called after that.

        Args:
            users: the SCRAM users.
            tokens: the tokens.
            salt_secret: makes the salts of tokens and unknown names, the same on all nodes.
        """
        salts = Salts(salt_secret)
        credentials = TokenCredentials(salts, self._executor)
        scram = ScramSubjects(users, tokens, credentials, salts, without_extension=self._without_extension)
        self._subjects = Subjects(tokens, scram, DigestSubjects(tokens, decoy=secrets.token_urlsafe()))
        for bearer in self._bearer.values():
            await bearer.start()

    def new_login(self, listener: Listener) -> Login:
        """Make the login of a connection that comes by a listener."""
        if self._subjects is None:
            raise RuntimeError("the logins have not been started")
        return Login(
            listener,
            self._subjects,
            self._now_ms,
            _nonce,
            bearer=self._bearer.get(listener.name),
            kerberos=self._kerberos.get(listener.name),
        )

    async def close(self) -> None:
        """Stop fetching keys and end the threads."""
        await asyncio.gather(*(bearer.close() for bearer in self._bearer.values()))
        self._gss_executor.shutdown(cancel_futures=True)

    def _bearer_tokens(self, settings: OAuthBearerSettings) -> BearerTokens:
        keys = Jwks(settings, self._executor, self._now_ms) if settings.jwks_url else None
        return BearerTokens(settings, keys, self._now_ms)


def _nonce() -> str:
    return secrets.token_urlsafe(NONCE_BYTES)
