"""Settings of Java programs: properties files as Java reads them, and what Kafka's clients need for each way to log in.

Files are private to this user because they hold passwords and keys.

Source: java.util.Properties.load; org.apache.kafka.common.security.scram.ScramLoginModule, KIP-48 ("Client").
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import javaproperties

ClientConfig = dict[str, str]

SCRAM_MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")

_PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
_OAUTH_PACKAGE = "org.apache.kafka.common.security.oauthbearer"
_OAUTH_MODULE = f"{_OAUTH_PACKAGE}.OAuthBearerLoginModule"
_KERBEROS_MODULE = "com.sun.security.auth.module.Krb5LoginModule"
_SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"

# A refused login is an answer; a client that tries the connection again and again only makes the test slow.
_IMPATIENT = {"default.api.timeout.ms": "20000", "request.timeout.ms": "15000", "retries": "2"}


@dataclass(frozen=True, slots=True)
class TokenLogin:
    """What a client needs of a token."""

    token_id: str
    hmac: str = field(repr=False)
    """base64 text, which is the password."""


def plain(username: str, password: str) -> ClientConfig:
    """Log in with PLAIN."""
    return _sasl("PLAIN", f'{_PLAIN_MODULE} required username="{username}" password="{password}";')


def scram(username: str, password: str, mechanism: str) -> ClientConfig:
    """Log in with SCRAM."""
    return _sasl(mechanism, f'{_SCRAM_MODULE} required username="{username}" password="{password}";')


def token(login: TokenLogin, mechanism: str = SCRAM_MECHANISMS[0]) -> ClientConfig:
    """Log in with a delegation token, with the extension that says so."""
    credentials = f'username="{login.token_id}" password="{login.hmac}"'
    return _sasl(mechanism, f'{_SCRAM_MODULE} required {credentials} tokenauth="true";')


def digest_md5(login: TokenLogin) -> ClientConfig:
    """Log in with a delegation token by the JDK's own DIGEST-MD5; any login module carries name and password to it."""
    return _sasl("DIGEST-MD5", f'{_PLAIN_MODULE} required username="{login.token_id}" password="{login.hmac}";')


def bearer(token_file: Path) -> ClientConfig:
    """Log in with OAUTHBEARER and the token in a file (KIP-768)."""
    return _sasl("OAUTHBEARER", f"{_OAUTH_MODULE} required;") | {
        "sasl.oauthbearer.token.endpoint.url": token_file.as_uri(),
        "sasl.login.callback.handler.class": f"{_OAUTH_PACKAGE}.OAuthBearerLoginCallbackHandler",
    }


def unsigned_bearer(name: str, **extensions: str) -> ClientConfig:
    """Log in with OAUTHBEARER and a token without signature that the client makes itself (KIP-255)."""
    options = f'unsecuredLoginStringClaim_sub="{name}"'
    options += "".join(f' unsecuredLoginExtension_{key}="{value}"' for key, value in extensions.items())
    return _sasl("OAUTHBEARER", f"{_OAUTH_MODULE} required {options};")


def kerberos(principal: str, keytab: Path, service: str = "kafka") -> ClientConfig:
    """Log in with GSSAPI and the keys in a keytab."""
    options = f'useKeyTab="true" storeKey="true" keyTab="{keytab}" principal="{principal}" refreshKrb5Config="true"'
    return _sasl("GSSAPI", f"{_KERBEROS_MODULE} required {options};") | {"sasl.kerberos.service.name": service}


def _sasl(mechanism: str, jaas: str) -> ClientConfig:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": jaas,
        **_IMPATIENT,
    }


def write_properties(path: Path, properties: Mapping[str, object]) -> Path:
    """Write `properties` to `path` with mode 0600; booleans become true and false. Returns the path."""
    texts = {key: _text(value) for key, value in properties.items()}
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(javaproperties.dumps(texts, timestamp=False))
    return path


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
