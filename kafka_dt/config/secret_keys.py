"""Read the secret keys of delegation tokens, and read them again when their files change.

    files = SecretKeyFiles(settings)
    files.keys                   # None where there is no current key, and so no tokens
    files.refresh()              # now and then, in a thread: it reads files

`delegation.token.secret.key` holds the current key, `kafka.dt.secret.keys.previous` the older ones, one a line. The two
have files of their own, and the file of the current key holds no other key. A mistake with the files is an error at the
start; later the keys stay as they are.

`refresh` reads the current key's file first. `kafka-dt keys rotate` relies on it: it writes a new key to the file of
the older ones before it makes it the current one. So a process that reads the new current key finds the key before it
in the other file.

Source: KIP-48 "Configuration options"; docs/how-to/change-keys.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from kafka_dt.config.options.option import ConfigError, Secret, resolve_secret
from kafka_dt.config.settings import Settings
from kafka_dt.files import Stamp, stamp

CURRENT: Final = "delegation.token.secret.key"
PREVIOUS: Final = "kafka.dt.secret.keys.previous"


@dataclass(frozen=True, slots=True)
class SecretKeys:
    """The keys of a node."""

    current: str = field(repr=False)
    """The key that makes new tokens."""
    previous: tuple[str, ...] = field(default=(), repr=False)
    """Keys that made older tokens, the newest first; the current key may be among them."""


class SecretKeyFiles:
    """The keys of a node, as its files hold them now; raises ConfigError for a file that cannot be used."""

    keys: SecretKeys | None
    """None where tokens are disabled."""

    def __init__(self, settings: Settings) -> None:
        self._current = settings.secret_key
        self._previous = settings.previous_secret_keys
        # What was read at the start is older than these stamps: it is read again at the first look.
        self._seen: Mapping[str, Stamp] = {}
        self.keys = _keys(self._current, self._previous)

    def refresh(self) -> bool:
        """Read the files again if one of them has changed since the last time.

        Returns whether the keys have changed. Raises ConfigError when a file cannot be used: the keys stay as they
        are, and the next call tries again, because the reason may go away without a change of the file.
        """
        if self._current is None:
            return False
        stamps = {name: stamp(secret.file) for name, secret in self._secrets() if secret.file}
        if stamps == self._seen:
            return False
        before = self.keys
        self._current = _read_again(CURRENT, self._current)
        if self._previous is not None:
            self._previous = _read_again(PREVIOUS, self._previous)
        self.keys = _keys(self._current, self._previous)
        self._seen = stamps
        return self.keys != before

    def _secrets(self) -> Iterable[tuple[str, Secret]]:
        return [(name, secret) for name, secret in ((CURRENT, self._current), (PREVIOUS, self._previous)) if secret]


def split_keys(text: str) -> tuple[str, ...]:
    """Return the keys of a text, one a line; empty lines do not count."""
    lines = (line.removesuffix("\r") for line in text.split("\n"))
    return tuple(line for line in lines if line.strip())


def join_keys(keys: Iterable[str]) -> str:
    """Write keys as `split_keys` reads them."""
    return "".join(f"{key}\n" for key in keys)


def check_current(secret: Secret) -> None:
    """Raise ConfigError unless the file of the current key, if it has one, holds one key."""
    if secret.file is None:
        return
    match split_keys(secret.value):
        case ():
            raise ConfigError(CURRENT, f"the secret's file {secret.file} is empty")
        case (key,) if key == secret.value:
            return
    raise ConfigError(
        CURRENT,
        f"the secret's file {secret.file} has more than one line: leave the current key alone in it, older ones go to "
        f"the file of {PREVIOUS}",
    )


def _keys(current: Secret | None, previous: Secret | None) -> SecretKeys | None:
    if current is None:
        return None
    if previous and current.file and previous.file and _are_same(current.file, previous.file):
        raise ConfigError(
            PREVIOUS,
            f"{previous.file} is also the file of {CURRENT}: put the older keys in a file of their own, which is empty "
            "if there are none",
        )
    check_current(current)
    return SecretKeys(current.value, split_keys(previous.value) if previous else ())


def _are_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # whatever is the matter is told when it is read
        return False


def _read_again(name: str, secret: Secret) -> Secret:
    if secret.file is None:
        return secret
    return replace(secret, value=resolve_secret(name, f"file:{secret.file}").value)
