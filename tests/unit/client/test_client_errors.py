"""kafka_dt.client.errors and tokens: what a user of the client reads."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

import kafka_dt.client
from kafka_dt.client import (
    InvalidArgument,
    LoginFailed,
    MechanismNotEnabled,
    NoServerReached,
    RequestRefused,
    StorageNotReached,
    TokenClientError,
    TokenNotFound,
    hmac_from_base64,
)
from kafka_dt.client.errors import refused
from kafka_dt.client.tokens import split_principal
from tests.unit.client.conftest import TOKEN


def _kinds(kind: type[TokenClientError]) -> list[type[TokenClientError]]:
    return [kind] + [deeper for child in kind.__subclasses__() for deeper in _kinds(child)]


def test_every_error_is_public() -> None:
    ours = [kind for kind in _kinds(TokenClientError) if kind.__module__.startswith("kafka_dt.client.")]
    assert {kind.__name__ for kind in ours} <= set(kafka_dt.client.__all__)


@pytest.mark.parametrize("code", [7, 42, *range(61, 68)])
def test_each_code_of_the_token_apis_has_its_own_error(code: int) -> None:
    error = refused(ErrorCode(code), "renew")
    assert type(error) is not RequestRefused
    assert error.code is ErrorCode(code)
    assert str(code) in str(error)
    assert "\n" not in str(error)


def test_another_code_is_told_as_it_is() -> None:
    error = refused(ErrorCode.not_controller, "create")
    assert type(error) is RequestRefused
    assert str(error) == "create refused: not controller (Kafka error 41, not_controller)"


def test_a_server_that_answers_error_7_at_once_is_not_said_to_have_timed_out() -> None:
    error = refused(ErrorCode.request_timed_out, "create")
    assert isinstance(error, StorageNotReached)
    assert "could not reach" in str(error)
    assert "timed out" not in str(error)


def test_an_expiry_that_is_refused_has_its_own_way_out() -> None:
    assert "a negative period deletes it" in str(refused(ErrorCode.delegation_token_expired, "expire"))
    assert "create a new one" in str(refused(ErrorCode.delegation_token_expired, "renew"))
    assert "super users" in str(refused(ErrorCode.delegation_token_owner_mismatch, "expire"))
    assert "super users" not in str(refused(ErrorCode.delegation_token_owner_mismatch, "renew"))


def test_errors_carry_fields() -> None:
    assert refused(ErrorCode.delegation_token_not_found, "renew").action == "renew"
    assert isinstance(refused(ErrorCode.delegation_token_not_found, "renew"), TokenNotFound)
    unreached = NoServerReached([("a:1", "Connection refused"), ("b:2", "no answer")])
    assert unreached.reasons == (("a:1", "Connection refused"), ("b:2", "no answer"))
    assert str(unreached) == "no bootstrap server can be used: a:1 (Connection refused); b:2 (no answer)"
    not_enabled = MechanismNotEnabled("a:1", "PLAIN", ["SCRAM-SHA-256"])
    assert not_enabled.enabled == ("SCRAM-SHA-256",)
    assert not_enabled.code is ErrorCode.unsupported_sasl_mechanism
    assert "set sasl.mechanism" in str(not_enabled)


@pytest.mark.parametrize(
    ("error", "named"),
    [
        (LoginFailed("a:1", "PLAIN", "wrong"), ["sasl.jaas.config"]),
        (LoginFailed("a:1", "GSSAPI", "no tickets"), ["sasl.kerberos.service.name", "bootstrap.servers"]),
        (MechanismNotEnabled("a:1", "PLAIN", []), ["sasl.mechanism"]),
    ],
)
def test_a_refused_login_names_settings_as_they_are_called_there(error: LoginFailed, named: list[str]) -> None:
    for setting in named:
        assert f" {setting}" in str(error)
        assert f" the.prefix.{setting}" in error.text("the.prefix.")


def test_a_servers_words_stay_on_one_line() -> None:
    error = LoginFailed("a:1", "PLAIN", "two\nlines \x1b[31m")
    assert "\n" not in str(error)
    assert "\x1b" not in str(error)
    assert error.code is ErrorCode.sasl_authentication_failed


def test_a_token_shows_no_secret_but_when_asked() -> None:
    assert "hmac" not in repr(TOKEN)
    assert hmac_from_base64(f" {TOKEN.hmac_base64}\n") == TOKEN.hmac


@pytest.mark.parametrize("text", ["", "  ", "secret?", "YWJj=", "é"])
def test_what_is_no_base64_is_refused_without_being_shown(text: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        hmac_from_base64(text)
    assert not text.strip() or text not in str(caught.value)
    assert caught.value.__context__ is None


@given(st.text())
def test_any_text_is_an_hmac_or_refused(text: str) -> None:
    try:
        assert hmac_from_base64(text)
    except InvalidArgument:
        return


def test_principals_have_a_type_and_a_name() -> None:
    assert split_principal("User:CN=a:b,O=c") == ("User", "CN=a:b,O=c")
    for text in ("alice", ":alice", "User:", ""):
        with pytest.raises(InvalidArgument, match="User:alice"):
            split_principal(text)
