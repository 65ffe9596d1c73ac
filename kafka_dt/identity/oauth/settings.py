"""What a listener's OAUTHBEARER asks of a token, and where the keys come from that tokens are signed with.

The keys are Kafka's `sasl.oauthbearer.*`, each of which `listener.name.<name>.oauthbearer.<key>` sets for one listener.

Limits: the checks are those of Kafka's own validator for signed tokens; callback handlers of one's own are refused.

Source: KIP-768; org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler,
org.apache.kafka.common.security.oauthbearer.internals.secured.AccessTokenValidatorFactory and
org.apache.kafka.common.security.oauthbearer.internals.secured.VerificationKeyResolverFactory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kafka_dt.config import ConfigError, MechanismKeys
from kafka_dt.urls import SCHEMES, usable_scheme

HANDLER_KEY: Final = "sasl.server.callback.handler.class"
URL_KEY: Final = "sasl.oauthbearer.jwks.endpoint.url"
UNSIGNED_KEY: Final = "kafka.dt.sasl.oauthbearer.allow.unsigned.tokens"
_PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer."
_SIGNED_HANDLERS: Final = (
    f"{_PACKAGE}OAuthBearerValidatorCallbackHandler",
    f"{_PACKAGE}secured.OAuthBearerValidatorCallbackHandler",
)
_UNSIGNED_HANDLER: Final = f"{_PACKAGE}internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthBearerSettings:
    """How the tokens of one listener are checked."""

    jwks_url: str
    """`https:`, `http:` or `file:`; empty if only unsigned tokens are taken."""
    jwks_refresh_ms: int = 3_600_000
    jwks_retry_backoff_ms: int = 100
    jwks_retry_backoff_max_ms: int = 10_000
    jwks_tls: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The `ssl.*` options of the JAAS line, for fetching the keys."""
    clock_skew_seconds: int = 30
    expected_audience: tuple[str, ...] = ()
    """One of these has to be in `aud`; empty: there must be no `aud`."""
    expected_issuer: str = ""
    """`iss`; empty for any."""
    scope_claim_name: str = "scope"
    sub_claim_name: str = "sub"
    allow_unsigned: bool = False


def oauthbearer_settings(keys: MechanismKeys) -> OAuthBearerSettings:
    """Collect what is set for one listener.

    Raises:
        ConfigError: there is nothing that a token could be checked against, or the URL cannot be used.
    """
    jaas_options = keys.login_module.options if keys.login_module else {}
    settings = OAuthBearerSettings(
        jwks_url=keys.value(URL_KEY),
        jwks_refresh_ms=keys.value("sasl.oauthbearer.jwks.endpoint.refresh.ms"),
        jwks_retry_backoff_ms=keys.value("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms"),
        jwks_retry_backoff_max_ms=keys.value("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms"),
        jwks_tls={name: text for name, text in jaas_options.items() if name.startswith("ssl.")},
        clock_skew_seconds=keys.value("sasl.oauthbearer.clock.skew.seconds"),
        expected_audience=keys.value("sasl.oauthbearer.expected.audience"),
        expected_issuer=keys.value("sasl.oauthbearer.expected.issuer"),
        scope_claim_name=keys.value("sasl.oauthbearer.scope.claim.name"),
        sub_claim_name=keys.value("sasl.oauthbearer.sub.claim.name"),
        allow_unsigned=keys.value(UNSIGNED_KEY),
    )
    _check_handler(keys.text(HANDLER_KEY), settings)
    _check_url(keys.listener, settings)
    return settings


def _check_handler(handler: tuple[str, str] | None, settings: OAuthBearerSettings) -> None:
    if handler is None or handler[1] in _SIGNED_HANDLERS:
        return
    key, name = handler
    if name != _UNSIGNED_HANDLER:
        raise ConfigError(key, f"{name} cannot be loaded here; {_SIGNED_HANDLERS[0]} is what is built in")
    if not settings.allow_unsigned:
        raise ConfigError(
            key, f"it accepts unsigned tokens, which any client can make; to allow that, set {UNSIGNED_KEY}=true"
        )


def _check_url(listener: str, settings: OAuthBearerSettings) -> None:
    url = settings.jwks_url
    if not url:
        if settings.allow_unsigned:
            return
        raise ConfigError(URL_KEY, f"listener {listener} needs it for OAUTHBEARER: where the keys of the issuer are")
    if "@" in url.partition("://")[2].partition("/")[0]:
        # Said without the URL: it holds a password, and would be in every message about the keys.
        raise ConfigError(URL_KEY, "a URL with a user's name in it is not supported")
    if not usable_scheme(url):
        raise ConfigError(URL_KEY, f"{url!r} is not a URL with {', '.join(SCHEMES[:-1])} or {SCHEMES[-1]}")
