"""The outcomes that every mechanism shares."""

import dataclasses
from typing import Any, Final, get_origin

import pytest

from kafka_dt_protocol.sasl import NO_EXTENSIONS, Challenge, CredentialRequest, Failure, Success


def test_an_outcome_says_no_more_than_it_was_given() -> None:
    assert CredentialRequest("alice") == CredentialRequest("alice", token=False, extensions={})
    assert Success(b"", "alice").extensions == {}
    assert Failure("why").message is None


@pytest.mark.parametrize(
    "outcome", [Challenge(b"x"), CredentialRequest("alice"), Success(b"", "alice"), Failure("why")]
)
def test_outcomes_do_not_change(outcome: Any) -> None:
    """mypy holds what is final; the compiled form does not say what is, and refuses to set it."""
    for field in dataclasses.fields(outcome):
        if get_origin(field.type) is not Final:
            with pytest.raises(AttributeError):
                setattr(outcome, field.name, None)


def test_the_absent_extensions_of_all_logins_are_one_value_that_nobody_changes() -> None:
    assert Success(b"", "alice").extensions is NO_EXTENSIONS
    with pytest.raises(TypeError):
        NO_EXTENSIONS["tokenauth"] = "true"  # type: ignore[index]
