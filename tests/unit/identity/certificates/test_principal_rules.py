"""ssl.principal.mapping.rules. What Kafka's own class makes of the same rules is asked in tests/interop."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_dt.identity.certificates.principal_rules import InvalidMappingRule, PrincipalRules

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
