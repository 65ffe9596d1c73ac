"""A credential of several passwords: each of them logs in, and each client gets the answer that it can check."""

from dataclasses import replace

import pytest

from kafka_dt_protocol.errors import LocalProtocolError
from kafka_dt_protocol.sasl import (
    Challenge,
    Failure,
    ScramClient,
    ScramCredential,
    ScramMechanism,
    ScramServer,
    Success,
)
from tests.support.protocol.scram import (
    CLIENT_NONCE,
    MECHANISMS,
    SERVER_NONCE,
    challenged,
    conversation,
    credential,
    prove,
)

FIRST = f"n,,n=alice,r={CLIENT_NONCE}".encode()
PASSWORDS = ("first", "second", "third")
SHA_256 = ScramMechanism.SHA_256


def several(mechanism: ScramMechanism, *passwords: str) -> ScramCredential:
    first, *others = (credential(mechanism, password) for password in passwords)
    return replace(first, alternatives=tuple(others))


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("count", range(1, len(PASSWORDS) + 1))
@pytest.mark.parametrize("chosen", [*PASSWORDS, "none of them"])
def test_each_password_logs_in_and_gets_its_own_answer(mechanism: ScramMechanism, count: int, chosen: str) -> None:
    known = several(mechanism, *PASSWORDS[:count])
    client = ScramClient(mechanism, "alice", chosen, CLIENT_NONCE)
    server, challenge = challenged(mechanism, client.first(), known)

    outcome = server.step(client.challenge(challenge))

    if chosen in PASSWORDS[:count]:
        assert isinstance(outcome, Success)
        assert outcome.message is not None
        assert outcome.proved == PASSWORDS.index(chosen)
        client.verify(outcome.message)
    else:
        assert outcome == Failure("client-final: the proof is wrong")


def test_the_challenge_does_not_tell_how_many_passwords_there_are() -> None:
    _, of_one = challenged(SHA_256, FIRST, credential(SHA_256, "first"))
    _, of_three = challenged(SHA_256, FIRST, several(SHA_256, *PASSWORDS))
    assert of_one == of_three


@pytest.mark.interpreted
def test_all_passwords_are_tried_also_after_one_that_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    known = several(SHA_256, *PASSWORDS)
    hashed: list[bytes] = []
    hash_with = ScramMechanism.hash

    def count(mechanism: ScramMechanism, data: bytes) -> bytes:
        hashed.append(data)
        return hash_with(mechanism, data)

    for chosen in (*PASSWORDS, "none of them"):
        server, challenge = challenged(SHA_256, FIRST, known)
        final = prove(SHA_256, FIRST, challenge, chosen)
        with monkeypatch.context() as patched:
            patched.setattr(ScramMechanism, "hash", count)
            hashed.clear()
            server.step(final)
        assert len(hashed) == len(PASSWORDS)


def test_one_password_has_no_number_but_the_first() -> None:
    outcomes = conversation(
        SHA_256, FIRST, lambda challenge: prove(SHA_256, FIRST, challenge, "first"), credential(SHA_256, "first")
    )
    assert isinstance(outcomes[-1], Success)
    assert outcomes[-1].proved == 0


@pytest.mark.parametrize("difference", [{"salt": b"another salt"}, {"iterations": 8192}])
def test_an_alternative_that_needs_another_challenge_is_refused(difference: dict[str, object]) -> None:
    first, other = (credential(SHA_256, password) for password in PASSWORDS[:2])
    server = ScramServer(SHA_256, SERVER_NONCE)
    server.step(FIRST)
    with pytest.raises(LocalProtocolError, match="alternatives"):
        server.resume(replace(first, alternatives=(replace(other, **difference),)))  # type: ignore[arg-type]
    assert isinstance(server.resume(first), Challenge)


def test_alternatives_are_not_shown() -> None:
    known = several(SHA_256, *PASSWORDS)
    for each in known.alternatives:
        assert repr(each.stored_key)[2:-1] not in repr(known)
        assert repr(each.server_key)[2:-1] not in repr(known)
