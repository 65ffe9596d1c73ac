r"""The principal of a client that shows a certificate, on a listener without SASL.

    rules = PrincipalRules.parse(r"RULE:^CN=([^,]+),.*$/$1/L,DEFAULT")      # ssl.principal.mapping.rules
    rules.principal(certificate)                                            # User:alice

TLS has verified the certificate by then. Its distinguished name is written as Java writes it, the form that ACLs and
mapping rules are made for: RFC 2253 with Java's peculiarities. The last name comes first; only the nine types of the
RFC have a keyword; non-ASCII characters stay as they are; a carriage return at an end is escaped like a blank.

The first rule whose pattern matches the whole name counts. Patterns are Java's (`kafka_dt/java_patterns.py`).

Limit: a value in UTF-16 or UTF-32 (BMPString, UniversalString) is read as UTF-8, as Java does.

Source: org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder,
org.apache.kafka.common.security.ssl.SslPrincipalMapper; java.util.regex.Matcher.replaceAll,
javax.security.auth.x500.X500Principal.getName, sun.security.x509.AVA.toRFC2253String; RFC 2253, RFC 5280
(TBSCertificate), X.690.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

from kafka_dt.java_patterns import compiled, replace_all
from kafka_dt.tokens import ANONYMOUS, Principal


class CertificateUnusable(Exception):
    """A certificate that gives no principal; its text is one line for the log."""


_PART: Final = r"(?:\\.|[^\\/])*"
_RULE: Final = re.compile(
    rf"\s*(?:(?P<default>DEFAULT)|RULE:(?P<pattern>{_PART})/(?P<replacement>{_PART})/(?P<case>[LU]?)|)\s*(?:,|$)"
)
_REFERENCE: Final = re.compile(
    r"\\(?P<literal>.)|\$(?P<number>[0-9]+)|\$\{(?P<name>[a-zA-Z][a-zA-Z0-9]*)\}|(?P<illegal>\$)", re.DOTALL
)


class InvalidMappingRule(Exception):
    """A rule that cannot be read.

    Attributes:
        rule: its text, and what follows it.
    """

    def __init__(self, rule: str, reason: str) -> None:
        super().__init__(f"{rule!r} {reason}")
        self.rule = rule


class Case(Enum):
    """What a rule does with the letters of its result."""

    KEEP = ""
    LOWER = "L"
    UPPER = "U"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule."""

    pattern: re.Pattern[str]
    replacement: str
    case: Case

    def apply(self, name: str) -> str | None:
        """Return what the rule makes of a name; None if it does not match."""
        if not self.pattern.fullmatch(name):
            return None
        result = replace_all(self.pattern, name, self._replacement_of)
        match self.case:
            case Case.LOWER:
                return result.lower()
            case Case.UPPER:
                return result.upper()
            case Case.KEEP:
                return result

    def _replacement_of(self, match: re.Match[str]) -> str:
        return _REFERENCE.sub(lambda reference: _referred(reference, match), self.replacement)


@dataclass(frozen=True, slots=True)
class PrincipalRules:
    """The rules of a listener, in their order; None among them is DEFAULT."""

    rules: tuple[Rule | None, ...]

    @classmethod
    def parse(cls, text: str) -> PrincipalRules:
        """Read the rules; empty ones between commas are left out.

        Raises:
            InvalidMappingRule: one of them is none.
        """
        rules: list[Rule | None] = []
        offset = 0
        while offset < len(text):
            match = _RULE.match(text, offset)
            if match is None:
                raise InvalidMappingRule(text[offset:].strip(), "is neither RULE:pattern/replacement/[LU] nor DEFAULT")
            if match["default"]:
                rules.append(None)
            elif match["pattern"] is not None:
                rules.append(_rule(match))
            offset = match.end()
        return cls(tuple(rules))

    def principal(self, certificate: bytes | None) -> Principal:
        """Give the principal of a client by its certificate in DER; ANONYMOUS if it has shown none.

        Raises:
            CertificateUnusable: no rule matches its name, or it has none that can be read.
        """
        if certificate is None:
            return ANONYMOUS
        try:
            name = subject_name(certificate)
        except ValueError as error:
            raise CertificateUnusable(f"the certificate cannot be read: {error}") from error
        mapped = self.apply(name)
        if mapped is None:
            raise CertificateUnusable(f"no rule of ssl.principal.mapping.rules matches {name!r}")
        return Principal.user(mapped)

    def apply(self, name: str) -> str | None:
        """Return the principal's name for the name in a certificate; None if no rule matches."""
        for rule in self.rules:
            result = name if rule is None else rule.apply(name)
            if result is not None:
                return result
        return None


