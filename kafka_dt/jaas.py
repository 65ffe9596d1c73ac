"""JAAS: the login modules and options that Kafka's `sasl.jaas.config` and Java's login files hold.

`parse_login_module` reads the value of one `sasl.jaas.config` (on a listener:
`listener.name.<name>.<mechanism>.sasl.jaas.config`) and returns its single module; `parse_login_file`
reads a file as named by `java.security.auth.login.config`, with its sections (`KafkaServer`, `Client`).
`LoginModule.line` writes a module so that Kafka reads the same back.

The words are those of Java's StreamTokenizer as Kafka sets it up: a value that starts with a digit, a
dot or a dash, or that holds anything but letters, digits, `_`, `$`, `.` and `-`, needs quotes; `/`
outside quotes starts a comment. Limits: Java's `${property}` is not expanded, and a quoted text that the
end of the line cuts off is an error here while Java takes what it has so far.

Source: org.apache.kafka.common.security.JaasConfig and org.apache.kafka.common.security.JaasContext,
java.io.StreamTokenizer, javax.security.auth.login.Configuration.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final

PLAIN_LOGIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_LOGIN_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTHBEARER_LOGIN_MODULE: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
KERBEROS_LOGIN_MODULE: Final = "com.sun.security.auth.module.Krb5LoginModule"

_PLAIN_USER_PREFIX: Final = "user_"


class JaasError(ValueError):
    """A text is not JAAS, or not what Kafka accepts of it.

    Its text never quotes what was read: that may be a password.
    """

    def __init__(self, reason: str, position: int | None = None) -> None:
        self.reason = reason
        self.position = position
        """Characters before the place where reading stopped; None when the text as a whole is wrong."""
        place = "" if position is None else f" at character {position + 1}"
        super().__init__(f"JAAS configuration not understood{place}: {reason}")


class ControlFlag(StrEnum):
    """The control flag of a module, for Java; Kafka always behaves as with `required`."""

    REQUIRED = "required"
    REQUISITE = "requisite"
    SUFFICIENT = "sufficient"
    OPTIONAL = "optional"


@dataclass(frozen=True, slots=True)
class LoginModule:
    """One login module: its class, its flag and its options (hidden in the repr: they are secrets)."""

    name: str
    """The Java class, as PLAIN_LOGIN_MODULE."""
    options: Mapping[str, str] = field(repr=False)
    control_flag: ControlFlag = ControlFlag.REQUIRED

    @property
    def username(self) -> str | None:
        """The user to log in as, None when the module names none."""
        return self.options.get("username")

    @property
    def password(self) -> str | None:
        """The password of `username`."""
        return self.options.get("password")

    @property
    def plain_users(self) -> Mapping[str, str]:
        """Name -> password of the users that a PLAIN listener accepts (the options `user_<name>`)."""
        return MappingProxyType(
            {
                name.removeprefix(_PLAIN_USER_PREFIX): password
                for name, password in self.options.items()
                if name.startswith(_PLAIN_USER_PREFIX)
            }
        )

    @property
    def token_auth(self) -> bool:
        """Whether `username` is a token id and `password` its HMAC (`tokenauth="true"`, in any case)."""
        return self.options.get("tokenauth", "").lower() == "true"

    @property
    def line(self) -> str:
        """The module as one line for `sasl.jaas.config`."""
        options = "".join(f" {_quoted_if_needed(name)}={_quoted(value)}" for name, value in self.options.items())
        return f"{_quoted_if_needed(self.name)} {self.control_flag}{options};"


def parse_login_module(text: str) -> LoginModule:
    """Read the value of a `sasl.jaas.config`, which holds exactly one module.

    Raises JaasError when the text is not JAAS or has no module or several.
    """
    words = _Words(text)
    modules = []
    while not words.at_end:
        modules.append(_parse_module(words))
    if len(modules) != 1:
        raise JaasError(f"exactly one login module is wanted, there are {len(modules)}")
    return modules[0]


def parse_login_file(text: str) -> Mapping[str, tuple[LoginModule, ...]]:
    """Read the content of a login configuration file: section name -> its modules, in order.

    Raises JaasError when the text is not JAAS, a section is there twice or a section has no module.
    """
    words = _Words(text)
    sections: dict[str, tuple[LoginModule, ...]] = {}
    while not words.at_end:
        position = words.position
        name = words.take_text("the name of a section")
        if name in sections:
            raise JaasError("this section is there twice", position)
        words.take_symbol("{")
        modules = [_parse_module(words)]
        while not words.skip_symbol("}"):
            modules.append(_parse_module(words))
        words.take_symbol(";")
        sections[name] = tuple(modules)
    return MappingProxyType(sections)


def _parse_module(words: _Words) -> LoginModule:
    name = words.take_text("the class of a login module")
    flag_position = words.position
    flag = words.take_text("a control flag (required)")
    options: dict[str, str] = {}
    while not words.skip_symbol(";"):
        option = words.take_text("the name of an option, or ';' after the last one")
        words.take_symbol("=")
        options[option] = words.take_text('a value (in double quotes unless it is a plain word: name="value")')
    return LoginModule(name, MappingProxyType(options), _control_flag(flag, flag_position))


def _control_flag(flag: str, position: int) -> ControlFlag:
    try:
        return ControlFlag(flag.lower())
    except ValueError:
        # Neither chained nor quoted: the word may be a piece of a badly quoted password.
        raise JaasError(f"the control flag is none of {', '.join(ControlFlag)}", position) from None


# Java's tables: blanks are 0-32; letters are a-z, A-Z, from 160 on, and - _ $; in files also *.
_BLANKS_AND_COMMENTS: Final = re.compile(r"(?:[\x00-\x20]+|/\*.*?\*/|/(?!\*)[^\r\n]*)+", re.DOTALL)
_UNQUOTED: Final = re.compile("[a-zA-Z_$*\u00a0-\U0010ffff][a-zA-Z0-9_$*.\u00a0-\U0010ffff-]*")
_QUOTED: Final = re.compile(r"""(?P<quote>["'])(?P<body>(?:\\.|(?!(?P=quote))[^\\\r\n])*)(?P=quote)""", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(?:(?P<octal>[0-3][0-7]{0,2}|[4-7][0-7]?)|(?P<other>.))", re.DOTALL)
_ESCAPED_CONTROLS: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class _Words:
    """The words of a JAAS text, taken one by one."""

    def __init__(self, text: str) -> None:
        self._end = len(text)
        self._rest = _split(text)
        self._next = next(self._rest, None)

    @property
    def at_end(self) -> bool:
        """Whether every word was taken."""
        return self._next is None

    @property
    def position(self) -> int:
        """Characters before the next word."""
        return self._end if self._next is None else self._next.position

    def take_text(self, expected: str) -> str:
        """Take a word or quoted text; `expected` names it in the JaasError that is raised when there is none."""
        word = self._next
        if word is None or word.is_symbol:
            raise JaasError(f"expected {expected}", self.position)
        self._next = next(self._rest, None)
        return word.text

    def take_symbol(self, symbol: str) -> None:
        """Take a symbol, one character; raises JaasError when something else comes."""
        if not self.skip_symbol(symbol):
            raise JaasError(f"expected '{symbol}'", self.position)

    def skip_symbol(self, symbol: str) -> bool:
        """Take a symbol if it is next, and say whether it was."""
        word = self._next
        if word is None or not word.is_symbol or word.text != symbol:
            return False
        self._next = next(self._rest, None)
        return True


@dataclass(frozen=True, slots=True)
class _Word:
    position: int
    text: str = field(repr=False)
    is_symbol: bool


def _split(text: str) -> Iterator[_Word]:
    position = 0
    while True:
        if blank := _BLANKS_AND_COMMENTS.match(text, position):
            position = blank.end()
        if position == len(text):
            return
        if word := _UNQUOTED.match(text, position):
            yield _Word(position, word.group(), is_symbol=False)
            position = word.end()
        elif quoted := _QUOTED.match(text, position):
            yield _Word(position, _ESCAPE.sub(_unescape, quoted["body"]), is_symbol=False)
            position = quoted.end()
        else:
            yield _symbol(text, position)
            position += 1


def _symbol(text: str, position: int) -> _Word:
    symbol = text[position]
    if symbol in "\"'":
        raise JaasError("a quoted text does not end on its line", position)
    if symbol == "/":
        raise JaasError("a comment does not end", position)
    if symbol.isdigit() or symbol in ".-":
        raise JaasError("a value that starts with a digit, '.' or '-' needs double quotes", position)
    return _Word(position, symbol, is_symbol=True)


def _unescape(match: re.Match[str]) -> str:
    if octal := match["octal"]:
        return chr(int(octal, 8))
    return _ESCAPED_CONTROLS.get(match["other"], match["other"])


def _quoted_if_needed(text: str) -> str:
    """Return a text as it is if it is a plain word, else in quotes."""
    return text if _UNQUOTED.fullmatch(text) and "*" not in text else _quoted(text)


def _quoted(text: str) -> str:
    """Return a text in double quotes, on one line whatever it holds."""
    escaped = text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n").replace("\r", r"\r")
    return f'"{escaped}"'
