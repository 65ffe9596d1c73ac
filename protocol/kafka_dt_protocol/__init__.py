"""The Kafka wire protocol without I/O: bytes <-> values, and what may follow what.

Read `connection.py` first: what the server's side of one connection does with the bytes it is fed. It stands on
`authentication.py` (the table of what may follow what), `frames.py` (bytes <-> frames), `headers.py` (frames <->
requests and responses), `registry.py` (the table of APIs) and `responses.py` (making answers). `decoding.py` and
`encoding.py` turn bodies into kio's entities and back, by the layout that `layout.py` reads from them, with times by
`times.py`. `sasl/` holds the mechanisms, `errors.py` what can go wrong.

A gateway passes on what it does not serve: `request_stream.py` and `answer_stream.py` are its two directions,
`offered_versions.py` is what it offers, `node_addresses/` leads clients back to it.
"""

from kafka_dt_protocol.api.registry import APIS, ApiKey, refusal, response_type
from kafka_dt_protocol.api.responses import (
    NO_TIMESTAMP,
    build,
    element_type,
    refused_alterations,
    refused_coordinators,
    refused_creation,
    refusing_with,
)
from kafka_dt_protocol.api.table import Api, ApiTable, AtGateway, declare
from kafka_dt_protocol.connection import Limits, ServerConnection
from kafka_dt_protocol.errors import (
    InvalidFrameLength,
    LocalProtocolError,
    MalformedMessage,
    ProtocolError,
    RemoteProtocolError,
    UnexpectedAnswer,
    UnknownApi,
    UnsupportedVersion,
)
from kafka_dt_protocol.events import (
    ConnectionClosed,
    Event,
    LoginFault,
    MechanismChosen,
    RequestReceived,
    TokenReceived,
)
from kafka_dt_protocol.login.authentication import Action, Request, State
from kafka_dt_protocol.wire.frames import FrameSplitter, frame
from kafka_dt_protocol.wire.headers import (
    RequestHeader,
    decode_response,
    encode_request,
    encode_response,
    parse_request_header,
)

__all__ = [
    "APIS",
    "NO_TIMESTAMP",
    "Action",
    "Api",
    "ApiKey",
    "ApiTable",
    "AtGateway",
    "ConnectionClosed",
    "Event",
    "FrameSplitter",
    "InvalidFrameLength",
    "Limits",
    "LocalProtocolError",
    "LoginFault",
    "MalformedMessage",
    "MechanismChosen",
    "ProtocolError",
    "RemoteProtocolError",
    "Request",
    "RequestHeader",
    "RequestReceived",
    "ServerConnection",
    "State",
    "TokenReceived",
    "UnexpectedAnswer",
    "UnknownApi",
    "UnsupportedVersion",
    "build",
    "declare",
    "decode_response",
    "element_type",
    "encode_request",
    "encode_response",
    "frame",
    "parse_request_header",
    "refusal",
    "refused_alterations",
    "refused_coordinators",
    "refused_creation",
    "refusing_with",
    "response_type",
]
