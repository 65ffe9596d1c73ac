"""What all brokers of a cluster speak, found without a look at all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from kio.schema.errors import ErrorCode
from kio.static.primitive import i16, i64

from kafka_dt.gateway import brokers as module
from kafka_dt.gateway.brokers import in_latest_layout
from kafka_dt_protocol import APIS, ApiKey, element_type
from kafka_dt_protocol.wire.times import NO_THROTTLE
from tests.unit.gateway.test_upstream_brokers import NOWHERE, followed, ranges


@pytest.mark.parametrize("seed", range(20))
async def test_what_all_speak_is_found_without_a_look_at_all_unless_a_broker_goes_or_speaks_otherwise(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The epoch of a KRaft broker's answer differs each time: that alone must cost no more in a large cluster."""
    sizes = list[int]()

    def in_common(answers: Sequence[Any]) -> Any:
        sizes.append(len(answers))
        return common_of(answers)

    common_of = module.in_common
    monkeypatch.setattr(module, "in_common", in_common)
    random = Random(seed)  # noqa: S311 - a test draws the same again
    brokers = followed(NOWHERE)
    for number in range(9):
        brokers.learn(number, "host", number)
    answers = {number: spoken(random) for number in range(9)}
    for epoch in range(3):
        for number, answer in answers.items():
            answers[number] = replace(answer, finalized_features_epoch=i64(10 * epoch + number))
            brokers._note_versions(brokers._brokers[number], answers[number])
    assert max(sizes) == 2
    answers[3] = replace(spoken(random), finalized_features_epoch=i64(100))
    brokers._note_versions(brokers._brokers[3], answers[3])
    common = brokers.versions(None)
    assert ranges(common) == ranges(common_of(list(answers.values())))
    assert common.finalized_features_epoch == 100
    del answers[3]
    brokers._change({}, {3})
    assert ranges(brokers.versions(None)) == ranges(common_of(list(answers.values())))
    assert max(sizes) == 9


def spoken(random: Random) -> Any:
    """An answer to ApiVersions with ranges of its own."""
    layout = APIS[ApiKey.API_VERSIONS].response[4]
    key = element_type(layout, "api_keys")
    bounds = [sorted(random.choices(range(4), k=2)) for _ in range(4)]
    keys = [
        key(api_key=i16(number), min_version=i16(low), max_version=i16(high))
        for number, (low, high) in enumerate(bounds)
    ]
    return in_latest_layout(layout(error_code=ErrorCode.none, api_keys=tuple(keys), throttle_time=NO_THROTTLE))
