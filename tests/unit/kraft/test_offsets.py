"""A proof by offsets holds for a broker that begins with an image only when the one before has reached its caches."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_dt.kraft.offsets import ImageProof, LogEnd


@given(
    first=st.integers(0, 20),
    steps=st.lists(st.integers(1, 4), max_size=30),
    questions=st.lists(st.integers(0, 2), min_size=1, max_size=60),
    watermark=st.integers(0, 60),
)
def test_when_a_proof_is_passed_the_caches_have_every_record_below_the_watermark(
    first: int, steps: list[int], questions: list[int], watermark: int
) -> None:
    images = list(accumulate(steps, initial=first))
    proof, place = ImageProof(LogEnd(1, watermark)), 0
    for further in questions:
        place = min(place + further, len(images) - 1)
        if proof.passed_by(images[place]):
            # Of the image in place itself the caches may have heard nothing.
            assert images[place - 1] >= watermark - 1
            return


def test_a_broker_that_hears_of_records_proves_after_two_images() -> None:
    proof = ImageProof(LogEnd(1, 11))
    assert [proof.passed_by(offset) for offset in (8, 9, 10, 10, 11)] == [False, False, False, False, True]


def test_a_broker_that_is_cut_off_proves_nothing() -> None:
    proof = ImageProof(LogEnd(1, 11))
    assert not any(proof.passed_by(10) for _ in range(100))


@pytest.mark.parametrize(
    ("epoch", "watermark", "confirmed"),
    [(1, 13, True), (2, 13, False), (1, 12, False), (1, 11, False)],
    ids=["it leads", "another leads", "it has not committed the image", "it commits nothing"],
)
def test_a_proof_holds_only_if_the_controller_that_told_the_watermark_leads(
    epoch: int, watermark: int, confirmed: bool
) -> None:
    proof = ImageProof(LogEnd(1, 11))
    assert [proof.passed_by(offset) for offset in (10, 12)] == [False, True]
    assert proof.confirmed_by(LogEnd(epoch, watermark)) is confirmed
