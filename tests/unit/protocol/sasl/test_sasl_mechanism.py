"""The outcomes that every mechanism shares."""

import dataclasses
from typing import Final, get_origin

import pytest

from kafka_dt_protocol.sasl import NO_EXTENSIONS, Challenge, CredentialRequest, Failure, Success


def test_an_outcome_says_no_more_than_it_was_given() -> None:
    assert CredentialRequest("alice") == CredentialRequest("alice", token=False, extensions={})
    assert Success(b"", "alice").extensions == {}
    assert Failure("why").message is None


@pytest.mark.parametrize(
    "outcome", [Challenge(b"x"), CredentialRequest("alice"), Success(b"", "alice"), Failure("why")]
)
def test_outcomes_do_not_change(outcome: object) -> None:
    for field in dataclasses.fields(outcome):  # type: ignore[arg-type]
        if (
            get_origin(field.type) is not Final
        ):  # what is final is checked by mypy, and by the compiled form, which says less
            with pytest.raises(AttributeError):
                setattr(outcome, field.name, None)


def test_the_absent_extensions_of_all_logins_are_one_value_that_nobody_changes() -> None:
    assert Success(b"", "alice").extensions is NO_EXTENSIONS
    with pytest.raises(TypeError):
        NO_EXTENSIONS["tokenauth"] = "true"  # type: ignore[index]
