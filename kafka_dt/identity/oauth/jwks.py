"""The keys that bearer tokens are signed with: a JWKS from a file or a URL, held in memory and read again in time.

Where a token names a key that is not held the issuer may have a new one, and `read_again` looks, once for all who wait
and never twice within ten seconds, so that clients cannot make a node flood the issuer. If a read fails, the keys held
before stay.

Limits: symmetric keys are left out, for a published secret signs nothing; a JWKS has a megabyte at most; a redirect
must keep the URL's scheme.

Source: RFC 7517; KIP-768; org.apache.kafka.common.security.oauthbearer.internals.secured.RefreshingHttpsJwks.
"""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from http.client import HTTPException, HTTPMessage
from pathlib import Path
from typing import IO, Any, Final
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from cryptography.exceptions import UnsupportedAlgorithm
from joserfc.errors import JoseError
from joserfc.jwk import GuestProtocol, Key, OctKey, import_key
from joserfc.jws import JWSRegistry

from kafka_dt.clock import is_recent
from kafka_dt.config import ConfigError
from kafka_dt.identity.oauth.settings import URL_KEY, OAuthBearerSettings
from kafka_dt.tls import TlsError, client_context

_LOG = logging.getLogger(__name__)

TIMEOUT_SECONDS: Final = 10.0
MAX_BYTES: Final = 1024 * 1024
MEDIA_TYPES: Final = "application/jwk-set+json, application/json"
"""Of a JWKS; the API server of Kubernetes refuses a request that does not name the first."""
MIN_INTERVAL_MS: Final = 10_000
"""No token makes us read the JWKS again sooner than this after the last time."""


class KeyNotHeld(Exception):
    """The token names a key that is not held."""


class AmbiguousKey(Exception):
    """The token names no key, and not exactly one could be meant."""


class JwksUnreadable(Exception):
    """The JWKS is not there or is none; the message says why."""


