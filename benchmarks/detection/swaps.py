"""Hijacks that no author designed: from a moment on, two owners' clients use each other's tokens.

    swap_users(source / "events", folder, seed=1)       # folder/events/*.jsonl and folder/truth.jsonl

Any audit events will do: those of a generator, or those that nodes have recorded. After the moment, each login with a
token of one owner has the time and the client of a login of the other: the address, the library, the client id. The
tokens keep their own lives, because they are still created and renewed as before. So each swap is two incidents, and
what gives them away is only what real clients do differently.

A swap is visible if the other's clients come from a network of 2^16 addresses (of IPv6: a /48) that the owner was never
in, have a library or a version that it never had, or are mostly there at hours at which it never was.

Limits: owners with few logins before or after the moment are not swapped. A login for which the other owner has no live
token stays as it is.

Source: ait-aecid/clue-lds, "user behavior swaps"; M. Landauer et al., "A User and Entity Behavior Analytics Log Data
Set for Anomaly Detection in Cloud Computing" (2022).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from ipaddress import ip_address
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, Final

from benchmarks.detection.stories import EVENTS, TRUTH, Story, save_stories
from kafka_dt.audit import AuditEvent, EventType, Outcome

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
LOGINS_BEFORE: Final = 20
"""Logins that show what an owner does."""
LOGINS_AFTER: Final = 5

Event = dict[str, Any]


@dataclass(slots=True)
class TokenLife:
    """From when until when logins with a token succeed."""

    identity: Event
    begin_ms: int
    expiry_ms: int
    ended_ms: int | None = None
    """When it was expired or removed, if an event says so."""

    def saw(self, event: Event) -> None:
        """Take an event about the token; events come in any order."""
        expiry_ms = event["expiry_time"] if "expiry_time" in event else event["time"]
        self.begin_ms = min(self.begin_ms, event["time"])
        if event["type"] in {EventType.TOKEN_EXPIRED, EventType.TOKEN_REMOVED}:
            self.ended_ms = expiry_ms if self.ended_ms is None else min(self.ended_ms, expiry_ms)
        else:
            self.expiry_ms = max(self.expiry_ms, expiry_ms)

    def lives_at(self, instant_ms: int) -> bool:
        """Say whether a login with the token succeeds."""
        return self.begin_ms <= instant_ms < (self.expiry_ms if self.ended_ms is None else self.ended_ms)


@dataclass(slots=True)
class Past:
    """What an owner's logins were like before the moment."""

    networks: set[str] = field(default_factory=set)
    programs: set[tuple[str | None, str | None]] = field(default_factory=set)
    hours: set[int] = field(default_factory=set)

    def saw(self, event: Event) -> None:
        """Take a login."""
        self.networks.add(network(event["client_address"]))
        self.programs.add(_program(event))
        self.hours.add(_hour(event))

    def differences(self, events: list[Event]) -> set[str]:
        """Say in what other logins differ."""
        found = set()
        if any(network(each["client_address"]) not in self.networks for each in events):
            found.add("network")
        if any(_program(each) not in self.programs for each in events):
            found.add("software")
        if sum(_hour(each) not in self.hours for each in events) * 2 > len(events):
            found.add("hour")
        return found


def swap_users(source: Path, folder: Path, *, seed: int, pairs: int = 10) -> list[Story]:
    """Write the events of a folder with swapped owners, and the truth about the swaps.

    Args:
        source: has the closed files of the nodes, `*.jsonl`, without known incidents.
        folder: a new one.
        seed: draws the owners and the moment.
        pairs: how many pairs of owners are swapped, at most.

    Returns:
        Two stories for each pair.
    """
    rng = Random(seed)  # noqa: S311 - no secret
    moment_ms, chosen = _choose(source, rng, pairs)
    logins, lives = _read(source, set(chosen) | set(chosen.values()))
    swapped: dict[str, Event] = {}
    stories: list[Story] = []
    for owner, other in chosen.items():
        moved = [each for login in logins[other] if (each := _in_the_name_of(lives[owner], login, moment_ms))]
        if not moved:
            continue
        past = Past()
        for login in logins[owner]:
            if login["time"] < moment_ms:
                past.saw(login)
        story = Story(f"swap-{len(stories)}", "swap", incident=True, differs=past.differences(moved))
        for each in moved:
            swapped[each["id"]] = each
            story.saw(AuditEvent(**each))
        stories.append(story)
    _write(source, folder / EVENTS, swapped)
    save_stories(folder / TRUTH, stories)
    return stories


