"""A login by a bearer token: what Kafka's client properties say of it, and how a token is got.

`sasl.oauthbearer.token.endpoint.url` says where tokens are, as for Java's OAuthBearerLoginCallbackHandler. A `file:`
URL names a file with a token, which is read again for each login. An `https:` or `http:` URL is the token endpoint of
an issuer, which is asked for a token by client credentials. These are `clientId`, `clientSecret` and `scope` of the
`OAuthBearerLoginModule` in `sasl.jaas.config`, or `sasl.oauthbearer.client.credentials.client.id` and `.client.secret`
and `sasl.oauthbearer.scope` of newer clients. The line's `ssl.*` options are those of the connection to the issuer, and
each `extension_NAME` is an extension.

Limits: no unsigned tokens; no assertions (Kafka 4.3's JwtBearerJwtRetriever).

Source: KIP-768, KIP-1139, KIP-342; RFC 6749 section 4.4;
org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler,
org.apache.kafka.common.security.oauthbearer.internals.secured.HttpAccessTokenRetriever.
"""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Final, Self
from urllib.error import HTTPError
from urllib.parse import quote, unquote, urlencode, urlsplit
from urllib.request import HTTPSHandler, Request, build_opener

from kafka_dt.client.errors import ClientConfigError, TokenClientError
from kafka_dt.client.login_module import JAAS, login_options
from kafka_dt.jaas import OAUTHBEARER_LOGIN_MODULE
from kafka_dt.tls import TlsError, client_context
from kafka_dt.urls import NoRedirects, usable_scheme
from kafka_dt_protocol.sasl import OAUTHBEARER

MAX_BYTES: Final = 1024 * 1024
"""Longer tokens and answers are refused."""
DEFAULT_TIMEOUT_MS: Final = 10_000
_URL: Final = "sasl.oauthbearer.token.endpoint.url"
_HANDLER: Final = "sasl.login.callback.handler.class"
_PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer"
_HANDLERS: Final = tuple(f"{package}.OAuthBearerLoginCallbackHandler" for package in (_PACKAGE, f"{_PACKAGE}.secured"))
_TIMEOUT: Final = "sasl.login.read.timeout.ms"
_EXTENSION: Final = "extension_"


