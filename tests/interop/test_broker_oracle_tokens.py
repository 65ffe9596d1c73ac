"""The token APIs and logins with a token: a real broker and kafka-dt are asked the same and must answer the same."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from kio.schema.create_delegation_token.v3.request import CreatableRenewers
from kio.schema.describe_delegation_token.v3.request import DescribeDelegationTokenOwner

from tests.interop.conftest import Authority
from tests.support.broker import SECRET_KEY, USERS
from tests.support.client_config import SCRAM_MECHANISMS
from tests.support.raw import (
    CREATE,
    DESCRIBE,
    EXPIRE,
    METADATA,
    RENEW,
    LoginRefused,
    RawConnection,
    milliseconds,
    ms,
)
from tests.support.waiting import eventually

DAY_MS = 86_400_000
WEEK_MS = 7 * DAY_MS
TOLERANCE_MS = 5_000


@pytest.fixture
def alice(authority: Authority) -> Iterator[RawConnection]:
    """A connection of User:alice."""
    with logged_in(authority, "alice") as connection:
        yield connection


@pytest.fixture
def bob(authority: Authority) -> Iterator[RawConnection]:
    """A connection of User:bob."""
    with logged_in(authority, "bob") as connection:
        yield connection


def logged_in(authority: Authority, user: str) -> RawConnection:
    connection = RawConnection(authority.sasl)
    connection.login_plain(user, USERS[user])
    return connection


def create(
    connection: RawConnection,
    *,
    owner: tuple[str | None, str | None] = (None, None),
    lifetime_ms: int = -1,
    renewers: tuple[tuple[str, str], ...] = (),
) -> Any:
    return connection.ask(
        CREATE,
        3,
        owner_principal_type=owner[0],
        owner_principal_name=owner[1],
        renewers=tuple(CreatableRenewers(principal_type=kind, principal_name=name) for kind, name in renewers),
        max_lifetime=ms(lifetime_ms),
    )


def renew(connection: RawConnection, token_hmac: bytes, period_ms: int = -1) -> tuple[int, int]:
    answer = connection.ask(RENEW, 2, hmac=token_hmac, renew_period=ms(period_ms))
    return answer.error_code.value, epoch_ms(answer.expiry_timestamp)


def expire(connection: RawConnection, token_hmac: bytes, period_ms: int = -1) -> tuple[int, int]:
    answer = connection.ask(EXPIRE, 2, hmac=token_hmac, expiry_time_period=ms(period_ms))
    return answer.error_code.value, epoch_ms(answer.expiry_timestamp)


def described(connection: RawConnection, *owners: tuple[str, str] | None) -> set[str]:
    """Token ids; without owners none are asked for, with None all."""
    asked = tuple(
        DescribeDelegationTokenOwner(principal_type=each[0], principal_name=each[1]) for each in owners if each
    )
    answer = connection.ask(DESCRIBE, 3, owners=None if None in owners else asked)
    assert answer.error_code.value == 0
    return {each.token_id for each in answer.tokens}


def epoch_ms(instant: datetime) -> int:
    return (instant - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def login_with(authority: Authority, token: Any, mechanism: str = "SCRAM-SHA-256") -> tuple[RawConnection, Any]:
    connection = RawConnection(authority.sasl)
    password = base64.b64encode(token.hmac).decode()
    return connection, connection.login_scram(token.token_id, password, mechanism, token=True)


def logs_in(authority: Authority, token_id: str, password: str) -> bool:
    with RawConnection(authority.sasl) as connection:
        try:
            connection.login_scram(token_id, password, "SCRAM-SHA-256", token=True)
        except LoginRefused:
            return False
        return True


def test_a_token_is_the_hmac_of_its_id_and_lives_as_configured(alice: RawConnection) -> None:
    token = create(alice, renewers=(("User", "bob"), ("User", "bob"), ("User", "")))
    issued = epoch_ms(token.issue_timestamp)
    assert token.error_code.value == 0
    assert re.fullmatch(r"[\w-]{22}", token.token_id)
    assert token.hmac == hmac.digest(SECRET_KEY.encode(), token.token_id.encode(), hashlib.sha512)
    assert abs(issued - now_ms()) < TOLERANCE_MS
    assert epoch_ms(token.max_timestamp) - issued == WEEK_MS
    assert epoch_ms(token.expiry_timestamp) - issued == DAY_MS
    assert (token.principal_type, token.principal_name) == ("User", "alice")
    assert token.token_requester_principal_name == "alice"


@pytest.mark.parametrize(
    ("lifetime_ms", "granted_ms"), [(0, WEEK_MS), (-7, WEEK_MS), (WEEK_MS + 1, WEEK_MS), (60_000, 60_000)]
)
def test_the_lifetime_is_the_one_asked_for_within_the_limit(
    alice: RawConnection, lifetime_ms: int, granted_ms: int
) -> None:
    token = create(alice, lifetime_ms=lifetime_ms)
    assert epoch_ms(token.max_timestamp) - epoch_ms(token.issue_timestamp) == granted_ms
    assert epoch_ms(token.expiry_timestamp) <= epoch_ms(token.max_timestamp)


def test_without_acls_a_token_is_made_for_any_owner(alice: RawConnection, bob: RawConnection) -> None:
    token = create(alice, owner=("User", "bob"))
    assert token.error_code.value == 0
    assert (token.principal_name, token.token_requester_principal_name) == ("bob", "alice")
    assert renew(alice, token.hmac) == (63, -1)
    assert renew(bob, token.hmac)[0] == 0


def test_a_refused_create_carries_owner_and_requester(alice: RawConnection) -> None:
    answer = create(alice, owner=("User", "bob"), renewers=(("Group", "carol"),))
    assert answer.error_code.value == 67
    assert (answer.principal_name, answer.token_requester_principal_name) == ("bob", "alice")
    assert (answer.token_id, answer.hmac, epoch_ms(answer.max_timestamp)) == ("", b"", -1)


def test_owner_and_renewers_renew_and_nobody_else(alice: RawConnection, bob: RawConnection) -> None:
    shared = create(alice, renewers=(("User", "bob"),)).hmac
    private = create(alice).hmac
    error, expiry = renew(bob, shared, 60_000)
    assert error == 0
    assert abs(expiry - now_ms() - 60_000) < TOLERANCE_MS
    assert renew(alice, shared)[0] == 0
    assert renew(bob, private) == (63, -1)
    assert expire(bob, private) == (63, -1)
    assert renew(alice, b"unknown") == (62, -1)
    assert expire(alice, b"") == (62, -1)


def test_no_renewal_goes_beyond_the_maximum(alice: RawConnection) -> None:
    token = create(alice, lifetime_ms=120_000)
    assert renew(alice, token.hmac, DAY_MS) == (0, epoch_ms(token.max_timestamp))
    assert expire(alice, token.hmac, DAY_MS) == (0, epoch_ms(token.max_timestamp))


def test_an_expired_token_is_66_until_it_is_deleted_then_62(alice: RawConnection) -> None:
    token = create(alice)
    assert expire(alice, token.hmac, 0)[0] == 0
    eventually(lambda: renew(alice, token.hmac, 0)[0] == 66, within_s=1)
    assert token.token_id in described(alice, ("User", "alice"))
    assert expire(alice, token.hmac)[0] == 0
    assert renew(alice, token.hmac) == (62, -1)
    assert token.token_id not in described(alice, None)


def test_describe_selects_by_owner_and_by_renewer(alice: RawConnection) -> None:
    token_id = create(alice, renewers=(("User", "carol"),)).token_id
    assert token_id in described(alice, None)
    assert token_id in described(alice, ("User", "alice"))
    assert token_id in described(alice, ("User", "carol"))
    assert token_id not in described(alice, ("User", "bob"), ("Group", "alice"))
    assert described(alice) == set()


@pytest.mark.parametrize("mechanism", SCRAM_MECHANISMS)
def test_a_token_logs_in_for_as_long_as_it_lives(authority: Authority, alice: RawConnection, mechanism: str) -> None:
    token = create(alice, lifetime_ms=90_000)
    connection, last = login_with(authority, token, mechanism)
    with connection:
        left_ms = epoch_ms(token.expiry_timestamp) - now_ms()
        assert abs(milliseconds(last.session_lifetime) - left_ms) < TOLERANCE_MS
        assert len(connection.ask(METADATA, 1, topics=()).brokers) == 1
        assert create(connection).error_code.value == 64
        assert renew(connection, token.hmac) == (64, -1)
        assert connection.ask(DESCRIBE, 3, owners=None).error_code.value == 64


def test_a_wrong_secret_does_not_log_in(authority: Authority, alice: RawConnection) -> None:
    token = create(alice)
    password = base64.b64encode(token.hmac).decode()
    for wrong in (token.hmac.hex(), password.rstrip("="), "x"):
        assert not logs_in(authority, token.token_id, wrong)


def test_a_deleted_token_does_not_log_in(authority: Authority, alice: RawConnection) -> None:
    token = create(alice)
    password = base64.b64encode(token.hmac).decode()
    assert logs_in(authority, token.token_id, password)
    expire(alice, token.hmac)
    # Several connections, for each may be another worker's.
    assert not any(logs_in(authority, token.token_id, password) for _ in range(5))


def test_nobody_gets_a_token_without_a_login(authority: Authority) -> None:
    with RawConnection(authority.plaintext) as connection:
        answer = create(connection)
        assert (answer.error_code.value, answer.principal_name) == (64, "ANONYMOUS")
        assert renew(connection, b"unknown") == (64, -1)
