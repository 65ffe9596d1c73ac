"""Values of Kafka's `config.providers`, which stand in settings as variables (`${file:/path:key}`).

    found = with_values(properties, used, ways_out="write ...")
    found.properties                 # nothing of config.providers is left in them
    found.shown_by(key, reason)      # whether an error would show a value of a provider

kafka-dt has the providers that come with Kafka. It replaces a variable where a broker or a client does, by the same
value, once. Where Kafka would leave a variable of a provider as it stands, it is an error: the text would be a secret
that everybody can guess, or a password that no server knows.

Limits: the patterns of `allowlist.pattern` are those of `java_patterns.py`; a file in a directory must be UTF-8 text.
Source: KIP-297, KIP-421, KIP-632, KIP-887; org.apache.kafka.common.config.ConfigTransformer,
org.apache.kafka.common.config.AbstractConfig.resolveConfigVariables, org.apache.kafka.common.config.provider.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

import javaproperties

from kafka_dt import java_patterns

PROVIDERS: Final = "config.providers"
_OF_KAFKA: Final = "org.apache.kafka.common.config.provider."
_VARIABLE: Final = re.compile(r"\$\{(?P<provider>[^}]*?):(?:(?P<path>[^}]*?):)?(?P<key>[^}]*?)\}")
_HALF_PAIR: Final = re.compile("[\\ud800-\\udfff]")
PLACES: Final = ("file:", "env:")
"""How a text begins in which kafka-dt itself sees the place of a secret."""
_LOOKS_LIKE_A_PLACE: Final = (
    "the value of its provider begins with file: or env:, as the place of a secret does in kafka-dt"
)
_LEFT: Final = "; Kafka would leave the variable as it stands"


class ProviderError(Exception):
    """A variable that cannot be replaced; `key` is the setting's, and no value is part of the text."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"{key}: {reason}")
        self.key = key
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Provided:
    """Settings whose variables are replaced."""

    properties: Mapping[str, str] = field(repr=False)
    """All of them except those of the providers."""
    values: Mapping[str, tuple[str, ...]] = field(repr=False)
    """What was put in the place of variables, by the keys of their settings."""

    def shown_by(self, key: str, reason: str) -> bool:
        """Say whether an error about a setting shows a value of a provider, or an element of one that is a list."""
        parts = {part.strip() for value in self.values.get(key, ()) for part in (value, *value.split(","))} - {""}
        return any(part in reason or repr(part)[1:-1] in reason for part in parts)


def with_values(properties: Mapping[str, str], used: Callable[[str], bool], *, ways_out: str) -> Provided:
    """Replace the variables in settings.

    Args:
        properties: keys and texts, with those of the providers.
        used: whether a setting of this key is used here; nothing is read for the variables of others.
        ways_out: what to do instead of using a provider that kafka-dt does not have, for the error.

    Raises:
        ProviderError: a variable of a provider has no value, or its provider cannot be used.
    """
    providers = _Providers(properties, ways_out)
    texts = {key: text for key, text in properties.items() if not is_of_providers(key)}
    values: dict[str, tuple[str, ...]] = {}
    for key in filter(used, tuple(texts)):
        before = texts[key]
        try:
            texts[key], found = providers.replace(before)
        except _NoValueError as error:
            raise ProviderError(key, str(error)) from None
        if found:
            values[key] = found
        if _is_place(texts[key]) and not _is_place(before):
            raise ProviderError(key, _LOOKS_LIKE_A_PLACE)
    return Provided(texts, values)


def named_files(text: str, properties: Mapping[str, str]) -> tuple[list[Path], str]:
    """Return the files that the variables in a text name, and the text without the variables. Nothing is read.

    properties: has the providers; a variable of another one is a part of the text, as for Kafka.
    """
    names = properties.get(PROVIDERS, "").split(",")
    variables = [each for each in _VARIABLE.finditer(text) if each["provider"] in names]
    paths = [(Path(each["path"]), each["key"]) for each in variables if each["path"]]
    for each in variables:
        text = text.replace(each[0], "")
    return [path / key if path.is_dir() else path for path, key in paths], text


def is_of_providers(key: str) -> bool:
    """Say whether a key names the providers or sets something for one of them."""
    return key == PROVIDERS or key.startswith(f"{PROVIDERS}.")


class _NoValueError(Exception):
    """A variable that cannot be replaced; the text says why."""


