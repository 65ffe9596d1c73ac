"""What brokers of different ages say of themselves, in one layout and in common."""

from __future__ import annotations

from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt.gateway.brokers import in_common, in_latest_layout
from kafka_dt_protocol import APIS, ApiKey, build, element_type
from kafka_dt_protocol.wire.layout import entity_layout

LATEST = 4


def kind(version: int) -> Any:
    return APIS[ApiKey.API_VERSIONS].response[version]


def answer(
    apis: dict[int, tuple[int, int]],
    version: int = LATEST,
    supported: dict[str, tuple[int, int]] | None = None,
    **values: Any,
) -> Any:
    api = element_type(kind(version), "api_keys")
    keys = tuple(api(api_key=key, min_version=low, max_version=high) for key, (low, high) in apis.items())
    if supported is not None:
        feature: Any = next(each.entity for each in entity_layout(kind(version)).tagged if each.tag == 0)
        values["supported_features"] = tuple(
            feature(name=name, min_version=low, max_version=high) for name, (low, high) in supported.items()
        )
    return build(kind(version), error_code=ErrorCode.none, api_keys=keys, **values)


def ranges(entity: Any) -> dict[int, tuple[int, int]]:
    return {key.api_key: (key.min_version, key.max_version) for key in entity.api_keys}


@pytest.mark.parametrize("version", range(LATEST + 1))
def test_an_answer_of_any_version_comes_in_the_newest_layout(version: int) -> None:
    apis = {0: (3, 12), 700: (0, 1)}
    found = in_latest_layout(answer(apis, version))
    assert found == answer(apis)


def test_features_stay_as_they_were_told() -> None:
    told = answer({0: (3, 12)}, 3, {"metadata.version": (1, 27)}, finalized_features_epoch=7)
    assert in_latest_layout(told) == answer(
        {0: (3, 12)}, supported={"metadata.version": (1, 27)}, finalized_features_epoch=7
    )


def test_the_newest_layout_stays_the_same_object() -> None:
    told = answer({0: (3, 12)})
    assert in_latest_layout(told) is told


def test_one_broker_has_all_its_versions_in_common_with_itself() -> None:
    told = answer({0: (3, 12), 1: (4, 17)}, supported={"group.version": (0, 1)}, finalized_features_epoch=3)
    assert in_common([told]) == told


def test_what_only_some_know_or_know_in_other_versions_is_left_out() -> None:
    older = answer({0: (0, 11), 1: (0, 3), 2: (0, 9), 3: (0, 2)})
    newer = answer({0: (3, 12), 1: (4, 17), 3: (0, 2), 68: (0, 1)})
    newest = answer({3: (1, 2), 0: (3, 13), 1: (4, 17)})
    assert ranges(in_common([older, newer, newest])) == {0: (3, 11), 3: (1, 2)}


def test_features_are_those_of_all_and_finalized_as_by_the_one_that_knows_most() -> None:
    one = answer({}, supported={"a": (0, 2), "b": (0, 1)}, finalized_features_epoch=4, zk_migration_ready=True)
    two = answer({}, supported={"a": (1, 3)}, finalized_features_epoch=9)
    assert in_common([one, two]) == answer({}, supported={"a": (1, 2)}, finalized_features_epoch=9)
