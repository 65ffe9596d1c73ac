"""Every row of Kafka's behaviour with SCRAM and tokens: what we do, and where that is not what Kafka did.

The messages and Kafka's verdicts are recordings of its own server (tests/vectors/scram).
"""

from dataclasses import dataclass
from functools import partial

import pytest

from kafka_dt_protocol.sasl import Challenge, CredentialRequest, Failure, ScramMechanism, StepResult, Success
from tests.support.protocol.scram import (
    CLIENT_NONCE,
    SERVER_NONCE,
    Case,
    cases,
    conversation,
    credential,
    prove,
    vectors,
)

FIRST = "fails at client-first"
FINAL = "fails at client-final"
SUCCEEDS = "succeeds"
OTHER_ID = "Authentication failed: Client requested an authorization id that is different from username"


@dataclass(frozen=True)
class Row:
    """What our server does in a recorded case."""

    outcome: str
    token: bool = True
    """Whether the client is taken to log in by token."""
    message: str | None = None
    """The words for the client, if they are not the generic ones."""
    differs: str = ""
    """Why the outcome is not Kafka's."""


UNKNOWN_NAME = "an unknown name fails at the last step: the driver brings a decoy"
PLAIN_NAME = "whether this is a user, a token or a decoy is for the driver to find"
RFC = "RFC 5802 wins over Kafka's parser"

ROWS = {
    "tokenauth=true": Row(SUCCEEDS),
    "tokenauth=TRUE": Row(SUCCEEDS),
    "tokenauth=True": Row(SUCCEEDS),
    # These log in by the plain name; with the credential of a token the proof fits.
    "tokenauth=false": Row(SUCCEEDS, token=False, differs=PLAIN_NAME),
    "tokenauth=yes": Row(SUCCEEDS, token=False, differs=PLAIN_NAME),
    "tokenauth=1": Row(SUCCEEDS, token=False, differs=PLAIN_NAME),
    "tokenauth= true": Row(SUCCEEDS, token=False, differs=PLAIN_NAME),
    "TokenAuth=true": Row(SUCCEEDS, token=False, differs=PLAIN_NAME),
    "no extension": Row(SUCCEEDS, token=False, differs=PLAIN_NAME),
    "tokenauth=": Row(FIRST),
    "tokenauth=true\n": Row(FIRST),
    "tokenauth=true,": Row(FIRST),
    "extension without =": Row(FIRST),
    "extension with a digit in its name": Row(FIRST),
    "gs2 header y": Row(FIRST),
    "gs2 header p": Row(FIRST),
    "gs2 header missing": Row(FIRST),
    "gs2 header n,a=,": Row(FIRST),
    'name ends with "\\u0000x"': Row(FIRST),
    'name ends with "\\u00e9"': Row(FIRST),
    'name ends with "="': Row(FIRST),
    'name ends with "=2c"': Row(FIRST),
    'name ends with "=3"': Row(FIRST),
    'name ends with ""': Row(FIRST),
    "blank in the nonce": Row(FIRST),
    "line end after the nonce": Row(FIRST),
    "empty message": Row(FIRST),
    "authorization id = token id": Row(SUCCEEDS),
    "authorization id = owner": Row(FIRST, message=OTHER_ID),
    "authorization id = other": Row(FIRST, message=OTHER_ID),
    "m=x at the start": Row(FIRST, differs=RFC),
    "m=x as extension": Row(FIRST, differs=RFC),
    "tokenauth=true,foo=bar": Row(SUCCEEDS),
    "foo=bar,tokenauth=true": Row(SUCCEEDS, differs=RFC),
    "tokenauth twice": Row(FIRST),
    "unknown token id": Row(FINAL, differs=UNKNOWN_NAME),
    "other nonce": Row(FINAL),
    "client's part of the nonce": Row(FINAL),
    "server's part of the nonce": Row(FINAL),
    "characters after the nonce": Row(FINAL),
    "characters before the nonce": Row(FINAL, differs=RFC),
    "c= is not base64": Row(FINAL),
    "c= is base64 of something else": Row(FINAL, differs=RFC),
    "c= is empty": Row(FINAL, differs=RFC),
    "proof flipped": Row(FINAL),
    "proof not base64": Row(FINAL),
    "proof unpadded": Row(FINAL),
    "proof missing": Row(FINAL),
    "proof with stray bits in its last character": Row(FINAL, differs=RFC),
    "line end after the proof": Row(FINAL),
    "proof too short": Row(FINAL),
    "proof too long": Row(FINAL),
    "extension in client-final": Row(SUCCEEDS, differs=RFC),
    "extension in client-final, left out of the proof": Row(FINAL, differs=RFC),
    "m=x in client-final": Row(FINAL),
}


def test_every_recorded_case_has_its_row_and_every_row_its_recordings() -> None:
    recorded = {(case.name, case.mechanism) for case in cases()}
    assert recorded == {(name, mechanism) for name in ROWS for mechanism in ScramMechanism}


@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case.mechanism}: {case.name}")
def test_each_case_ends_as_its_row_says(case: Case) -> None:
    row = ROWS[case.name]
    outcomes = replay(case)
    assert verdict(outcomes) == row.outcome
    if isinstance(outcomes[0], CredentialRequest):
        assert outcomes[0].token is row.token
    if isinstance(outcomes[-1], Failure):
        assert outcomes[-1].message == row.message
        assert outcomes[-1].detail.isprintable()


@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case.mechanism}: {case.name}")
def test_a_difference_from_kafka_has_a_reason_and_a_reason_a_difference(case: Case) -> None:
    row = ROWS[case.name]
    # To fail at another step is a difference too.
    assert (row.outcome != case.outcome) == bool(row.differs)
    if row.message is not None:
        assert case.error == f"SaslAuthenticationException: {row.message}"


@pytest.mark.parametrize(
    "case",
    [case for case in cases() if case.outcome == SUCCEEDS == ROWS[case.name].outcome],
    ids=lambda case: f"{case.mechanism}: {case.name}",
)
def test_where_both_succeed_every_byte_of_the_server_is_kafkas(case: Case) -> None:
    _, challenge, success = replay(case)
    assert isinstance(challenge, Challenge)
    assert challenge.message == case.server_first
    assert isinstance(success, Success)
    assert success.message == case.server_final
    assert success.identity == vectors("kafka-clients-3.9.1")["token_id"]


def replay(case: Case) -> list[StepResult]:
    """Pass the recorded messages to our server, with Kafka's nonce; the unknown name meets a decoy.

    Where Kafka went no further than the client-first there is a client-final by RFC 5802.
    """
    token_password = vectors("kafka-clients-3.9.1")["token_password"]
    password = "decoy" if case.name == "unknown token id" else token_password
    nonce = case.server_first.partition(b",")[0].removeprefix(b"r=" + CLIENT_NONCE.encode()).decode()
    return conversation(
        case.mechanism,
        case.client_first,
        case.client_final or partial(prove, case.mechanism, case.client_first, password=token_password),
        credential(case.mechanism, password),
        nonce or SERVER_NONCE,
    )


def verdict(outcomes: list[StepResult]) -> str:
    if isinstance(outcomes[-1], Success):
        return SUCCEEDS
    return FIRST if len(outcomes) == 1 else FINAL
