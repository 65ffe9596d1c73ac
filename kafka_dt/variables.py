"""Variables of Kafka's `config.providers` in settings (`${file:/path:key}`), which kafka-dt does not read.

A broker and a client put the value of a provider in their place. Left as it is, a variable would be a secret that is
easy to guess, or a password that no server knows.

Source: org.apache.kafka.common.config.ConfigTransformer, org.apache.kafka.common.config.AbstractConfig.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

PROVIDERS: Final = "config.providers"
_VARIABLE: Final = re.compile(r"\$\{([^}]*?):[^}]*\}")


def providers(properties: Mapping[str, str]) -> frozenset[str]:
    """Return the names of the providers; without them Kafka replaces nothing."""
    return frozenset(name.strip() for name in properties.get(PROVIDERS, "").split(",")) - {""}


def reason_against(text: str, names: Collection[str], instead: str) -> str | None:
    """Say why a value cannot be used; None if no variable of a provider is in it.

    Args:
        text: the value.
        names: of the providers.
        instead: what to write, for the reason.
    """
    for variable in _VARIABLE.finditer(text):
        if (name := variable[1]) in names:
            return f"${{{name}:...}} is a variable of {PROVIDERS}, which kafka-dt does not read; write {instead}"
    return None
