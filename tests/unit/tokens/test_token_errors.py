from collections.abc import Iterator
from dataclasses import fields, is_dataclass

import pytest

from kafka_dt.tokens import (
    InvalidPrincipalType,
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
    VersionConflict,
    errors,
)

ALICE, TEAM = Principal.user("alice"), Principal("Group", "team")

# One example of each error, and what its wording must contain.
EXAMPLES: list[tuple[Exception, list[str]]] = [
    (TokensDisabled(), ["delegation.token.secret.key"]),
    (TokenRequestNotAllowed("the listener does not authenticate"), ["the listener does not authenticate"]),
    (TokenAuthorizationFailed(ALICE, TEAM), ["User:alice", "Group:team"]),
    (InvalidPrincipalType(TEAM, renewer=True), ["Group:team", "User"]),
    (InvalidPrincipalType(Principal("Us:er", "x"), renewer=False), ["'Us:er'", "colon"]),
    (TokenNotFound(), ["HMAC"]),
    (TokenNotFound("some-id"), ["some-id"]),
    (TokenOwnerMismatch(ALICE), ["User:alice"]),
    (TokenExpired("some-id"), ["some-id"]),
    (TokenTooLarge(1_200_000, 1_000_000), ["1200000 bytes", "1000000", "fewer renewers"]),
    (TokenLimitExceeded("A token of 9 bytes", "the.setting", 8), ["9 bytes", "the.setting=8"]),
    (TooManyCreates(ALICE, "the.setting", 6, 1_500), ["User:alice", "the.setting=6", "1500 ms"]),
    (StoreUnavailable("the session was lost"), ["the session was lost"]),
    (VersionConflict("some-id", 7), ["some-id", "7"]),
    (VersionConflict("some-id", None), ["some-id", "taken"]),
]


def subclasses(error_type: type[TokenError]) -> Iterator[type[TokenError]]:
    for subclass in error_type.__subclasses__():
        yield subclass
        yield from subclasses(subclass)


def test_every_refusal_has_an_example_here() -> None:
    assert set(subclasses(TokenError)) == {type(error) for error, _ in EXAMPLES if isinstance(error, TokenError)}


@pytest.mark.parametrize("error_type", [*subclasses(TokenError)])
def test_every_refusal_carries_fields_and_words_itself(error_type: type[TokenError]) -> None:
    assert is_dataclass(error_type)
    assert fields(error_type)
    assert "__str__" in vars(error_type)
    assert error_type.__name__ in str(errors.__doc__), "the tree in the module's docstring lacks it"


@pytest.mark.parametrize(("error", "words"), EXAMPLES, ids=lambda value: type(value).__name__)
def test_a_wording_is_one_sentence_with_what_matters(error: Exception, words: list[str]) -> None:
    text = str(error)
    assert text.endswith(".")
    assert "\n" not in text
    assert all(word in text for word in words)
