"""Findings that operators need not look at again, as a file says: `kafka-dt pipeline report --suppressions FILE`.

    entries = load_suppressions(Path("suppressions.toml"), kinds, networks)
    shown, suppressed = suppress(findings, entries, now)

The file is TOML, with a `[[suppression]]` for each maintenance window and each finding that a team accepts:

    [[suppression]]
    who = "Anna Novak"
    why = "The jobs of the north cluster move to the south one, change 4711."
    until = 2026-12-31
    owner = ["User:etl-*", "User:orders"]
    from = 2026-11-20T06:00:00Z
    to = 2026-11-20T14:00:00Z

`who`, `why` and `until` are needed. After `until` an entry has run out: it suppresses nothing, and the report says so.
An entry covers a finding if all that it names is true of the finding: `kind`, `owner`, `token`, `address` (an address
or a network) and `zone` (a name in the file of networks), each a text or a list of texts of which one has to fit; in an
owner `*` stands for any text. With `from` and `to` all events of the finding have to be in that time, so what goes on
later is shown. Times are UTC unless they say otherwise; a date is its beginning in `from`, and its end in `to` and
`until`.

Nothing here needs Spark.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any, Final

from kafka_dt.pipeline.errors import BadSuppressions
from kafka_dt.pipeline.report.networks import address_number, range_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from pathlib import Path

    from kafka_dt.pipeline.report.networks import Network
    from kafka_dt.pipeline.report.signs import Finding

_TABLE: Final = "suppression"
_NEEDED: Final = ("who", "why", "until")
_COVERS: Final = ("kind", "owner", "token", "address", "zone", "from", "to")


@dataclass(frozen=True, slots=True)
class Suppression:
    """One entry of the file."""

    who: str
    """Who answers for it."""
    why: str
    until: datetime
    """When it runs out."""
    kinds: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    """Addresses and networks, as they are written."""
    zones: tuple[str, ...] = ()
    ranges: tuple[tuple[int, int], ...] = ()
    """The first and the last address of all `addresses`."""
    networks: tuple[Network, ...] = ()
    """Those of the file, the smallest first: the first one around an address is its zone."""
    begin: datetime | None = None
    end: datetime | None = None

    def has_run_out(self, now: datetime) -> bool:
        """Say whether it suppresses nothing any more."""
        return self.until < now

    def covers(self, finding: Finding) -> bool:
        """Say whether all that it names is true of a finding."""
        return (
            (not self.kinds or finding.kind in self.kinds)
            and (not self.owners or any(_fits(each, finding.owner) for each in self.owners))
            and (not self.tokens or finding.token_id in self.tokens)
            and self._is_there(finding.address)
            and (self.begin is None or self.begin <= finding.first_seen)
            and (self.end is None or finding.last_seen <= self.end)
        )

    def _is_there(self, address: str | None) -> bool:
        if not self.addresses and not self.zones:
            return True
        number = address_number(address)
        if number is None:
            return False
        zone = next((each.name for each in self.networks if each.first <= number <= each.last), None)
        return zone in self.zones or any(first <= number <= last for first, last in self.ranges)

    @property
    def scope(self) -> str:
        """What it covers, for people."""
        named = (
            ("sign", self.kinds),
            ("owner", self.owners),
            ("token", self.tokens),
            ("address", self.addresses),
            ("zone", self.zones),
        )
        parts = [f"{name} {' or '.join(values)}" for name, values in named if values]
        parts += [f"from {self.begin:%Y-%m-%d %H:%M}"] if self.begin else []
        parts += [f"to {self.end:%Y-%m-%d %H:%M}"] if self.end else []
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Suppressed:
    """A finding that an entry covers."""

    finding: Finding
    by: Suppression


def suppress(
    findings: Iterable[Finding], entries: Sequence[Suppression], now: datetime, *, most: int | None = None
) -> tuple[tuple[Finding, ...], tuple[Suppressed, ...]]:
    """Tell findings that are shown, `most` of them at most, from those that an entry covers.

    Of several entries the first one counts.
    """
    shown: list[Finding] = []
    suppressed: list[Suppressed] = []
    in_force = [entry for entry in entries if not entry.has_run_out(now)]
    for finding in findings:
        entry = next((entry for entry in in_force if entry.covers(finding)), None)
        if entry is not None:
            suppressed.append(Suppressed(finding, entry))
        elif most is None or len(shown) < most:
            shown.append(finding)
    return tuple(shown), tuple(suppressed)


def load_suppressions(path: Path, kinds: Collection[str], networks: Sequence[Network]) -> tuple[Suppression, ...]:
    """Read a file of suppressions.

    Args:
        path: the file.
        kinds: of findings, that an entry may name.
        networks: of the file of networks, which names the zones.

    Raises:
        BadSuppressions: an entry cannot be understood, or the file cannot be read.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:  # of TOML and of UTF-8 as well
        raise BadSuppressions(str(path), str(error)) from error
    entries = document.pop(_TABLE, [])
    if document or not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        other = ", ".join(document) or _TABLE
        raise BadSuppressions(str(path), f"it has {other}; each entry begins with [[{_TABLE}]]")
    found = []
    for number, entry in enumerate(entries, start=1):
        try:
            found.append(_suppression(entry, kinds, networks))
        except ValueError as error:
            raise BadSuppressions(f"{path}, suppression {number}", str(error)) from error
    return tuple(found)


