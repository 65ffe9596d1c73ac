"""What `kafka-dt upstream remaining` makes of the tokens that it finds."""

from __future__ import annotations

import io

from kafka_dt.bulk import Row
from kafka_dt.cli.tables import console
from kafka_dt.cli.upstream.remaining import Remaining
from kafka_dt.tokens import Principal
from tests.support.tokens.nodes import DAY, START
from tests.support.tokens.store_contract import new_token


def row(owner: str, expiry_days: int, max_days: int, reason: str | None = None) -> Row:
    token = new_token(
        owner=Principal.user(owner),
        expiry_timestamp_ms=START + expiry_days * DAY,
        max_timestamp_ms=START + max_days * DAY,
    )
    return Row(token.token_id, token, reason=reason)


ROWS = [
    row("alice", 1, 2),
    row("alice", 2, 3),
    row("alice", -1, 9),
    row("bo\nb", 1, 7),
    row("carol", 1, 8, "its secret key is not here"),
    Row("x", reason="not JSON"),
]


def shown(rows: list[Row]) -> list[str]:
    output = io.StringIO()
    Remaining.of(rows, START).show(console(output))
    return [line.rstrip() for line in output.getvalue().splitlines()]


def test_people_see_each_owner_and_until_when_zookeeper_is_needed() -> None:
    assert shown(ROWS) == [
        "OWNER       TOKENS  EXPIRES               MAX",
        "User:bo\\nb       1  2023-11-15T22:13:20Z  2023-11-21T22:13:20Z",
        "User:alice       2  2023-11-16T22:13:20Z  2023-11-17T22:13:20Z",
        "Not readable: 2 tokens; kafka-dt keys verify says why",
        "3 live tokens in ZooKeeper: keep it until 2023-11-21T22:13:20Z at the latest",
    ]


def test_programs_see_the_same_and_the_last_instants_of_all() -> None:
    assert Remaining.of(ROWS, START).fields() == {
        "tokens": 3,
        "unreadable": 2,
        "expiry_timestamp": START + 2 * DAY,
        "max_timestamp": START + 7 * DAY,
        "owners": [
            {"owner": "User:bo\nb", "tokens": 1, "expiry_timestamp": START + DAY, "max_timestamp": START + 7 * DAY},
            {"owner": "User:alice", "tokens": 2, "expiry_timestamp": START + 2 * DAY, "max_timestamp": START + 3 * DAY},
        ],
    }


def test_when_no_live_token_is_left_the_end_is_told() -> None:
    expired = [row("alice", -1, 9)]
    assert shown(expired) == [
        "No live token is left in ZooKeeper: nodes can run with kafka.dt.token.store=upstream",
    ]
    fields = Remaining.of(expired, START).fields()
    assert (fields["tokens"], fields["max_timestamp"], fields["owners"]) == (0, None, [])
