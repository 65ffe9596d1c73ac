"""The Kafka wire protocol without I/O: bytes <-> values, and what may follow what.

Read `registry` first: the table of APIs says what is spoken here. Then follow a request on its way in: `frames` cuts
the stream, `headers` reads what stands before the body, `decoding` turns the body into an entity of kio, and
on the way out `encoding` and `headers` make the answer. `layout` is what both codecs know of an entity. What goes
wrong on the way is in `errors`; `times` translates Kafka's milliseconds. `sasl` holds the mechanisms.

Nothing here opens a socket, reads a clock or makes randomness: that is handed in.
"""

from protocol.decoding import MAX_ELEMENTS, decode
from protocol.encoding import encode
from protocol.errors import (
    InvalidFrameLength,
    LocalProtocolError,
    MalformedMessage,
    ProtocolError,
    RemoteProtocolError,
    UnknownApi,
    UnsupportedVersion,
)
from protocol.frames import FrameSplitter, frame
from protocol.headers import (
    RequestHeader,
    decode_response,
    encode_request,
    encode_response,
    parse_request_header,
)
from protocol.registry import APIS, Api, ApiKey, api_versions_response
from protocol.times import NO_THROTTLE, from_duration, from_timestamp, to_duration, to_timestamp

__all__ = [
    "APIS",
    "MAX_ELEMENTS",
    "NO_THROTTLE",
    "Api",
    "ApiKey",
    "FrameSplitter",
    "InvalidFrameLength",
    "LocalProtocolError",
    "MalformedMessage",
    "ProtocolError",
    "RemoteProtocolError",
    "RequestHeader",
    "UnknownApi",
    "UnsupportedVersion",
    "api_versions_response",
    "decode",
    "decode_response",
    "encode",
    "encode_request",
    "encode_response",
    "frame",
    "from_duration",
    "from_timestamp",
    "parse_request_header",
    "to_duration",
    "to_timestamp",
]
