import re

import pytest

from kafka_dt.config import ConfigError, from_properties, listeners
from kafka_dt.identity.kerberos.settings import KerberosSettings
from kafka_dt.identity.mechanisms import MECHANISMS

BASE = {"listeners": "SASL_PLAINTEXT://localhost:9092", "sasl.enabled.mechanisms": "GSSAPI"}
JAAS = "listener.name.sasl_plaintext.gssapi.sasl.jaas.config"
MODULE = "com.sun.security.auth.module.Krb5LoginModule"
RULES = "sasl.kerberos.principal.to.local.rules"
SERVICE = "sasl.kerberos.service.name"


def line(**options: str) -> str:
    named = {"useKeyTab": "true", "keyTab": "/etc/k", "principal": "kafka/host@REALM"} | options
    return f"{MODULE} required " + " ".join(f'{key}="{value}"' for key, value in named.items() if value) + ";"


def made(**changes: str) -> KerberosSettings:
    (listener,) = listeners(from_properties(BASE | changes).settings, MECHANISMS)
    settings = listener.mechanisms["GSSAPI"].settings
    assert isinstance(settings, KerberosSettings)
    return settings


def test_the_line_of_a_broker_says_who_we_are() -> None:
    jaas = line(storeKey="true", isInitiator="false", keyTab="FILE:/etc/kafka.keytab")
    assert made(**{JAAS: jaas, SERVICE: "kafka"}) == KerberosSettings(
        keytab="/etc/kafka.keytab", principal="kafka/host@REALM", rules=("DEFAULT",)
    )


def test_a_listener_can_have_rules_of_its_own() -> None:
    settings = made(**{JAAS: line(), RULES: "DEFAULT", f"listener.name.sasl_plaintext.{RULES}": "RULE:[1:$1], DEFAULT"})
    assert settings.rules == ("RULE:[1:$1]", "DEFAULT")


@pytest.mark.parametrize("principal", ["kafka", "kafka/host", "kafka/host@REALM", "kafka@REALM", "*"])
def test_the_principal_has_to_be_of_the_service(principal: str) -> None:
    assert made(**{JAAS: line(principal=principal), SERVICE: "kafka"}).principal == principal
    assert made(**{JAAS: line(principal=principal, serviceName="kafka")}).principal == principal


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "is needed for GSSAPI, unless sasl.enabled.mechanisms names others; for example: "),
        ({JAAS: line(useKeyTab="")}, "GSSAPI needs our keytab: "),
        ({JAAS: line(keyTab="")}, "GSSAPI needs our keytab: "),
        ({JAAS: line(principal="")}, "GSSAPI needs our name: "),
        ({JAAS: line(), SERVICE: "kaf"}, f"its principal kafka/host@REALM is not of the service kaf ({SERVICE})"),
        ({JAAS: line().replace(MODULE, "a.b.C")}, f"GSSAPI needs {MODULE}, not a.b.C"),
    ],
)
def test_what_kerberos_cannot_do_without_is_an_error(changes: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{re.escape(f'{JAAS}: {message}')}"):
        made(**changes)
