"""JSON in znodes: lenient about the text, exact about types, as a broker's Jackson."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_dt.zookeeper.errors import InvalidZnode
from kafka_dt.zookeeper.znodes import documents
from kafka_dt.zookeeper.znodes.documents import desanitize, sanitize


@pytest.mark.parametrize(
    "data",
    [
        b'{"a":1}',
        b' \n{"a" : 1}  trailing words',
        b'\xef\xbb\xbf{"a":1}',
        '{"a":1}'.encode("utf-16"),
        b'{"a":2,"a":1}',
    ],
)
def test_what_a_broker_reads_is_read(data: bytes) -> None:
    assert documents.read(data) == {"a": 1}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"word",
        b"[1]",
        b'"text"',
        b"{",
        b"\xff\xfe\xfd",
        b'{"a":NaN}',
        b'{"a":-Infinity}',
        b"[" * 100_000,
        b'{"a":' + b"9" * 5000 + b"}",
    ],
)
def test_what_is_no_object_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidZnode):
        documents.read(data)


@pytest.mark.parametrize("value", ['"5"', "5.0", "true", "null", "[5]", "9223372036854775808", "-9223372036854775809"])
def test_only_a_64_bit_integer_is_a_number(value: str) -> None:
    with pytest.raises(InvalidZnode, match="number is missing or not a 64-bit integer"):
        documents.integer(documents.read(f'{{"number":{value}}}'.encode()), "number")


@pytest.mark.parametrize("value", ["5", "null", "{}", '["a"]'])
def test_only_text_is_text(value: str) -> None:
    with pytest.raises(InvalidZnode, match="name is missing or not text"):
        documents.text(documents.read(f'{{"name":{value}}}'.encode()), "name")


@pytest.mark.parametrize("value", ['"a"', "null", '["a",1]', '{"a":"b"}'])
def test_only_a_list_of_texts_is_one(value: str) -> None:
    with pytest.raises(InvalidZnode, match="names is missing or not a list of texts"):
        documents.texts(documents.read(f'{{"names":{value}}}'.encode()), "names")


@given(st.binary())
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(InvalidZnode):
        assert isinstance(documents.read(data), dict)


def test_a_refusal_does_not_chain_what_would_repeat_the_content() -> None:
    with pytest.raises(InvalidZnode) as caught:
        documents.read(b"secret")
    assert caught.value.__cause__ is None
    assert "secret" not in str(caught.value)


def test_what_is_written_has_no_blanks_and_is_utf_8() -> None:
    assert documents.write({"a": [1, "é"]}) == '{"a":[1,"é"]}'.encode()
    assert json.loads(documents.write({"b": None})) == {"b": None}


@pytest.mark.parametrize(
    ("name", "sanitized"),
    [
        ("alice", "alice"),
        ("User:a b*c~", "User%3Aa%20b%2Ac%7E"),
        ("AZaz09.-_", "AZaz09.-_"),
        ("+%/&=?", "%2B%25%2F%26%3D%3F"),
        ("CN=x,O=y", "CN%3Dx%2CO%3Dy"),
        ("é€😀", "%C3%A9%E2%82%AC%F0%9F%98%80"),
        ("\x00\n", "%00%0A"),
        ("", ""),
        ("\ud800x", "%3Fx"),
    ],
)
def test_names_are_encoded_as_a_broker_does(name: str, sanitized: str) -> None:
    assert sanitize(name) == sanitized


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("User:bob", "User:bob"),
        ("a+b", "a b"),
        ("a%2Bb", "a+b"),
        ("%c3%a9", "é"),
        ("é", "é"),
        ("%FFx", "\ufffdx"),
        ("~*", "~*"),
    ],
)
def test_reading_is_as_generous_as_a_broker(text: str, name: str) -> None:
    assert desanitize(text) == name


@pytest.mark.parametrize("text", ["%", "a%2", "%zz", "%%41", "% 1"])
def test_a_malformed_percent_sign_is_refused(text: str) -> None:
    with pytest.raises(InvalidZnode, match="percent"):
        desanitize(text)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_every_name_comes_back(name: str) -> None:
    sanitized = sanitize(name)
    assert desanitize(sanitized) == name
    assert sanitized.isascii()
