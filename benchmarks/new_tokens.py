"""Tokens of alice that are created while a scenario runs, and removed in the end: alice owns none of the prepared ones.

created = create_tokens(server.address, 400)    # their ids
remove_tokens(server.address)
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final

from kio.schema.describe_delegation_token.v3.request import DescribeDelegationTokenOwner

from benchmarks import generator
from benchmarks.generator import LoadFailed
from benchmarks.tokens import password_of
from tests.support.protocol.raw import CREATE, DESCRIBE, EXPIRE, RawConnection, ms

OWNER: Final = "alice"
_AT_ONCE: Final = 8


def create_tokens(address: str, count: int) -> list[str]:
    """Create tokens on a few connections; returns their ids. Raises LoadFailed."""

    def create(number: int) -> list[str]:
        with _logged_in(address) as connection:
            share = range(number, count, _AT_ONCE)
            answers = [connection.ask(CREATE, 2, renewers=(), max_lifetime=ms(-1)) for _ in share]
        return [str(_checked(answer).token_id) for answer in answers]

    with ThreadPoolExecutor(_AT_ONCE) as threads:
        return [each for part in threads.map(create, range(_AT_ONCE)) for each in part]


def remove_tokens(address: str) -> None:
    """Remove all tokens of alice. Raises LoadFailed."""
    with _logged_in(address) as connection:
        owner = DescribeDelegationTokenOwner(principal_type="User", principal_name=OWNER)
        hmacs = [each.hmac for each in _checked(connection.ask(DESCRIBE, 3, owners=(owner,))).tokens]

    def remove(part: Sequence[bytes]) -> None:
        with _logged_in(address) as connection:
            for hmac in part:
                _checked(connection.ask(EXPIRE, 2, hmac=hmac, expiry_time_period=ms(-1)))

    with ThreadPoolExecutor(_AT_ONCE) as threads:
        list(threads.map(remove, (hmacs[number::_AT_ONCE] for number in range(_AT_ONCE))))


def revoke_token(address: str, token_id: str) -> None:
    """Revoke one of them. Raises LoadFailed."""
    with _logged_in(address) as connection:
        hmac = base64.b64decode(password_of(token_id))
        _checked(connection.ask(EXPIRE, 2, hmac=hmac, expiry_time_period=ms(-1)))


@contextmanager
def _logged_in(address: str) -> Iterator[RawConnection]:
    with RawConnection(address) as connection:
        connection.login_plain(OWNER, generator.password_of(OWNER))
        yield connection


def _checked(answer: Any) -> Any:
    if answer.error_code.value:
        raise LoadFailed(f"a request about tokens was answered with {answer.error_code}")
    return answer
