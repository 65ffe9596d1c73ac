"""The grammar of SCRAM messages: what parses, what does not, and that nothing else happens."""

import base64
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_dt_protocol.sasl import MalformedScramMessage, ScramError, ServerRejected
from kafka_dt_protocol.sasl.scram_messages import (
    MAX_MESSAGE_BYTES,
    client_final_start,
    parse_client_final,
    parse_client_first,
    parse_server_final,
    parse_server_first,
)

START = "c=biws,r=abcdef"

PARSERS: dict[str, Callable[[bytes], object]] = {
    "client-first": parse_client_first,
    "server-first": parse_server_first,
    "client-final": lambda message: parse_client_final(message, START),
    "server-final": parse_server_final,
}

GOOD = {
    "client-first": b"n,,n=alice,r=abc",
    "server-first": b"r=abcdef,s=c2FsdA==,i=4096",
    "client-final": b"c=biws,r=abcdef,p=cHJvb2Y=",
    "server-final": b"v=c2lnbmF0dXJl",
}


def test_a_client_first_with_everything() -> None:
    message = parse_client_first(b"n,a=a=2Cb,n=a=2Cb,r=n0n:ce,tokenauth=true,x=a=b")
    assert message.gs2_header == "n,a=a=2Cb,"
    assert message.authorization_id == message.name == "a,b"
    assert message.nonce == "n0n:ce"
    assert dict(message.extensions) == {"tokenauth": "true", "x": "a=b"}
    assert message.bare == "n=a=2Cb,r=n0n:ce,tokenauth=true,x=a=b"


def test_a_client_first_without_an_authorization_id_has_none() -> None:
    message = parse_client_first(GOOD["client-first"])
    assert message.authorization_id is None
    assert message.gs2_header == "n,,"
    assert dict(message.extensions) == {}


def test_a_server_first() -> None:
    message = parse_server_first(GOOD["server-first"] + b",x=y")
    assert (message.nonce, message.salt, message.iterations) == ("abcdef", b"salt", 4096)


def test_a_client_final() -> None:
    message = parse_client_final(b"c=biws,r=abcdef,x=y,p=cHJvb2Y=", START)
    assert (message.without_proof, message.proof) == ("c=biws,r=abcdef,x=y", b"proof")
    assert "proof=" not in repr(message).replace("without_proof=", "")


def test_a_server_final_is_its_signature() -> None:
    assert parse_server_final(GOOD["server-final"]) == b"signature"
    assert parse_server_final(GOOD["server-final"] + b",x=y") == b"signature"


def test_a_client_final_starts_with_the_channel_binding_and_the_nonce() -> None:
    assert client_final_start("n,,", "abcdef") == START
    assert client_final_start("n,a=b,", "x") == "c=" + base64.b64encode(b"n,a=b,").decode() + ",r=x"


@pytest.mark.parametrize("what", PARSERS)
@pytest.mark.parametrize("extra", [b",m=x", b",x", b",x=", b",x1=y", b",=y", b",", b",x=y,x=z"])
def test_an_extension_that_is_none_is_refused_in_every_message(what: str, extra: bytes) -> None:
    head, _, proof = GOOD[what].partition(b",p=")
    message = head + extra + (b",p=" + proof if proof else b"")
    with pytest.raises(MalformedScramMessage) as refusal:
        PARSERS[what](message)
    assert refusal.value.message_name == what


@pytest.mark.parametrize("what", PARSERS)
@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n", b",x=y\n"])
def test_a_line_end_after_any_message_is_refused(what: str, end: bytes) -> None:
    with pytest.raises(MalformedScramMessage):
        PARSERS[what](GOOD[what] + end)


@pytest.mark.parametrize("what", PARSERS)
def test_a_message_that_is_too_long_is_refused(what: str) -> None:
    message = GOOD[what].partition(b",p=")[0]
    message += b",x=" + b"y" * (MAX_MESSAGE_BYTES - len(message) - len(b",x=,p=cHJvb2Y=")) + b",p=cHJvb2Y="
    assert len(message) == MAX_MESSAGE_BYTES
    PARSERS[what](message)
    with pytest.raises(MalformedScramMessage, match="longer"):
        PARSERS[what](message.replace(b",x=", b",x=y"))


@pytest.mark.parametrize("what", PARSERS)
@pytest.mark.parametrize("character", [b"\0", b"\x80", b"\xff", "é".encode()])
def test_nul_and_what_is_not_ascii_are_refused_everywhere(what: str, character: bytes) -> None:
    for position in range(1, len(GOOD[what]) + 1):
        with pytest.raises(MalformedScramMessage):
            PARSERS[what](GOOD[what][:position] + character + GOOD[what][position:])


