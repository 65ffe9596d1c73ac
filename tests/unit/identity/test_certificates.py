"""Principals of client certificates: the name as Java writes it, and the mapping rules."""

from __future__ import annotations

import contextlib
import re

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given
from hypothesis import strategies as st

from kafka_dt.identity.certificates import (
    CertificateUnusable,
    InvalidMappingRule,
    PrincipalRules,
    name_text,
    subject_name,
)
from kafka_dt.tokens import ANONYMOUS, Principal
from tests.support.identity.tls_material import authority, leaf, subject_of

ROOT = authority("Root")


def certificate(subject: str) -> bytes:
    return leaf("host", ROOT, subject_of(subject)).certificate.public_bytes(Encoding.DER)


@pytest.mark.parametrize(
    "name",
    [
        "CN=Alice,OU=People,O=Example,C=CH",
        r"CN=Doe\, Jane\+x,O=Müller \"und\" Söhne",
        "UID=alice,DC=example,DC=com",
        r"CN=\ blanks\ ,STREET=1 Way,L=Town,ST=State",
    ],
)
def test_a_name_is_written_as_rfc_2253_has_it(name: str) -> None:
    assert subject_name(certificate(name)) == name


def test_types_that_the_rfc_does_not_name_are_numbers_with_the_value_as_der() -> None:
    name = subject_name(certificate("1.2.840.113549.1.9.1=a@b,CN=Alice"))
    assert name == "1.2.840.113549.1.9.1=#1603614062,CN=Alice"


def test_the_rules_make_the_principal() -> None:
    principals = PrincipalRules.parse("RULE:^CN=([^,]+),O=Example$/$1/L")
    assert principals.principal(certificate("CN=Alice,O=Example")) == Principal.user("alice")


def test_without_a_certificate_a_client_is_anonymous() -> None:
    assert PrincipalRules.parse("DEFAULT").principal(None) == ANONYMOUS


def test_a_certificate_that_no_rule_matches_is_unusable() -> None:
    principals = PrincipalRules.parse("RULE:^CN=x$/x/")
    with pytest.raises(CertificateUnusable, match=r"no rule of ssl.principal.mapping.rules matches 'CN=Alice'"):
        principals.principal(certificate("CN=Alice"))


@pytest.mark.parametrize(
    "broken", [b"", b"\x30", b"\x30\x80", b"\x30\x03\x02\x01", b"\x30\x00", b"\x30\x03\x02\x01\x00"]
)
def test_a_certificate_that_cannot_be_read_is_unusable(broken: bytes) -> None:
    principals = PrincipalRules.parse("DEFAULT")
    with pytest.raises(CertificateUnusable, match="cannot be read"):
        principals.principal(broken)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_name_or_a_typed_error(data: bytes) -> None:
    for read in (name_text, subject_name):
        try:
            assert isinstance(read(data), str)
        except ValueError:
            continue


@given(st.integers(0, 400), st.binary(min_size=1, max_size=4))
def test_a_damaged_certificate_is_a_principal_or_a_typed_error(at: int, damage: bytes) -> None:
    principals = PrincipalRules.parse("DEFAULT")
    data = GOOD[:at] + damage + GOOD[at + len(damage) :]
    with contextlib.suppress(CertificateUnusable):
        assert isinstance(principals.principal(data), Principal)


GOOD = certificate("CN=Alice,OU=People,O=Example")

DUKE = "CN=Duke,OU=ServiceUsers,O=Org,C=US"


@pytest.mark.parametrize(
    ("rules", "principal"),
    [
        ("DEFAULT", DUKE),
        (r"RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "Duke"),
        (r"RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L", "duke"),
        (r"RULE:^CN=(.*?),OU=ServiceUsers.*$/$1@example.com/U", "DUKE@EXAMPLE.COM"),
        (r"RULE:^CN=nobody$/x/,RULE:.*C=(..)/$1/,DEFAULT", "US"),
        (r" RULE:^CN=nobody$/x/ , , DEFAULT ", DUKE),
        (r"RULE:CN=(?<who>\w+).*/${who}/", "Duke"),
        (r"RULE:CN=(\w+).*/$10-$2-$0/", f"Duke0-$2-{DUKE}"),
        (r"RULE:CN=(\w+).*/a\/b\$1/", "a/b$1"),
        (r"RULE:^.*\(?<?.*$/literal/", "literal"),
    ],
)
def test_the_first_rule_that_matches_the_whole_name_makes_the_principal(rules: str, principal: str) -> None:
    assert PrincipalRules.parse(rules).apply(DUKE) == principal


@pytest.mark.parametrize("rules", ["", " , ", "RULE:^CN=(.*?)$/$1/,RULE:OU=.*/x/", "RULE:CN=Duke/x/"])
def test_a_name_that_no_rule_matches_has_no_principal(rules: str) -> None:
    assert PrincipalRules.parse(rules).apply("O=Nobody") is None


@pytest.mark.parametrize(
    "rules", ["nonsense", "DEFAULT more", "RULE:.*/x", "RULE:.*/x/B", "RULE:.*/x/LU", "rule:.*/x/", "DEFAULT,RULE:"]
)
def test_what_is_no_rule_is_an_error_that_shows_it(rules: str) -> None:
    with pytest.raises(InvalidMappingRule, match="is neither RULE:pattern/replacement/") as caught:
        PrincipalRules.parse(rules)
    assert caught.value.rule in rules


@pytest.mark.parametrize(
    ("replacement", "reference"), [("$1", "$1"), ("a$", "$"), ("$x", "$"), ("${who}", "${who}"), ("$0$12", "$12")]
)
def test_a_replacement_without_its_group_is_an_error_and_no_principal(replacement: str, reference: str) -> None:
    """A broker starts with such a rule, and closes the connection of each client whose name it matches."""
    with pytest.raises(InvalidMappingRule, match=re.escape(f"has no group for {reference} in its replacement")):
        PrincipalRules.parse(f"RULE:^CN=.*$/{replacement}/")


def test_a_pattern_that_cannot_be_read_is_an_error_that_says_why() -> None:
    with pytest.raises(InvalidMappingRule, match=re.escape("'RULE:(/x/' has a pattern that cannot be read: missing )")):
        PrincipalRules.parse("DEFAULT,RULE:(/x/")


@given(st.text(alphabet="RULEDFAT:/\\,()$1 x.*", max_size=30), st.text(max_size=10))
def test_any_text_is_rules_or_a_typed_error(rules: str, name: str) -> None:
    try:
        parsed = PrincipalRules.parse(rules)
    except InvalidMappingRule:
        return
    result = parsed.apply(name)
    assert result is None or isinstance(result, str)
