"""Test what the inventory tells of each token, readable or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import pytest

from kafka_dt.bulk.engine import BulkLimits
from kafka_dt.bulk.inventory import NO_KEY_GIVEN, Census, Row, census, inventory
from kafka_dt.tokens import SecretKey
from kafka_dt.zookeeper.connection.client import ZooKeeperClient
from kafka_dt.zookeeper.errors import ZooKeeperConnectionLost
from tests.support.zookeeper.sealable import DAY_MS, FOREIGN_KEY, NEW_KEY, NOW_MS, OLD_KEY, RING, plain, sealed, token
from tests.support.zookeeper.znodes_in_memory import ZnodesInMemory

TOKEN = token(renewers=("yarn",))
NAME = TOKEN.token_id


async def rows_of(client: ZnodesInMemory, names: Sequence[str], keys: Sequence[SecretKey] = RING.keys) -> list[Row]:
    limits = BulkLimits(batch=4, lanes=2, attempts=2, reconnect_s=0.2)
    return await inventory(cast("ZooKeeperClient", client), names, keys, limits=limits)


async def row_of(data: bytes, keys: Sequence[SecretKey] = RING.keys) -> Row:
    (row,) = await rows_of(ZnodesInMemory({NAME: data}), [NAME], keys)
    return row


async def test_a_plain_token_is_told_with_the_version_of_its_znode() -> None:
    client = ZnodesInMemory({NAME: b"older"})
    client.change(NAME, plain(TOKEN))
    assert await rows_of(client, [NAME]) == [Row(NAME, TOKEN, sealed=False, sealed_by=None, version=1, reason=None)]


@pytest.mark.parametrize("key", [NEW_KEY, OLD_KEY])
async def test_a_sealed_token_is_told_with_the_key_that_opened_it(key: SecretKey) -> None:
    row = await row_of(sealed(TOKEN, key))
    assert row == Row(NAME, TOKEN, sealed=True, sealed_by=key.id, version=0, reason=None)


async def test_without_a_key_sealed_ones_are_told_as_sealed_and_plain_ones_of_any_key_are_told() -> None:
    assert await row_of(sealed(TOKEN), []) == Row(NAME, None, True, None, 0, NO_KEY_GIVEN)
    assert await row_of(plain(TOKEN), []) == Row(NAME, TOKEN, False, None, 0, None)


@pytest.mark.parametrize(
    ("data", "is_sealed", "reason"),
    [
        (sealed(TOKEN, FOREIGN_KEY), True, "its MAC fits none of the secret keys"),
        (sealed(TOKEN)[:-8], True, "it is cut off, or longer than it should be"),
        (b"{", False, "not JSON"),
        (b"", False, "not JSON"),
        (sealed(token(1)), True, "it names another token"),
    ],
)
async def test_what_is_not_readable_has_a_reason_and_nothing_else(data: bytes, is_sealed: bool, reason: str) -> None:
    assert await row_of(data) == Row(NAME, None, is_sealed, None, 0, reason)


@pytest.mark.parametrize("write", [plain, sealed])
async def test_a_token_of_a_key_that_is_not_there_is_told_with_that_reason(write: object) -> None:
    of_foreign = replace(TOKEN, key_id=FOREIGN_KEY.id)
    row = await row_of(write(of_foreign))  # type: ignore[operator]  # one of two functions
    assert row.token == of_foreign
    assert row.reason == f"the key {FOREIGN_KEY.id} that made it is none of the secret keys"


async def test_what_is_gone_is_left_out() -> None:
    names = [f"token-{number:05d}" for number in range(9)]
    client = ZnodesInMemory({name: plain(token(number)) for number, name in enumerate(names) if number % 2})
    assert sorted(row.token_id for row in await rows_of(client, names)) == names[1::2]


async def test_a_connection_that_does_not_come_back_is_an_error_and_no_row() -> None:
    client = ZnodesInMemory({NAME: plain(TOKEN)})
    client.connected = False
    with pytest.raises(ZooKeeperConnectionLost):
        await rows_of(client, [NAME])


async def test_nothing_is_written() -> None:
    client = ZnodesInMemory({NAME: sealed(TOKEN, OLD_KEY)})
    await rows_of(client, [NAME])
    assert (client.multis, client.announced) == ([], [])


async def test_a_census_counts_tokens_by_the_key_that_made_them_and_by_the_key_that_seals_them() -> None:
    nameless = replace(token(3), key_id=None)
    client = ZnodesInMemory(
        {
            token(0).token_id: plain(token(0)),
            token(1).token_id: sealed(token(1), OLD_KEY),
            token(2).token_id: sealed(replace(token(2), expiry_timestamp_ms=NOW_MS)),
            token(3).token_id: plain(nameless),
            token(4).token_id: plain(replace(token(4), key_id=FOREIGN_KEY.id)),
            token(5).token_id: b"{",
        }
    )
    counted = await census(cast("ZooKeeperClient", client), RING, now_ms=lambda: NOW_MS + DAY_MS // 2)
    assert counted == Census(
        live_by_key={NEW_KEY.id: 2, None: 1},
        sealed_by_key={OLD_KEY.id: 1, NEW_KEY.id: 1},
        plain=2,
        unreadable={token(5).token_id: "not JSON"},
        unknown_keys={FOREIGN_KEY.id: 1},
    )
    assert (client.multis, client.announced) == ([], [])
