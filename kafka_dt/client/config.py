"""Read what a client needs to know from Kafka's own client properties.

`ClientConfig.from_properties` reads what a `client.properties` of the Java tools says: `bootstrap.servers`,
`security.protocol`, `sasl.mechanism`, `sasl.jaas.config`, `ssl.*`, `client.id`, `request.timeout.ms` and
`socket.connection.setup.timeout.ms`. It ignores other keys of Kafka's clients, and logs a warning for a key that no
client of Kafka knows. Such a key is no error, as in Java: plug-ins of Java clients (serializers, interceptors, config
providers) read keys of their own from the same file.

`kerberos.py` reads what a login by GSSAPI needs, `bearer.py` what one by OAUTHBEARER needs.

Limits: a login file named by a Java system property is not read.

Source: org.apache.kafka.clients.CommonClientConfigs, org.apache.kafka.clients.ClientUtils.parseAndValidateAddresses,
org.apache.kafka.common.config.SaslConfigs; org.apache.kafka.common.config.AbstractConfig.logUnused.
"""

from __future__ import annotations

import difflib
import logging
import re
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Final, Self

from kafka_dt.client.bearer import BearerLogin
from kafka_dt.client.errors import ClientConfigError
from kafka_dt.client.kerberos import KerberosLogin
from kafka_dt.client.login_module import JAAS, login_module
from kafka_dt.config_providers import Provided, ProviderError, is_of_providers, with_values
from kafka_dt.jaas import KERBEROS_LOGIN_MODULE, PLAIN_LOGIN_MODULE, SCRAM_LOGIN_MODULE, LoginModule
from kafka_dt.security_protocol import SecurityProtocol
from kafka_dt.tls import TlsError, client_context
from kafka_dt_protocol.sasl import DIGEST_MD5, GSSAPI, OAUTHBEARER, PLAIN, ScramMechanism

_LOG = logging.getLogger(__name__)

PASSWORD_MECHANISMS: Final = (PLAIN, *ScramMechanism, DIGEST_MD5)
"""The SASL mechanisms that log in with a user name and a password, or with the id and the HMAC of a token."""
MECHANISMS: Final = (*PASSWORD_MECHANISMS, GSSAPI, OAUTHBEARER)
"""The SASL mechanisms that this client can log in with."""
DEFAULT_CLIENT_ID: Final = "kafka-dt"
DEFAULT_REQUEST_TIMEOUT_MS: Final = 30_000
DEFAULT_SETUP_TIMEOUT_MS: Final = 10_000

_ADDRESS: Final = re.compile(r"(?:[a-zA-Z][a-zA-Z\d_]*://)?\[?(?P<host>[0-9a-zA-Z\-._%:]+?)]?:(?P<port>[0-9]{1,5})")
_LARGEST_PORT: Final = 65535
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_\-]*(\.[A-Za-z0-9_\-]+)*")
_LONGEST_NAME: Final = 100


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a server."""

    host: str
    port: int

    def __str__(self) -> str:
        """Write it as in `bootstrap.servers`."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user or a token, and the mechanism of its login."""

    mechanism: str
    """One of PASSWORD_MECHANISMS."""
    username: str
    """User name, or the id of a token."""
    password: str = field(repr=False)
    """Password, or the HMAC of a token in base64."""
    token_auth: bool = False
    """Whether these are a token's; SCRAM tells the server."""

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Self:
        """Read the login of Kafka's client properties: `sasl.mechanism` and `sasl.jaas.config`.

        Raises ClientConfigError, which names the key and shows no word of a JAAS line.
        """
        properties = _with_values(properties).properties
        mechanism = _mechanism(properties)
        module = _login_module(properties, mechanism)
        username, password = module.username, module.password
        if not username or not password:
            missing = "password" if username else "username"
            raise ClientConfigError(JAAS, f'there is no {missing}="..." in it')
        return cls(mechanism, username, password, mechanism in set(ScramMechanism) and module.token_auth)