def _suppression(entry: dict[str, Any], kinds: Collection[str], networks: Sequence[Network]) -> Suppression:
    if unknown := sorted(set(entry) - {*_NEEDED, *_COVERS}):
        raise ValueError(f"{unknown[0]!r} is unknown; an entry has {', '.join((*_NEEDED, *_COVERS))}")
    if missing := [name for name in _NEEDED if not entry.get(name)]:
        raise ValueError(f"{missing[0]!r} is missing: say who accepts it, why, and until when")
    if not set(entry) & set(_COVERS):
        raise ValueError(f"it would cover everything; name one of {', '.join(_COVERS)}")
    named = {name: _texts(entry, name) for name in ("kind", "owner", "token", "address", "zone")}
    if wrong := [kind for kind in named["kind"] if kind not in kinds]:
        raise ValueError(f"{wrong[0]!r} is no kind of finding; write one of {', '.join(sorted(kinds))}")
    if named["address"] and named["zone"]:
        raise ValueError("name an address or a zone, not both")
    if unnamed := set(named["zone"]).difference(each.name for each in networks):
        raise ValueError(f"no network is called {min(unnamed)!r}; name zones in the file of --networks")
    begin, end = (_instant(entry[name], name) if name in entry else None for name in ("from", "to"))
    if begin is not None and end is not None and end <= begin:
        raise ValueError("'to' is not after 'from'")
    return Suppression(
        who=_text(entry["who"], "who"),
        why=_text(entry["why"], "why"),
        until=_instant(entry["until"], "until"),
        kinds=named["kind"],
        owners=named["owner"],
        tokens=named["token"],
        addresses=named["address"],
        zones=named["zone"],
        ranges=tuple(range_of(ip_network(each)) for each in named["address"]),
        networks=tuple(networks) if named["zone"] else (),
        begin=begin,
        end=end,
    )


def _texts(entry: dict[str, Any], name: str) -> tuple[str, ...]:
    if name not in entry:
        return ()
    values = entry[name] if isinstance(entry[name], list) else [entry[name]]
    if not values:
        raise ValueError(f"{name!r} is empty")
    return tuple(_text(value, name) for value in values)


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{name!r} has {value!r}, which is no text")
    return value


def _instant(value: Any, name: str) -> datetime:
    match value:
        case datetime():
            return value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        case date():
            return datetime.combine(value, time.min if name == "from" else time.max, UTC)
        case _:
            raise ValueError(f"{name!r} has {value!r}; write a date or a time of TOML, such as 2026-12-31")


def _fits(pattern: str, owner: str | None) -> bool:
    """Compare an owner with a pattern in which `*` stands for any text."""
    parts = map(re.escape, pattern.split("*"))
    return owner is not None and re.fullmatch(".*".join(parts), owner, re.DOTALL) is not None
