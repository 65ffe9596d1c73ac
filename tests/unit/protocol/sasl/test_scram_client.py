"""The client side of SCRAM: exchanges of others, and every server that is not to be trusted."""

import functools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_dt_protocol.errors import LocalProtocolError
from kafka_dt_protocol.sasl import (
    MAX_ITERATIONS,
    MalformedScramMessage,
    ScramClient,
    ScramError,
    ScramKeys,
    ScramMechanism,
    ServerNonceMismatch,
    ServerRejected,
    ServerSignatureMismatch,
    Success,
    UnacceptableIterations,
    derive_keys,
)
from kafka_dt_protocol.sasl.scram_client import DeriveKeys
from tests.support.protocol.scram import (
    CLIENT_NONCE,
    MECHANISMS,
    Exchange,
    challenged,
    conversation,
    credential,
    exchanges,
    vectors,
)

SHA_256 = ScramMechanism.SHA_256
SERVER_FIRST = f"r={CLIENT_NONCE}server,s=c2FsdHNhbHRzYWx0,i=4096".encode()

ascii_names = st.text(st.characters(min_codepoint=1, max_codepoint=0x7F), min_size=1)
passwords = st.text(st.characters(exclude_categories=["Cs"]))


def one_iteration(mechanism: ScramMechanism, password: str, salt: bytes, _: int) -> ScramKeys:
    return derive_keys(mechanism, password, salt, 1)


def client_of(mechanism: ScramMechanism = SHA_256, derive: DeriveKeys = derive_keys) -> ScramClient:
    client = ScramClient(mechanism, "alice", "secret", CLIENT_NONCE, derive=derive)
    client.first()
    return client


@pytest.mark.parametrize("exchange", exchanges(), ids=str)
def test_it_says_what_the_clients_of_others_said(exchange: Exchange) -> None:
    client = ScramClient(
        exchange.mechanism, exchange.username, exchange.password, exchange.client_nonce, exchange.token
    )
    assert client.first() == exchange.client_first
    assert client.challenge(exchange.server_first) == exchange.client_final
    client.verify(exchange.server_final)


@settings(deadline=None, max_examples=50)
@given(
    mechanism=st.sampled_from(MECHANISMS),
    username=ascii_names,
    password=passwords,
    token=st.booleans(),
    same=st.booleans(),
)
def test_our_server_lets_any_user_with_the_right_password_in_and_no_other(
    mechanism: ScramMechanism, username: str, password: str, token: bool, same: bool
) -> None:
    client = ScramClient(mechanism, username, password, CLIENT_NONCE, token)
    known = credential(mechanism, password if same else password + "x")
    request, _, outcome = conversation(mechanism, client.first(), client.challenge, known)
    assert request.name == username  # type: ignore[union-attr]
    assert isinstance(outcome, Success) is same
    if isinstance(outcome, Success):
        assert outcome.identity == username
        client.verify(outcome.message or b"")


@pytest.mark.parametrize("iterations", [1, 4095, MAX_ITERATIONS + 1, 9_999_999_999])
def test_a_count_of_iterations_out_of_bounds_is_refused_before_any_work(iterations: int) -> None:
    def no_work(*_: object) -> ScramKeys:
        pytest.fail("the password must not be hashed")

    client = client_of(derive=no_work)
    with pytest.raises(UnacceptableIterations) as refusal:
        client.challenge(SERVER_FIRST.replace(b"4096", str(iterations).encode()))
    assert refusal.value.iterations == iterations


@pytest.mark.parametrize("iterations", [4096, MAX_ITERATIONS])
def test_the_bounds_themselves_are_fine(iterations: int) -> None:
    seen: list[int] = []

    def derive(mechanism: ScramMechanism, password: str, salt: bytes, asked: int) -> ScramKeys:
        seen.append(asked)
        return one_iteration(mechanism, password, salt, asked)

    client = client_of(derive=derive)
    client.challenge(SERVER_FIRST.replace(b"4096", str(iterations).encode()))
    assert seen == [iterations]


