"""The two files of a node's secret keys, as `keys rotate` and `keys retire` change them.

A rotation is told by the files alone, so that one that was interrupted is found and finished:

| previous keys                    | state                                                                       |
|----------------------------------|-----------------------------------------------------------------------------|
| next, next, current, older keys  | PREPARED: every node learns to accept the next key                          |
| current, current, older keys     | ACTIVATED: the next key has become the current one; it still stands in both |
| anything else                    | IDLE                                                                        |

The next key stands there twice, which makes no difference to a node. So the command does not take a file that an
operator wrote by hand in another order for a rotation, nor an older key for the next one.

Each file is replaced as a whole, and whatever mixture of old and new a node reads, it finds the keys it needs.
"""

from __future__ import annotations

import errno
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final

import click

from kafka_dt.config import SecretKeys
from kafka_dt.config.options.option import resolve_secret
from kafka_dt.config.secret_keys import CURRENT, PREVIOUS, check_current, join_keys, split_keys
from kafka_dt.files import held, replace_file
from kafka_dt.tokens import SecretKey

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from kafka_dt.config import Secret, Settings

_CONTENT: Final = {CURRENT: "key", PREVIOUS: "older keys (none: leave it empty)"}
_WAY_OUT: Final = {
    errno.EBUSY: "it is a mount of its own; mount its directory instead",
    errno.EPERM: "run the command as root, or give the file to its user and a group of that user's (chown USER: FILE)",
    errno.EROFS: "run the command where its directory can be written, or change the keys at the place it is made from",
}
"""What to do about files that cannot be replaced where they are."""


class KeysError(click.ClickException):
    """What a command about keys cannot do, in words for the operator."""


class Stage(Enum):
    """How far a rotation has come."""

    IDLE = "idle"
    PREPARED = "prepared"
    ACTIVATED = "activated"


@dataclass(frozen=True, slots=True)
class HeldKeys:
    """What the files hold."""

    current: SecretKey
    previous: tuple[SecretKey, ...]
    texts: SecretKeys = field(repr=False)

    @classmethod
    def of(cls, texts: SecretKeys) -> HeldKeys:
        """Make keys of their texts."""
        return cls(SecretKey(texts.current), tuple(map(SecretKey, texts.previous)), texts)

    @property
    def stage(self) -> Stage:
        """How far a rotation has come."""
        if self.previous[:2] == (self.current, self.current):
            return Stage.ACTIVATED
        if self.previous[2:3] == (self.current,) and self.previous[0] == self.previous[1]:
            return Stage.PREPARED
        return Stage.IDLE


class KeyFiles:
    """The files that a node's settings name, by their paths.

    Raises:
        KeysError: one of the settings is no file, and how to get there.
    """

    def __init__(self, settings: Settings) -> None:
        self.current = _path(CURRENT, settings.secret_key)
        self.previous = _path(PREVIOUS, settings.previous_secret_keys)

    def read(self) -> HeldKeys:
        """Read both.

        Raises:
            ConfigError: one of them cannot be used.
        """
        current = resolve_secret(CURRENT, f"file:{self.current}")
        check_current(current)
        previous = split_keys(resolve_secret(PREVIOUS, f"file:{self.previous}").value)
        return HeldKeys.of(SecretKeys(current.value, previous))

    def prepare(self, new: str) -> None:
        """Have nodes accept a key that is to come: it and the current one go before the older ones.

        Raises:
            KeysError: a rotation is under way, or a file cannot be replaced.
            ConfigError: a file cannot be used.
            OSError: a file cannot be written.
        """
        keys = self.read()
        if keys.stage is not Stage.IDLE:  # where directories are not locked
            raise KeysError(f"another process has begun a rotation, to the key {keys.previous[0].id}")
        older = [text for text in keys.texts.previous if text != keys.texts.current]
        # With what is in it: whether it can be replaced is better known now than in the middle of the rotation.
        _replace(self.current, [keys.texts.current])
        _replace(self.previous, [new, new, keys.texts.current, *older])

    def activate(self, key: SecretKey) -> None:
        """Make one of the previous keys the current one.

        Raises:
            KeysError: it is not there any more, or the file cannot be replaced.
            OSError: the file cannot be written.
        """
        text = next((text for text in self.read().texts.previous if SecretKey(text) == key), None)
        if text is None:
            raise KeysError(f"the key {key.id} has left {self.previous}: another process has changed that file")
        _replace(self.current, [text])

    def drop(self, *keys: SecretKey) -> None:
        """Take keys out of the previous ones.

        Raises:
            KeysError: the file cannot be replaced.
            OSError: the file cannot be written.
        """
        kept = [text for text in self.read().texts.previous if SecretKey(text) not in keys]
        _replace(self.previous, kept)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other commands of this machine from the files; the lock ends with the process.

        Raises:
            KeysError: another command is at work.
        """
        with ExitStack() as stack:
            try:
                # The directory: the files themselves are replaced.
                stack.enter_context(held(self.previous.resolve().parent))
            except BlockingIOError:
                raise KeysError("another `kafka-dt keys` command is at work on these files") from None
            yield


def keys_stay(settings: Settings) -> AbstractContextManager[None]:
    """Keep other commands from changing the keys, if they are in files; the others change with no command."""
    try:
        return KeyFiles(settings).locked()
    except KeysError:
        return nullcontext()


def _replace(path: Path, keys: Iterable[str]) -> None:
    try:
        replace_file(path, join_keys(keys))
    except OSError as error:
        if (way_out := _WAY_OUT.get(error.errno or 0)) is None:
            raise
        raise KeysError(f"{path} cannot be replaced ({error.strerror}): {way_out}") from error


def _path(name: str, secret: Secret | None) -> Path:
    if secret is None or secret.file is None:
        raise KeysError(
            f"{name} has to be a file, so that nodes see it change: put the {_CONTENT[name]} in one of mode 600, write "
            f"{name}=file:/path/to/it into the configuration of every node, and restart them one after the other"
        )
    return secret.file
