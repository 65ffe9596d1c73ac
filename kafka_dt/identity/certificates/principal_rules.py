r"""`ssl.principal.mapping.rules`: from the name in a client's certificate to the name of its principal.

    rules = PrincipalRules.parse(r"RULE:^CN=([^,]+),.*$/$1/L,DEFAULT")
    rules.apply("CN=Alice,O=Example")     # "alice"

The first rule whose pattern matches the whole name counts. Patterns are Java's as far as Python's `re` knows them
(named groups are translated); in the replacement `$1` stands for a group, `\` makes the next character literal, and a
group that there is none of is literal text, too.

Source: org.apache.kafka.common.security.ssl.SslPrincipalMapper; java.util.regex.Matcher.replaceAll.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

_PART: Final = r"(?:\\.|[^\\/])*"
_RULE: Final = re.compile(
    rf"\s*(?:(?P<default>DEFAULT)|RULE:(?P<pattern>{_PART})/(?P<replacement>{_PART})/(?P<case>[LU]?)|)\s*(?:,|$)"
)
_REFERENCE: Final = re.compile(r"\\(?P<literal>.)|\$(?P<number>\d+)|\$\{(?P<name>\w+)\}", re.DOTALL)
_JAVA_NAMED_GROUP: Final = re.compile(r"(?<!\\)\(\?<(?=[A-Za-z])")


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
        result = self.pattern.sub(self._replace, name)
        match self.case:
            case Case.LOWER:
                return result.lower()
            case Case.UPPER:
                return result.upper()
            case Case.KEEP:
                return result

    def _replace(self, match: re.Match[str]) -> str:
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

    def apply(self, name: str) -> str | None:
        """Return the principal's name for the name in a certificate; None if no rule matches."""
        for rule in self.rules:
            result = name if rule is None else rule.apply(name)
            if result is not None:
                return result
        return None


def _rule(match: re.Match[str]) -> Rule:
    try:
        # As in Java \w and its like are ASCII's.
        pattern = re.compile(_JAVA_NAMED_GROUP.sub("(?P<", match["pattern"]), re.ASCII)
    except re.error as error:
        raise InvalidMappingRule(match[0].strip(" ,"), f"has a pattern that cannot be read: {error}") from None
    return Rule(pattern, match["replacement"], Case(match["case"]))


def _referred(reference: re.Match[str], match: re.Match[str]) -> str:
    """Return what a part of a replacement stands for."""
    if reference["literal"]:
        return reference["literal"]
    if reference["name"]:
        return match.groupdict().get(reference["name"], reference[0]) or ""
    digits = reference["number"]
    # As many digits as make the number of a group that exists; the rest is text.
    for count in range(len(digits), 0, -1):
        if int(digits[:count]) <= match.re.groups:
            return (match[int(digits[:count])] or "") + digits[count:]
    return reference[0]