class _Providers:
    def __init__(self, properties: Mapping[str, str], ways_out: str) -> None:
        self._properties = properties
        self._names = properties.get(PROVIDERS, "").split(",")
        self._ways_out = ways_out
        # All variables of a file have their values from one reading of it, as in Kafka.
        self._read = cache(_read_properties)

    def replace(self, text: str) -> tuple[str, tuple[str, ...]]:
        """Return a text without the variables of the providers, and their values."""
        values: list[str] = []

        def value(variable: re.Match[str]) -> str:
            found = self._value(variable)
            if found is None:
                return variable[0]
            values.append(found)
            return found

        return _VARIABLE.sub(value, text), tuple(values)

    def _value(self, variable: re.Match[str]) -> str | None:
        """Return the value of a variable; None for one that is just a text, since no provider has its name."""
        name = variable["provider"]
        if name not in self._names:
            if name in map(str.strip, self._names):
                raise _NoValueError(f"Kafka does not know the provider {name}: write {PROVIDERS} without blanks")
            return None
        class_key = f"{PROVIDERS}.{name}.class"
        class_name = self._properties.get(class_key)
        if class_name is None:
            raise _NoValueError(f"the provider {name} has no {class_key}{_LEFT}")
        if class_name not in _CLASSES:
            raise _NoValueError(f"{class_key}: kafka-dt does not have {class_name!r}; {self._ways_out}")
        try:
            return _CLASSES[class_name](self, name, variable["path"] or "", variable["key"])
        except _NoValueError as error:
            raise _NoValueError(f"{variable[0]}: {error}") from None

    def of_file(self, name: str, path: str, key: str) -> str:
        """Return what a file of properties has for a key."""
        value = self._read(self._allowed(name, path)).get(key)
        if value is None:
            raise _NoValueError(f"the file has no such key{_LEFT}")
        return value

    def of_directory(self, name: str, path: str, key: str) -> str:
        """Return the whole content of a file in a directory, its last line end included."""
        file = self._allowed(name, path) / key
        if file.name != key or not file.is_file():
            raise _NoValueError(f"the directory has no such file{_LEFT}")
        return _content(file)

    def of_environment(self, name: str, path: str, key: str) -> str:
        """Return the value of an environment variable."""
        if path:
            raise _NoValueError("an environment variable has no path")
        parameter, pattern = self._parameter(name, "allowlist.pattern")
        try:
            is_allowed = pattern is None or java_patterns.compiled(pattern).fullmatch(key)
        except re.error as error:
            raise _NoValueError(f"{parameter} cannot be read: {error}") from None
        if not is_allowed:
            raise _NoValueError(f"{parameter} does not allow it{_LEFT}")
        if key not in os.environ:
            raise _NoValueError(f"the environment variable is not set{_LEFT}")
        value = os.environ[key]
        if _HALF_PAIR.search(value):
            raise _NoValueError("the environment variable is not UTF-8 text")
        return value

    def _allowed(self, name: str, path: str) -> Path:
        """Return the path of a variable, if `allowed.paths` has it or nothing."""
        if not path:
            raise _NoValueError(f"it has no path{_LEFT}")
        parameter, text = self._parameter(name, "allowed.paths")
        if not text:
            return Path(path)
        normal = Path(os.path.normpath(path))
        allowed = [Path(os.path.normpath(each)) for each in text.split(",")]
        for each in allowed:
            if not each.is_absolute() or not each.exists():
                raise _NoValueError(f"{parameter}: {str(each)!r} is no absolute path of something that exists")
        if not any(normal.is_relative_to(each) for each in allowed):
            raise _NoValueError(f"{parameter} does not allow it{_LEFT}")
        return normal

    def _parameter(self, name: str, parameter: str) -> tuple[str, str | None]:
        key = f"{PROVIDERS}.{name}.param.{parameter}"
        return key, self._properties.get(key)


_CLASSES: Final[Mapping[str, Callable[[_Providers, str, str, str], str]]] = {
    f"{_OF_KAFKA}FileConfigProvider": _Providers.of_file,
    f"{_OF_KAFKA}DirectoryConfigProvider": _Providers.of_directory,
    f"{_OF_KAFKA}EnvVarConfigProvider": _Providers.of_environment,
}


def _read_properties(path: Path) -> Mapping[str, str]:
    try:
        properties: dict[str, str] = javaproperties.loads(_content(path))
    except javaproperties.InvalidUEscapeError:
        # Not the escape: it may be of a password.
        raise _NoValueError(r"the file has \u without four hex digits behind it") from None
    return properties


def _content(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise _NoValueError(f"the file cannot be read: {reason}") from None


def _is_place(text: str) -> bool:
    return text.lstrip().startswith(PLACES)