@pytest.mark.parametrize("what", PARSERS)
def test_every_shortening_is_refused_or_says_less(what: str) -> None:
    whole = PARSERS[what](GOOD[what])
    for end in range(len(GOOD[what])):
        assert reaction(what, GOOD[what][:end]) != whole


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n",
        b"n,,",
        b"n,,n=alice",
        b"n=alice,r=abc",
        b"y,,n=alice,r=abc",
        b"p=tls-unique,,n=alice,r=abc",
        b"N,,n=alice,r=abc",
        b" n,,n=alice,r=abc",
        b"n,a=,n=alice,r=abc",
        b"n,alice,n=alice,r=abc",
        b"n,,n=,r=abc",
        b"n,,alice,r=abc",
        b"n,,n=alice,r=",
        b"n,,n=alice,r=a b",
        b"n,,r=abc,n=alice",
        b"n,,m=x,n=alice,r=abc",
        b"n,,n=alice,m=x,r=abc",
        b"n,,n=alice,r=abc,n=bob",
    ],
)
def test_a_client_first_that_is_none_is_refused(message: bytes) -> None:
    with pytest.raises(MalformedScramMessage):
        parse_client_first(message)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"c=biws,r=abcdef",
        b",p=cHJvb2Y=",
        b"p=cHJvb2Y=",
        b"c=biws,r=abcdef,p=",
        b"c=biws,r=abcdef,p=cHJvb2Y",
        b"c=biws,r=abcdef,p=cHJvb2Z=",
        b"c=biws,r=abcdef,p=cHJv b2Y=",
        b"c=biws,r=abcdef,p=cHJvb2Y=,x=y",
        b"c=biws,r=abcdef,p=cHJvb2Y=,p=cHJvb2Y=",
        b"c=biws,r=abcde,p=cHJvb2Y=",
        b"c=biws,r=abcdefg,p=cHJvb2Y=",
        b"c=biws,r=xabcdef,p=cHJvb2Y=",
        b"c=,r=abcdef,p=cHJvb2Y=",
        b"c=eSws,r=abcdef,p=cHJvb2Y=",
        b"r=abcdef,c=biws,p=cHJvb2Y=",
    ],
)
def test_a_client_final_that_is_none_is_refused(message: bytes) -> None:
    with pytest.raises(MalformedScramMessage):
        parse_client_final(message, START)


@pytest.mark.parametrize(
    "message",
    [
        b"r=abcdef,s=c2FsdA==",
        b"r=abcdef,i=4096,s=c2FsdA==",
        b"m=x,r=abcdef,s=c2FsdA==,i=4096",
        b"r=,s=c2FsdA==,i=4096",
        b"r=a b,s=c2FsdA==,i=4096",
        b"r=abcdef,s=,i=4096",
        b"r=abcdef,s=c2FsdA,i=4096",
        b"r=abcdef,s=c2FsdB==,i=4096",
        b"r=abcdef,s=c2Fs dA==,i=4096",
        b"r=abcdef,s=c2FsdA==,i=",
        b"r=abcdef,s=c2FsdA==,i=0",
        b"r=abcdef,s=c2FsdA==,i=04096",
        b"r=abcdef,s=c2FsdA==,i=+4096",
        b"r=abcdef,s=c2FsdA==,i=-4096",
        b"r=abcdef,s=c2FsdA==,i=4096.0",
        b"r=abcdef,s=c2FsdA==,i=4_096",
        b"r=abcdef,s=c2FsdA==,i= 4096",
        b"r=abcdef,s=c2FsdA==,i=" + b"9" * 5000,
    ],
)
def test_a_server_first_that_is_none_is_refused(message: bytes) -> None:
    with pytest.raises(MalformedScramMessage):
        parse_server_first(message)


@pytest.mark.parametrize("parse", [parse_server_first, parse_server_final])
def test_a_server_that_says_why_not_is_heard(parse: Callable[[bytes], object]) -> None:
    with pytest.raises(ServerRejected) as refusal:
        parse("e=unknown\nüser,x=y".encode())
    assert refusal.value.error == "unknown?üser"


def test_a_refusal_that_is_too_long_is_not_read() -> None:
    with pytest.raises(MalformedScramMessage, match="longer"):
        parse_server_final(b"e=" + b"x" * MAX_MESSAGE_BYTES)


@pytest.mark.parametrize("message", [b"", b"x=y", b"v=", b"v=c2lnbmF0dXJ", b"V=c2lnbmF0dXJl", b",v=c2lnbmF0dXJl"])
def test_a_server_final_that_is_none_is_refused(message: bytes) -> None:
    with pytest.raises(MalformedScramMessage):
        parse_server_final(message)


@given(what=st.sampled_from(list(PARSERS)), message=st.binary())
def test_any_bytes_parse_or_are_malformed(what: str, message: bytes) -> None:
    for candidate in (message, GOOD[what] + message, GOOD[what] + b"," + message, GOOD[what][:6] + message):
        outcome = reaction(what, candidate)
        if isinstance(outcome, ScramError):
            assert str(outcome).isprintable()
            assert not isinstance(outcome, ServerRejected) or what.startswith("server")


def reaction(what: str, message: bytes) -> object:
    """Return the parsed message, or the error that says why it is none; any other error is a bug."""
    try:
        return PARSERS[what](message)
    except (MalformedScramMessage, ServerRejected) as error:
        return error
