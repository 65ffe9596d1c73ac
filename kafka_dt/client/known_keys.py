"""The keys that Kafka's Java clients know, so that a mistyped one is told of.

    for key in unknown_keys(properties):
        print(key, nearest_key(key))

A key that is unknown is no error: plug-ins of Java clients (serializers, interceptors, config providers) read keys of
their own from the same file, and Java warns of unknown keys as well.

Source: org.apache.kafka.common.config.AbstractConfig.logUnused.
"""

from __future__ import annotations

import difflib
import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_CONFIG_PROVIDERS: Final = "config.providers."
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_\-]*(\.[A-Za-z0-9_\-]+)*")
_LONGEST_NAME: Final = 100


@cache
def client_keys() -> frozenset[str]:
    """Return every key of an admin client, a producer or a consumer of Kafka 3.9.1 or 4.3.1."""
    text = files("kafka_dt.client").joinpath("kafka_keys.txt").read_text(encoding="ascii")
    return frozenset(line for line in text.splitlines() if not line.startswith("#"))


def unknown_keys(properties: Iterable[str]) -> list[str]:
    """Return the keys that no client of Kafka knows, in order of the alphabet.

    properties: keys, as of a client.properties
    """
    return sorted(key for key in properties if key not in client_keys() and not key.startswith(_CONFIG_PROVIDERS))


def nearest_key(key: str) -> str | None:
    """Return the known key that was probably meant, None where none is near."""
    return next(iter(difflib.get_close_matches(key.lower(), client_keys(), n=1, cutoff=0.8)), None)


def is_name(key: str) -> bool:
    """Say whether a key looks like the name of a setting; what does not may be a torn line with a password in it."""
    return len(key) <= _LONGEST_NAME and _NAME.fullmatch(key) is not None
