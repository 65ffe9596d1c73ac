from dataclasses import replace

import pytest

from kafka_dt.tokens import DelegationToken, Principal, Token, ends_sooner
from tests.support.tokens.nodes import ALICE, BOB, CAROL

TOKEN = Token(
    "id",
    owner=ALICE,
    requester=CAROL,
    renewers=(BOB,),
    issue_timestamp_ms=0,
    max_timestamp_ms=100,
    expiry_timestamp_ms=50,
)


def test_a_token_ends_after_the_millisecond_of_its_expiry() -> None:
    assert not TOKEN.is_expired(50)
    assert TOKEN.is_expired(51)


def test_a_token_ends_at_its_max_timestamp_whatever_its_expiry_says() -> None:
    beyond = Token("id", ALICE, ALICE, (), 0, max_timestamp_ms=100, expiry_timestamp_ms=500)
    assert not beyond.is_expired(100)
    assert beyond.is_expired(101)


@pytest.mark.parametrize(
    ("principal", "concerned", "may_renew"),
    [
        (ALICE, True, True),
        (BOB, True, True),
        (CAROL, True, False),
        (Principal("Group", "alice"), False, False),
        (Principal("Group", "carol"), False, False),
        (Principal.user("Alice"), False, False),
    ],
    ids=str,
)
def test_owner_and_renewers_may_renew_and_the_requester_may_only_see(
    principal: Principal, concerned: bool, may_renew: bool
) -> None:
    assert TOKEN.concerns(principal) is concerned
    assert TOKEN.may_renew(principal) is may_renew


def test_no_expiry_is_later_than_the_max_timestamp() -> None:
    assert TOKEN.expiring_at(99).expiry_timestamp_ms == 99
    assert TOKEN.expiring_at(101).expiry_timestamp_ms == 100
    assert TOKEN.expiring_at(2**200).expiry_timestamp_ms == 100


def test_a_token_ends_at_the_earlier_of_its_timestamps() -> None:
    assert TOKEN.expiring_at(99).end_timestamp_ms == 99
    assert replace(TOKEN, expiry_timestamp_ms=200).end_timestamp_ms == 100, "a store may hold such a token"


def test_a_token_that_is_gone_or_ends_earlier_is_revoked() -> None:
    shorter, longer = TOKEN.expiring_at(49), TOKEN.expiring_at(51)
    assert ends_sooner(TOKEN, None)
    assert ends_sooner(TOKEN, shorter)
    assert not ends_sooner(TOKEN, longer)
    assert not ends_sooner(TOKEN, TOKEN)
    assert not ends_sooner(None, TOKEN)
    assert not ends_sooner(None, None)


def test_the_hmac_is_not_shown() -> None:
    assert "sesame" not in repr(DelegationToken(TOKEN, b"sesame"))
