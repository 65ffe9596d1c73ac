"""Severities as numbers: which is graver, and what several signs are together.

A sign of severity high is enough for a case of severity high. Weaker signs add up: three different ones of severity
medium are as much. The same sign again and again adds nothing, because the reason to doubt it is the same each time.

Source: splunk/rba, "risk score"
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_WEIGHTS: Final[Mapping[str, int]] = {"high": 100, "medium": 40, "low": 15}
"""Severity -> what a sign of it adds to the score of a case; the gravest first."""
SEVERITIES: Final = tuple(_WEIGHTS)
"""The gravest first."""


def weight(severity: str) -> int:
    """Say what a sign of a severity adds to a score."""
    return _WEIGHTS[severity]


def reaches(severity: str, level: str) -> bool:
    """Say whether a severity is a level or graver."""
    return weight(severity) >= weight(level)


def score_of(signs: Iterable[tuple[str, str]]) -> int:
    """Add up signs, each a kind and a severity; of one kind the gravest counts."""
    gravest: dict[str, int] = {}
    for kind, severity in signs:
        gravest[kind] = max(gravest.get(kind, 0), weight(severity))
    return sum(gravest.values())


def severity_of(score: int) -> str:
    """Give the gravest severity whose weight a score reaches."""
    return next(severity for severity in SEVERITIES if score >= weight(severity))
