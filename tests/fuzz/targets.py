"""The list of what is fuzzed."""

from __future__ import annotations

from types import ModuleType
from typing import Final

from tests.fuzz import forwarding, frames, jwts, properties, proxy, revocations, sasl, znodes

TARGETS: Final[dict[str, ModuleType]] = {
    module.__name__.rpartition(".")[2]: module
    for module in (forwarding, frames, jwts, properties, proxy, revocations, sasl, znodes)
}
