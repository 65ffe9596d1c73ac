"""The server side of SCRAM: exchanges of others, every wrong turn, and what an outcome may show."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_dt_protocol.errors import LocalProtocolError
from kafka_dt_protocol.sasl import (
    Challenge,
    CredentialRequest,
    Failure,
    ScramCredential,
    ScramMechanism,
    ScramServer,
    ServerMechanism,
    Success,
)
from tests.support.protocol.scram import (
    CLIENT_NONCE,
    MECHANISMS,
    SALT,
    SERVER_NONCE,
    Exchange,
    challenged,
    conversation,
    credential,
    exchanges,
    prove,
)

FIRST = f"n,,n=alice,r={CLIENT_NONCE}".encode()
SHA_256 = ScramMechanism.SHA_256


@pytest.mark.parametrize("exchange", exchanges(), ids=str)
def test_it_answers_as_the_servers_of_others_did(exchange: Exchange) -> None:
    request, challenge, success = conversation(
        exchange.mechanism,
        exchange.client_first,
        exchange.client_final,
        exchange.credential,
        exchange.server_nonce,
    )
    assert isinstance(request, CredentialRequest)
    assert (request.name, request.token) == (exchange.username, exchange.token)
    assert challenge == Challenge(exchange.server_first)
    assert isinstance(success, Success)
    assert (success.message, success.identity) == (exchange.server_final, exchange.username)
    assert success.extensions == request.extensions == ({"tokenauth": "true"} if exchange.token else {})


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_another_password_fails_at_the_last_step_without_words_of_its_own(mechanism: ScramMechanism) -> None:
    server, challenge = challenged(mechanism, FIRST, credential(mechanism, "secret"))
    assert server.step(prove(mechanism, FIRST, challenge, "other")) == Failure("client-final: the proof is wrong")


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_no_byte_of_a_client_final_can_change(mechanism: ScramMechanism) -> None:
    known = credential(mechanism, "secret")
    server, challenge = challenged(mechanism, FIRST, known)
    final = prove(mechanism, FIRST, challenge, "secret", ",ext=value")
    assert isinstance(server.step(final), Success)
    for position in range(len(final)):
        for flip in range(1, 256):
            server, _ = challenged(mechanism, FIRST, known)
            changed = bytearray(final)
            changed[position] ^= flip
            assert isinstance(server.step(bytes(changed)), Failure), bytes(changed)


def test_no_byte_can_be_added_to_a_client_final_or_taken_away() -> None:
    known = credential(SHA_256, "secret")
    server, challenge = challenged(SHA_256, FIRST, known)
    final = prove(SHA_256, FIRST, challenge, "secret")
    candidates = [final[:position] + final[position + 1 :] for position in range(len(final))]
    candidates += [
        final[:position] + bytes([byte]) + final[position:]
        for position in range(len(final) + 1)
        for byte in b"\0\n =,aA0/\xff"
    ]
    for candidate in candidates:
        server, _ = challenged(SHA_256, FIRST, known)
        assert isinstance(server.step(candidate), Failure), candidate


@pytest.mark.parametrize(
    ("first", "extensions"),
    [
        (FIRST, ""),
        (FIRST, ",a=b"),
        (FIRST + b",tokenauth=true,foo=bar", ""),
        (FIRST + b",foo=bar,tokenauth=true", ",x=y,z==="),
        (b"n,a=alice,n=alice,r=" + CLIENT_NONCE.encode(), ""),
        (b"n,a=a=3D=2C,n=a=3D=2C,r=x", ",a=b"),
    ],
)
def test_the_proof_covers_what_was_sent_in_the_order_it_was_sent(first: bytes, extensions: str) -> None:
    known = credential(SHA_256, "secret")
    server, challenge = challenged(SHA_256, first, known)
    assert isinstance(server.step(prove(SHA_256, first, challenge, "secret", extensions)), Success)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("extensions", ["", ",a=b"])
def test_an_old_librdkafka_may_say_its_nonce_twice(mechanism: ScramMechanism, extensions: str) -> None:
    known = credential(mechanism, "secret")
    server, challenge = challenged(mechanism, FIRST, known)
    final = prove(mechanism, FIRST, challenge, "secret", extensions, before_nonce=CLIENT_NONCE)
    assert isinstance(server.step(final), Success)
    server, challenge = challenged(mechanism, FIRST, known)
    assert isinstance(server.step(prove(mechanism, FIRST, challenge, "other", before_nonce=CLIENT_NONCE)), Failure)


@pytest.mark.parametrize("more", ["x", CLIENT_NONCE * 2, CLIENT_NONCE[:-1], CLIENT_NONCE + SERVER_NONCE, SERVER_NONCE])
def test_nothing_else_may_stand_before_the_nonce(more: str) -> None:
    server, challenge = challenged(SHA_256, FIRST, credential(SHA_256, "secret"))
    assert isinstance(server.step(prove(SHA_256, FIRST, challenge, "secret", before_nonce=more)), Failure)


def test_the_nonce_of_another_exchange_does_not_pass() -> None:
    known = credential(SHA_256, "secret")
    _, challenge = challenged(SHA_256, FIRST, known)
    final = prove(SHA_256, FIRST, challenge, "secret", before_nonce=CLIENT_NONCE)
    server, _ = challenged(SHA_256, FIRST, known, SERVER_NONCE[::-1])
    assert isinstance(server.step(final), Failure)


def test_an_authorization_id_is_compared_as_a_name_not_as_it_is_escaped() -> None:
    request = ScramServer(SHA_256, SERVER_NONCE).step(b"n,a=a=2Cb,n=a=2Cb,r=x")
    assert request == CredentialRequest("a,b")


def test_a_credential_with_too_few_iterations_is_not_offered() -> None:
    server = ScramServer(SHA_256, SERVER_NONCE)
    server.step(FIRST)
    outcome = server.resume(ScramCredential(SALT, bytes(32), bytes(32), 4095))
    assert isinstance(outcome, Failure)
    assert outcome.message is None
    assert "4095" in outcome.detail


@pytest.mark.parametrize("size", [0, 20, 64])
def test_a_credential_with_keys_of_another_hash_verifies_nobody(size: int) -> None:
    known = ScramCredential(SALT, bytes(size), bytes(size), 4096)
    server, challenge = challenged(SHA_256, FIRST, known)
    assert isinstance(server.step(prove(SHA_256, FIRST, challenge, "secret")), Failure)


@pytest.mark.parametrize("nonce", ["", "a b", "a,b", "a\n", "é"])
def test_a_server_nonce_that_cannot_be_sent_is_refused(nonce: str) -> None:
    with pytest.raises(LocalProtocolError, match="nonce"):
        ScramServer(SHA_256, nonce)


def test_calls_that_are_not_due_are_refused_and_change_nothing() -> None:
    known = credential(SHA_256, "secret")
    server: ServerMechanism[ScramCredential] = ScramServer(SHA_256, SERVER_NONCE)
    with pytest.raises(LocalProtocolError):
        server.resume(known)
    server.step(FIRST)
    with pytest.raises(LocalProtocolError):
        server.step(FIRST)
    challenge = server.resume(known)
    assert isinstance(challenge, Challenge)
    with pytest.raises(LocalProtocolError):
        server.resume(known)
    final = prove(SHA_256, FIRST, challenge.message, "secret")
    assert isinstance(server.step(final), Success)
    with pytest.raises(LocalProtocolError):
        server.step(final)


@pytest.mark.parametrize("message", [b"", FIRST.replace(b"n,,", b"n,a=bob,")])
def test_nothing_follows_a_failure(message: bytes) -> None:
    server = ScramServer(SHA_256, SERVER_NONCE)
    assert isinstance(server.step(message), Failure)
    with pytest.raises(LocalProtocolError):
        server.step(FIRST)
    with pytest.raises(LocalProtocolError):
        server.resume(credential(SHA_256, "secret"))


def test_a_proof_that_failed_cannot_be_tried_again() -> None:
    server, challenge = challenged(SHA_256, FIRST, credential(SHA_256, "secret"))
    server.step(b"c=biws,r=x,p=AAAA")
    with pytest.raises(LocalProtocolError):
        server.step(prove(SHA_256, FIRST, challenge, "secret"))


def test_no_outcome_and_no_machine_shows_a_key() -> None:
    known = credential(SHA_256, "secret")
    server, challenge = challenged(SHA_256, FIRST, known)
    shown = f"{server!r} {known!r}"
    shown += repr(server.step(prove(SHA_256, FIRST, challenge, "secret")))
    for key in (known.stored_key, known.server_key):
        assert repr(key)[2:-1] not in shown
        assert key.hex() not in shown


@settings(deadline=None)
@given(mechanism=st.sampled_from(MECHANISMS), message=st.binary(), middle=st.booleans())
def test_any_bytes_as_client_first_are_a_request_or_a_failure(
    mechanism: ScramMechanism, message: bytes, middle: bool
) -> None:
    for candidate in (message, FIRST + message, (FIRST[:3] if middle else FIRST[:8]) + message):
        outcomes = conversation(mechanism, candidate, message, credential(mechanism, "secret"))
        assert isinstance(outcomes[0], CredentialRequest | Failure)
        assert isinstance(outcomes[-1], Failure)


@settings(deadline=None)
@given(
    mechanism=st.sampled_from(MECHANISMS),
    message=st.binary(),
    cut=st.integers(min_value=0, max_value=200),
    extension=st.text(st.characters(min_codepoint=1, max_codepoint=0x7F)),
)
def test_any_bytes_as_client_final_fail_without_an_exception(
    mechanism: ScramMechanism, message: bytes, cut: int, extension: str
) -> None:
    known = credential(mechanism, "secret")
    server, challenge = challenged(mechanism, FIRST, known)
    final = prove(mechanism, FIRST, challenge, "other", extension)
    for candidate in (message, final, final[:cut] + message, final[:cut] + message + final[cut:], final + message):
        server, _ = challenged(mechanism, FIRST, known)
        assert isinstance(server.step(candidate), Failure)
