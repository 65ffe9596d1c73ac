"""The entity types of an API's messages, by version: kio's, imported when they are first looked up.

Version 0 of the ACL APIs, which kio no longer has, is version 1 without the type of a pattern (KIP-290): there were
only literal ones. So its entities are made of those of version 1, by leaving that field out.

Source: KIP-290, KIP-896; the schemas of Kafka 3.9 (DescribeAcls, CreateAcls, DeleteAcls).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, fields, is_dataclass, make_dataclass
from typing import Any, Final, get_args

from kio.index import load_request_schema, load_response_schema

_PATTERN_TYPES: Final = frozenset({"pattern_type", "pattern_type_filter", "resource_pattern_type"})
"""What the field is called in the six messages."""


Load = Callable[[int, int], type[Any]]
"""Gives the entity type of an API's key and a version."""


class EntityTypes(Mapping[int, type[Any]]):
    """The entity types of the requests or the responses of one API by version, imported when first looked up.

    Args:
        key: of the API.
        versions: those that there are.
        first_entity: the first version that has an entity; earlier ones have its layout.
        load: imports one.
    """

    __slots__ = ("_first_entity", "_key", "_load", "_loaded", "_versions")

    def __init__(self, key: int, versions: range, first_entity: int, load: Load) -> None:
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


def load_acl_request(api_key: int, version: int) -> Any:
    """Give the entity type of a request."""
    return _load(load_request_schema, api_key, version)


def load_acl_response(api_key: int, version: int) -> Any:
    """Give the entity type of a response."""
    return _load(load_response_schema, api_key, version)


def _load(load: Load, api_key: int, version: int) -> Any:
    return load(api_key, version) if version else _version_0(load(api_key, 1))


def _version_0(entity_type: Any) -> Any:
    constants = {name: value for name, value in vars(entity_type).items() if name in entity_type.__annotations__}
    constants = {name: value for name, value in constants.items() if name.startswith("__")}
    return make_dataclass(
        entity_type.__name__,
        [
            (each.name, _type_0(each.type), field(metadata=each.metadata))  # no other field has a default
            for each in fields(entity_type)
            if each.name not in _PATTERN_TYPES
        ],
        namespace={**constants, "__version__": 0, "__doc__": entity_type.__doc__},
        frozen=True,
        slots=True,
        kw_only=True,
    )


def _type_0(annotation: Any) -> Any:
    """Give the type of a field, an array of entities of version 0 where it is one of entities."""
    for item in get_args(annotation):
        if is_dataclass(item):
            return tuple[_version_0(item), ...]  # type: ignore[misc]
    return annotation
