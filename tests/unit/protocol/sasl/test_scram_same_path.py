"""A guesser learns nothing: a known name with a wrong password and an unknown name are the same conversation.

Time is not measured, its causes are: which functions run in which order, and how long every message is.
"""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

from kafka_dt_protocol.sasl import Failure, PlainServer, ScramCredential, ScramMechanism, StepResult
from tests.support.protocol.scram import CLIENT_NONCE, MECHANISMS, SALT, conversation, credential, prove

EXTENSIONS = ["", ",tokenauth=true"]


def client_first(extension: str) -> bytes:
    return f"n,,n=MTIzNDU2Nzg5MDEyMzQ1Ng,r={CLIENT_NONCE}{extension}".encode()


def decoy(mechanism: ScramMechanism) -> ScramCredential:
    """Stand in for what the driver makes of an unknown name: no password fits it."""
    size = mechanism.hash_bytes
    return ScramCredential(SALT[::-1], b"\x5a" * size, b"\xa5" * size, 4096)


def attempt(mechanism: ScramMechanism, first: bytes, known: ScramCredential) -> list[StepResult]:
    return conversation(mechanism, first, lambda server_first: prove(mechanism, first, server_first, "guess"), known)


@pytest.mark.parametrize("extension", EXTENSIONS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_outcomes_are_as_many_of_the_same_kind_and_length(mechanism: ScramMechanism, extension: str) -> None:
    first = client_first(extension)
    of_known = attempt(mechanism, first, credential(mechanism, "secret"))
    of_unknown = attempt(mechanism, first, decoy(mechanism))
    assert [shape(outcome) for outcome in of_known] == [shape(outcome) for outcome in of_unknown]
    assert of_known[-1] == of_unknown[-1] == Failure("client-final: the proof is wrong")


@pytest.mark.interpreted
@pytest.mark.parametrize("extension", EXTENSIONS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_same_functions_run_in_the_same_order(mechanism: ScramMechanism, extension: str) -> None:
    first = client_first(extension)
    paths: list[list[str]] = []
    for known in (credential(mechanism, "secret"), decoy(mechanism)):
        with traced() as path:
            attempt(mechanism, first, known)
        paths.append(path)
    assert paths[0] == paths[1]
    assert "is_valid_proof" in paths[0]


@pytest.mark.parametrize("broken", [b"", b"c=biws", b"c=biws,r=x,p=AAAA"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_broken_client_final_fails_alike(mechanism: ScramMechanism, broken: bytes) -> None:
    first = client_first("")
    of_known = conversation(mechanism, first, broken, credential(mechanism, "secret"))
    of_unknown = conversation(mechanism, first, broken, decoy(mechanism))
    assert of_known[-1] == of_unknown[-1]


@pytest.mark.interpreted
def test_plain_takes_one_path_for_unknown_users_and_wrong_passwords() -> None:
    paths: list[list[str]] = []
    for expected in ("secret", None):
        server = PlainServer()
        with traced() as path:
            server.step(b"\0alice\0guess!")
            server.resume(expected)
        paths.append(path)
    assert paths[0] == paths[1]
    assert "compare_digest" in paths[0]


def shape(outcome: StepResult) -> tuple[type, int]:
    """Return what a client sees of an outcome, and how much of it."""
    return type(outcome), len(getattr(outcome, "message", None) or "")


@contextmanager
def traced() -> Iterator[list[str]]:
    """Collect the names of the functions that run, Python's and C's."""
    path: list[str] = []

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            path.append(frame.f_code.co_name)
        elif event == "c_call":
            path.append(getattr(argument, "__name__", ""))

    before = sys.getprofile()
    # A collection may run the callbacks of others at any time.
    gc.disable()
    sys.setprofile(note)
    try:
        yield path
    finally:
        sys.setprofile(before)
        gc.enable()
