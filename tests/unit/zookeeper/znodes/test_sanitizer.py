"""Names in paths and JSON, as Kafka's Sanitizer writes and reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_dt.zookeeper.errors import InvalidZnode
from kafka_dt.zookeeper.znodes.sanitizer import desanitize, sanitize


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
