"""What a listener's Kerberos takes from its settings, and logins driven with a context that only pretends."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_dt.config import ConfigError, from_properties, listeners
from kafka_dt.identity.kerberos.names import ShortNames
from kafka_dt.identity.login.login import LoggedIn, Login, LoginOutcome, LoginRefused
from kafka_dt.identity.mechanisms import MECHANISMS, Accounts, OpenMechanism
from kafka_dt.identity.mechanisms.gssapi import GssapiExchange, Kerberos, KerberosSettings
from kafka_dt.tokens import Principal
from kafka_dt_protocol.sasl import GSSAPI, Challenge, GssRefused

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


CHOICE = b"\x01\x00\x00\x00"
SETTINGS = KerberosSettings(keytab="/etc/kafka.keytab", principal="kafka/host")


class Pretended:
    """A context that takes one token: the client's name."""

    established = False
    initiator = ""

    def accept(self, token: bytes) -> bytes:
        if not token:
            raise GssRefused("no token")
        self.established, self.initiator = True, token.decode()
        return b""

    def wrap(self, message: bytes) -> bytes:
        return message

    def unwrap(self, message: bytes) -> bytes:
        return message


@pytest.fixture
def executor() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as made:
        yield made


@pytest.fixture
def login(executor: ThreadPoolExecutor) -> Login:
    kerberos = Kerberos(SimpleNamespace(context=Pretended), ShortNames.parse(["DEFAULT"], "REALM"), executor)
    opened = OpenMechanism(lambda _: GssapiExchange(kerberos), max_reauth_ms=5_000)
    unused: Any = None
    return Login({GSSAPI: opened}, Accounts(unused, unused), lambda: 0)


async def taken(login: Login, message: bytes) -> LoginOutcome:
    outcome = login.evaluate(message)
    assert not isinstance(outcome, Challenge | LoggedIn | LoginRefused), "what blocks is not for the event loop"
    return await outcome


async def gssapi(login: Login, name: str) -> LoginOutcome:
    login.begin("GSSAPI")
    assert await taken(login, name.encode()) == Challenge(CHOICE)
    return await taken(login, CHOICE)


async def test_a_kerberos_name_logs_in_as_its_short_name(login: Login) -> None:
    outcome = await gssapi(login, "alice/admin@REALM")
    assert isinstance(outcome, LoggedIn)
    assert outcome.identity.principal == Principal.user("alice")
    assert outcome.identity.token_id is None
    assert outcome.session_lifetime_ms == 5_000


@pytest.mark.parametrize("name", ["alice@OTHER", "alice", "a/b/c@REALM"])
async def test_a_name_without_a_short_name_is_refused_without_saying_why(login: Login, name: str) -> None:
    outcome = await gssapi(login, name)
    assert isinstance(outcome, LoginRefused)
    assert outcome.message == (
        "Authentication failed during authentication due to invalid credentials with SASL mechanism GSSAPI"
    )
    assert name not in outcome.detail


async def test_a_refused_token_ends_the_login(login: Login) -> None:
    login.begin("GSSAPI")
    outcome = await taken(login, b"")
    assert isinstance(outcome, LoginRefused)
    assert outcome.detail == "no token"


async def test_the_principal_stays_the_same(login: Login) -> None:
    await gssapi(login, "alice@REALM")
    outcome = await gssapi(login, "bob@REALM")
    assert isinstance(outcome, LoginRefused)
    assert outcome.message == "Cannot change principals during re-authentication from User.alice: User.bob"
    assert isinstance(await gssapi(login, "alice/admin@REALM"), LoggedIn)


def test_without_the_extra_the_start_says_what_to_install(
    executor: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    monkeypatch.delitem(sys.modules, "kafka_dt.identity.kerberos.gss", raising=False)
    with pytest.raises(
        ConfigError, match=r"^sasl\.enabled\.mechanisms: GSSAPI needs the extra kerberos \(in a checkout"
    ):
        Kerberos.from_settings("SASL", SETTINGS, executor)
