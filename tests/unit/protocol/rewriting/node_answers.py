"""Answers with addresses: all of kio's, drawn by their layout, and what rewriting has to make of them."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from datetime import timedelta
from functools import cache
from typing import Any

from hypothesis import strategies as st
from kio.index import load_response_schema
from kio.schema.errors import ErrorCode

from kafka_dt_protocol.rewriting.node_addresses import Advertise, carries_addresses, known_versions
from kafka_dt_protocol.wire.decoding import decode
from kafka_dt_protocol.wire.encoding import encode
from kafka_dt_protocol.wire.layout import FieldLayout, entity_layout
from kafka_dt_protocol.wire.times import to_timestamp
from tests.support.protocol.kio_entities import rich

API_KEYS = (0, 1, 3, 10, 60, 78, 79)
CARRIERS = [
    (api_key, version)
    for api_key in API_KEYS
    for version in known_versions(api_key) or ()
    if carries_addresses(api_key, version)
]
"""Every API and version with addresses."""

_INT32 = st.integers(-(2**31), 2**31 - 1)
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "bytes": st.binary(max_size=20),
    "datetime_i64": st.integers(0, 2**42).map(to_timestamp),
    "error_code": st.sampled_from(ErrorCode),
    "int8": st.integers(-128, 127),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "int32": _INT32,
    "int64": st.integers(-(2**63), 2**63 - 1),
    "records": st.binary(max_size=300),
    "string": st.text(max_size=10),
    "timedelta_i32": _INT32.map(lambda ms: timedelta(milliseconds=ms)),
    "uuid": st.uuids(),
}
_NODE_VALUES = {
    "node_id": st.integers(-1, 3),
    "broker_id": st.integers(-1, 3),
    "host": st.sampled_from(["", "b", "broker-1.kafka.internal", "Zoë", "x" * 200]),
    "port": st.sampled_from([-1, 0, 9092, 2**31 - 1]),
}


def to(host: str, port: int) -> Advertise:
    """Advertise one host, and a port for each node."""
    return lambda node_id, _host, _port: (host, port + node_id % 1000)


GATEWAYS = st.builds(
    to,
    st.sampled_from(["", "b", "gw", "gateway.example.com", "broker-2.kafka.internal", "y" * 130]),
    st.sampled_from([9092, 0, 19092]),
)


def response_type(api_key: int, version: int) -> type[Any]:
    return load_response_schema(api_key, version)


def rich_answer(api_key: int, version: int) -> Any:
    """Fill an answer with awkward values; none of its brokers is fenced."""
    return _unfenced(rich(response_type(api_key, version)))


def _unfenced(answer: Any) -> Any:
    if not any(field.name == "brokers" for field in fields(answer)):
        return answer
    brokers = answer.brokers
    if any(field.name == "is_fenced" for field in fields(brokers[0])):
        brokers = tuple(replace(broker, is_fenced=False) for broker in brokers)
    return replace(answer, brokers=brokers)


@cache
def answers(api_key: int, version: int) -> st.SearchStrategy[Any]:
    return _entities(response_type(api_key, version))


def _entities(entity_type: type[Any]) -> st.SearchStrategy[Any]:
    layout = entity_layout(entity_type)
    drawn = {field.name: _values(field) for field in (*layout.plain, *layout.tagged)}
    return st.builds(entity_type, **drawn)


def _values(field: FieldLayout) -> st.SearchStrategy[Any]:
    if field.entity is not None:
        value = _entities(field.entity)
    else:
        value = _NODE_VALUES.get(field.name, _VALUES[field.kafka_type])
    if field.is_array:
        value = st.lists(value, max_size=3).map(tuple)
    return st.none() | value if field.nullable else value


def content_of(answer: Any, correlation_id: int = 7) -> bytes:
    header_type = answer.__header_schema__
    return encode(header_type(correlation_id=correlation_id)) + encode(answer)


def answer_in(content: bytes, entity_type: type[Any]) -> Any:
    _, offset = decode(entity_type.__header_schema__, content)
    answer, end = decode(entity_type, content, offset)
    assert end == len(content)
    return answer


def advertised(value: Any, advertise: Advertise) -> Any:
    """Replace every address in an entity, at any depth, except those of fenced brokers."""
    if isinstance(value, tuple):
        return tuple(advertised(item, advertise) for item in value)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    values = {field.name: advertised(getattr(value, field.name), advertise) for field in fields(value)}
    node_id = values.get("node_id", values.get("broker_id", -1))
    if node_id >= 0 and values.get("host") and values["port"] > 0 and not values.get("is_fenced"):
        values["host"], values["port"] = advertise(node_id, values["host"], values["port"])
    return replace(value, **values)
