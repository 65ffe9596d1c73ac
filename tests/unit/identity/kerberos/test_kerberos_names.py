"""The rules that make names of principals, with the examples of Kafka's manual and its own tests' kinds of rule."""

import re

import pytest

from kafka_dt.identity.kerberos.names import InvalidKerberosRule, KerberosName, NoShortName, ShortNames

REALM = "EXAMPLE.COM"


def short(text: str, *rules: str) -> str:
    return ShortNames.parse(rules or ("DEFAULT",), REALM).short_name(text)


@pytest.mark.parametrize("text", ["alice@EXAMPLE.COM", "alice/admin@EXAMPLE.COM", "alice/@EXAMPLE.COM"])
def test_default_leaves_the_first_component(text: str) -> None:
    assert short(text) == "alice"


@pytest.mark.parametrize(
    "text",
    ["alice@OTHER.COM", "alice@", "alice@example.com", "", "alice", "@EXAMPLE.COM", "a/b/c@EXAMPLE.COM", "a@b@c"],
)
def test_default_takes_no_other_names(text: str) -> None:
    with pytest.raises(NoShortName):
        short(text)


def test_default_takes_nobody_where_there_is_no_default_realm() -> None:
    with pytest.raises(NoShortName):
        ShortNames.parse(["DEFAULT"], "").short_name("alice@")


@pytest.mark.parametrize(
    ("rule", "text", "name"),
    [
        ("RULE:[1:$1]", "alice@OTHER.COM", "alice"),
        ("RULE:[1:$1.$0]", "alice@OTHER.COM", "alice.OTHER.COM"),
        ("RULE:[2:$1]", "kafka/host@OTHER.COM", "kafka"),
        ("RULE:[2:$2$1]", "kafka/host@OTHER.COM", "hostkafka"),
        ("RULE:[1:$1@$0](.*@OTHER.COM)s/@.*//", "alice@OTHER.COM", "alice"),
        ("RULE:[1:$1@$0](^.*@OTHER.COM$)s/^(.*)@.*$/$1/g", "alice@OTHER.COM", "alice"),
        ("RULE:[1:$1](.*)s/a/b/", "banana@OTHER.COM", "bbnana"),
        ("RULE:[1:$1](.*)s/a/b/g", "banana@OTHER.COM", "bbnbnb"),
        ("RULE:[1:$1](.*)s/(?<first>.).*/${first}x/", "alice@OTHER.COM", "ax"),
        ("RULE:[1:$1]/L", "Alice@OTHER.COM", "alice"),
        ("RULE:[1:$1]/U", "Alice@OTHER.COM", "ALICE"),
        ("RULE:[1:$1](A.*)s/A/B/g/L", "Alice@OTHER.COM", "blice"),
        (r"RULE:[1:$1](.*)s/i/\$\\n/", "alice@OTHER.COM", r"al$\nce"),
        ("RULE:[1:$1]s/(.*?)/-/g", "ab@OTHER.COM", "-a-b-"),
        ("RULE:[1:$1]s/(.*?)/-/", "ab@OTHER.COM", "-ab"),
        (r"RULE:[1:$1]s/\W/-/", "zo\u00e9@OTHER.COM", "zo-"),
    ],
)
def test_rules_of_ones_own(rule: str, text: str, name: str) -> None:
    assert short(text, rule) == name


def test_the_first_rule_that_fits_counts() -> None:
    rules = ("RULE:[2:$1](kafka)s/.*/broker/", "RULE:[1:$1@$0](.*@OTHER.COM)s/@.*//", "DEFAULT")
    assert short("kafka/host@EXAMPLE.COM", *rules) == "broker"
    assert short("alice@OTHER.COM", *rules) == "alice"
    assert short("bob/admin@EXAMPLE.COM", *rules) == "bob"
    with pytest.raises(NoShortName, match="no rule"):
        short("bob/admin@OTHER.COM", *rules)


@pytest.mark.parametrize(
    ("rule", "text"), [("RULE:[1:$1@$0]", "alice@X"), ("RULE:[2:$1/$2]", "a/b@X"), ("RULE:[1:$1](.*)s/.*//", "alice@X")]
)
def test_what_a_rule_makes_must_be_a_simple_name(rule: str, text: str) -> None:
    with pytest.raises(NoShortName, match="simple"):
        short(text, rule)


@pytest.mark.parametrize(
    "rule",
    [
        "",
        "default",
        "DEFAULT/L",
        "RULE:[:$1]",
        "RULE:[1:$1",
        "RULE:[1:$1]s/a/b",
        "RULE:[1:$1]/X",
        "RULE:[1:$1](a)s/b/c/gg",
        "RULE:[1:$2]",
        "RULE:[1:$]",
        "RULE:[1:$1]([)s/a/b/",
        "RULE:[1:$1]s/*/b/",
        "RULE:[1:$1]s/a/$1/",
        "RULE:[1:$1]s/a/${x}/",
        "RULE:[1:$1]s/a/$/",
        "RULE:[1:$1]s/a/b\\/",
        "RULE:[1:$1]([a-z&&[^b]]+)",
        "RULE:[1:$1]s/[a-z[0-9]]/x/",
    ],
)
def test_a_rule_that_cannot_be_used_is_said_at_the_start(rule: str) -> None:
    with pytest.raises(InvalidKerberosRule, match=re.escape(repr(rule))):
        ShortNames.parse([rule], REALM)


def test_a_name_is_taken_apart() -> None:
    assert KerberosName.parse("kafka/host@EXAMPLE.COM") == KerberosName(("kafka", "host"), REALM)
    assert KerberosName.parse("alice@EXAMPLE.COM") == KerberosName(("alice",), REALM)
