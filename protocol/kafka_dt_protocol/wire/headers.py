"""What stands before the body of a message: API, version, correlation id, client id.

A server reads the header with `parse_request_header`, judges API and version by the table of APIs, and decodes the body
at the offset it was given. Answers are made whole by `encode_response`. A client uses `encode_request` and
`decode_response`. All of them deal in the content of frames, without the length.

Flexible versions of an API have a request header 2 and a response header 1, which end with tagged fields; others have 1
and 0. The response to ApiVersions always has header 0: a client reads it before it knows what the server speaks.

Source: KIP-482, KIP-511; org.apache.kafka.common.requests.RequestHeader,
org.apache.kafka.common.requests.ResponseHeader and org.apache.kafka.common.requests.ApiVersionsResponse.parse.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from struct import Struct
from typing import Any, Final

from kio.schema.errors import ErrorCode
from kio.schema.request_header.v1 import RequestHeader as RequestHeaderV1
from kio.schema.request_header.v2 import RequestHeader as RequestHeaderV2

from kafka_dt_protocol.api.registry import APIS, ApiKey
from kafka_dt_protocol.api.table import MAX_TAGGED_FIELDS, Api, ApiTable
from kafka_dt_protocol.errors import LocalProtocolError, MalformedMessage, UnknownApi, UnsupportedVersion
from kafka_dt_protocol.wire.decoding import decode, skip_tagged_fields
from kafka_dt_protocol.wire.encoding import Pieces, encode, encode_pieces

MAX_RESPONSE_ELEMENTS: Final = 2_000_000
"""Array elements of a response that a client takes: a server may describe far more tokens than a client asks for."""

_KEY_AND_VERSION: Final = Struct(">hh")
_CORRELATION_ID_AND_LENGTH: Final = Struct(">ih")
_CORRELATION_ID: Final = Struct(">i")
_ERROR_CODE: Final = Struct(">h")
_FIRST_FLEXIBLE_API_VERSIONS: Final = 3
_NO_TAGGED_FIELDS: Final = b"\0"


@dataclass(slots=True, init=False, unsafe_hash=True)
class RequestHeader:
    """The header of a request, in any header version."""

    api_key: Final[int]
    api_version: Final[int]
    correlation_id: Final[int]
    """Comes back in the answer; any number, also negative."""
    client_id: Final[str | None]
    """What the client calls itself, for logs and quotas; proves nothing."""

    def __init__(self, api_key: int, api_version: int, correlation_id: int, client_id: str | None) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id


def parse_request_header(frame: bytes, apis: ApiTable = APIS) -> tuple[RequestHeader, int]:
    """Read the header of a request from the content of a frame; gives it with the offset of the body.

    ApiVersions comes with any version: one that does not exist is to be answered without a look at the body.

    Raises:
        MalformedMessage: the frame does not hold a header.
        UnknownApi: the API is not in the table.
        UnsupportedVersion: the API is, but not in this version.
    """
    if len(frame) < _KEY_AND_VERSION.size:
        raise MalformedMessage("no header")
    api_key, api_version = _KEY_AND_VERSION.unpack_from(frame)
    flexible = apis.flexible.get((api_key, api_version))
    if flexible is None:
        flexible = _is_flexible(apis, api_key, api_version)
    offset = _KEY_AND_VERSION.size + _CORRELATION_ID_AND_LENGTH.size
    if len(frame) < offset:
        raise MalformedMessage("it ends early")
    correlation_id, length = _CORRELATION_ID_AND_LENGTH.unpack_from(frame, _KEY_AND_VERSION.size)
    client_id, offset = _read_client_id(frame, offset, length)
    if flexible:
        if frame[offset : offset + 1] == _NO_TAGGED_FIELDS:
            offset += 1
        else:
            offset = skip_tagged_fields(frame, offset, max_elements=MAX_TAGGED_FIELDS)
    return RequestHeader(api_key, api_version, correlation_id, client_id), offset


def encode_request(header: RequestHeader, entity: Any, apis: ApiTable = APIS) -> bytes:
    """Make the content of a request's frame.

    Raises:
        LocalProtocolError: the entity is not the request of the header's API and version, or does not fit the wire.
    """
    _expect_type(entity, _api(apis, header.api_key).request, header.api_version)
    header_type: type[Any] = RequestHeaderV2 if entity.__flexible__ else RequestHeaderV1
    wire_header = header_type(
        request_api_key=header.api_key,
        request_api_version=header.api_version,
        correlation_id=header.correlation_id,
        client_id=header.client_id,
    )
    return encode(wire_header) + encode(entity)


def encode_response(api_key: int, api_version: int, correlation_id: int, entity: Any) -> bytes:
    """Make the content of a response's frame.

    Args:
        api_key: of the request.
        api_version: of the answer, which is the request's; 0 for an ApiVersions of an unknown version.
        correlation_id: of the request.
        entity: the response.

    Raises:
        LocalProtocolError: the entity is not the response of that API and version, or does not fit the wire.
    """
    return b"".join(encode_response_pieces(RequestHeader(api_key, api_version, correlation_id, None), entity))


def encode_response_pieces(header: RequestHeader, entity: Any, apis: ApiTable = APIS) -> Pieces:
    """Make the content of a response's frame in pieces, as `encode_response`; the header is the request's."""
    _expect_type(entity, _api(apis, header.api_key).response, header.api_version)
    pieces = encode_pieces(entity)
    response_header = _CORRELATION_ID.pack(header.correlation_id)
    # kio knows that the header of an ApiVersions response has no tagged fields.
    pieces.put_first(response_header + _NO_TAGGED_FIELDS if entity.__header_schema__.__flexible__ else response_header)
    return pieces


def decode_response(api_key: int, api_version: int, frame: bytes, apis: ApiTable = APIS) -> tuple[int, Any]:
    """Read the content of a response's frame; gives the correlation id and the response.

    An ApiVersions that the server does not know in this version comes back in the layout of version 0, with
    UNSUPPORTED_VERSION.

    Args:
        api_key: of the request that it answers.
        api_version: of that request.
        frame: the content of a frame.
        apis: the APIs that there are.

    Raises:
        MalformedMessage: the frame does not hold that response.
        LocalProtocolError: no such request could have been sent.
    """
    response_types = _api(apis, api_key).response
    if api_version not in response_types:
        raise LocalProtocolError(f"API key {api_key} has no version {api_version}")
    response_type = response_types[api_version]
    header, offset = decode(response_type.__header_schema__, frame)
    if api_key == ApiKey.API_VERSIONS and _says_unsupported_version(frame, offset):
        response_type = response_types[0]
    entity, _ = decode(response_type, frame, offset, max_elements=MAX_RESPONSE_ELEMENTS)
    return header.correlation_id, entity


def _read_client_id(frame: bytes, offset: int, length: int) -> tuple[str | None, int]:
    """Read the text; in every header version its length is a number of two bytes, which has been read."""
    if length == -1:
        return None, offset
    end = offset + length
    if length < 0 or end > len(frame):
        raise MalformedMessage("a length beyond its end" if length >= 0 else "a negative length")
    try:
        return frame[offset:end].decode(), end
    except UnicodeDecodeError:
        raise MalformedMessage("text that is not UTF-8") from None


def _is_flexible(apis: ApiTable, api_key: int, api_version: int) -> bool:
    if api_key not in apis.rows:
        raise UnknownApi(api_key)
    try:
        return apis.is_flexible(api_key, api_version)
    except KeyError:
        if api_key == ApiKey.API_VERSIONS:
            return api_version >= _FIRST_FLEXIBLE_API_VERSIONS
        raise UnsupportedVersion(api_key, api_version) from None


def _api(apis: ApiTable, api_key: int) -> Api:
    api = apis.rows.get(api_key)
    if api is None:
        raise LocalProtocolError(f"no API has the key {api_key}")
    return api


def _says_unsupported_version(frame: bytes, offset: int) -> bool:
    """Look at the error code, the first field of the body in every version."""
    if len(frame) < offset + _ERROR_CODE.size:
        raise MalformedMessage("it ends early")
    code: int = _ERROR_CODE.unpack_from(frame, offset)[0]
    return code == ErrorCode.unsupported_version


def _expect_type(entity: Any, types: Mapping[int, type[Any]], api_version: int) -> None:
    if type(entity) is not types.get(api_version):
        raise LocalProtocolError(f"{type(entity).__qualname__} is not the message of version {api_version}")
