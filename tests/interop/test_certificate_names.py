"""Names in certificates and the rules for them: Java and Kafka's own class are the oracle."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.name import _ASN1Type as Asn1Type
from cryptography.x509.oid import NameOID, ObjectIdentifier

from kafka_dt.identity.certificates import InvalidMappingRule, PrincipalRules, name_text
from tests.support.java.programs import program
from tests.support.java.tools import KafkaTools

SOURCE = Path(__file__).with_name("PrincipalOracle.java")
FAILED = "!"

VALUES = (
    "Alice",
    "Zoë",
    "Łódź 東京 😀",
    " leading and trailing ",
    "   ",
    "\r x \r",
    'a,b=c+d<e>f#g;h"i\\j',
    "#number",
    "tab\tand\nline",
    "n\0l",
    "*",
)
TYPES = (
    NameOID.COMMON_NAME,
    NameOID.ORGANIZATION_NAME,
    NameOID.ORGANIZATIONAL_UNIT_NAME,
    NameOID.LOCALITY_NAME,
    NameOID.STATE_OR_PROVINCE_NAME,
    NameOID.STREET_ADDRESS,
    NameOID.DOMAIN_COMPONENT,
    NameOID.USER_ID,
    NameOID.EMAIL_ADDRESS,
    NameOID.SERIAL_NUMBER,
    NameOID.GIVEN_NAME,
    NameOID.TITLE,
    NameOID.DN_QUALIFIER,
    ObjectIdentifier("2.999.1234567.1"),
    ObjectIdentifier("1.3.6.1.4.1.99999.16384"),
)


def attribute(kind: ObjectIdentifier, value: str, encoding: Asn1Type = Asn1Type.UTF8String) -> x509.NameAttribute[str]:
    return x509.NameAttribute(kind, value, encoding)


def names() -> list[x509.Name]:
    singles = [[attribute(kind, value)] for kind in TYPES for value in VALUES]
    encodings = [
        [attribute(NameOID.COMMON_NAME, "Alice, who", encoding)]
        for encoding in (Asn1Type.PrintableString, Asn1Type.IA5String, Asn1Type.T61String)
    ]
    odd = [[attribute(NameOID.USER_ID, "x" * length)] for length in (0, 200, 300)]
    several = [attribute(NameOID.COUNTRY_NAME, "CH"), attribute(NameOID.COMMON_NAME, "Alice")]
    both = x509.RelativeDistinguishedName(
        [attribute(NameOID.COMMON_NAME, "Alice"), attribute(NameOID.USER_ID, "alice")]
    )
    made = [x509.Name([x509.RelativeDistinguishedName(each)]) for each in [*singles, *encodings, *odd]]
    return [*made, x509.Name(several), x509.Name([x509.RelativeDistinguishedName(several[:1]), both]), x509.Name([])]


RULES = (
    "DEFAULT",
    "",
    ",,DEFAULT",
    r"RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,DEFAULT",
    r"RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L,RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U",
    r"RULE:^cn=(.*?),ou=(.*?),dc=(.*?),dc=(.*?)$/$1@$2/U , DEFAULT ",
    r"RULE:^CN=([^,ADEFLTU,]+)(,.*|$)/$1/",
    r"RULE:^CN=([^,DEFAULT,]+)(,.*|$)/$1/",
    r"RULE:CN=(?<who>[^,]+).*/${who}/L",
    r"RULE:CN=([^,]+).*/$1$2-$11-$0/",
    r"RULE:CN=([^,]+).*/\$1 a\/b\\c/",
    r"RULE:CN=.*/fixed/",
    r"RULE:.*/x/",
    r"RULE:^CN=(\w+)(\.\w+)?.*$/[$1$2]/",
    "RULE:(.*?)/-/",
    "RULE:(x?)/-/,RULE:.*?/-/",
    "RULE:CN=.*/$1/",
    "RULE:CN=.*/$0/",
    "RULE:CN=.*/${who}/",
    "RULE:CN=(.*)/$/",
    "RULE:CN=(.*)/$x/",
    r"RULE:CN=([^,\[&]+&?).*/\$$1/",
    "RULE:/x/",
    "rule:.*/x/",
    "RULE:.*/x",
    "RULE:.*/x/B",
    "RULE:.*/x/LU",
    "DEFAULT more",
    "nonsense",
    "RULE:(/x/",
)
NAMES = (
    "CN=kafka-server1, OU=KAFKA",
    "CN=Duke,OU=ServiceUsers,O=Org,C=US",
    "CN=duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US",
    "cn=duke,ou=sme,dc=mycp,dc=com",
    "CN=DEFAULT,OU=x",
    "CN=Jos\u00e9.Maria",
    "O=Nobody",
    "",
)


def encoded(data: str | bytes) -> str:
    return base64.b64encode(data.encode() if isinstance(data, str) else data).decode()


@pytest.fixture(scope="module")
def asked(kafka_39: KafkaTools) -> dict[str, str]:
    """Ask Java everything at once; its answers by question."""
    questions = [f"name {encoded(name.public_bytes())}" for name in names()]
    questions += [f"map {encoded(rules)} {encoded(name)}" for rules in RULES for name in NAMES]
    command = program(kafka_39.java, SOURCE, classpath=kafka_39.classpath)
    done = subprocess.run(
        command, input="\n".join(questions) + "\n", capture_output=True, text=True, timeout=60, check=True
    )
    return dict(zip(questions, done.stdout.splitlines(), strict=True))


def test_names_are_written_as_java_writes_them(asked: dict[str, str]) -> None:
    for name in names():
        answer = asked[f"name {encoded(name.public_bytes())}"]
        assert name_text(name.public_bytes()) == base64.b64decode(answer).decode(), name


@pytest.mark.parametrize("rules", RULES)
def test_rules_do_what_they_do_in_a_broker(asked: dict[str, str], rules: str) -> None:
    for name in NAMES:
        answer = asked[f"map {encoded(rules)} {encoded(name)}"]
        expected = None if answer.startswith(FAILED) else base64.b64decode(answer).decode()
        assert applied(rules, name) == expected, (name, answer)


def applied(rules: str, name: str) -> str | None:
    try:
        return PrincipalRules.parse(rules).apply(name)
    except InvalidMappingRule:
        return None
