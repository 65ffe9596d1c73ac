"""Every message of Kafka's schema as kio has it, and instances of each, to hold codecs against.

`ENTITY_TYPES` are all requests, responses, headers and data messages in all versions; `rich` and `sparse` fill one
of them with the awkward values of each type.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from kio.index import load_entity_schema
from kio.schema.errors import ErrorCode
from kio.schema.index import schema_name_map
from kio.static.protocol import Entity

from kafka_dt_protocol.wire.layout import FieldLayout, entity_layout

RICH = {
    "bool": True,
    "bytes": b"\x00\xff" * 70,
    "datetime_i64": datetime(2024, 11, 21, 7, 46, 41, 234000, tzinfo=UTC),
    "error_code": ErrorCode.delegation_token_expired,
    "float64": -0.1,
    "int8": 127,
    "int16": 2**15 - 1,
    "int32": 2**31 - 1,
    "int64": 2**63 - 1,
    "uint16": 2**16 - 1,
    "uint32": 2**32 - 1,
    "records": b"\x80records",
    "string": "Zoë 🐘 " * 20,
    "timedelta_i32": timedelta(milliseconds=2**31 - 1),
    "timedelta_i64": timedelta(days=36500, milliseconds=1),
    "uuid": UUID("7cecb9a8-4b3c-4a3c-9f2b-000000000001"),
}
SPARSE = {
    "bool": False,
    "bytes": b"",
    "datetime_i64": datetime(1970, 1, 1, tzinfo=UTC),
    "error_code": ErrorCode.unknown_server_error,
    "float64": 0.0,
    "int8": -128,
    "int16": -(2**15),
    "int32": -(2**31),
    "int64": -(2**63),
    "uint16": 0,
    "uint32": 0,
    "records": b"",
    "string": "",
    "timedelta_i32": timedelta(milliseconds=-1),
    "timedelta_i64": timedelta(milliseconds=-1),
    "uuid": UUID(int=1),
}


def _all_entity_types() -> Iterator[type[Entity]]:
    for name, versions in schema_name_map.items():
        for version, kinds in versions.items():
            for kind in kinds:
                yield load_entity_schema(name, version, kind)


ENTITY_TYPES = tuple(_all_entity_types())


def entity_id(entity_type: type[Entity]) -> str:
    return f"{entity_type.__name__}-v{entity_type.__version__}"


def rich(entity_type: type[Entity]) -> Entity:
    """Nothing null, no tagged field left out, arrays of two, the largest values."""
    return _entity(entity_type, RICH, items=2, nulls=False)


def sparse(entity_type: type[Entity]) -> Entity:
    """Null wherever it is allowed, empty arrays, the smallest values, tagged fields at their defaults."""
    return _entity(entity_type, SPARSE, items=0, nulls=True)


def _entity(entity_type: type[Entity], values: dict[str, Any], *, items: int, nulls: bool) -> Entity:
    layout = entity_layout(entity_type)
    fields = {field.name: _value(field, values, items=items, nulls=nulls) for field in layout.plain}
    if nulls:
        tagged = {field.name: field.default for field in layout.tagged}
    else:
        tagged = {field.name: _value(field, values, items=items, nulls=nulls) for field in layout.tagged}
    return entity_type(**fields, **tagged)


def _value(field: FieldLayout, values: dict[str, Any], *, items: int, nulls: bool) -> object:
    if nulls and field.nullable:
        return None
    if field.entity is None:
        value = values[field.kafka_type]
    else:
        value = _entity(field.entity, values, items=items, nulls=nulls)
    return (value,) * items if field.is_array else value
