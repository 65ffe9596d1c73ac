"""Logins that the cluster behind a gateway decides: what passes to it, and what its answers mean."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_dt.config import ConfigError, from_properties, listeners
from kafka_dt.identity.login.exchange import Exchange
from kafka_dt.identity.login.login import LoggedIn, Login, LoginRefused
from kafka_dt.identity.mechanisms import Accounts, RelayedAnswer, RelayFailed, mechanisms_of, open_mechanisms
from kafka_dt.identity.mechanisms.mechanism import Resources
from kafka_dt.identity.mechanisms.relayed import RelayedBearer, RelayedPlain
from kafka_dt.tokens import Principal
from kafka_dt_protocol import LocalProtocolError
from kafka_dt_protocol.sasl import ABORT, Challenge, Failure, Fault, StepResult, Success

NOW_MS = 1_700_000_000_000
PLAIN_OF_ALICE = b"\0alice\0secret"


@dataclass
class FakeRelay:
    """Answers what a test wants, in turn; keeps what it was asked."""

    answers: list[RelayedAnswer]
    mechanisms: list[str] = field(default_factory=list)
    messages: list[bytes] = field(default_factory=list)
    failure: RelayFailed | None = None

    async def begin(self, mechanism: str) -> None:
        self.mechanisms.append(mechanism)
        if self.failure is not None:
            raise self.failure

    async def pass_on(self, message: bytes) -> RelayedAnswer:
        self.messages.append(message)
        return self.answers.pop(0)


def accounts(relay: FakeRelay | None) -> Accounts:
    unused = cast("Any", None)
    return Accounts(unused, unused, relay)


def outcome(exchange: Exchange, message: bytes) -> StepResult:
    step = exchange.evaluate(message)
    return asyncio.run(step) if isinstance(step, Coroutine) else step


def bearer(claims: object) -> bytes:
    parts = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in ({}, claims))
    return f"n,,\1auth=Bearer {'.'.join(parts)}.c2ln\1\1".encode()


def test_a_message_passes_unchanged_and_the_clusters_consent_makes_the_principal() -> None:
    relay = FakeRelay([RelayedAnswer(b"", ends_timestamp_ms=NOW_MS + 500)])
    exchange = RelayedPlain(accounts(relay))
    assert outcome(exchange, PLAIN_OF_ALICE) == Success(b"", "alice")
    assert (relay.mechanisms, relay.messages) == (["PLAIN"], [PLAIN_OF_ALICE])
    assert exchange.account is not None
    assert (exchange.account.principal, exchange.account.ends_timestamp_ms) == (Principal.user("alice"), NOW_MS + 500)


def test_the_client_is_told_a_refusal_in_the_words_of_the_cluster() -> None:
    found = outcome(RelayedPlain(accounts(FakeRelay([RelayedAnswer(b"", "no such user")]))), PLAIN_OF_ALICE)
    assert isinstance(found, Failure)
    assert found.message == "no such user"
    assert "no such user" not in found.detail, "a broker's words are not ours"


@pytest.mark.parametrize("message", [b"", b"alice", b"\0\0secret", b"\0alice\0", b"\0\xff\0secret"])
def test_a_message_without_a_readable_name_does_not_reach_the_cluster(message: bytes) -> None:
    relay = FakeRelay([])
    assert isinstance(outcome(RelayedPlain(accounts(relay)), message), Failure)
    assert not relay.mechanisms


@pytest.mark.parametrize(("authorization_id", "passes"), [(b"", True), (b"alice", True), (b"bob", False)])
def test_a_message_that_asks_to_act_as_another_user_does_not_reach_the_cluster(
    authorization_id: bytes, passes: bool
) -> None:
    """Kafka's brokers refuse it; another system might let alice act as bob, who would be alice here."""
    relay = FakeRelay([RelayedAnswer(b"")])
    found = outcome(RelayedPlain(accounts(relay)), authorization_id + PLAIN_OF_ALICE)
    assert isinstance(found, Success) is bool(relay.messages) is passes
    assert passes or (isinstance(found, Failure) and found.fault is Fault.IDENTITY)


@given(st.binary())
def test_any_bytes_either_name_a_principal_or_stay_here(message: bytes) -> None:
    for exchange in (RelayedPlain, lambda accounts: RelayedBearer("sub", accounts)):
        relay = FakeRelay([RelayedAnswer(b"")])
        under_way = exchange(accounts(relay))
        found = outcome(under_way, message)
        assert bool(relay.messages) == bool(under_way.name)
        assert isinstance(found, Success) == bool(relay.messages) or isinstance(found, Failure)


def test_the_claim_that_is_set_names_the_principal_of_a_bearer_token() -> None:
    relay = FakeRelay([RelayedAnswer(b"")])
    exchange = RelayedBearer("email", accounts(relay))
    message = bearer({"sub": "1234", "email": "alice@example.com"})
    assert outcome(exchange, message) == Success(b"", "alice@example.com")
    assert relay.messages == [message]


