"""Every error of the domain has one of Kafka's codes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt.identity.acls.store import AclError, AclStoreUnavailable, InvalidAcl
from kafka_dt.identity.credentials.scram_changes import ScramUserError
from kafka_dt.server.errors import CODES, error_code
from kafka_dt.tokens import (
    Principal,
    StoreUnavailable,
    TokenAuthorizationFailed,
    TokenError,
    TokenExpired,
    TokenLimitExceeded,
    TokenNotFound,
    TokenOwnerMismatch,
    TokenRequestNotAllowed,
    TokensDisabled,
    TokenTooLarge,
    TooManyCreates,
)

ALICE, BOB = Principal.user("alice"), Principal.user("bob")


def kinds(base: type[Exception]) -> Iterator[type[Exception]]:
    for kind in base.__subclasses__():
        yield kind
        yield from kinds(kind)


def test_every_error_of_the_domain_has_a_row() -> None:
    assert {*kinds(TokenError), *kinds(AclError), *kinds(ScramUserError)} == set(CODES)


@pytest.mark.parametrize("base", [TokenError, AclError, ScramUserError])
def test_no_two_errors_of_one_kind_share_a_code(base: type[Exception]) -> None:
    codes = [code for kind, code in CODES.items() if issubclass(kind, base)]
    assert len(set(codes)) == len(codes)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (TokensDisabled(), 61),
        (TokenNotFound(), 62),
        (TokenOwnerMismatch(ALICE), 63),
        (TokenRequestNotAllowed("by token"), 64),
        (TokenAuthorizationFailed(ALICE, BOB), 65),
        (TokenExpired("id"), 66),
        (TokenTooLarge(2, 1), 42),
        (TokenLimitExceeded("A token", "setting", 1), 44),
        (TooManyCreates(ALICE, "setting", 1, 1), 89),
        (InvalidAcl("The resource name is empty."), 42),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_codes_are_those_of_kafka(error: TokenError | AclError, code: int) -> None:
    assert error_code(error).value == code


def test_what_cannot_be_done_now_is_retriable() -> None:
    assert error_code(StoreUnavailable("cut off")) is ErrorCode.request_timed_out
    assert error_code(AclStoreUnavailable("cut off")) is ErrorCode.request_timed_out
    assert ErrorCode.request_timed_out.retriable


def test_what_can_never_be_done_is_not_retriable() -> None:
    assert not error_code(TokenTooLarge(2, 1)).retriable
