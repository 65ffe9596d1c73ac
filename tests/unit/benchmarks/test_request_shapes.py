"""The worst requests are requests: each is decoded as a node decodes it, and there is one of every API."""

from __future__ import annotations

import pytest

from benchmarks.request_shapes import SHAPES, Caller, Shape
from kafka_dt_protocol import APIS, ApiKey
from kafka_dt_protocol.api.table import MAX_TAGGED_FIELDS
from kafka_dt_protocol.wire.decoding import decode
from kafka_dt_protocol.wire.headers import parse_request_header

OF_APIS = [shape for shape in SHAPES if shape.api is not None]


def api_of(payload: bytes) -> int:
    """Decode a request to its end, as a node does."""
    header, offset = parse_request_header(payload)
    api = APIS[header.api_key]
    _, end = decode(api.request[header.api_version], payload, offset, max_elements=api.max_elements)
    assert end == len(payload)
    return header.api_key


@pytest.mark.parametrize("shape", OF_APIS, ids=lambda shape: f"{shape.caller.name} {shape.name}")
def test_a_shape_is_a_request_of_its_api(shape: Shape) -> None:
    for size in shape.sizes:
        assert api_of(shape.payload(size)) == shape.api


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape.caller.name} {shape.name}")
def test_a_shape_grows_with_its_size(shape: Shape) -> None:
    lengths = [len(shape.payload(size)) for size in shape.sizes]
    assert lengths == sorted(set(lengths))


def test_every_api_that_takes_arrays_has_a_shape_before_or_without_a_login_and_after_one() -> None:
    with_arrays = {api.key for api in APIS.values() if api.max_elements > MAX_TAGGED_FIELDS}
    for callers in ({Caller.STRANGER, Caller.ANONYMOUS}, {Caller.USER}):
        shown = {shape.api for shape in OF_APIS if shape.caller in callers}
        assert with_arrays <= shown
        assert {ApiKey.SASL_HANDSHAKE, ApiKey.API_VERSIONS, ApiKey.SASL_AUTHENTICATE} <= shown
