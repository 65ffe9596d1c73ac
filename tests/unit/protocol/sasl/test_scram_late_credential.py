"""A server that is told the credential after the client's proof: the challenge needs no more than the parameters."""

import pytest

from kafka_dt_protocol.errors import LocalProtocolError
from kafka_dt_protocol.sasl import (
    Challenge,
    CredentialRequest,
    Failure,
    ScramMechanism,
    ScramParameters,
    ScramServer,
    Success,
)
from tests.support.protocol.scram import CLIENT_NONCE, MECHANISMS, SALT, SERVER_NONCE, challenged, credential, prove

FIRST = f"n,,n=alice,r={CLIENT_NONCE},tokenauth=true".encode()
PARAMETERS = ScramParameters(SALT, 4096)


def proved(mechanism: ScramMechanism, password: str) -> ScramServer:
    """A server that has the proof and asks for the credential."""
    server = ScramServer(mechanism, SERVER_NONCE)
    asked = server.step(FIRST)
    challenge = server.resume(PARAMETERS)
    assert isinstance(challenge, Challenge)
    assert server.step(prove(mechanism, FIRST, challenge.message, password)) == asked
    assert asked == CredentialRequest("alice", token=True, extensions={"tokenauth": "true"})
    return server


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_exchange_is_that_of_a_credential_known_from_the_start(mechanism: ScramMechanism) -> None:
    known = credential(mechanism, "secret")
    early, challenge = challenged(mechanism, FIRST, known)
    final = prove(mechanism, FIRST, challenge, "secret")
    assert proved(mechanism, "secret").resume(known) == early.step(final)
    assert isinstance(proved(mechanism, "secret").resume(known), Success)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_proof_fails_when_the_credential_is_there(mechanism: ScramMechanism) -> None:
    server = proved(mechanism, "guess")
    assert server.resume(credential(mechanism, "secret")) == Failure("client-final: the proof is wrong")
    with pytest.raises(LocalProtocolError):
        server.resume(credential(mechanism, "secret"))


@pytest.mark.parametrize("other", [ScramParameters(SALT, 8192), ScramParameters(SALT[::-1], 4096)])
def test_a_credential_of_another_challenge_is_refused(other: ScramParameters) -> None:
    server = ScramServer(ScramMechanism.SHA_256, SERVER_NONCE)
    server.step(FIRST)
    challenge = server.resume(other)
    assert isinstance(challenge, Challenge)
    server.step(prove(ScramMechanism.SHA_256, FIRST, challenge.message, "secret"))
    with pytest.raises(LocalProtocolError, match="salt and iterations of the challenge"):
        server.resume(credential(ScramMechanism.SHA_256, "secret"))


def test_what_is_not_due_is_refused_while_the_credential_is_awaited() -> None:
    server = proved(ScramMechanism.SHA_256, "secret")
    with pytest.raises(LocalProtocolError):
        server.step(FIRST)
    with pytest.raises(LocalProtocolError):
        server.resume(PARAMETERS)
    assert isinstance(server.resume(credential(ScramMechanism.SHA_256, "secret")), Success)


def test_a_broken_proof_fails_before_anybody_looks_for_a_credential() -> None:
    server = ScramServer(ScramMechanism.SHA_256, SERVER_NONCE)
    server.step(FIRST)
    server.resume(PARAMETERS)
    assert isinstance(server.step(b"c=biws,r=x,p=AAAA"), Failure)
