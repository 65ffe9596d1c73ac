"""Frames that Kafka's own classes wrote: tests/vectors/messages/README.md says how they were recorded."""

import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from kio.static.protocol import Entity

from kafka_dt_protocol.api.registry import APIS, ApiKey
from kafka_dt_protocol.errors import MalformedMessage
from kafka_dt_protocol.wire.decoding import decode
from kafka_dt_protocol.wire.encoding import encode
from kafka_dt_protocol.wire.frames import FrameSplitter, frame
from kafka_dt_protocol.wire.headers import (
    RequestHeader,
    decode_response,
    encode_request,
    encode_response,
    parse_request_header,
)
from kafka_dt_protocol.wire.layout import entity_layout
from kafka_dt_protocol.wire.times import from_duration, from_timestamp
from tests.unit.protocol.api.test_registry import RANGES

FOLDER = Path(__file__).parents[2] / "vectors" / "messages"
LIMIT = 100_000


@dataclass(frozen=True, slots=True)
class Vector:
    kafka: str
    api: str
    api_key: int
    version: int
    kind: str
    correlation_id: int
    unknown_tagged_fields: bool
    body: dict[str, Any]
    frame: bytes
    client_id: str | None = None

    @property
    def content(self) -> bytes:
        return self.frame[4:]

    def decode(self, content: bytes) -> tuple[object, Any]:
        """Give the header (of a response the correlation id) and the body."""
        if self.kind == "response":
            return decode_response(self.api_key, self.version, content)
        header, offset = parse_request_header(content)
        body, end = decode(APIS[ApiKey(header.api_key)].request[header.api_version], content, offset)
        assert end == len(content)
        return header, body

    def encode(self, body: Any) -> bytes:
        if self.kind == "response":
            return encode_response(self.api_key, self.version, self.correlation_id, body)
        return encode_request(self.header, body)

    @property
    def header(self) -> RequestHeader:
        return RequestHeader(self.api_key, self.version, self.correlation_id, self.client_id)


def load(path: Path) -> list[Vector]:
    with path.open(encoding="utf-8") as lines:
        values = [json.loads(line) for line in lines]
    return [Vector(**{**value, "frame": bytes.fromhex(value["frame"])}) for value in values]


VECTORS = [vector for path in sorted(FOLDER.glob("*.jsonl")) for vector in load(path)]
every_vector = pytest.mark.parametrize(
    "vector", VECTORS, ids=lambda vector: f"{vector.kafka}-{vector.api}-{vector.version}-{vector.kind}"
)


def as_json(entity: Entity) -> dict[str, Any]:
    """Say an entity as Kafka's JsonConverter does, with the names of kio."""
    layout = entity_layout(type(entity))
    values = {field.name: getattr(entity, field.name) for field in layout.plain}
    tagged = {field.name: (getattr(entity, field.name), field.default) for field in layout.tagged}
    present = {name: value for name, (value, default) in tagged.items() if value != default}
    names_of_uuids = {field.name for field in layout.plain if field.kafka_type == "uuid"}
    return {
        name: value_as_json(UUID(int=0) if value is None and name in names_of_uuids else value)
        for name, value in {**values, **present}.items()
    }


JSON_FORMS: dict[type, Callable[[Any], object]] = {
    tuple: lambda items: [value_as_json(item) for item in items],
    bytes: lambda content: b64encode(content).decode(),
    UUID: lambda uuid: urlsafe_b64encode(uuid.bytes).decode().rstrip("="),
    timedelta: from_duration,
    datetime: from_timestamp,
}


def value_as_json(value: Any) -> object:
    if value is None or isinstance(value, str | int):
        return value
    form: Callable[[Any], object] = JSON_FORMS.get(type(value), as_json)
    return form(value)


def with_names_of_kio(value: Any) -> object:
    if isinstance(value, list):
        return [with_names_of_kio(item) for item in value]
    if isinstance(value, dict):
        return {name_in_kio(name): with_names_of_kio(item) for name, item in value.items()}
    return value


def name_in_kio(name: str) -> str:
    return re.sub("(?<!^)([A-Z])", r"_\1", name).lower().removesuffix("_ms")


@every_vector
def test_a_message_of_kafka_is_read_as_kafka_means_it(vector: Vector) -> None:
    header, body = vector.decode(vector.content)
    assert header == (vector.header if vector.kind == "request" else vector.correlation_id)
    assert as_json(body) == with_names_of_kio(vector.body)


@every_vector
def test_a_message_is_written_byte_for_byte_as_kafka_writes_it(vector: Vector) -> None:
    _, body = vector.decode(vector.content)
    if not vector.unknown_tagged_fields:
        assert frame(vector.encode(body)) == vector.frame


def split(chunks: list[bytes]) -> list[bytes]:
    splitter = FrameSplitter(LIMIT)
    contents = []
    for chunk in chunks:
        splitter.receive_data(chunk)
        while (content := splitter.next_frame()) is not None:
            contents.append(content)
    assert splitter.buffered == 0
    return contents


@every_vector
def test_a_frame_may_arrive_whole_byte_by_byte_or_with_the_next_behind_it(vector: Vector) -> None:
    assert split([vector.frame]) == [vector.content]
    assert split([bytes([byte]) for byte in vector.frame]) == [vector.content]
    assert split([vector.frame + vector.frame[:7], vector.frame[7:]]) == [vector.content] * 2


@every_vector
def test_a_message_of_kafka_cut_short_is_malformed(vector: Vector) -> None:
    for end in range(0, len(vector.content), 1 + len(vector.content) // 100):
        with pytest.raises(MalformedMessage):
            vector.decode(vector.content[:end])


@every_vector
def test_bytes_behind_a_request_are_left_alone(vector: Vector) -> None:
    if vector.kind == "request":
        header, offset = parse_request_header(vector.content + b"more")
        request = APIS[ApiKey(header.api_key)].request[header.api_version]
        body, end = decode(request, vector.content + b"more", offset)
        assert end == len(vector.content)
        assert encode(body) == encode(vector.decode(vector.content)[1])


@pytest.mark.parametrize("kind", ["request", "response"])
def test_there_are_vectors_of_every_version_that_the_recorded_releases_have(kind: str) -> None:
    recorded = {(vector.api_key, vector.version) for vector in VECTORS if vector.kind == kind}
    assert recorded == {(key, version) for key, (first, last) in RANGES.items() for version in range(first, last + 1)}


def test_the_vectors_are_of_both_generations_of_kafka() -> None:
    assert {vector.kafka.split(".")[0] for vector in VECTORS} == {"3", "4"}
