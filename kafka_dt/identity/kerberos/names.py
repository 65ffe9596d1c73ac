r"""From a Kerberos name to the name of a principal: the rules of `sasl.kerberos.principal.to.local.rules`.

A rule is `DEFAULT` or `RULE:[<components>:<format>](<match>)s/<from>/<to>/g/L` with L or U for lower or upper case; the
first that fits counts. DEFAULT takes names of the default realm and leaves the first component: alice@EXAMPLE.COM and
alice/admin@EXAMPLE.COM both are alice.

Limits: some constructs of Java's regular expressions are refused (`\p{Alpha}`, `kafka_dt/java_patterns.py`);
no rule can hold a comma, as in Kafka.

Source: org.apache.kafka.common.security.kerberos.KerberosName, org.apache.kafka.common.security.kerberos.KerberosRule,
org.apache.kafka.common.security.kerberos.KerberosShortNamer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kafka_dt.java_patterns import compiled, replace_all

_NAME: Final = re.compile(r"([^/@]*)(?:/([^/@]*))?@([^/@]*)")
_RULE: Final = re.compile(
    r"DEFAULT|RULE:\[(?P<components>\d+):(?P<format>[^\]]*)\](?:\((?P<match>[^)]*)\))?"
    r"(?:s/(?P<source>[^/]*)/(?P<target>[^/]*)/(?P<all>g)?)?/?(?P<case>[LU])?",
    re.ASCII,
)
_PARAMETER: Final = re.compile(r"\$(\d*)", re.ASCII)
_REFERENCE: Final = re.compile(r"\\(.?)|\$(?:(\d)|\{([A-Za-z][A-Za-z0-9]*)\})?", re.ASCII | re.DOTALL)


class InvalidKerberosRule(Exception):
    """A rule that cannot be used; the message says which and why."""


class NoShortName(Exception):
    """No rule gives a name; the message is one line for the log."""


@dataclass(frozen=True, slots=True)
class KerberosName:
    """A Kerberos name in its parts."""

    components: tuple[str, ...]
    """One or two: a user or a service, and its host or role."""
    realm: str

    @classmethod
    def parse(cls, text: str) -> KerberosName:
        """Take `alice@REALM` or `service/host@REALM` apart.

        Raises:
            NoShortName: it has another form.
        """
        match = _NAME.fullmatch(text)
        if match is None:
            raise NoShortName("the Kerberos name is not of the form name@REALM or name/host@REALM")
        first, second, realm = match.groups()
        return cls((first,) if second is None else (first, second), realm)


@dataclass(frozen=True, slots=True)
class _Rule:
    """One rule; without a format it is DEFAULT."""

    format: str | None = None
    components: int = 0
    match: re.Pattern[str] | None = None
    source: re.Pattern[str] | None = None
    target: str = ""
    everywhere: bool = False
    case: str | None = None

    def apply(self, name: KerberosName, default_realm: str) -> str | None:
        """Give the short name, or None if the rule is not for this name."""
        if self.format is None:
            return name.components[0] if default_realm and name.realm == default_realm else None
        if len(name.components) != self.components:
            return None
        parameters = (name.realm, *name.components)
        base = _PARAMETER.sub(lambda number: parameters[int(number[1])], self.format)
        if self.match is not None and not self.match.fullmatch(base):
            return None
        if self.source is not None:
            base = self._replaced(self.source, base)
        return {"L": base.lower(), "U": base.upper()}.get(self.case or "", base)

    def _replaced(self, source: re.Pattern[str], base: str) -> str:
        if self.everywhere:
            return replace_all(source, base, lambda match: match.expand(self.target))
        return source.sub(self.target, base, count=1)


@dataclass(frozen=True, slots=True)
class ShortNames:
    """The rules in their order."""

    rules: tuple[_Rule, ...]
    default_realm: str
    """The realm whose names DEFAULT takes; empty for none."""

    @classmethod
    def parse(cls, rules: Sequence[str], default_realm: str) -> ShortNames:
        """Read the rules.

        Raises:
            InvalidKerberosRule: one of them cannot be used.
        """
        return cls(tuple(_parse_rule(rule) for rule in rules), default_realm)

    def short_name(self, text: str) -> str:
        """Apply the first rule that fits a Kerberos name such as `alice@EXAMPLE.COM`.

        Raises:
            NoShortName: there is none, or what it gives is no simple name.
        """
        name = KerberosName.parse(text)
        for rule in self.rules:
            short = rule.apply(name, self.default_realm)
            if short is not None:
                if not short or "/" in short or "@" in short:
                    raise NoShortName("the rule that fits the Kerberos name does not make a simple name of it")
                return short
        raise NoShortName("no rule of sasl.kerberos.principal.to.local.rules fits the Kerberos name")


def _parse_rule(text: str) -> _Rule:
    found = _RULE.fullmatch(text)
    if found is None:
        raise InvalidKerberosRule(f"{text!r} is neither DEFAULT nor RULE:[n:format](match)s/from/to/g/L")
    if found["components"] is None:
        return _Rule()
    components = int(found["components"])
    for number in _PARAMETER.findall(found["format"]):
        if not number or int(number) > components:
            raise InvalidKerberosRule(f"{text!r} uses ${number}, there are $0 to ${components}")
    match, source = _compile(text, found["match"]), _compile(text, found["source"])
    target = _replacement(text, found["target"] or "")
    if source is not None:
        _try_replacement(text, source, target)
    return _Rule(found["format"], components, match, source, target, found["all"] is not None, found["case"])


def _compile(rule: str, expression: str | None) -> re.Pattern[str] | None:
    try:
        return None if expression is None else compiled(expression)
    except re.error as error:
        raise InvalidKerberosRule(f"{rule!r} has a regular expression that is none: {error}") from None


def _replacement(rule: str, java: str) -> str:
    """Turn what Java's replacement refers to (`$1`, `${name}`) and escapes into Python's."""

    def reference(found: re.Match[str]) -> str:
        escaped, number, name = found.groups()
        if found[0] in {"$", "\\"}:
            raise InvalidKerberosRule(f"{rule!r} replaces with a single {found[0]}, write \\{found[0]}")
        if number or name:
            return rf"\g<{number or name}>"
        return (escaped or found[0]).replace("\\", r"\\")

    return _REFERENCE.sub(reference, java)


def _try_replacement(rule: str, source: re.Pattern[str], target: str) -> None:
    """Find out now whether the replacement names a group that is not there."""
    try:
        re.compile(f"{source.pattern}|").sub(target, "")
    except (re.error, IndexError):
        raise InvalidKerberosRule(f"{rule!r} replaces with a group that its expression does not have") from None