@pytest.mark.parametrize(
    "claims", [{}, {"sub": ""}, {"sub": 1}, {"sub": "a\nb"}, {"sub": " alice"}, {"sub": "alice "}, [], "alice", None]
)
def test_a_bearer_token_without_a_usable_name_does_not_reach_the_cluster(claims: object) -> None:
    relay = FakeRelay([])
    assert isinstance(outcome(RelayedBearer("sub", accounts(relay)), bearer(claims)), Failure)
    assert not relay.mechanisms


def test_a_bearer_token_that_can_be_read_in_two_ways_does_not_reach_the_cluster() -> None:
    for payload in (b'{"sub":"alice","sub":"bob"}', b'{"sub":"alice"}\xff'):
        encoded = base64.urlsafe_b64encode(payload).decode().rstrip("=")
        for text in (encoded, f"{encoded[:4]}~{encoded[4:]}"):
            relay = FakeRelay([])
            message = f"n,,\1auth=Bearer e30.{text}.c2ln\1\1".encode()
            assert isinstance(outcome(RelayedBearer("sub", accounts(relay)), message), Failure)
            assert not relay.mechanisms


def test_the_refusal_of_a_bearer_token_takes_one_more_message() -> None:
    relay = FakeRelay([RelayedAnswer(b'{"status":"invalid_token"}'), RelayedAnswer(b"", "invalid_token")])
    exchange = RelayedBearer("sub", accounts(relay))
    assert outcome(exchange, bearer({"sub": "alice"})) == Challenge(b'{"status":"invalid_token"}')
    assert exchange.foregone
    assert isinstance(outcome(exchange, b"\1"), Failure)
    assert relay.messages[1] == b"\1"


def test_a_second_token_after_a_refusal_does_not_log_in_under_the_name_of_the_first() -> None:
    relay = FakeRelay([RelayedAnswer(b'{"status":"invalid_token"}'), RelayedAnswer(b"")])
    exchange = RelayedBearer("sub", accounts(relay))
    assert isinstance(outcome(exchange, bearer({"sub": "admin"})), Challenge)
    assert isinstance(outcome(exchange, bearer({"sub": "mallory"})), Failure)
    assert relay.messages == [bearer({"sub": "admin"})]
    assert exchange.account is None


def test_a_refused_bearer_token_is_refused_even_if_the_cluster_consents_to_its_end() -> None:
    relay = FakeRelay([RelayedAnswer(b'{"status":"invalid_token"}'), RelayedAnswer(b"")])
    exchange = RelayedBearer("sub", accounts(relay))
    outcome(exchange, bearer({"sub": "alice"}))
    assert isinstance(outcome(exchange, ABORT), Failure)
    assert exchange.account is None


def test_an_authorization_id_that_is_not_the_clients_name_is_refused_even_if_the_cluster_lets_it_in() -> None:
    message = bearer({"sub": "alice"}).replace(b"n,,", b"n,a=bob,")
    assert isinstance(outcome(RelayedBearer("sub", accounts(FakeRelay([RelayedAnswer(b"")]))), message), Failure)


def test_without_a_gateway_there_is_no_relayed_login() -> None:
    with pytest.raises(LocalProtocolError):
        RelayedPlain(accounts(None))


PROPERTIES = {
    "listeners": "SASL_PLAINTEXT://:9092",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,OAUTHBEARER",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required;"
    ),
    "kafka.dt.gateway.upstream.identity": "relay",
}


def login(relay: FakeRelay, **more: str) -> Login:
    settings = from_properties(PROPERTIES | more).settings
    (listener,) = listeners(settings, mechanisms_of(settings))
    unused = cast("Any", None)
    opened = open_mechanisms(
        listener, mechanisms_of(settings), Resources(unused, lambda: NOW_MS, lambda: "server-nonce")
    )
    made = Login(opened, accounts(None), lambda: NOW_MS)
    made.relay_by(relay)
    return made


def test_neither_users_nor_keys_of_an_issuer_are_needed_and_the_cluster_bounds_the_session() -> None:
    under_way = login(FakeRelay([RelayedAnswer(b"", ends_timestamp_ms=NOW_MS + 500)]))
    under_way.begin("OAUTHBEARER")
    concluded = asyncio.run(cast("Coroutine[Any, Any, Any]", under_way.evaluate(bearer({"sub": "alice"}))))
    assert isinstance(concluded, LoggedIn)
    assert (str(concluded.identity.principal), concluded.session_lifetime_ms) == ("User:alice", 500)


def test_a_cluster_that_cannot_be_asked_refuses_nobody_for_good() -> None:
    under_way = login(FakeRelay([], failure=RelayFailed("no connection to the upstream cluster")))
    under_way.begin("PLAIN")
    concluded = asyncio.run(cast("Coroutine[Any, Any, Any]", under_way.evaluate(PLAIN_OF_ALICE)))
    assert isinstance(concluded, LoginRefused)
    assert concluded.reason.name == "UNAVAILABLE"


def test_plain_users_of_the_gateway_are_an_error_where_none_could_log_in() -> None:
    key = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
    line = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";'
    with pytest.raises(ConfigError, match="relayed to the cluster") as error:
        login(FakeRelay([]), **{key: line})
    assert error.value.key == key
    assert "secret" not in str(error.value)
