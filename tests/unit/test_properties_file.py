import pytest

from kafka_dt.properties_file import parse, read_otherwise_by_kafka


@pytest.mark.parametrize(
    ("content", "properties"),
    [
        ("a=\u00e9\u20ac\U0001f600\n".encode(), {"a": "\u00e9\u20ac\U0001f600"}),
        (b"a=\xe9\xa0\n", {"a": "\u00e9\u00a0"}),
        (b"a=\xc3\xa9\nb=\xe9\n", {"a": "\u00c3\u00a9", "b": "\u00e9"}),
        (rb"a=\u00e9", {"a": "\u00e9"}),
        (b"a=\x85b\n", {"a": "\x85b"}),
    ],
    ids=["UTF-8", "ISO-8859-1", "both are the latter", "ASCII", "no line ends there"],
)
def test_a_file_that_is_not_utf_8_is_iso_8859_1(content: bytes, properties: dict[str, str]) -> None:
    assert parse(content) == properties


@pytest.mark.parametrize(
    ("content", "keys"),
    [
        (b"a=b\n", set()),
        ("# \u00e9\na=b\n".encode(), set()),
        (rb"a=\u00e9", set()),
        (b"a=\xe9", set()),
        ("a=\u00e9\\u00e9\nb=c\nc=\u00a0\n\u00e9=1".encode(), {"a", "c", "\u00e9"}),
        ("a=\u00e9\na=b".encode(), set()),
    ],
)
def test_kafka_reads_otherwise_what_is_utf_8_and_not_ascii(content: bytes, keys: set[str]) -> None:
    assert read_otherwise_by_kafka(content) == keys


def test_a_malformed_escape_is_an_error() -> None:
    with pytest.raises(ValueError, match="escape"):
        parse(rb"a=\u12")
