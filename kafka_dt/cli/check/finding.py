"""One thing that is wrong with the settings of a node, and whether the node starts with it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """A setting, and what is wrong with it."""

    setting: str
    """Its key."""
    problem: str
    """What is wrong, and what to do; without a secret."""


class Refusal(Finding):
    """A setting with which a node does not start."""


class NotReached(Finding):
    """A setting that names servers which did not answer; so it is not known whether a node starts with it."""