@pytest.mark.parametrize(
    "nonce", [CLIENT_NONCE, CLIENT_NONCE[:-1], "x" + CLIENT_NONCE + "y", CLIENT_NONCE.lower() + "x", "other"]
)
def test_a_server_nonce_that_does_not_extend_ours_is_refused(nonce: str) -> None:
    with pytest.raises(ServerNonceMismatch):
        client_of().challenge(f"r={nonce},s=c2FsdA==,i=4096".encode())


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_server_that_does_not_know_the_password_is_found_out(mechanism: ScramMechanism) -> None:
    client = client_of(mechanism)
    server, challenge = challenged(mechanism, f"n,,n=alice,r={CLIENT_NONCE}".encode(), credential(mechanism, "secret"))
    outcome = server.step(client.challenge(challenge))
    assert isinstance(outcome, Success)
    signature = bytearray(outcome.message or b"")
    signature[5] ^= 1
    with pytest.raises(ServerSignatureMismatch):
        client.verify(bytes(signature))


@pytest.mark.parametrize("signature", [b"v=AAAA", b"v=" + b"A" * 400])
def test_a_signature_of_another_length_is_a_wrong_one(signature: bytes) -> None:
    client = client_of()
    client.challenge(SERVER_FIRST)
    with pytest.raises(ServerSignatureMismatch):
        client.verify(signature)


def test_the_servers_words_become_an_error() -> None:
    with pytest.raises(ServerRejected, match="unknown-user") as early:
        client_of().challenge(b"e=unknown-user")
    assert early.value.error == "unknown-user"
    client = client_of()
    client.challenge(SERVER_FIRST)
    with pytest.raises(ServerRejected, match="the server refused the login: invalid-proof"):
        client.verify(b"e=invalid-proof")


@pytest.mark.parametrize("message", [b"", b"r=x", b"m=x," + SERVER_FIRST, SERVER_FIRST + b"\n"])
def test_a_malformed_server_first_is_refused(message: bytes) -> None:
    with pytest.raises(MalformedScramMessage):
        client_of().challenge(message)


def test_a_cached_derivation_is_used_again() -> None:
    cached = functools.cache(derive_keys)
    finals = []
    for _ in range(2):
        client = client_of(derive=cached)
        finals.append(client.challenge(SERVER_FIRST))
    assert finals[0] == finals[1]
    assert cached.cache_info().hits == 1


@pytest.mark.parametrize("nonce", ["", "a b", "a,b"])
def test_a_nonce_that_cannot_be_sent_is_refused(nonce: str) -> None:
    with pytest.raises(LocalProtocolError, match="nonce"):
        ScramClient(SHA_256, "alice", "secret", nonce)


@pytest.mark.parametrize("username", ["", "al\0ice", "alice\ud800"])
def test_a_user_name_that_cannot_be_sent_is_refused(username: str) -> None:
    with pytest.raises(LocalProtocolError):
        ScramClient(SHA_256, username, "secret", CLIENT_NONCE)


def test_calls_that_are_not_due_are_refused() -> None:
    client = ScramClient(SHA_256, "alice", "secret", CLIENT_NONCE)
    with pytest.raises(LocalProtocolError):
        client.challenge(SERVER_FIRST)
    client.first()
    with pytest.raises(LocalProtocolError):
        client.first()
    with pytest.raises(LocalProtocolError):
        client.verify(b"v=AAAA")
    client.challenge(SERVER_FIRST)
    with pytest.raises(LocalProtocolError):
        client.challenge(SERVER_FIRST)


def test_nothing_follows_an_error() -> None:
    client = client_of()
    with pytest.raises(ScramError):
        client.challenge(b"")
    with pytest.raises(LocalProtocolError):
        client.challenge(SERVER_FIRST)


def test_the_client_does_not_show_its_password() -> None:
    client = client_of()
    assert "secret" not in repr(client)
    assert not hasattr(client, "__dict__")


@settings(deadline=None, max_examples=50)
@given(message=st.binary(), cut=st.integers(min_value=0, max_value=len(SERVER_FIRST)))
def test_any_bytes_of_a_server_are_a_scram_error_or_an_answer(message: bytes, cut: int) -> None:
    for candidate in (message, SERVER_FIRST[:cut] + message, SERVER_FIRST[:cut] + message + SERVER_FIRST[cut:]):
        try:
            final = client_of(derive=one_iteration).challenge(candidate)
        except ScramError:
            continue
        assert final.startswith(b"c=biws,r=" + CLIENT_NONCE.encode())


@given(message=st.binary())
def test_any_bytes_as_server_final_are_a_scram_error(message: bytes) -> None:
    recorded = vectors("rfc7677")["exchanges"][0]["server_final"].encode()
    for candidate in (message, b"v=" + message, b"e=" + message, recorded, recorded[:9] + message):
        client = client_of(derive=one_iteration)
        client.challenge(SERVER_FIRST)
        with pytest.raises(ScramError):
            client.verify(candidate)
