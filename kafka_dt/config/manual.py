"""The manual's configuration page, made of the option table.

`python -m kafka_dt.config.manual docs/configuration.md` writes it; a test compares the file with the table.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from kafka_dt.config.options.option import Kind, Option
from kafka_dt.config.settings import Section, options

_HEAD = """\
# Configuration

`kafka-dt serve --config server.properties [--override key=value ...]` takes the settings of a Kafka broker, with
Kafka's names, meanings, defaults and syntax. kafka-dt ignores a broker's key that has no meaning here. At the start it
logs these keys in one line, and warns of what `kafka-dt check` calls dangerous, such as security settings that it does
not support. If it cannot use a value, it does not start, and the error names the key.

`listener.name.<name>.<key>` overrides a key for one listener where the table says so, and
`listener.name.<name>.<mechanism>.sasl.jaas.config` holds the users of PLAIN. Write both names in lower case.

A running node takes over the settings that say so, and the users of PLAIN, at [`kafka-dt
reload`](how-to/operate.md#change-settings-without-a-restart).

Give a secret as `file:/path` or `env:NAME` to keep it out of the file, or as a variable of Kafka's own
[`config.providers`](how-to/operate.md#secrets-of-configproviders). kafka-dt never logs a secret.

This page is generated from the option table, `kafka_dt/config/settings.py`.
"""


def page() -> str:
    """Return the page as Markdown."""
    chapters = (
        f"## {section.title}\n\n" + "\n".join(_entry(declared) for _, declared in options(section))
        for section in Section
    )
    return "\n".join((_HEAD, *chapters))


def _entry(declared: Option) -> str:
    facts = "; ".join(_facts(declared))
    return f"(option-{declared.key})=\n\n`{declared.key}`\n: {declared.doc}\n\n  {facts}.\n"


def _facts(declared: Option) -> Iterator[str]:
    yield f"{declared.kind}{f' ({declared.unit})' if declared.unit else ''}"
    yield f"default: {_default(declared)}"
    if declared.minimum is not None:
        yield f"at least {declared.minimum}"
    if any(declared.choices):
        yield "one of " + ", ".join(f"`{choice}`" for choice in declared.choices if choice)
    if declared.aliases:
        yield "also spelled " + ", ".join(f"`{alias}`" for alias in declared.aliases)
    if declared.seconds_alias:
        yield f"in seconds: `{declared.seconds_alias}`"
    if declared.per_listener:
        yield "can be set for one listener"
    if declared.reloads:
        yield "changes without a restart"
    yield f"defined by {declared.source}"


def _default(declared: Option) -> str:
    if declared.kind is Kind.PASSWORD or declared.default in ("", ()):
        return "none"
    if declared.kind is Kind.LIST:
        return f"`{','.join(declared.default)}`"
    if declared.kind is Kind.BOOLEAN:
        return f"`{str(declared.default).lower()}`"
    return f"`{declared.default}`"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