Login = Credentials | KerberosLogin | BearerLogin
"""How a client logs in by SASL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """The settings of a client."""

    bootstrap_servers: tuple[Address, ...]
    security_protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    credentials: Credentials | Callable[[], Credentials] | None = None
    """A login, or a function that returns the present one. The SASL protocols need it, or `external_login`."""
    external_login: KerberosLogin | BearerLogin | None = None
    """A login whose secret is elsewhere, in place of credentials."""
    ssl_context: ssl.SSLContext | Callable[[], ssl.SSLContext] | None = field(default=None, repr=False)
    """A context, or a function that returns one for each connection; needed by the TLS protocols alone."""
    client_id: str = DEFAULT_CLIENT_ID
    request_timeout_ms: int = DEFAULT_REQUEST_TIMEOUT_MS
    setup_timeout_ms: int = DEFAULT_SETUP_TIMEOUT_MS
    """How long one server may take to be connected to, TLS included."""
    preamble: bytes = b""
    """What each connection begins with, in front of TLS: a header of the PROXY protocol."""

    def __post_init__(self) -> None:
        if not self.bootstrap_servers:
            raise ClientConfigError("bootstrap.servers", "at least one host:port is needed")
        if self.security_protocol.uses_sasl and self.credentials is None and self.external_login is None:
            raise ClientConfigError(JAAS, f"{self.security_protocol} needs a user to log in")
        if self.security_protocol.uses_tls and self.ssl_context is None:
            raise ClientConfigError("ssl.truststore.location", f"{self.security_protocol} needs a TLS context")

    @property
    def login(self) -> Credentials | None:
        """The login of now by a name and a password; None without one."""
        return self.credentials() if callable(self.credentials) else self.credentials

    def with_patience(self, patience_ms: int) -> Self:
        """Return a configuration that waits no longer than so for a connection and for each answer.

        patience_ms: milliseconds; shorter times of this configuration stay
        """
        return replace(
            self,
            request_timeout_ms=min(self.request_timeout_ms, patience_ms),
            setup_timeout_ms=min(self.setup_timeout_ms, patience_ms),
        )

    @property
    def sasl_login(self) -> Login | None:
        """The login of now by SASL; None without one."""
        return self.login or self.external_login

    @property
    def tls(self) -> ssl.SSLContext | None:
        """The context of the next connection; None for one without TLS."""
        context = self.ssl_context if self.security_protocol.uses_tls else None
        return context() if callable(context) else context

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Self:
        """Read Kafka's client properties; trust and key stores are read from their files at once.

        Variables of `config.providers` are looked up at once as well.
        Logs a warning for each key that no client of Kafka knows.
        Raises ClientConfigError, which names the key.
        """
        _warn_of_unknown(properties)
        provided = _with_values(properties)
        with _hidden(provided):
            return cls._of_values(provided.properties)

    @classmethod
    def _of_values(cls, properties: Mapping[str, str]) -> Self:
        protocol = _security_protocol(properties.get("security.protocol", "PLAINTEXT"))
        login = _login(properties) if protocol.uses_sasl else None
        return cls(
            bootstrap_servers=parse_addresses(properties.get("bootstrap.servers", "")),
            security_protocol=protocol,
            credentials=login if isinstance(login, Credentials) else None,
            external_login=None if isinstance(login, Credentials) else login,
            ssl_context=_ssl_context(properties) if protocol.uses_tls else None,
            client_id=properties.get("client.id") or DEFAULT_CLIENT_ID,
            request_timeout_ms=_milliseconds(properties, "request.timeout.ms", DEFAULT_REQUEST_TIMEOUT_MS),
            setup_timeout_ms=_milliseconds(properties, "socket.connection.setup.timeout.ms", DEFAULT_SETUP_TIMEOUT_MS),
        )


def parse_addresses(servers: str | Iterable[str]) -> tuple[Address, ...]:
    """Read `host:port` texts, or one text of several with commas between; IPv6 is written in brackets.

    Raises ClientConfigError.
    """
    texts = servers.split(",") if isinstance(servers, str) else servers
    return tuple(_address(text.strip()) for text in texts if text.strip())


def _address(text: str) -> Address:
    match = _ADDRESS.fullmatch(text)
    if match is None or not 0 < int(match["port"]) <= _LARGEST_PORT:
        raise ClientConfigError("bootstrap.servers", f"{text!r} is not of the form host:port")
    return Address(match["host"], int(match["port"]))


def _security_protocol(text: str) -> SecurityProtocol:
    try:
        return SecurityProtocol(text.strip().upper())
    except ValueError:
        reason = f"{text!r} is none of {', '.join(SecurityProtocol)}"
        raise ClientConfigError("security.protocol", reason) from None


def _login(properties: Mapping[str, str]) -> Login:
    mechanism = _mechanism(properties)
    if mechanism == GSSAPI:
        return KerberosLogin.from_properties(properties)
    if mechanism == OAUTHBEARER:
        return BearerLogin.from_properties(properties)
    return Credentials.from_properties(properties)


def _mechanism(properties: Mapping[str, str]) -> str:
    known = ", ".join(MECHANISMS)
    mechanism = properties.get("sasl.mechanism", "").strip()
    if not mechanism:
        if KERBEROS_LOGIN_MODULE in properties.get(JAAS, ""):
            return GSSAPI
        raise ClientConfigError("sasl.mechanism", f"it is not set, which means GSSAPI to Kafka; set one of {known}")
    if mechanism not in MECHANISMS:
        raise ClientConfigError("sasl.mechanism", f"{mechanism!r} is none of {known}")
    return mechanism


def _login_module(properties: Mapping[str, str], mechanism: str) -> LoginModule:
    wanted = PLAIN_LOGIN_MODULE if mechanism in {PLAIN, DIGEST_MD5} else SCRAM_LOGIN_MODULE
    module = login_module(properties, mechanism, wanted)
    if module is None:
        example = f'{wanted} required username="..." password="...";'
        raise ClientConfigError(JAAS, f"{mechanism} needs it: {example}")
    return module


def _ssl_context(properties: Mapping[str, str]) -> ssl.SSLContext:
    try:
        return client_context(properties)
    except TlsError as error:
        raise ClientConfigError(error.key, error.reason) from error


def _milliseconds(properties: Mapping[str, str], key: str, default: int) -> int:
    text = properties.get(key, "").strip()
    if not text:
        return default
    if not re.fullmatch("[0-9]{1,10}", text) or int(text) == 0:
        raise ClientConfigError(key, f"{text!r} is not a number of milliseconds above 0")
    return int(text)


def _with_values(properties: Mapping[str, str]) -> Provided:
    instead = "write the value itself, or take it from Kafka's FileConfigProvider or EnvVarConfigProvider"
    try:
        return with_values(properties, client_keys().__contains__, ways_out=instead)
    except ProviderError as error:
        raise ClientConfigError(error.key, error.reason) from None


@contextmanager
def _hidden(provided: Provided) -> Iterator[None]:
    """Leave the value of a provider out of an error."""
    try:
        yield
    except ClientConfigError as error:
        if provided.shown_by(error.key, error.reason):
            raise ClientConfigError(error.key, "the value of its provider is not one of this setting") from None
        raise


def _warn_of_unknown(properties: Iterable[str]) -> None:
    for key in sorted(properties):
        if key in client_keys() or is_of_providers(key):
            continue
        # What does not look like a name may be a torn line with a password in it.
        if len(key) > _LONGEST_NAME or not _NAME.fullmatch(key):
            _LOG.warning("A key of the client properties is no name of a setting; is a line of the file torn?")
            continue
        nearest = nearest_key(key)
        meant = f"; did you mean {nearest}?" if nearest else ""
        _LOG.warning("%s has no effect: Kafka's clients have no such setting%s", key, meant)


@cache
def client_keys() -> frozenset[str]:
    """Return every key of an admin client, a producer or a consumer of Kafka 3.9.1 or 4.4.0."""
    text = files("kafka_dt.client").joinpath("kafka_keys.txt").read_text(encoding="ascii")
    return frozenset(line for line in text.splitlines() if not line.startswith("#"))


def nearest_key(key: str) -> str | None:
    """Return the known key that was probably meant, None where none is near."""
    return next(iter(difflib.get_close_matches(key.lower(), client_keys(), n=1, cutoff=0.8)), None)
