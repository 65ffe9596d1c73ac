"""How an entity lies on the wire: the fields of kio's dataclasses, told in the words of Kafka's schema.

kio keeps in the annotations and the metadata of an entity's fields what a codec must know: the type on the wire,
whether null is allowed, the tag. `entity_layout` reads that; `decoding` and `encoding` are built from nothing else.

Source: KIP-482 (flexible versions, tagged fields), KIP-893 (nullable structs); Kafka's message generator.
"""

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from datetime import timedelta
from operator import attrgetter
from types import MappingProxyType, NoneType
from typing import Any, Final, cast, get_args, get_origin
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.static.constants import EntityType
from kio.static.protocol import Entity

from kafka_dt_protocol.errors import LocalProtocolError
from kafka_dt_protocol.wire.times import to_timestamp

FIXED_FORMATS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "int8": ">b",
        "int16": ">h",
        "uint16": ">H",
        "int32": ">i",
        "uint32": ">I",
        "int64": ">q",
        "float64": ">d",
    }
)
"""The numbers of the schema, as the struct module writes them."""

MAX_TEXT_BYTES: Final = 32767
"""The longest string, in UTF-8; compact strings could announce more, and must not."""

NULL_ENTITY: Final = -1
"""Stands in one byte before a nullable entity that is null."""

PRESENT_ENTITY: Final = 1
"""Stands in one byte before a nullable entity that follows."""

_ZEROS: Final[Mapping[str, object]] = MappingProxyType(
    {
        **dict.fromkeys(FIXED_FORMATS, 0),
        "float64": 0.0,
        "bool": False,
        "string": "",
        "bytes": b"",
        "uuid": UUID(int=0),
        "error_code": ErrorCode.none,
        "timedelta_i32": timedelta(0),
        "timedelta_i64": timedelta(0),
        "datetime_i64": to_timestamp(0),
    }
)


@dataclass(frozen=True, slots=True)
class FieldLayout:
    """One field of an entity, or one item of it where it is an array."""

    name: str
    kafka_type: str
    """As in kio's metadata (`int32`, `string`, `timedelta_i64`, ...); empty for an entity."""
    entity: type[Entity] | None
    """The nested entity, where the field holds one or many."""
    flexible: bool
    """Lengths are unsigned varints of length + 1, in which 0 is null."""
    is_array: bool
    nullable: bool
    """The field may be null; for an array, the array itself."""
    nullable_items: bool
    tag: int | None
    """The number of a tagged field, else None."""
    default: Any
    """What an absent tagged field means."""


@dataclass(frozen=True, slots=True)
class EntityLayout:
    """The fields of an entity: first those that are always there, in order, then the tagged ones by tag."""

    plain: tuple[FieldLayout, ...]
    tagged: tuple[FieldLayout, ...]
    flexible: bool
    """A buffer of tagged fields follows the plain ones, even if there are none."""


def entity_layout(entity_type: type[Entity]) -> EntityLayout:
    """Read the layout of one of kio's entities.

    Raises:
        LocalProtocolError: a field is of a form that Kafka's schema does not have.
    """
    layouts = _field_layouts(entity_type)
    return EntityLayout(
        plain=tuple(layout for layout in layouts if layout.tag is None),
        tagged=tuple(sorted((layout for layout in layouts if layout.tag is not None), key=attrgetter("tag"))),
        flexible=entity_type.__flexible__,
    )


def _field_layouts(entity_type: type[Entity]) -> list[FieldLayout]:
    return [_field_layout(entity_type, field) for field in fields(entity_type)]


def _field_layout(entity_type: type[Entity], field: Field[Any]) -> FieldLayout:
    inner, nullable = _without_none(field.type)
    is_array = get_origin(inner) is tuple
    nullable_items = False
    if is_array:
        inner, nullable_items = _without_none(get_args(inner)[0])
    nested = cast("type[Entity]", inner) if isinstance(inner, type) and is_dataclass(inner) else None
    # The client id keeps the old form in every header: a broker reads it before it knows the version (KIP-511).
    is_client_id = entity_type.__type__ is EntityType.header and field.name == "client_id"
    kafka_type = "" if nested else _kafka_type(entity_type, field)
    return FieldLayout(
        name=field.name,
        kafka_type=kafka_type,
        entity=nested,
        flexible=entity_type.__flexible__ and not is_client_id,
        is_array=is_array,
        nullable=nullable,
        nullable_items=nullable_items,
        tag=field.metadata.get("tag"),
        default=_default(field, kafka_type, nested, is_array=is_array),
    )


def _without_none(annotation: Any) -> tuple[Any, bool]:
    arguments = get_args(annotation)
    if NoneType not in arguments:
        return annotation, False
    (inner,) = (argument for argument in arguments if argument is not NoneType)
    return inner, True


def _kafka_type(entity_type: type[Entity], field: Field[Any]) -> str:
    kafka_type = field.metadata.get("kafka_type")
    if not isinstance(kafka_type, str):
        raise LocalProtocolError(f"{entity_type.__qualname__}.{field.name} does not say its type on the wire")
    return kafka_type


def _default(field: Field[Any], kafka_type: str, nested: type[Entity] | None, *, is_array: bool) -> object:
    """Where kio gives none, the schema's default is the zero of the type."""
    if field.default is not MISSING:
        return field.default
    if is_array:
        return ()
    if nested is not None:
        return nested(**{inner.name: inner.default for inner in _field_layouts(nested)})
    return _ZEROS.get(kafka_type)
