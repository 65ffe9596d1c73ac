"""The attributes of SCRAM messages: names, nonces, base64, counts, extensions, written and read."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_dt_protocol.sasl import NO_EXTENSIONS, MalformedScramMessage
from kafka_dt_protocol.sasl.scram_messages import (
    MAX_MESSAGE_BYTES,
    decode,
    encode_base64,
    encode_saslname,
    is_nonce,
    parse_base64,
    parse_count,
    parse_extensions,
    parse_nonce,
    parse_saslname,
    parse_value,
)

names = st.text(st.characters(min_codepoint=1, max_codepoint=0x7F), min_size=1)


@pytest.mark.parametrize(
    ("saslname", "name"),
    [("a=2Cb", "a,b"), ("a=3Db", "a=b"), ("=3D2C", "=2C"), ("=2C3D", ",3D"), ("=3D=3D", "=="), ("a b", "a b")],
)
def test_names_are_unescaped_once(saslname: str, name: str) -> None:
    assert parse_saslname("client-first", "n", f"n={saslname}") == name


@pytest.mark.parametrize("saslname", ["=", "a=", "=2", "=2c", "=3d", "==2C", "=3D=", "=41", "=2C=2B", "= 2C"])
def test_an_unknown_escape_is_refused(saslname: str) -> None:
    with pytest.raises(MalformedScramMessage, match="escape"):
        parse_saslname("client-first", "n", f"n={saslname}")


def test_an_empty_name_is_refused() -> None:
    with pytest.raises(MalformedScramMessage, match="empty"):
        parse_saslname("client-first", "a", "a=")


@given(names)
def test_any_name_that_kafka_takes_comes_through(name: str) -> None:
    escaped = encode_saslname(name)
    assert "," not in escaped
    assert parse_saslname("client-first", "n", f"n={escaped}") == name


@given(st.binary(min_size=1))
def test_base64_has_padding_and_no_line_end(data: bytes) -> None:
    assert encode_base64(data) == base64.b64encode(data).decode()
    assert parse_base64("server-final", "v", encode_base64(data)) == data


@pytest.mark.parametrize(
    "value", ["", "A", "AA", "AA=", "AAA", "AB==", "AAB=", "AA==AA==", "A A=", "AA-_", "====", "="]
)
def test_base64_has_one_form_only(value: str) -> None:
    with pytest.raises(MalformedScramMessage, match="p= is not base64"):
        parse_base64("client-final", "p", value)


@pytest.mark.parametrize("nonce", ["", "a b", "a,b", "a\n", "é", "\x7f", "\t"])
def test_what_is_no_nonce(nonce: str) -> None:
    assert not is_nonce(nonce)
    with pytest.raises(MalformedScramMessage, match="nonce"):
        parse_nonce("client-first", f"r={nonce}")


def test_every_printable_character_but_blank_and_comma_is_allowed_in_a_nonce() -> None:
    allowed = "".join(map(chr, range(0x21, 0x7F))).replace(",", "")
    assert is_nonce(allowed)
    assert parse_nonce("client-first", f"r={allowed}") == allowed


@pytest.mark.parametrize("value", ["", "0", "04096", "+1", "-1", "1.0", "1_0", " 1", "12345678901"])
def test_what_is_no_count(value: str) -> None:
    with pytest.raises(MalformedScramMessage, match="count"):
        parse_count("server-first", value)


def test_a_count_has_up_to_ten_digits() -> None:
    assert parse_count("server-first", "4096") == 4096
    assert parse_count("server-first", "9999999999") == 9_999_999_999


def test_an_attribute_stands_in_its_place() -> None:
    assert parse_value("server-first", "s", "s=") == ""
    with pytest.raises(MalformedScramMessage, match="no attribute s="):
        parse_value("server-first", "s", "i=4096")
    with pytest.raises(MalformedScramMessage, match="mandatory extension"):
        parse_value("server-first", "s", "m=x")


def test_extensions_keep_their_order_and_their_case() -> None:
    extensions = parse_extensions("client-first", ["tokenauth=TRUE", "Foo=a=b"], "nr")
    assert list(extensions.items()) == [("tokenauth", "TRUE"), ("Foo", "a=b")]
    assert parse_extensions("client-first", [], "nr") is NO_EXTENSIONS


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ([""], "name=value"),
        (["x"], "name=value"),
        (["x="], "name=value"),
        (["=y"], "name=value"),
        (["x1=y"], "name=value"),
        ([" x=y"], "name=value"),
        (["m=y"], "mandatory"),
        (["x=y", "x=y"], "twice"),
        (["n=y"], "twice"),
        (["x=y", "r=y"], "twice"),
    ],
)
def test_an_extension_that_is_none_is_refused(attributes: list[str], reason: str) -> None:
    with pytest.raises(MalformedScramMessage, match=reason):
        parse_extensions("client-first", attributes, "nr")


@pytest.mark.parametrize("message", [b"a\0", b"a\x80", b"a\n", b"a\r", b"a" * (MAX_MESSAGE_BYTES + 1)])
def test_a_message_that_no_grammar_allows_is_refused(message: bytes) -> None:
    with pytest.raises(MalformedScramMessage):
        decode("client-first", message)


def test_a_message_may_have_the_greatest_length() -> None:
    assert decode("client-first", b"a" * MAX_MESSAGE_BYTES) == "a" * MAX_MESSAGE_BYTES
