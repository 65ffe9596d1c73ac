"""Names on their way to executors: none is lost, and they are small."""

from __future__ import annotations

import base64
import random

from hypothesis import given
from hypothesis import strategies as st

from kafka_dt.pipeline.bulk.job import pack, packs, unpack
from tests.support.zookeeper.node_names import NODE_NAMES


@given(st.lists(NODE_NAMES, min_size=1, max_size=40))
def test_packed_names_come_back(names: list[str]) -> None:
    assert unpack(pack(names)) == names


@given(st.lists(NODE_NAMES, max_size=40), st.integers(1, 10))
def test_every_name_is_in_one_pack(names: list[str], size: int) -> None:
    unpacked = [unpack(packed) for packed in packs(names, size)]
    assert [name for each in unpacked for name in each] == names
    assert all(len(each) <= size for each in unpacked)


def test_a_name_takes_less_than_twenty_bytes() -> None:
    choice = random.Random(1)  # noqa: S311
    names = [base64.urlsafe_b64encode(choice.randbytes(16)).decode().rstrip("=") for _ in range(5_000)]
    assert len(pack(names)) < 20 * len(names)
