"""Rows of the table of tokens, as Arrow holds them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from kafka_dt.bulk import Row
from kafka_dt.pipeline.tokens_source import ROWS_A_BATCH, TOKENS_SCHEMA, record_batches
from kafka_dt.tokens import Principal
from tests.support.zookeeper.sealable import DAY_MS, NEW_KEY, NOW_MS, token

TOKEN = token(owner="alice", renewers=("yarn", "hive"))


def row_of(**fields: object) -> Row:
    row = Row(TOKEN.token_id, TOKEN, sealed=True, sealed_by=NEW_KEY.id, version=3, reason=None)
    return replace(row, **fields)  # type: ignore[arg-type]  # fields of a Row


def values(row: Row) -> dict[str, object]:
    (batch,) = record_batches([row])
    (found,) = batch.to_pylist()
    assert list(found) == TOKENS_SCHEMA.fieldNames()
    return dict(found)


def instant(timestamp_ms: int) -> datetime:
    return datetime.fromtimestamp(timestamp_ms / 1000, UTC)


def test_a_token_has_every_column() -> None:
    assert values(row_of()) == {
        "token_id": TOKEN.token_id,
        "owner": "User:alice",
        "requester": "User:alice",
        "renewers": ["User:yarn", "User:hive"],
        "issue_time": instant(NOW_MS),
        "expiry_time": instant(NOW_MS + DAY_MS),
        "max_time": instant(NOW_MS + 7 * DAY_MS),
        "key_id": NEW_KEY.id,
        "sealed": True,
        "sealed_by": NEW_KEY.id,
        "znode_version": 3,
        "reason": None,
    }


def test_no_column_is_an_hmac_or_a_secret() -> None:
    assert not [name for name in TOKENS_SCHEMA.fieldNames() if "hmac" in name or "secret" in name]


def test_what_is_not_readable_has_its_name_and_the_reason() -> None:
    found = values(row_of(token=None, sealed=None, sealed_by=None, version=None, reason="ZooKeeper does not let us"))
    assert {name: value for name, value in found.items() if value is not None} == {
        "token_id": TOKEN.token_id,
        "reason": "ZooKeeper does not let us",
    }


@pytest.mark.parametrize(
    ("timestamp_ms", "shown"),
    [
        (2**63 - 1, datetime(9999, 12, 31, tzinfo=UTC)),
        (-(2**63), datetime(1, 1, 3, tzinfo=UTC)),
        (-1, datetime(1969, 12, 31, 23, 59, 59, 999_000, UTC)),
    ],
)
def test_instants_beyond_the_calendar_are_its_ends(timestamp_ms: int, shown: datetime) -> None:
    assert values(row_of(token=replace(TOKEN, max_timestamp_ms=timestamp_ms)))["max_time"] == shown


def test_a_name_that_cannot_be_utf_8_does_no_harm() -> None:
    odd = replace(TOKEN, owner=Principal.user("a\ud800"), renewers=(Principal.user("\udfff"),))
    found = values(row_of(token=odd))
    assert (found["owner"], found["renewers"]) == ("User:a?", ["User:?"])


def test_many_rows_come_in_several_batches() -> None:
    sizes = [batch.num_rows for batch in record_batches([row_of()] * (2 * ROWS_A_BATCH + 1))]
    assert sizes == [ROWS_A_BATCH, ROWS_A_BATCH, 1]
    assert list(record_batches([])) == []
