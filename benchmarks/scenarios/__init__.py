"""The questions that are asked, one module each: a title, what it does (its docstring), and `run`.

`SCENARIOS` holds them in the order of a whole run: those on the same number of tokens follow each other, because a
broker with 100,000 of them takes minutes to start. Those that need no server come last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Final

from benchmarks.scenarios import (
    after_changes,
    audit,
    changes,
    cold_logins,
    connections,
    describe,
    detection,
    first_logins,
    gateway,
    gateway_latency,
    gateway_tls,
    generator_limit,
    growth,
    kraft_changes,
    kraft_following,
    kraft_logins,
    live_connections,
    logins,
    memory,
    others,
    pipeline,
    pipeline_tokens,
    reauthentication,
    start,
    steady,
    traces,
    workers,
    worst_requests,
)

Lines = Mapping[str, tuple[str, str]]
"""By its name, what a line shows: the operation of its cases, and the value."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One question."""

    name: str
    """For ONLY=."""
    title: str
    about: str
    """What is done, for the page of results."""
    compared: str
    """The value by which subjects are compared."""
    axis: str
    """What the axis of its picture says; empty: there is none."""
    run: Callable[[Any], None]
    """Gets a `Bench`, or the `Ledger` alone."""
    alone: bool
    """Whether it has no server that is compared with another."""
    lines: Mapping[str, Lines] = field(default_factory=dict)
    """What its picture shows over the tokens or the connections of a case; empty: no picture of lines."""


def _scenario(module: ModuleType) -> Scenario:
    name = module.__name__.rpartition(".")[2].replace("_", "-")
    alone = getattr(module, "ALONE", False)
    about, lines = str(module.__doc__).strip(), getattr(module, "LINES", {})
    return Scenario(name, module.TITLE, about, module.COMPARED, module.AXIS, module.run, alone, lines)


SCENARIOS: Final = {
    each.name: each
    for each in map(
        _scenario,
        (
            changes,
            logins,
            audit,
            traces,
            first_logins,
            after_changes,
            reauthentication,
            live_connections,
            others,
            connections,
            memory,
            start,
            growth,
            workers,
            describe,
            cold_logins,
            steady,
            gateway,
            gateway_tls,
            gateway_latency,
            kraft_changes,
            kraft_logins,
            kraft_following,
            generator_limit,
            pipeline,
            pipeline_tokens,
            detection,
            worst_requests,
        ),
    )
}
