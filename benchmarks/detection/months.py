"""Months of events with the truth about them, from both generators, as they are and with swapped owners.

    month = MONTHS[0]
    month.write(folder, HELD_OUT[0], 340_000)       # folder/events/*.jsonl and folder/truth.jsonl

Months with swapped owners have no other incidents; their honest look-alikes stay.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from benchmarks.detection.company.company import CompanyPlan, write_company
from benchmarks.detection.stories import EVENTS, TRUTH, Story, load_stories, save_stories
from benchmarks.detection.swaps import swap_users
from kafka_dt.pipeline.generator import Incident, Scenario, generate

HELD_OUT: Final = tuple(range(9_007, 9_027))
"""Seeds that only the judge uses. Authors of rules take others, and look at none of these months.
What was wrong in those of seeds 9001 to 9006 has been read, so these are not among them any more."""
_START: Final = datetime(2026, 10, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Month:
    """One kind of months."""

    name: str
    write: Callable[[Path, int, int], None]
    """Gets a new folder, the seed and about how many events to write."""


def _write_company(folder: Path, seed: int, events: int) -> None:
    write_company(folder, CompanyPlan(seed, events=events))


def _write_scenario(folder: Path, seed: int, events: int, *, incidents: int | None = None) -> None:
    scenario = Scenario.of_size(events, start=_START, seed=seed)
    if incidents is not None:
        scenario = replace(scenario, incidents=incidents)
    generated = generate(scenario, folder / EVENTS)
    save_stories(folder / TRUTH, [_story(each) for each in generated.truth.incidents])


def _story(incident: Incident) -> Story:
    """Give an incident of the first generator: each of them differs from honest events in one respect at least."""
    return Story(
        name=f"{incident.kind}-{incident.subject}-{incident.begin:%Y%m%dT%H%M%S}",
        kind=incident.kind,
        incident=True,
        owners={incident.owner} if incident.owner else set(),
        token_ids={incident.token_id} if incident.token_id else set(),
        addresses={incident.address} if incident.address else set(),
        differs={incident.strength},
        first_ms=_ms(incident.begin),
        last_ms=_ms(incident.end),
    )


def _swapped_company(folder: Path, seed: int, events: int) -> None:
    _swapped(folder, seed, lambda before: write_company(before, CompanyPlan(seed, events=events, incidents=0)))


def _swapped_scenario(folder: Path, seed: int, events: int) -> None:
    _swapped(folder, seed, lambda before: _write_scenario(before, seed, events, incidents=0))


def _swapped(folder: Path, seed: int, write: Callable[[Path], object]) -> None:
    """Swap owners in a month that has no other incidents; its honest look-alikes stay."""
    before = folder / "before"
    write(before)
    honest = load_stories(before / TRUTH)
    swaps = swap_users(before / EVENTS, folder, seed=seed)
    save_stories(folder / TRUTH, [*swaps, *honest])
    shutil.rmtree(before)


def _ms(instant: datetime) -> int:
    return round(instant.timestamp() * 1000)


MONTHS: Final = (
    Month("second generator", _write_company),
    Month("first generator", _write_scenario),
    Month("second generator, owners swapped", _swapped_company),
    Month("first generator, owners swapped", _swapped_scenario),
)
"""Those that detection is judged on."""
