"""Named servers and files with the settings of a login, so that commands need not repeat them.

    chosen()                 # of `kafka-dt --context NAME` or KAFKA_DT_CONTEXT, or the current one
    contexts = Contexts.load()
    contexts.having("prod", Context("kafka1:9093", "/home/me/admin.properties")).save()

The file is `kafka-dt/contexts.json` in the user's configuration directory (XDG), for the user alone. It holds addresses
and paths, and no secret.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Self

import click
from click.core import ParameterSource

from kafka_dt.cli.output import printable
from kafka_dt.files import replace_file


@dataclass(frozen=True, slots=True)
class Context:
    """What a command would be given as options."""

    bootstrap_server: str | None = None
    command_config: str | None = None
    """A path, absolute."""


@dataclass(frozen=True, slots=True)
class Contexts:
    """All contexts of a user."""

    by_name: Mapping[str, Context] = field(default_factory=dict)
    current: str | None = None

    @classmethod
    def load(cls) -> Self:
        """Read the file; without one there are no contexts.

        Raises:
            click.ClickException: it is not readable.
        """
        path = contexts_file()
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            found = {name: Context(**fields) for name, fields in document["contexts"].items()}
            return cls(found, document["current"])
        except FileNotFoundError:
            return cls()
        except (ValueError, KeyError, TypeError, AttributeError):
            raise click.ClickException(f"{path} is no file of contexts; remove it and add them again") from None

    def save(self) -> None:
        """Write the file, for the user alone."""
        path = contexts_file()
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        document = {"current": self.current, "contexts": {name: asdict(each) for name, each in self.by_name.items()}}
        replace_file(path, json.dumps(document, indent=2) + "\n")

    def having(self, name: str, context: Context) -> Self:
        """Return them with one more, which is the current one if it is the first."""
        return replace(self, by_name={**self.by_name, name: context}, current=self.current or name)

    def without(self, name: str) -> Self:
        """Return them without one."""
        left = {other: context for other, context in self.by_name.items() if other != name}
        return replace(self, by_name=left, current=None if self.current == name else self.current)

    def get(self, name: str) -> Context:
        """Return one by its name.

        Raises:
            click.UsageError: there is none of this name.
        """
        if name not in self.by_name:
            known = ", ".join(map(printable, self.by_name))
            advice = f"there is {known}" if known else "kafka-dt context add makes one"
            raise click.UsageError(f"There is no context {name!r}; {advice}.")
        return self.by_name[name]


def contexts_file() -> Path:
    """Say where the contexts of the user are (XDG base directories)."""
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "kafka-dt" / "contexts.json"


def named() -> str | None:
    """Return the context that `--context` names on this command line, None if it names none."""
    root = _root()
    if root is None or root.get_parameter_source("context") is not ParameterSource.COMMANDLINE:
        return None
    return root.find_object(str)


def chosen() -> Context | None:
    """Return the context that this command is to use: a named one, else the current one; None if there is none.

    Raises:
        click.UsageError: the one that is named does not exist.
    """
    root, contexts = _root(), Contexts.load()
    name = (root.find_object(str) if root else None) or contexts.current
    return None if name is None else contexts.get(name)


def _root() -> click.Context | None:
    context = click.get_current_context(silent=True)
    return context.find_root() if context else None
