import pytest

from kafka_dt_protocol.errors import (
    InvalidFrameLength,
    LocalProtocolError,
    MalformedMessage,
    MalformedProxyHeader,
    ProtocolError,
    RemoteProtocolError,
    UnexpectedAnswer,
    UnknownApi,
    UnsupportedVersion,
)

VIOLATIONS = [
    (InvalidFrameLength(-1, 524288), "frame length -1 is not between 0 and 524288"),
    (MalformedMessage("the message ends early"), "malformed message: the message ends early"),
    (MalformedProxyHeader("version 3 is unknown"), "malformed PROXY header: version 3 is unknown"),
    (UnexpectedAnswer(7), "another answer than that to request 7"),
    (UnexpectedAnswer(None), "an answer to no request"),
    (UnknownApi(4711), "unknown API key 4711"),
    (UnsupportedVersion(38, 99), "API key 38 has no version 99"),
]


@pytest.mark.parametrize(("error", "text"), VIOLATIONS)
def test_a_violation_of_the_peer_words_itself_in_one_line(error: RemoteProtocolError, text: str) -> None:
    assert isinstance(error, RemoteProtocolError)
    assert str(error) == text


def test_our_misuse_and_the_peers_violation_are_different_types() -> None:
    assert not issubclass(LocalProtocolError, RemoteProtocolError)
    assert not issubclass(RemoteProtocolError, LocalProtocolError)
    assert issubclass(LocalProtocolError, ProtocolError)


def test_violations_carry_fields() -> None:
    assert (InvalidFrameLength(7, 5).length, InvalidFrameLength(7, 5).limit) == (7, 5)
    assert MalformedMessage("x").reason == "x"
    assert (UnsupportedVersion(3, 4).api_key, UnsupportedVersion(3, 4).api_version) == (3, 4)
    assert UnknownApi(9).api_key == 9
    assert UnexpectedAnswer(7).due == 7