class Jwks:
    """The keys of one issuer; `read` gives the text of the JWKS and may block, an argument for tests."""

    def __init__(
        self,
        settings: OAuthBearerSettings,
        executor: Executor,
        now_ms: Callable[[], int],
        read: Callable[[], bytes] | None = None,
    ) -> None:
        self._settings = settings
        self._executor = executor
        self._now_ms = now_ms
        self._read = read or reader(settings)
        self._keys: Sequence[Key] = ()
        self._read_timestamp_ms: int | None = None
        self._under_way: asyncio.Task[bool] | None = None
        self._refreshing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Read the keys and keep them fresh.

        Raises:
            ConfigError: the file cannot be used. A URL may be out of reach for a while: until it is read no token is
                accepted, and it is tried again.
        """
        if not await self._attempt() and urlsplit(self._settings.jwks_url).scheme == "file":
            raise ConfigError(URL_KEY, f"{self._settings.jwks_url} holds no key that can be used")
        self._refreshing = asyncio.create_task(self._refresh())

    async def close(self) -> None:
        """Stop reading."""
        tasks = [task for task in (self._refreshing, self._under_way) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def select(self, token: GuestProtocol) -> Key:
        """Find the key of a token by its `kid`, or the only one that could be meant.

        Raises:
            KeyNotHeld: none of our keys has that `kid`.
            AmbiguousKey: the token has no `kid`.
        """
        headers = token.headers()
        kid = headers.get("kid")
        fitting = [key for key in self._keys if JWSRegistry.filter_algorithms(key, [headers["alg"]])]
        if kid is None:
            if len(fitting) != 1:
                raise AmbiguousKey
            return fitting[0]
        for key in fitting:
            if key.kid == kid:
                return key
        raise KeyNotHeld

    async def read_again(self) -> bool:
        """Read the keys because a token names one that is not held; False if that failed or was done just before."""
        if self._under_way is None:
            last = self._read_timestamp_ms
            if last is not None and is_recent(last, self._now_ms(), MIN_INTERVAL_MS):
                return False
            self._under_way = asyncio.create_task(self._attempt())
            self._under_way.add_done_callback(self._forget)
        # A client that goes away must not end what others wait for.
        return await asyncio.shield(self._under_way)

    def _forget(self, _done: asyncio.Task[bool]) -> None:
        self._under_way = None

    async def _refresh(self) -> None:
        backoff_ms = self._settings.jwks_retry_backoff_ms
        delay_ms = self._settings.jwks_refresh_ms if self._keys else backoff_ms
        while True:
            await asyncio.sleep(delay_ms / 1000)
            if await self._attempt():
                backoff_ms = self._settings.jwks_retry_backoff_ms
                delay_ms = self._settings.jwks_refresh_ms
            else:
                backoff_ms = min(2 * backoff_ms, self._settings.jwks_retry_backoff_max_ms)
                delay_ms = backoff_ms

    async def _attempt(self) -> bool:
        self._read_timestamp_ms = self._now_ms()
        loop = asyncio.get_running_loop()
        try:
            self._keys = parse(await loop.run_in_executor(self._executor, self._read))
        except JwksUnreadable as error:
            _LOG.warning("The keys of OAUTHBEARER cannot be read from %s: %s", self._settings.jwks_url, error)
            return False
        return True


def parse(text: bytes) -> Sequence[Key]:
    """Take the usable keys out of a JWKS.

    Raises:
        JwksUnreadable: it is no JWKS, or has none.
    """
    try:
        entries = json.loads(text)["keys"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise JwksUnreadable("it is not a JSON object with a list of keys") from None
    keys: list[Key] = []
    entries = entries if isinstance(entries, list) else []
    for entry in (each for each in entries if isinstance(each, dict)):
        # RFC 7517 section 5: a key that is not understood is left out, the others count.
        with suppress(JoseError, UnsupportedAlgorithm, ValueError, TypeError, KeyError, AttributeError):
            key = import_key(entry)
            if not isinstance(key, OctKey):
                keys.append(key)
    if not keys:
        raise JwksUnreadable("it holds no public key that can be used")
    return keys


def reader(settings: OAuthBearerSettings) -> Callable[[], bytes]:
    """Make what reads the text of the JWKS.

    Raises:
        ConfigError: the `ssl.*` options of the JAAS line cannot be used.
    """
    url = urlsplit(settings.jwks_url)
    if url.scheme == "file":
        path = Path(unquote(url.path))
        return lambda: _read_file(path)
    try:
        context = client_context(settings.jwks_tls) if settings.jwks_tls else ssl.create_default_context()
    except TlsError as error:
        raise ConfigError("sasl.jaas.config", f"its ssl options for the JWKS: {error}") from None
    opener = build_opener(HTTPSHandler(context=context), _SameScheme())
    request = Request(settings.jwks_url, headers={"Accept": MEDIA_TYPES})  # noqa: S310 - http or https, checked

    def fetch() -> bytes:
        try:
            with opener.open(request, timeout=TIMEOUT_SECONDS) as answer:
                return _bounded(answer.read(MAX_BYTES + 1))
        except (OSError, ValueError) as error:
            raise JwksUnreadable(str(error)) from error
        except HTTPException as error:  # its text is what the server has sent
            raise JwksUnreadable(f"the answer is cut off or not HTTP ({type(error).__name__})") from error

    return fetch


def _read_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return _bounded(file.read(MAX_BYTES + 1))
    except OSError as error:
        raise JwksUnreadable(error.strerror or "it cannot be read") from error


def _bounded(text: bytes) -> bytes:
    if len(text) > MAX_BYTES:
        raise JwksUnreadable(f"it has more than {MAX_BYTES} bytes")
    return text


class _SameScheme(HTTPRedirectHandler):
    """Follows a redirect only to the same scheme: keys that came over TLS must not come without it."""

    def redirect_request(  # noqa: PLR0917 - as the standard library calls it
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        if urlsplit(newurl).scheme != urlsplit(req.full_url).scheme:
            raise HTTPError(req.full_url, code, "a redirect to another scheme", headers, fp)
        redirected: Any = super().redirect_request(req, fp, code, msg, headers, newurl)
        return redirected if isinstance(redirected, Request) else None
