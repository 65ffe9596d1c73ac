"""The login and token protocol of Kafka without I/O: bytes <-> values, and what may follow what.

Read `connection.py` first: what the server's side of one connection does with the bytes it is fed. `events.py` holds
what it tells its caller, `errors.py` draws what can go wrong. Then by folder:

- `login/`: which request is legal in which state (`authentication.py` is the table), and the messages of a login.
- `sasl/`: the mechanisms, as machines. Read `mechanism.py` first.
- `api/`: the table of APIs (`registry.py`), and making answers (`responses.py`).
- `wire/`: bytes <-> frames, headers and kio's entities. Read `frames.py` first.
- `rewriting/`: what a gateway does to requests and answers that it forwards.
"""

from kafka_dt_protocol.api.registry import APIS, ApiKey, refusal, response_type
from kafka_dt_protocol.api.responses import (
    NO_TIMESTAMP,
    build,
    element_type,
    refused_alterations,
    refused_configs,
    refused_coordinators,
    refused_creation,
    refused_quotas,
    refusing_with,
)
from kafka_dt_protocol.api.table import Api, ApiTable, AtGateway, declare
from kafka_dt_protocol.connection import ServerConnection
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
from kafka_dt_protocol.wire.frames import FrameSplitter, Limits, frame
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
    "refused_configs",
    "refused_coordinators",
    "refused_creation",
    "refused_quotas",
    "refusing_with",
    "response_type",
]
