"""One option: its name, type, default, bounds and meaning, and how its text becomes a value.

`option(...)` declares a field of `kafka_dt.config.settings.Settings`; parsing, the checks, `--help` and the
generated manual all read the `Option` that it leaves in the field's metadata.

Source: org.apache.kafka.common.config.ConfigDef (types, LIST splitting, boolean and number syntax).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

OPTION: Final = "option"
"""The key of a settings field's metadata under which its `Option` is."""

INT_MAX: Final = 2**31 - 1
_BLANKS: Final = "".join(map(chr, range(ord(" ") + 1)))
"""The characters that Java's `String.trim` removes."""
_LONG_MAX: Final = 2**63 - 1


class ConfigError(Exception):
    """A setting that cannot be used.

    `key` is the setting as the user wrote it; the message is one line that names it and says what would do.
    A secret value is never part of the message.
    """

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"{key}: {reason}")
        self.key = key
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Secret:
    """A text that never shows in a log, a repr or a traceback."""

    value: str = field(repr=False)
    file: Path | None = field(default=None, compare=False)
    """The file that it was read from, None if there was none; it can be read again."""

    def __str__(self) -> str:
        """Return what Kafka shows in place of a password."""
        return "[hidden]"


class Kind(StrEnum):
    """The types of a Kafka setting (ConfigDef.Type)."""

    BOOLEAN = "boolean"
    INT = "int"
    LONG = "long"
    STRING = "string"
    LIST = "list"
    PASSWORD = "password"  # noqa: S105 - the name of a type


class Source(StrEnum):
    """The document or program that defined the option."""

    KAFKA = "Kafka"
    KIP_395 = "KIP-395"
    KAFKA_DT = "kafka-dt"


@dataclass(frozen=True, slots=True)
class Option:
    """One setting, declared once."""

    key: str
    kind: Kind
    default: Any
    doc: str
    source: Source
    unit: str = ""
    minimum: int | None = None
    choices: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    """Other spellings of the key, with the same unit."""
    seconds_alias: str = ""
    """A spelling whose value is in seconds where `key` takes milliseconds."""
    per_listener: bool = False
    """Whether `listener.name.<name>.<key>` overrides it for one listener."""
    reloads: bool = False
    """Whether a running node takes over a change (`kafka-dt reload`)."""
    empty_file: bool = False
    """Whether a secret's file may be empty; for other secrets an empty file is an error of the operator."""

    @property
    def secret(self) -> bool:
        """Whether the value must be hidden."""
        return self.kind is Kind.PASSWORD

    def parse(self, key: str, text: str) -> Any:
        """Turn the text of a properties file into a value.

        :param key: the spelling that the user chose, for the error message
        :param text: the text after `=`
        :raises ConfigError: if the text is no value of this option's type or is out of bounds
        """
        value = _PARSERS[self.kind](key, text.strip() if self.kind is not Kind.PASSWORD else text)
        if isinstance(value, Secret) and value.file and not value.value and not self.empty_file:
            raise ConfigError(key, f"the secret's file {value.file} is empty")
        if self.minimum is not None and value < self.minimum:
            raise ConfigError(key, f"{value} is too small, the smallest value is {self.minimum}")
        if self.choices and value not in self.choices:
            usable = ", ".join(choice or "an empty value" for choice in self.choices)
            raise ConfigError(key, f"{text!r} is not one of {usable}")
        return value


def option(
    key: str, default: Any, doc: str, *, kind: Kind | None = None, source: Source | None = None, **more: Any
) -> Any:
    """Declare a field of the settings; the arguments are the fields of `Option`.

    The default tells the kind, except for LONG; None is the default of a PASSWORD. The end of the key tells the unit,
    and its beginning the source.
    """
    declared = Option(
        key=key,
        kind=kind or _KINDS[type(default)],
        default=default,
        doc=doc,
        source=source or (Source.KAFKA_DT if key.startswith("kafka.dt.") else Source.KAFKA),
        **{"unit": _UNITS.get(key.rpartition(".")[2], "")} | more,
    )
    return field(default=default, metadata={OPTION: declared})


def per_listener(key: str, default: Any, doc: str, **more: Any) -> Any:
    """Declare a field as `option` does, whose key can be set for one listener."""
    return option(key, default, doc, per_listener=True, **more)


def text_of(value: object) -> str:
    """Write a value as a properties file would hold it; a secret in clear."""
    match value:
        case Secret():
            return value.value
        case tuple():
            return ",".join(value)
        case None:
            return ""
    return str(value)


def _split_list(text: str) -> tuple[str, ...]:
    """Split a LIST as Kafka does: commas with blanks around them, an empty text is an empty list."""
    return tuple(part.strip() for part in text.split(",")) if text.strip() else ()


def resolve_secret(key: str, text: str) -> Secret:
    """Take a secret from where its text says: `file:/path`, `env:NAME`, or the text itself.

    Blanks around the text are not part of the secret, as in Kafka; those in a file or a variable are. The last line end
    of a file is not.

    :raises ConfigError: if the file cannot be read or the variable is not set
    """
    text = text.strip(_BLANKS)
    if text.startswith("file:"):
        path = Path(text.removeprefix("file:"))
        try:
            return Secret(path.read_text(encoding="utf-8").rstrip("\r\n"), path)
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise ConfigError(key, f"the secret's file {path} cannot be read: {reason}") from None
    if text.startswith("env:"):
        name = text.removeprefix("env:")
        if name not in os.environ:
            raise ConfigError(key, f"the environment variable {name} is not set")
        return Secret(os.environ[name])
    return Secret(text)


def _boolean(key: str, text: str) -> bool:
    match text.lower():
        case "true":
            return True
        case "false":
            return False
    raise ConfigError(key, f"{text!r} is neither true nor false")


def _number(limit: int) -> Callable[[str, str], int]:
    def parse(key: str, text: str) -> int:
        try:
            value = int(text) if text.isascii() and "_" not in text else None
        except ValueError:
            value = None
        if value is None:
            raise ConfigError(key, f"{text!r} is not a whole number")
        if not -limit - 1 <= value <= limit:
            raise ConfigError(key, f"{text} is out of range, the largest value is {limit}")
        return value

    return parse


_KINDS: Final[Mapping[type, Kind]] = {
    bool: Kind.BOOLEAN,
    int: Kind.INT,
    str: Kind.STRING,
    tuple: Kind.LIST,
    type(None): Kind.PASSWORD,
}
_UNITS: Final = {"ms": "milliseconds", "seconds": "seconds", "bytes": "bytes"}
_PARSERS: Final[dict[Kind, Callable[[str, str], Any]]] = {
    Kind.BOOLEAN: _boolean,
    Kind.INT: _number(INT_MAX),
    Kind.LONG: _number(_LONG_MAX),
    Kind.STRING: lambda _key, text: text,
    Kind.LIST: lambda _key, text: _split_list(text),
    Kind.PASSWORD: resolve_secret,
}
