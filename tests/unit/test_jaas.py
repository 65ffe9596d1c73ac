"""kafka_dt.jaas against the forms that Kafka's own parser accepts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_dt.jaas import (
    PLAIN_LOGIN_MODULE,
    SCRAM_LOGIN_MODULE,
    ControlFlag,
    JaasError,
    LoginModule,
    parse_login_file,
    parse_login_module,
)

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


def test_a_plain_listener_names_its_users() -> None:
    module = parse_login_module(
        f'{PLAIN_LOGIN_MODULE} required username="admin" password="s3cret"'
        ' user_admin="s3cret" user_alice=wonder user_="";'
    )
    assert module.name == PLAIN_LOGIN_MODULE
    assert module.control_flag is ControlFlag.REQUIRED
    assert (module.username, module.password) == ("admin", "s3cret")
    assert module.plain_users == {"admin": "s3cret", "alice": "wonder", "": ""}
    assert not module.token_auth


def test_a_token_login_is_told_by_tokenauth_in_any_case() -> None:
    line = '{} required username="id" password="c2VjcmV0" tokenauth={};'
    assert parse_login_module(line.format(SCRAM_LOGIN_MODULE, '"true"')).token_auth
    assert parse_login_module(line.format(SCRAM_LOGIN_MODULE, "TRUE")).token_auth
    assert not parse_login_module(line.format(SCRAM_LOGIN_MODULE, '" true"')).token_auth
    assert not parse_login_module(line.format(SCRAM_LOGIN_MODULE, "yes")).token_auth


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ('"a b"', "a b"),
        ("'a \"b\"'", 'a "b"'),
        (r'"say \"hi\" \\ \n\t\q"', 'say "hi" \\ \n\tq'),
        (r'"\101\0\777\48"', "A\0?7\x048"),
        ("word-with.dots_and$", "word-with.dots_and$"),
        ('"a/*b*/c//d"', "a/*b*/c//d"),
        ("é€", "é€"),
        ('"line\\\nbreak"', "line\nbreak"),
        ('""', ""),
    ],
)
def test_values_are_read_as_java_reads_them(written: str, read: str) -> None:
    assert parse_login_module(f"Module required a={written} b=c;").options == {"a": read, "b": "c"}


@pytest.mark.parametrize("flag", ["required", "REQUISITE", "Sufficient", "optional"])
def test_flags_are_taken_in_any_case(flag: str) -> None:
    assert parse_login_module(f"Module {flag};").control_flag == flag.lower()


def test_blanks_lines_and_comments_do_not_matter() -> None:
    text = 'Module // which\n required /* how\n * long */ a = "b" / also a comment\n\tb="c"\r\n;\n// end'
    assert parse_login_module(text).options == {"a": "b", "b": "c"}


def test_the_last_of_two_equal_options_counts() -> None:
    assert parse_login_module("Module required a=b a=c;").options == {"a": "c"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "exactly one login module"),
        ("// nothing", "exactly one login module"),
        ("A required; B required;", "there are 2"),
        ("Module", "control flag"),
        ("Module maybe;", "control flag is none of"),
        ("Module required a=b", "';'"),
        ("Module required a;", "'='"),
        ("Module required a=;", "a value"),
        ("Module required a=12;", "needs double quotes"),
        ("Module required a=-x;", "needs double quotes"),
        ("Module required a=.x;", "needs double quotes"),
        ("Module required a=x==;", "name of an option"),
        ('Module required a="b;', "does not end on its line"),
        ('Module required a="b\n";', "does not end on its line"),
        ("Module required a=b /* ;", "comment does not end"),
        ("; required;", "class of a login module"),
    ],
)
def test_what_is_no_jaas_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(JaasError, match=reason):
        parse_login_module(text)


def test_errors_and_reprs_show_no_secret() -> None:
    for text in (
        "Module required password=hunter2=x user=y;",
        'Module required password="a"hunter2" b;',
        "Module hunter2;",
        'Module required password="hunter2',
    ):
        with pytest.raises(JaasError) as caught:
            parse_login_module(text)
        assert "hunter2" not in str(caught.value)
        assert caught.value.position is not None
    assert "hunter2" not in repr(parse_login_module('Module required password="hunter2";'))


def test_a_file_has_sections() -> None:
    sections = parse_login_file(
        """
        KafkaServer {
            org.apache.kafka.common.security.plain.PlainLoginModule required
                user_alice="a";
            Other optional;
        };
        "Client" { org.apache.zookeeper.server.auth.DigestLoginModule required username=kafka password="z"; };
        """
    )
    assert list(sections) == ["KafkaServer", "Client"]
    assert [module.name for module in sections["KafkaServer"]] == [PLAIN_LOGIN_MODULE, "Other"]
    assert sections["Client"][0].password == "z"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("A { };", "class of a login module"),
        ("A { M required; }", "';'"),
        ("A { M required; ", "class of a login module"),
        ("A M required;", "'{'"),
        ("A { M required; }; A { M required; };", "twice"),
    ],
)
def test_a_broken_file_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(JaasError, match=reason):
        parse_login_file(text)


@given(_TEXT.filter(bool), st.dictionaries(_TEXT, _TEXT, max_size=4), st.sampled_from(ControlFlag))
def test_what_is_written_is_read_back(name: str, options: dict[str, str], flag: ControlFlag) -> None:
    module = LoginModule(name, options, flag)
    assert parse_login_module(module.line) == module
    assert parse_login_file(f"Section {{ {module.line} }};") == {"Section": (module,)}
    assert "\n" not in module.line


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    for parse in (parse_login_module, parse_login_file):
        try:
            parse(text)
        except JaasError:
            continue


@given(
    st.lists(st.sampled_from(["M", " required ", "a", "=", '"', "'", "\\", ";", "{", "}", "/*", "*/", "/", "\n", "1"]))
)
def test_any_mix_of_jaas_words_is_read_or_refused(words: list[str]) -> None:
    test_any_text_is_read_or_refused.hypothesis.inner_test("".join(words))  # type: ignore[attr-defined]
