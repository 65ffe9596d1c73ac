"""A mechanism is declared by one row: settings, errors, logins, the warning and the manual follow from the table."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest

from docs.generators import wire_protocol
from kafka_dt.config import ConfigError, from_properties, listeners
from kafka_dt.identity.login.login import LoggedIn, Login, LoginOutcome, LoginRefused
from kafka_dt.identity.mechanisms import MECHANISMS, Accounts, Mechanism, Resources, open_mechanisms
from kafka_dt.identity.mechanisms.passwords import jaas_users, open_passwords
from kafka_dt.jaas import PLAIN_LOGIN_MODULE
from kafka_dt.tokens import Principal
from kafka_dt_protocol.sasl import Challenge, CredentialRequest, Failure, StepResult, Success


class CramMd5Server:
    """The server's side of CRAM-MD5 (RFC 2195), as small as can be."""

    def __init__(self, challenge: str) -> None:
        self._challenge = challenge.encode()
        self._name, self._digest = "", ""

    def step(self, response: bytes) -> StepResult:
        if not response:
            return Challenge(self._challenge)
        self._name, _, self._digest = response.decode().rpartition(" ")
        return CredentialRequest(self._name)

    def resume(self, credential: str | None) -> StepResult:
        digest = hmac.new((credential or "").encode(), self._challenge, "md5").hexdigest()
        if credential is None or not hmac.compare_digest(digest, self._digest):
            return Failure("the digest is wrong")
        return Success(b"", self._name)


CRAM_MD5 = Mechanism(
    name="CRAM-MD5",
    users="the users of the JAAS line",
    takes_tokens=False,
    login_module=PLAIN_LOGIN_MODULE,
    settings=jaas_users,
    open=partial(open_passwords, lambda resources: CramMd5Server(resources.nonce())),
)
WITH_CRAM_MD5: Mapping[str, Mechanism[Any]] = {**MECHANISMS, CRAM_MD5.name: CRAM_MD5}
HERE = "listener.name.sasl_plaintext.cram-md5"
PROPERTIES = {
    "listeners": "SASL_PLAINTEXT://localhost:9092",
    "sasl.enabled.mechanisms": "CRAM-MD5",
    f"{HERE}.sasl.jaas.config": f'{PLAIN_LOGIN_MODULE} required user_alice="secret";',
    f"{HERE}.connections.max.reauth.ms": "5000",
}


def new_login(properties: dict[str, str]) -> Login:
    (listener,) = listeners(from_properties(properties).settings, WITH_CRAM_MD5)
    unused: Any = None
    opened = open_mechanisms(listener, WITH_CRAM_MD5, Resources(unused, lambda: 0, lambda: "challenge"))
    return Login(opened, Accounts(unused, unused), lambda: 0)


def logged_in(name: str, password: str) -> LoginOutcome:
    login = new_login(PROPERTIES)
    login.begin("CRAM-MD5")
    assert login.evaluate(b"") == Challenge(b"challenge")
    digest = hmac.new(password.encode(), b"challenge", "md5").hexdigest()
    outcome = login.evaluate(f"{name} {digest}".encode())
    assert isinstance(outcome, LoginOutcome)
    return outcome


def test_a_row_more_is_a_mechanism_that_users_log_in_by() -> None:
    outcome = logged_in("alice", "secret")
    assert isinstance(outcome, LoggedIn)
    assert (outcome.identity.principal, outcome.identity.mechanism) == (Principal.user("alice"), "CRAM-MD5")
    assert outcome.session_lifetime_ms == 5000


@pytest.mark.parametrize(("name", "reason"), [("alice", "wrong_credentials"), ("bob", "unknown_user")])
def test_a_wrong_password_by_it_is_refused_in_kafkas_words_and_with_the_reason(name: str, reason: str) -> None:
    outcome = logged_in(name, "wrong")
    assert isinstance(outcome, LoginRefused)
    assert (outcome.mechanism, outcome.reason.value) == ("CRAM-MD5", reason)
    assert outcome.message.endswith("due to invalid credentials with SASL mechanism CRAM-MD5")


def test_its_settings_are_checked_by_its_row() -> None:
    without = {key: value for key, value in PROPERTIES.items() if "jaas" not in key}
    with pytest.raises(ConfigError, match=rf"^{HERE}\.sasl\.jaas\.config: is needed for CRAM-MD5; for example: "):
        new_login(without)
    settings = from_properties(PROPERTIES).settings
    with pytest.raises(ConfigError, match=r"'CRAM-MD5' on listener SASL_PLAINTEXT is not one of PLAIN, "):
        listeners(settings, MECHANISMS)


def test_the_manual_lists_it() -> None:
    assert f"| CRAM-MD5 | the users of the JAAS line | no | `{PLAIN_LOGIN_MODULE}` |" in wire_protocol.page(
        WITH_CRAM_MD5
    )


def test_the_mechanisms_of_a_broker_and_of_the_first_draft_are_there() -> None:
    taking_tokens = {
        "PLAIN": False,
        "SCRAM-SHA-256": True,
        "SCRAM-SHA-512": True,
        "OAUTHBEARER": False,
        "GSSAPI": False,
        "DIGEST-MD5": True,
    }
    assert taking_tokens.items() <= {name: row.takes_tokens for name, row in MECHANISMS.items()}.items()
    assert all(name == row.name for name, row in MECHANISMS.items())
