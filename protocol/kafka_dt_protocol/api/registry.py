"""The table of APIs that are offered: key, versions, and kio's entity for each request and response.

What a client is told by ApiVersions is computed from this table, and a request is judged by it, so the two cannot
disagree. Entity types are imported when a version is first looked up: a command that sends one request need not
load eighty modules.

Version 0 of the token APIs, which kio no longer has, has the layout of version 1: Kafka 4.0 removed it for its
age, not for its form. That of the ACL APIs has a layout of its own (`acl_entities`).

Source: Kafka 3.9's ApiKeys and message schemas; KIP-35, KIP-511, KIP-896.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from types import MappingProxyType
from typing import Any, Final

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode

from kafka_dt_protocol.api.acl_entities import load_acl_request, load_acl_response
from kafka_dt_protocol.errors import LocalProtocolError
from kafka_dt_protocol.wire.layout import entity_layout
from kafka_dt_protocol.wire.times import NO_THROTTLE

MAX_TAGGED_FIELDS: Final = 32
"""What a request without arrays may hold: none of Kafka's has as many tagged fields, and anybody can send them."""


class ApiKey(IntEnum):
    """The APIs of Kafka that are spoken here."""

    METADATA = 3
    FIND_COORDINATOR = 10
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    SASL_AUTHENTICATE = 36
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    DESCRIBE_CLUSTER = 60


@dataclass(frozen=True, slots=True)
class Api:
    """One row of the table."""

    key: ApiKey
    min_version: int
    max_version: int
    request: Mapping[int, type[Any]]
    """kio's entity type of the request, by version."""
    response: Mapping[int, type[Any]]
    """kio's entity type of the response, by version."""
    max_elements: int
    """How many array elements and tagged fields a request may hold: what nobody needs must not cost the others."""


class _EntityTypes(Mapping[int, type[Any]]):
    """The entity types of one API by version, imported when first looked up."""

    __slots__ = ("_first_entity", "_key", "_load", "_loaded", "_versions")

    def __init__(self, key: ApiKey, versions: range, first_entity: int, load: Callable[[int, int], type[Any]]) -> None:
        self._key = key
        self._versions = versions
        self._first_entity = first_entity
        self._load = load
        self._loaded: dict[int, type[Any]] = {}

    def __getitem__(self, version: int) -> type[Any]:
        loaded = self._loaded.get(version)
        if loaded is None:
            if version not in self._versions:
                raise KeyError(version)
            loaded = self._loaded[version] = self._load(self._key, max(version, self._first_entity))
        return loaded

    def __contains__(self, version: object) -> bool:
        return version in self._versions

    def __iter__(self) -> Iterator[int]:
        return iter(self._versions)

    def __len__(self) -> int:
        return len(self._versions)


def _api(
    key: ApiKey,
    min_version: int,
    max_version: int,
    *,
    first_entity: int = 0,
    max_elements: int = MAX_TAGGED_FIELDS,
    load_request: Callable[[int, int], type[Any]] = load_request_schema,
    load_response: Callable[[int, int], type[Any]] = load_response_schema,
) -> Api:
    """Make a row; versions before `first_entity` have its layout."""
    versions = range(min_version, max_version + 1)
    return Api(
        key=key,
        min_version=min_version,
        max_version=max_version,
        request=_EntityTypes(key, versions, first_entity, load_request),
        response=_EntityTypes(key, versions, first_entity, load_response),
        max_elements=max_elements,
    )


def _acl_api(key: ApiKey, max_elements: int = MAX_TAGGED_FIELDS) -> Api:
    return _api(key, 0, 3, max_elements=max_elements, load_request=load_acl_request, load_response=load_acl_response)


APIS: Final[Mapping[int, Api]] = MappingProxyType(
    {
        api.key: api
        for api in (
            _api(ApiKey.METADATA, 0, 13, max_elements=2_000),
            _api(ApiKey.FIND_COORDINATOR, 0, 6, max_elements=2_000),
            _api(ApiKey.SASL_HANDSHAKE, 0, 1),
            _api(ApiKey.API_VERSIONS, 0, 4),
            _acl_api(ApiKey.DESCRIBE_ACLS),
            _acl_api(ApiKey.CREATE_ACLS, max_elements=5_000),
            _acl_api(ApiKey.DELETE_ACLS, max_elements=5_000),
            _api(ApiKey.SASL_AUTHENTICATE, 0, 2),
            _api(ApiKey.CREATE_DELEGATION_TOKEN, 0, 3, first_entity=1, max_elements=5_000),
            _api(ApiKey.RENEW_DELEGATION_TOKEN, 0, 2, first_entity=1),
            _api(ApiKey.EXPIRE_DELEGATION_TOKEN, 0, 2, first_entity=1),
            _api(ApiKey.DESCRIBE_DELEGATION_TOKEN, 0, 3, first_entity=1, max_elements=5_000),
            _api(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, 0, max_elements=5_000),
            _api(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, 0, max_elements=5_000),
            _api(ApiKey.DESCRIBE_CLUSTER, 0, 2),
        )
    }
)
"""Every API that is offered, by key."""

_FIRST_VERSION_WITH_THROTTLE_TIME: Final = 1


def load_entities() -> None:
    """Import the entities of every API and version now, a tenth of a second, instead of each when it is first used.

    For servers: a request must not wait for files, nor fail because no more of them can be opened.
    """
    for api in APIS.values():
        for entity_types in (api.request, api.response):
            for version in entity_types:
                _ = entity_types[version]


@cache
def api_versions_response(version: int, error: ErrorCode = ErrorCode.none) -> Any:
    """Make the answer to ApiVersions.

    Args:
        version: of the answer's layout, 0-4. A request in a version that does not exist is answered in version 0.
        error: without one every API is listed; with UNSUPPORTED_VERSION only ApiVersions itself, so that the
            client can ask again in a version of ours; with any other nothing.

    Returns:
        The response entity; it announces no features.

    Raises:
        LocalProtocolError: there is no such version.
    """
    api = APIS[ApiKey.API_VERSIONS]
    if version not in api.response:
        raise LocalProtocolError(f"ApiVersions has no version {version}")
    entity_type = api.response[version]
    throttle = {"throttle_time": NO_THROTTLE} if version >= _FIRST_VERSION_WITH_THROTTLE_TIME else {}
    return entity_type(error_code=error, api_keys=_api_ranges(entity_type, error), **throttle)


def _api_ranges(entity_type: type[Any], error: ErrorCode) -> tuple[Any, ...]:
    if error is ErrorCode.none:
        listed = list(APIS.values())
    elif error is ErrorCode.unsupported_version:
        listed = [APIS[ApiKey.API_VERSIONS]]
    else:
        listed = []
    fields = {field.name: field for field in entity_layout(entity_type).plain}
    entry: Any = fields["api_keys"].entity
    return tuple(entry(api_key=api.key, min_version=api.min_version, max_version=api.max_version) for api in listed)