def _rule(match: re.Match[str]) -> Rule:
    text = match[0].strip(" ,")
    try:
        pattern = compiled(match["pattern"])
    except re.error as error:
        raise InvalidMappingRule(text, f"has a pattern that cannot be read: {error}") from None
    for reference in _REFERENCE.finditer(match["replacement"]):
        if _is_illegal(reference, pattern):
            raise InvalidMappingRule(text, f"has no group for {reference[0]} in its replacement; a dollar is \\$")
    return Rule(pattern, match["replacement"], Case(match["case"]))


def _is_illegal(reference: re.Match[str], pattern: re.Pattern[str]) -> bool:
    """Say whether a broker could not apply a rule for a part of its replacement, and would close each connection."""
    if reference["name"]:
        return reference["name"] not in pattern.groupindex
    # Among some groups Kafka takes the number of another one as text; without any it is left to Java, which fails.
    beyond = bool(reference["number"]) and not pattern.groups and not reference["number"].startswith("0")
    return beyond or reference["illegal"] is not None


def _referred(reference: re.Match[str], match: re.Match[str]) -> str:
    """Return what a part of a replacement stands for."""
    if reference["literal"]:
        return reference["literal"]
    if reference["name"]:
        return match[reference["name"]] or ""
    digits = reference["number"]
    # As many digits as make the number of a group that exists; the rest is text.
    for count in range(len(digits), 0, -1):
        if int(digits[:count]) <= match.re.groups:
            return (match[int(digits[:count])] or "") + digits[count:]
    return reference[0]


_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_TEXT_TAGS: Final = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1C, 0x1E})
"""UTF8String, PrintableString, T61String, IA5String, GeneralString, UniversalString, BMPString."""
_ESCAPED: Final = {character: f"\\{character}" for character in ',=+<>#;"\\'} | {"\0": "\\00"}
_BLANKS: Final = " \r"
_VERSION_TAG: Final = 0xA0
_LONG_FORM: Final = 0x80
_CONTINUED: Final = 0x80


def subject_name(certificate: bytes) -> str:
    """Return the name of the subject of a certificate, given in DER.

    Raises:
        ValueError: it is not readable.
    """
    ((_, signed, _),) = _elements(certificate)
    ((_, fields, _), *_) = _elements(signed)
    tags, _, encoded = zip(*_elements(fields), strict=True)
    # The version, a number of its own kind, may be left out; then follow serial number, signature, issuer, validity.
    (subject, *_) = encoded[5 if tags[0] == _VERSION_TAG else 4 :]
    return name_text(subject)


def name_text(name: bytes) -> str:
    """Return a name, given in DER, as Java writes it.

    Raises:
        ValueError: it is not readable.
    """
    ((_, sequence, _),) = _elements(name)
    relative = [_relative_text(content) for _, content, _ in _elements(sequence)]
    return ",".join(reversed(relative))


def _relative_text(attributes: bytes) -> str:
    return "+".join(_attribute_text(content) for _, content, _ in _elements(attributes))


def _attribute_text(attribute: bytes) -> str:
    (_, identifier, _), (tag, content, encoded) = _elements(attribute)
    dotted = _dotted(identifier)
    keyword = _KEYWORDS.get(dotted)
    if keyword is None or tag not in _TEXT_TAGS:
        return f"{keyword or dotted}=#{encoded.hex()}"
    return f"{keyword}={_value_text(content.decode('utf-8', 'replace'))}"


def _value_text(value: str) -> str:
    escaped = "".join(_ESCAPED.get(character, character) for character in value)
    inner = escaped.strip(_BLANKS)
    if not inner:
        return "".join(f"\\{blank}" for blank in escaped)
    lead, _, trail = escaped.partition(inner)
    return "".join(f"\\{blank}" for blank in lead) + inner + "".join(f"\\{blank}" for blank in trail)


def _elements(data: bytes) -> list[tuple[int, bytes, bytes]]:
    """Take apart DER elements that follow each other: tag, content, and both with the length between."""
    found = []
    while data:
        length, begin = data[1] if len(data) > 1 else _LONG_FORM, 2
        if length == _LONG_FORM:
            raise ValueError("an element has no length")
        if length > _LONG_FORM:
            begin += length - _LONG_FORM
            length = int.from_bytes(data[2:begin])
        end = begin + length
        if end > len(data):
            raise ValueError("an element is cut short")
        found.append((data[0], data[begin:end], data[:end]))
        data = data[end:]
    return found


def _dotted(identifier: bytes) -> str:
    numbers, number = [], 0
    for octet in identifier:
        number = number << 7 | octet & (_CONTINUED - 1)
        if octet < _CONTINUED:
            numbers.append(number)
            number = 0
    if not numbers:
        raise ValueError("an object identifier is empty")
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))
