import re

import pytest

from kafka_dt.config import ConfigError, from_properties, listeners
from kafka_dt.identity.mechanisms import MECHANISMS
from kafka_dt.identity.oauth.settings import OAuthBearerSettings

BASE = {"listeners": "SASL_PLAINTEXT://localhost:9092", "sasl.enabled.mechanisms": "OAUTHBEARER"}
URL = "sasl.oauthbearer.jwks.endpoint.url"
UNSIGNED = "kafka.dt.sasl.oauthbearer.allow.unsigned.tokens"
HERE = "listener.name.sasl_plaintext.oauthbearer."
HANDLER = f"{HERE}sasl.server.callback.handler.class"
PACKAGE = "org.apache.kafka.common.security.oauthbearer"
UNSECURED = f"{PACKAGE}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"


def made(**changes: str) -> OAuthBearerSettings:
    (listener,) = listeners(from_properties(BASE | changes).settings, MECHANISMS)
    settings = listener.mechanisms["OAUTHBEARER"].settings
    assert isinstance(settings, OAuthBearerSettings)
    return settings


def test_the_defaults_are_kafkas() -> None:
    assert made(**{URL: "https://issuer.example/jwks"}) == OAuthBearerSettings(jwks_url="https://issuer.example/jwks")


def test_every_setting_can_be_a_listeners_own() -> None:
    settings = made(
        **{
            URL: "https://elsewhere.example/jwks",
            HERE + URL: "file:///etc/kafka/jwks.json",
            f"{HERE}sasl.oauthbearer.expected.audience": "kafka, other",
            "listener.name.sasl_plaintext.sasl.oauthbearer.expected.issuer": "https://issuer.example",
            "sasl.oauthbearer.clock.skew.seconds": "5",
            "sasl.oauthbearer.sub.claim.name": "email",
            HERE + UNSIGNED: "true",
        }
    )
    assert settings.jwks_url == "file:///etc/kafka/jwks.json"
    assert settings.expected_audience == ("kafka", "other")
    assert settings.expected_issuer == "https://issuer.example"
    assert settings.clock_skew_seconds == 5
    assert settings.sub_claim_name == "email"
    assert settings.allow_unsigned


def test_the_line_and_the_handler_of_a_broker_are_taken() -> None:
    jaas = f'{PACKAGE}.OAuthBearerLoginModule required ssl.truststore.location="/ca.pem" clientId="x";'
    for handler in (f"{PACKAGE}.OAuthBearerValidatorCallbackHandler", f"{PACKAGE}.secured.{HANDLER_NAME}"):
        settings = made(**{URL: "https://x/", f"{HERE}sasl.jaas.config": jaas, HANDLER: handler})
        assert settings.jwks_tls == {"ssl.truststore.location": "/ca.pem"}


HANDLER_NAME = "OAuthBearerValidatorCallbackHandler"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, f"{URL}: listener SASL_PLAINTEXT needs it for OAUTHBEARER: where the keys of the issuer are"),
        ({URL: "ftp://x/jwks"}, f"{URL}: 'ftp://x/jwks' is not a URL with https, http or file"),
        ({URL: "https://"}, f"{URL}: 'https://' is not a URL with https, http or file"),
        ({URL: "file:"}, f"{URL}: 'file:' is not a URL with https, http or file"),
        ({URL: "https://me:secret@x/jwks"}, f"{URL}: a URL with a user's name in it is not supported"),
        ({URL: "http://[x/"}, f"{URL}: 'http://[x/' is not a URL with https, http or file"),
        (
            {HANDLER: UNSECURED},
            f"{HANDLER}: it accepts unsigned tokens, which any client can make; to allow that, set {UNSIGNED}=true",
        ),
        (
            {HANDLER: "com.example.Mine"},
            f"{HANDLER}: com.example.Mine cannot be loaded here; {PACKAGE}.{HANDLER_NAME} is what is built in",
        ),
    ],
)
def test_what_no_token_can_be_checked_against_is_an_error(changes: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}$"):
        made(**changes)


def test_unsigned_tokens_need_no_keys() -> None:
    settings = made(**{UNSIGNED: "true", HANDLER: UNSECURED})
    assert settings.allow_unsigned
    assert settings.jwks_url == ""


def test_a_listener_without_the_mechanism_has_no_settings_of_it() -> None:
    other = BASE | {"sasl.enabled.mechanisms": "SCRAM-SHA-256", URL: "https://x/"}
    (listener,) = listeners(from_properties(other).settings, MECHANISMS)
    assert tuple(listener.mechanisms) == ("SCRAM-SHA-256",)
