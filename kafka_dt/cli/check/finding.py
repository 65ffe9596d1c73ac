"""One thing that is wrong with the settings of a node."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """A setting, and what is wrong with it."""

    setting: str
    """Its key."""
    problem: str
    """What is wrong, and what to do; without a secret."""
