"""What SCRAM computes: keys against Kafka's and scramp's, proofs against every mistake."""

import hashlib
import hmac

import pytest
import scramp
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_dt_protocol.errors import LocalProtocolError
from kafka_dt_protocol.sasl import (
    ScramCredential,
    ScramKeys,
    ScramMechanism,
    derive_credential,
    derive_keys,
    salt_text,
)
from kafka_dt_protocol.sasl.scram import client_proof, is_valid_proof
from tests.support.protocol.scram import MECHANISMS, SALT, Exchange, credential, exchanges

AUTH_MESSAGE = b"n=alice,r=a,r=ab,s=c2FsdA==,i=4096,c=biws,r=ab"

recorded_keys = [exchange for exchange in exchanges() if exchange.stored_key is not None]


@pytest.mark.parametrize(
    ("mechanism", "name", "size"),
    [(ScramMechanism.SHA_256, "sha256", 32), (ScramMechanism.SHA_512, "sha512", 64)],
)
def test_a_mechanism_knows_its_hash(mechanism: ScramMechanism, name: str, size: int) -> None:
    assert (mechanism.hash_name, mechanism.hash_bytes, mechanism.min_iterations) == (name, size, 4096)
    assert mechanism.hash(b"x") == hashlib.new(name, b"x").digest()
    assert mechanism.hmac(b"k", b"x") == hmac.new(b"k", b"x", name).digest()
    assert len(mechanism.hash(b"")) == size


def test_a_mechanism_is_its_name_in_the_handshake() -> None:
    assert [str(mechanism) for mechanism in ScramMechanism] == ["SCRAM-SHA-256", "SCRAM-SHA-512"]
    assert ScramMechanism("SCRAM-SHA-512") is ScramMechanism.SHA_512


@pytest.mark.parametrize("exchange", recorded_keys, ids=str)
def test_the_keys_are_those_that_kafka_stores(exchange: Exchange) -> None:
    derived = exchange.credential
    assert (derived.stored_key, derived.server_key) == (exchange.stored_key, exchange.server_key)
    assert (derived.salt, derived.iterations) == (exchange.salt, exchange.iterations)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_keys_are_those_of_scramp(mechanism: ScramMechanism) -> None:
    salt, stored_key, server_key, iterations = scramp.ScramMechanism(str(mechanism)).make_auth_info(
        "pencil", iteration_count=5000, salt=SALT
    )
    assert derive_credential(mechanism, "pencil", SALT, 5000) == ScramCredential(
        salt, stored_key, server_key, iterations
    )


def test_passwords_are_not_normalised_because_kafka_does_not() -> None:
    ligature, letters = (derive_keys(ScramMechanism.SHA_256, text, SALT, 1) for text in ("\ufb01", "fi"))
    assert ligature != letters


def test_keys_and_credentials_do_not_show_their_secrets() -> None:
    keys = derive_keys(ScramMechanism.SHA_256, "secret", SALT, 1)
    assert repr(keys) == "ScramKeys()"
    assert repr(credential(ScramMechanism.SHA_256, "secret")) == f"ScramCredential(salt={SALT!r}, iterations=4096)"


@pytest.mark.parametrize("iterations", [0, -1])
def test_a_count_of_iterations_that_is_none_is_refused(iterations: int) -> None:
    with pytest.raises(LocalProtocolError, match="iterations"):
        derive_credential(ScramMechanism.SHA_256, "secret", SALT, iterations)


def test_a_password_without_utf8_form_is_refused() -> None:
    with pytest.raises(LocalProtocolError, match="surrogate"):
        derive_credential(ScramMechanism.SHA_256, "secret\udfff", SALT, 4096)


@pytest.mark.parametrize("mechanism", MECHANISMS)
class TestProof:
    def keys(self, mechanism: ScramMechanism) -> ScramKeys:
        return derive_keys(mechanism, "secret", SALT, 1)

    def test_the_proof_of_the_client_key_is_valid(self, mechanism: ScramMechanism) -> None:
        keys = self.keys(mechanism)
        proof = client_proof(mechanism, keys, AUTH_MESSAGE)
        assert is_valid_proof(mechanism, keys.stored_key, AUTH_MESSAGE, proof)

    @pytest.mark.parametrize("size", [0, 1, 31, 33, 63, 65, 96, 1000])
    def test_a_proof_of_another_length_is_not_valid(self, mechanism: ScramMechanism, size: int) -> None:
        keys = self.keys(mechanism)
        proof = client_proof(mechanism, keys, AUTH_MESSAGE)
        resized = (proof + bytes(1000))[:size]
        assert not is_valid_proof(mechanism, keys.stored_key, AUTH_MESSAGE, resized)

    def test_a_proof_of_another_text_is_not_valid(self, mechanism: ScramMechanism) -> None:
        keys = self.keys(mechanism)
        proof = client_proof(mechanism, keys, AUTH_MESSAGE)
        assert not is_valid_proof(mechanism, keys.stored_key, AUTH_MESSAGE + b",", proof)

    @pytest.mark.parametrize("size", [0, 16, 100])
    def test_a_stored_key_of_another_length_verifies_nothing(self, mechanism: ScramMechanism, size: int) -> None:
        proof = client_proof(mechanism, self.keys(mechanism), AUTH_MESSAGE)
        assert not is_valid_proof(mechanism, bytes(size), AUTH_MESSAGE, proof)


@settings(deadline=None, max_examples=30)
@given(password=st.text(), salt=st.binary(), mechanism=st.sampled_from(MECHANISMS))
def test_any_password_and_salt_have_a_credential(password: str, salt: bytes, mechanism: ScramMechanism) -> None:
    keys = derive_keys(mechanism, password, salt, 1)
    proof = client_proof(mechanism, keys, AUTH_MESSAGE)
    derived = derive_credential(mechanism, password, salt, 1)
    assert is_valid_proof(mechanism, derived.stored_key, AUTH_MESSAGE, proof)
    assert derived.server_key == keys.server_key


@given(st.binary(max_size=64))
def test_a_salt_is_the_last_130_bits_of_a_digest_as_kafka_writes_a_number(digest: bytes) -> None:
    number = int.from_bytes(digest) % 2**130
    text = salt_text(digest).decode()
    assert int(text, 36) == number
    assert text == "0" or not text.startswith("0")
    assert text == text.lower()
