"""The page about the move to a Kafka 4 cluster names the stores that there are, each with its place in the order."""

from __future__ import annotations

import re

from kafka_dt.config import TokenStore
from tests.support.docs.documents import blocks, read

PAGE = "docs/how-to/move-to-kafka-4.md"


def test_the_table_has_every_choice_in_the_order_of_the_steps() -> None:
    rows = re.findall(r"^\| `([a-z,]+)` \| in ", read(PAGE), re.MULTILINE)
    assert rows == [TokenStore.ZOOKEEPER, TokenStore.READY_TO_MOVE, TokenStore.MOVING, TokenStore.UPSTREAM]


def test_the_steps_set_what_the_table_has() -> None:
    steps = [block.text.strip() for block in blocks(PAGE, "properties")]
    rest = (TokenStore.READY_TO_MOVE, TokenStore.MOVING, TokenStore.UPSTREAM)
    assert steps == [f"kafka.dt.token.store={store}" for store in rest]
