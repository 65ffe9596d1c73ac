"""Login modules, alone on a line or in the sections of a file.

Source: org.apache.kafka.common.security.JaasConfig; javax.security.auth.login.Configuration.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from kafka_dt.jaas.words import JaasError, Words, quoted, quoted_if_needed

if TYPE_CHECKING:
    from collections.abc import Mapping

PLAIN_LOGIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_LOGIN_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTHBEARER_LOGIN_MODULE: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
KERBEROS_LOGIN_MODULE: Final = "com.sun.security.auth.module.Krb5LoginModule"

_PLAIN_USER_PREFIX: Final = "user_"


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
        options = "".join(f" {quoted_if_needed(name)}={quoted(value)}" for name, value in self.options.items())
        return f"{quoted_if_needed(self.name)} {self.control_flag}{options};"


def parse_login_module(text: str) -> LoginModule:
    """Read the value of a `sasl.jaas.config`, which holds exactly one module.

    Raises JaasError when the text is not JAAS or has no module or several.
    """
    words = Words(text)
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
    words = Words(text)
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


def _parse_module(words: Words) -> LoginModule:
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
