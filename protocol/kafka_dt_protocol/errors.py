"""What can go wrong while speaking the Kafka protocol, as a tree.

    ProtocolError
      LocalProtocolError        this package was used wrongly: a bug of its caller
      RemoteProtocolError       the peer broke the protocol: its connection is to be closed
        InvalidFrameLength
        MalformedMessage
        MalformedProxyHeader
        UnexpectedAnswer
        UnknownApi
        UnsupportedVersion

The text of a RemoteProtocolError is one line for the log. It repeats only numbers of the peer's bytes, so that neither
secrets nor line ends reach a log.

Source: org.apache.kafka.common.network.NetworkReceive, org.apache.kafka.common.requests.RequestHeader and
org.apache.kafka.common.requests.RequestContext, which close a connection in these cases.
"""


class ProtocolError(Exception):
    """Anything that this package raises."""


class LocalProtocolError(ProtocolError):
    """A call that makes no sense, or an entity that the wire format cannot hold."""


class RemoteProtocolError(ProtocolError):
    """The peer sent what the protocol does not allow; nothing is answered and its connection is closed."""


class InvalidFrameLength(RemoteProtocolError):
    """The length in front of a frame, in bytes, is negative or beyond the limit."""

    def __init__(self, length: int, limit: int) -> None:
        super().__init__(f"frame length {length} is not between 0 and {limit}")
        self.length = length
        self.limit = limit


class MalformedMessage(RemoteProtocolError):
    """A header or a body does not decode; `reason` says why, in a few words and without the peer's bytes."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"malformed message: {reason}")
        self.reason = reason


class MalformedProxyHeader(RemoteProtocolError):
    """What a proxy says in front of a connection does not decode; `reason` says why, without its bytes."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"malformed PROXY header: {reason}")
        self.reason = reason


class UnexpectedAnswer(RemoteProtocolError):
    """A server answers what was not asked, or not in the order of requests; `due` is the correlation id that is due."""

    def __init__(self, due: int | None) -> None:
        super().__init__("an answer to no request" if due is None else f"another answer than that to request {due}")
        self.due = due


class UnknownApi(RemoteProtocolError):
    """A request for an API that is not offered."""

    def __init__(self, api_key: int) -> None:
        super().__init__(f"unknown API key {api_key}")
        self.api_key = api_key


class UnsupportedVersion(RemoteProtocolError):
    """A request for a known API in a version that is not offered."""

    def __init__(self, api_key: int, api_version: int) -> None:
        super().__init__(f"API key {api_key} has no version {api_version}")
        self.api_key = api_key
        self.api_version = api_version