class BearerTokenMissing(TokenClientError):
    """No bearer token was got: its file cannot be read, or the issuer gave none."""

    def __init__(self, source: str, reason: str) -> None:
        super().__init__(f"no bearer token from {source}: {reason} (see {_URL})")
        self.source = source
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCredentials:
    """What an issuer knows a client by."""

    client_id: str
    client_secret: str = field(repr=False)
    scope: str = ""
    quoted: bool = False
    """Whether id and secret are percent-encoded in the header (`sasl.oauthbearer.header.urlencode`)."""

    @property
    def header(self) -> str:
        """The value of the header Authorization."""
        parts = (self.client_id, self.client_secret)
        text = ":".join(quote(part, safe="") if self.quoted else part for part in parts)
        return f"Basic {base64.b64encode(text.encode()).decode('ascii')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BearerLogin:
    """Where a bearer token comes from."""

    url: str
    """`file:`, `https:` or `http:`."""
    credentials: ClientCredentials | None = None
    """For a token endpoint."""
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    """For a token endpoint."""
    timeout_ms: int = DEFAULT_TIMEOUT_MS
    extensions: Mapping[str, str] = field(default_factory=dict)

    @property
    def mechanism(self) -> str:
        """The SASL mechanism."""
        return OAUTHBEARER

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Self:
        """Read Kafka's client properties; raises ClientConfigError, which shows no secret."""
        handler = properties.get(_HANDLER, "").strip()
        if handler and handler not in _HANDLERS:
            raise ClientConfigError(_HANDLER, f"{handler} cannot be loaded here; {_HANDLERS[0]} is what is built in")
        options = login_options(properties, OAUTHBEARER, OAUTHBEARER_LOGIN_MODULE)
        url = properties.get(_URL, "").strip()
        scheme = usable_scheme(url)
        if not scheme:
            raise ClientConfigError(
                _URL, "OAUTHBEARER needs it: file:///path of a token, or the https: URL of an issuer's token endpoint"
            )
        extensions = {
            key.removeprefix(_EXTENSION): value for key, value in options.items() if key.startswith(_EXTENSION)
        }
        if scheme == "file":
            return cls(url=url, extensions=extensions)
        return cls(
            url=url,
            credentials=_client_credentials(properties, options),
            tls=_tls(options),
            timeout_ms=_timeout_ms(properties.get(_TIMEOUT, "").strip()),
            extensions=extensions,
        )

    def token(self) -> str:
        """Get a token; it blocks.

        Raises BearerTokenMissing.
        """
        if self.credentials is None:
            path = Path(unquote(urlsplit(self.url).path))
            try:
                text = path.read_text(encoding="ascii").strip()
            except (OSError, ValueError) as error:
                reason = error.strerror if isinstance(error, OSError) else "it is no text of ASCII"
                raise BearerTokenMissing(self.url, str(reason)) from None
            if not text:
                raise BearerTokenMissing(self.url, "the file is empty")
            return text
        return self._ask(self.credentials)

    def _ask(self, credentials: ClientCredentials) -> str:
        body = {"grant_type": "client_credentials"} | ({"scope": credentials.scope} if credentials.scope else {})
        headers = {"Authorization": credentials.header, "Accept": "application/json"}
        request = Request(self.url, urlencode(body).encode("ascii"), headers)  # noqa: S310 - http or https, checked
        opener = build_opener(HTTPSHandler(context=self.tls), NoRedirects())
        try:
            with opener.open(request, timeout=self.timeout_ms / 1000) as answer:
                text = answer.read(MAX_BYTES + 1)
        except HTTPError as error:
            with error:
                reason = f"the issuer answers {error.code} {error.reason}"
            raise BearerTokenMissing(self.url, reason) from None
        except OSError as error:
            raise BearerTokenMissing(self.url, str(getattr(error, "reason", "") or error)) from None
        except HTTPException as error:  # its text is what the issuer has sent
            reason = f"the answer is cut off or not HTTP ({type(error).__name__})"
            raise BearerTokenMissing(self.url, reason) from None
        token = _access_token(text)
        if token is None:
            raise BearerTokenMissing(self.url, "the answer is no JSON with an access_token")
        return token


def _access_token(text: bytes) -> str | None:
    if len(text) > MAX_BYTES:
        return None
    try:
        token = json.loads(text)["access_token"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return token if isinstance(token, str) and token else None


def _client_credentials(properties: Mapping[str, str], options: Mapping[str, str]) -> ClientCredentials:
    prefix = "sasl.oauthbearer.client.credentials"
    client_id = properties.get(f"{prefix}.client.id") or options.get("clientId", "")
    client_secret = properties.get(f"{prefix}.client.secret") or options.get("clientSecret", "")
    if not client_id or not client_secret:
        missing = "clientSecret" if client_id else "clientId"
        raise ClientConfigError(JAAS, f'a token endpoint needs {missing}="..." in it')
    return ClientCredentials(
        client_id=client_id,
        client_secret=client_secret,
        scope=properties.get("sasl.oauthbearer.scope") or options.get("scope", ""),
        quoted=properties.get("sasl.oauthbearer.header.urlencode", "").strip().lower() == "true",
    )


def _timeout_ms(text: str) -> int:
    if not text:
        return DEFAULT_TIMEOUT_MS
    if not text.isdecimal() or int(text) == 0:
        raise ClientConfigError(_TIMEOUT, f"{text!r} is not a number of milliseconds above 0")
    return int(text)


def _tls(options: Mapping[str, str]) -> ssl.SSLContext:
    try:
        return client_context({name: text for name, text in options.items() if name.startswith("ssl.")})
    except TlsError as error:
        raise ClientConfigError(JAAS, f"its ssl options for the token endpoint: {error}") from None