def network(address: str) -> str:
    """Give the large network of an address: the first 16 bits of IPv4, 48 of IPv6."""
    parsed = ip_address(address)
    return str(parsed).rsplit(".", 2)[0] if parsed.version == 4 else parsed.exploded[:14]


def _choose(source: Path, rng: Random, pairs: int) -> tuple[int, dict[str, str]]:
    """Draw a moment, and for owners with enough logins before and after it the one whose clients they get."""
    days: dict[str, Counter[int]] = {}
    for event in _events(source):
        if _is_use(event):
            days.setdefault(event["owner"], Counter())[event["time"] // DAY_MS] += 1
    every_day = sorted({day for counted in days.values() for day in counted})
    moment = every_day[int(len(every_day) * rng.uniform(0.4, 0.8))]
    fit = [
        owner
        for owner in sorted(days)
        if sum(number for day, number in days[owner].items() if day < moment) >= LOGINS_BEFORE
        and sum(number for day, number in days[owner].items() if day >= moment) >= LOGINS_AFTER
    ]
    drawn = rng.sample(fit, min(2 * pairs, len(fit) // 2 * 2))
    chosen = {}
    for first, second in list(pairwise(drawn))[::2]:
        chosen[first], chosen[second] = second, first
    return moment * DAY_MS, chosen


def _read(source: Path, owners: set[str]) -> tuple[dict[str, list[Event]], dict[str, list[TokenLife]]]:
    """Read the logins of some owners, and the lives of their tokens."""
    logins: dict[str, list[Event]] = {owner: [] for owner in owners}
    lives: dict[str, dict[str, TokenLife]] = {owner: {} for owner in owners}
    for event in _events(source):
        owner = event.get("owner")
        if owner not in owners or event["outcome"] != Outcome.OK or "token_id" not in event:
            continue
        if _is_use(event):
            logins[owner].append(event)
        life = lives[owner].setdefault(event["token_id"], TokenLife(_identity(event), event["time"], event["time"]))
        life.saw(event)
    return logins, {owner: list(found.values()) for owner, found in lives.items()}


def _in_the_name_of(lives: list[TokenLife], login: Event, moment_ms: int) -> Event | None:
    """Give a login of one owner as a login with another's token; None where the other has no token then."""
    live = [each for each in lives if each.lives_at(login["time"])]
    if login["time"] < moment_ms or not live:
        return None
    return login | max(live, key=lambda each: each.begin_ms).identity


def _identity(event: Event) -> Event:
    token_id = event["token_id"]
    return {
        "principal": event["owner"],
        "owner": event["owner"],
        "requester": event["requester"],
        "token_id": token_id,
        "session_token_id": token_id,
    }


def _is_use(event: Event) -> bool:
    return event["type"] == EventType.LOGIN and event["outcome"] == Outcome.OK and bool(event.get("by_token"))


def _program(event: Event) -> tuple[str | None, str | None]:
    return event.get("client_software"), event.get("client_software_version")


def _hour(event: Event) -> int:
    return int(event["time"] // HOUR_MS % 24)


def _events(source: Path) -> Iterator[Event]:
    """Read all events, file by file."""
    for path in sorted(source.glob("*.jsonl")):
        with path.open("rb") as lines:
            yield from map(json.loads, lines)


def _write(source: Path, folder: Path, swapped: dict[str, Event]) -> None:
    """Copy all files, with other lines for what was swapped."""
    folder.mkdir(parents=True)
    for path in sorted(source.glob("*.jsonl")):
        with path.open("rb") as lines, (folder / path.name).open("wb") as copy:
            for line in lines:
                event = swapped.get(json.loads(line)["id"])
                copy.write(line if event is None else json.dumps(event, separators=(",", ":")).encode() + b"\n")
