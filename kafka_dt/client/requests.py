"""Requests to one server and its answers: entities on one side, bytes of frames on the other; no I/O.

    sent = requests.encode(api, **values)     # goes out as frame(sent.content)
    answer = requests.decode(sent, content)   # of what came back

`ask_versions` has to come before other requests, so that versions are known that both sides speak.

Source: org.apache.kafka.clients.NetworkClient; KIP-35 and KIP-511 (ApiVersions).
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from importlib.metadata import version as package_version
from typing import Any, Final

from kio.schema.errors import ErrorCode

from kafka_dt.client.errors import InvalidArgument, UnexpectedAnswer, UnsupportedByServer
from kafka_dt_protocol.api.registry import ASKED, ApiKey
from kafka_dt_protocol.api.responses import build
from kafka_dt_protocol.errors import LocalProtocolError
from kafka_dt_protocol.wire.headers import RequestHeader, decode_response, encode_request

_LARGEST_CORRELATION_ID: Final = 2**31 - 1
_SOFTWARE: Final = {
    "client_software_name": "kafka-dt",
    # Servers take letters, digits, dots and dashes only.
    "client_software_version": re.sub(r"[^a-zA-Z0-9.\-]", "-", package_version("kafka-dt")),
}


@dataclass(frozen=True, slots=True)
class Sent:
    """A request that waits for its answer."""

    api: IntEnum
    version: int
    correlation_id: int
    content: bytes = field(repr=False)
    """Of its frame."""


class Requests:
    """The requests to one server.

    server: its name, for errors
    client_id: what we call ourselves
    """

    def __init__(self, server: str, client_id: str) -> None:
        self.server: Final = server
        self._client_id = client_id
        self._correlation_id = 0
        self._versions: Mapping[int, tuple[int, int]] = {}
        self.api_versions: Any = None
        """What the server answered when it was asked for its versions, features included."""

    def version(self, api: IntEnum) -> int:
        """Return the version of an API in which `encode` speaks.

        Raises UnsupportedByServer when there is none.
        """
        lowest, highest = self._versions.get(api, (0, -1))
        common = min(highest, ASKED[api].max_version)
        if common < max(lowest, ASKED[api].min_version):
            offered = f"versions {lowest} to {highest}" if highest >= 0 else "none"
            raise UnsupportedByServer(self.server, f"{_spoken(api)} in a version known here (it has {offered})")
        return common

    def encode(self, api: IntEnum, /, **values: Any) -> Sent:
        """Make a request in the highest version that both sides know.

        values: the fields of the request by name, of any version; those that the version at hand has not are left
        out.
        Raises UnsupportedByServer or InvalidArgument.
        """
        return self._encode(api, self.version(api), values)

    def decode(self, sent: Sent, content: bytes) -> Any:
        """Return the entity of an answer.

        Raises UnexpectedAnswer or RemoteProtocolError; the connection is of no more use then.
        """
        answered_id, answer = decode_response(sent.api, sent.version, content, ASKED)
        if answered_id != sent.correlation_id:
            raise UnexpectedAnswer(self.server, f"answer {answered_id} came where {sent.correlation_id} was due")
        return answer

    async def ask_versions(self, exchange: Callable[[Sent], Awaitable[Any]]) -> None:
        """Ask which versions the server knows.

        exchange: sends a request and returns the answer's entity
        Raises UnexpectedAnswer, and what `exchange` raises.
        """
        api, version = ApiKey.API_VERSIONS, ASKED[ApiKey.API_VERSIONS].max_version
        answer = await exchange(self._encode(api, version, _SOFTWARE))
        if answer.error_code is ErrorCode.unsupported_version:
            # KIP-511: an older server says which versions of this API it has, or nothing.
            version = max((key.max_version for key in answer.api_keys if key.api_key == api), default=0)
            answer = await exchange(self._encode(api, min(version, ASKED[api].max_version), _SOFTWARE))
        if answer.error_code is not ErrorCode.none:
            raise UnexpectedAnswer(self.server, f"no list of API versions but the error {answer.error_code.name}")
        self.api_versions = answer
        self._versions = {key.api_key: (key.min_version, key.max_version) for key in answer.api_keys}

    def _encode(self, api: IntEnum, version: int, values: Mapping[str, Any]) -> Sent:
        correlation_id = self._correlation_id
        self._correlation_id = 0 if correlation_id == _LARGEST_CORRELATION_ID else correlation_id + 1
        header = RequestHeader(api, version, correlation_id, self._client_id)
        try:
            entity = build(ASKED[api].request[version], **values)
            return Sent(api, version, correlation_id, encode_request(header, entity, ASKED))
        except LocalProtocolError as error:
            raise InvalidArgument(f"this cannot be sent: {error}") from error


def _spoken(api: IntEnum) -> str:
    return "".join(word.capitalize() for word in api.name.split("_"))
