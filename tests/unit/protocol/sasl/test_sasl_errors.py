"""The errors of SASL clients: one tree, with fields, fit for a log."""

import pytest

from kafka_dt_protocol.errors import RemoteProtocolError
from kafka_dt_protocol.sasl import (
    MalformedScramMessage,
    SaslError,
    ScramError,
    ServerNonceMismatch,
    ServerRejected,
    ServerSignatureMismatch,
    UnacceptableIterations,
)
from kafka_dt_protocol.sasl.text import encode_text, printable


@pytest.mark.parametrize(
    "error",
    [
        MalformedScramMessage("server-first", "not base64"),
        UnacceptableIterations(1, 4096, 1_000_000),
        ServerNonceMismatch(),
        ServerSignatureMismatch(),
        ServerRejected("unknown-user"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_every_error_of_scram_is_the_peers_fault(error: Exception) -> None:
    assert isinstance(error, ScramError)
    assert isinstance(error, SaslError)
    assert isinstance(error, RemoteProtocolError)
    assert str(error).isprintable()


def test_errors_carry_what_was_wrong() -> None:
    malformed = MalformedScramMessage("server-first", "not base64")
    assert (malformed.message_name, malformed.reason) == ("server-first", "not base64")
    iterations = UnacceptableIterations(1, 4096, 1_000_000)
    assert (iterations.iterations, iterations.minimum, iterations.maximum) == (1, 4096, 1_000_000)
    assert ServerRejected("unknown-user").error == "unknown-user"


def test_a_servers_words_are_cut_and_cleaned() -> None:
    error = ServerRejected("no\r\n\x1b[31mway" + "!" * 10_000)
    assert error.error.startswith("no???[31mway!")
    assert len(error.error) == 200


def test_printable_text_stays_as_it_is() -> None:
    assert printable("unknown user ß") == "unknown user ß"


def test_text_without_utf8_form_is_refused_without_being_shown() -> None:
    with pytest.raises(UnicodeError):
        "secret\ud800".encode()
    with pytest.raises(Exception, match="surrogate") as refusal:
        encode_text("secret\ud800")
    assert "secret" not in repr(refusal.value)
    assert refusal.value.__context__ is None
