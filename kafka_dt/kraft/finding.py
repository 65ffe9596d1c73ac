"""One point about a cluster, as `kafka-dt upstream check` shows it, and the commands that its remedies are made of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kafka_dt.tokens import Principal

SAME_KEY: Final = "set the same delegation.token.secret.key on all brokers and controllers"
"""The remedy where tokens are switched off at a server, or servers have different keys."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One point about a cluster."""

    point: str
    """What was looked at."""
    problem: str = ""
    """What is wrong; empty if it is as it should be."""
    remedy: str = ""
    """How to put it right."""
    needed: bool = True
    """Whether a gateway with these settings cannot work with this problem."""
    passes: bool = False
    """Whether it may pass by itself: the controllers elect a leader, or the broker is cut off from them."""

    @property
    def fit(self) -> bool:
        """Whether it is as it should be."""
        return not self.problem

    def __str__(self) -> str:
        return f"{self.problem}: {self.remedy}"


def is_fit(findings: Iterable[Finding]) -> bool:
    """Say whether a gateway can work with a cluster with these points."""
    return all(each.fit or not each.needed for each in findings)


def allow(gateway: Principal, what: str) -> str:
    """Return the command that gives a right to the gateway."""
    return f"kafka-acls.sh --bootstrap-server ... --add --allow-principal {gateway} {what}"
