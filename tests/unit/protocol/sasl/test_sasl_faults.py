"""What each mechanism takes for what kind of fault; the client is told nothing of it."""

from __future__ import annotations

import pytest

from kafka_dt_protocol.sasl import (
    BearerAccepted,
    BearerRejected,
    DigestServer,
    Failure,
    Fault,
    GssapiServer,
    OAuthBearerServer,
    PlainServer,
    ScramClient,
    ScramMechanism,
    ScramServer,
    StepResult,
    plain_message,
)
from tests.unit.protocol.sasl.test_gssapi import Pretended, offered
from tests.unit.protocol.sasl.test_oauthbearer import FIRST

SHA_256 = ScramMechanism.SHA_256


def fault(outcome: StepResult) -> Fault:
    assert isinstance(outcome, Failure), outcome
    return outcome.fault


def plain(message: bytes, password: str | None = None) -> StepResult:
    server = PlainServer()
    outcome = server.step(message)
    return outcome if isinstance(outcome, Failure) else server.resume(password)


@pytest.mark.parametrize("message", [b"", b"\0alice", b"\0\0password", b"\0alice\0", b"\0\xff\0password"])
def test_plain_has_a_grammar(message: bytes) -> None:
    assert fault(plain(message)) is Fault.GRAMMAR


def test_plain_has_proofs_and_identities() -> None:
    assert fault(plain(plain_message("alice", "wrong"), "right")) is Fault.PROOF
    assert fault(plain(plain_message("alice", "any"), None)) is Fault.PROOF
    assert fault(plain(plain_message("alice", "right", "bob"), "right")) is Fault.IDENTITY


def test_scram_has_a_grammar_and_identities() -> None:
    assert fault(ScramServer(SHA_256, "nonce").step(b"nonsense")) is Fault.GRAMMAR
    assert fault(ScramServer(SHA_256, "nonce").step(b"n,a=bob,n=alice,r=nonce")) is Fault.IDENTITY
    first = ScramClient(SHA_256, "alice", "wrong", "clientnonce").first()
    assert not isinstance(ScramServer(SHA_256, "nonce").step(first), Failure)


def test_digest_md5_has_a_grammar() -> None:
    assert fault(DigestServer("nonce").step(b"too early")) is Fault.GRAMMAR
    server = DigestServer("nonce")
    server.step(b"")
    assert fault(server.step(b"nonsense")) is Fault.GRAMMAR


def test_gssapi_has_a_grammar_and_the_rest_is_a_proof() -> None:
    assert fault(GssapiServer(Pretended()).step(b"")) is Fault.PROOF
    assert fault(offered().step(b"wrapped:\x01")) is Fault.GRAMMAR
    assert fault(offered().step(b"wrapped:\x02\x00\x00\x00")) is Fault.GRAMMAR


def test_oauthbearer_has_all_three() -> None:
    assert fault(OAuthBearerServer().step(b"nonsense")) is Fault.GRAMMAR
    rejected = OAuthBearerServer()
    rejected.step(FIRST)
    rejected.resume(BearerRejected("expired"))
    assert fault(rejected.step(b"\x01")) is Fault.PROOF
    other = OAuthBearerServer()
    other.step(FIRST.replace(b"n,,", b"n,a=bob,"))
    assert fault(other.resume(BearerAccepted("alice"))) is Fault.IDENTITY
