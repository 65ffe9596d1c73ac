import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_dt.tokens import ANONYMOUS, InvalidPrincipal, Principal


@given(principal_type=st.text().filter(lambda text: ":" not in text), name=st.text())
def test_what_is_written_is_read_again(principal_type: str, name: str) -> None:
    principal = Principal(principal_type, name)
    assert Principal.parse(str(principal)) == principal


@pytest.mark.parametrize(
    ("text", "principal"),
    [
        ("User:alice", Principal("User", "alice")),
        ("User:a:b", Principal("User", "a:b")),
        ("User:", Principal("User", "")),
        (":alice", Principal("", "alice")),
        (":", Principal("", "")),
        ("User: alice ", Principal("User", " alice ")),
    ],
)
def test_the_first_colon_separates_type_and_name(text: str, principal: Principal) -> None:
    assert Principal.parse(text) == principal


@given(principal_type=st.text(st.sampled_from("Us:er ")), name=st.text(st.sampled_from("x:")))
def test_two_principals_with_valid_types_and_the_same_text_are_equal(principal_type: str, name: str) -> None:
    principal = Principal(principal_type, name)
    assert principal.has_valid_type == (principal_type != "" and Principal.parse(str(principal)) == principal)


@pytest.mark.parametrize("text", ["", "alice", "User"])
def test_a_text_without_a_colon_is_no_principal(text: str) -> None:
    with pytest.raises(InvalidPrincipal, match="Type:name") as refused:
        Principal.parse(text)
    assert refused.value.text == text
    assert isinstance(refused.value, ValueError)


def test_type_and_letter_case_count() -> None:
    assert Principal.user("alice") == Principal("User", "alice")
    assert len({Principal("User", "alice"), Principal("Group", "alice"), Principal("User", "Alice"), ANONYMOUS}) == 4
