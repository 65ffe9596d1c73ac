import re
import time

import pytest

from kafka_dt.java_patterns import compiled, replace_all


@pytest.mark.parametrize("java", ["CN=[a-z&&[^b]]+", "[a]CN=[[a-z]]+", r"\\[CN=[a-z[0-9]]+", "[]a[b]]", "[^&&a]"])
def test_sets_of_characters_that_python_reads_otherwise_are_an_error(java: str) -> None:
    with pytest.raises(re.error, match="a set of characters in another one is not supported"):
        compiled(java)


@pytest.mark.parametrize("java", [r"[a\[]", "[a&b]&&", r"\[&&", "[]&]", r"[^\]&]+[a]"])
def test_brackets_and_ampersands_that_are_text_are_read(java: str) -> None:
    assert compiled(java).pattern == java


def test_the_sets_of_a_long_pattern_are_told_apart_without_trying_all_ways_to_read_them() -> None:
    begun = time.process_time()
    compiled("OU=([^,]+)," * 20)
    assert time.process_time() - begun < 0.5


@pytest.mark.parametrize("java", ["(?u)CN=.*", "(?iu)CN=.*", "a{99999999999}"])
def test_what_python_cannot_read_is_an_error_whatever_python_calls_it(java: str) -> None:
    with pytest.raises(re.error):
        compiled(java)


def test_a_named_group_is_one_and_looking_behind_is_none() -> None:
    assert compiled(r"(?<first>.)(?<=a)(?<!b)\(?<x").groupindex == {"first": 1}


def test_letters_are_those_of_ascii() -> None:
    assert compiled(r"\w+").fullmatch("zo\u00e9") is None


@pytest.mark.parametrize(
    ("java", "replaced"), [(".*?", "-a-b-"), ("x?", "-a-b-"), (".*", "--"), ("b", "a-"), ("^", "-ab"), ("c", "ab")]
)
def test_what_is_behind_an_empty_match_stays(java: str, replaced: str) -> None:
    assert replace_all(compiled(java), "ab", lambda _: "-") == replaced
