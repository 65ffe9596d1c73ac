import subprocess
import sys
from typing import Final

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt_protocol.api.registry import APIS, ASKED, ApiKey, AskedApi
from kafka_dt_protocol.api.table import MAX_TAGGED_FIELDS, Api
from kafka_dt_protocol.errors import LocalProtocolError
from kafka_dt_protocol.wire.encoding import encode
from kafka_dt_protocol.wire.layout import entity_layout

RANGES: Final = {
    3: (0, 13),
    10: (0, 6),
    17: (0, 1),
    18: (0, 4),
    29: (0, 3),
    30: (0, 3),
    31: (0, 3),
    36: (0, 2),
    38: (0, 3),
    39: (0, 2),
    40: (0, 2),
    41: (0, 3),
    50: (0, 0),
    51: (0, 0),
    60: (0, 2),
}
"""The versions of Kafka 3.9, and of 4.3 for those that it added: the releases whose frames are recorded."""
TOKEN_APIS = (38, 39, 40, 41)


def test_the_versions_are_those_of_a_broker() -> None:
    for key, (lowest, highest) in RANGES.items():
        assert APIS[key].min_version == lowest
        assert APIS[key].max_version >= highest


def test_all_entities_can_be_imported_at_once() -> None:
    code = """
import sys
from kafka_dt_protocol.api.registry import APIS
APIS.load_entities()
before = set(sys.modules)
for api in APIS.values():
    for version in api.request:
        api.request[version], api.response[version]
assert set(sys.modules) == before
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("key", APIS)
def test_every_version_has_a_request_and_a_response_of_its_api(key: int) -> None:
    api = APIS[key]
    lowest, highest = api.min_version, api.max_version
    for types in (api.request, api.response):
        assert list(types) == list(range(lowest, highest + 1))
        assert len(types) == highest - lowest + 1
        for version in types:
            assert version in types
            assert types[version].__api_key__ == key
            assert types[version].__version__ == (version or (1 if key in TOKEN_APIS else 0))


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.key.name)
def test_an_api_whose_requests_have_arrays_has_a_limit_for_them_and_others_have_room_for_tagged_fields(
    api: Api,
) -> None:
    has_arrays = any(field.is_array for entity in api.request.values() for field in entity_layout(entity).plain)
    assert (MAX_TAGGED_FIELDS < api.max_elements <= 10_000) if has_arrays else api.max_elements == MAX_TAGGED_FIELDS


@pytest.mark.parametrize("version", [-1, 4, 99])
def test_other_versions_are_absent(version: int) -> None:
    request = APIS[ApiKey.CREATE_DELEGATION_TOKEN].request
    assert version not in request
    assert request.get(version) is None
    with pytest.raises(KeyError):
        request[version]


@pytest.mark.parametrize("version", range(5))
def test_api_versions_announces_the_table(version: int) -> None:
    response = APIS.api_versions(version)
    assert response.error_code is ErrorCode.none
    announced = {entry.api_key: (entry.min_version, entry.max_version) for entry in response.api_keys}
    assert announced == {key: (api.min_version, api.max_version) for key, api in APIS.items()}
    assert isinstance(response, APIS[ApiKey.API_VERSIONS].response[version])


def test_an_unknown_version_of_api_versions_is_told_which_exist() -> None:
    response = APIS.api_versions(0, ErrorCode.unsupported_version)
    assert encode(response) == bytes.fromhex("0023 00000001 0012 0000 0004")


@pytest.mark.parametrize("version", range(5))
def test_any_other_error_of_api_versions_lists_nothing(version: int) -> None:
    response = APIS.api_versions(version, ErrorCode.invalid_request)
    assert (response.error_code, response.api_keys) == (ErrorCode.invalid_request, ())


def test_no_features_are_announced() -> None:
    without_features = encode(APIS.api_versions(4, ErrorCode.invalid_request))
    assert without_features == bytes.fromhex("002a 01 00000000 00")


def test_api_versions_has_no_layout_for_unknown_versions() -> None:
    with pytest.raises(LocalProtocolError):
        APIS.api_versions(5)


def test_what_is_asked_of_a_cluster_is_not_offered_to_clients() -> None:
    assert ASKED.keys() - APIS.keys() == set(AskedApi)
    assert all(ASKED[key] is APIS[key] for key in APIS)
    assert AskedApi.DESCRIBE_QUORUM not in {each.api_key for each in APIS.api_versions(4).api_keys}
