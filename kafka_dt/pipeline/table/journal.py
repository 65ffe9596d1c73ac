"""Changes to the files of a table that take place whole or not at all, whenever the process ends.

A change brings files into the table (`adds`: from a staging directory to their places) and takes others out of it
(`removes`). It is prepared, then carried out, in steps that can be repeated:

    1. NAME.prepared is written: what is to be done. Everything to be added is staged by then.
    2. The files are renamed to their places.
    3. NAME.prepared is renamed to NAME.done: from here on the change counts.
    4. The replaced files are deleted, at once or when they are old enough, and NAME.done is renamed to NAME.cleared.

`roll_forward` takes the same steps for everything that an ended process has left. The last entry of each series stays:
a batch of the ingest that is run again after a crash was done if it has one.

Readers leave out what `View.hidden` names: files that were added by a change that does not count yet, and replaced
ones that still exist. A view that is the same before and after they list the files tells that these belong together.

Limits: one process at a time changes a table (`Storage.lock`).

Source: a redo log of one entry for each series; there is no undo, because a change that was not prepared left nothing
but staged files, which the next ingest deletes.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final, Self

from kafka_dt.pipeline.errors import TableBroken

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_dt.pipeline.table.storage import Storage

JOURNAL: Final = "_journal"
STAGING: Final = "_staging"
_PREPARED: Final = "prepared"
_DONE: Final = "done"
_CLEARED: Final = "cleared"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What is to be done; all names are relative to the table."""

    adds: tuple[tuple[str, str], ...] = ()
    """Where a file is staged, and its place."""
    removes: tuple[str, ...] = ()
    """Files that the added ones replace."""
    kept_until_ms: int = 0
    """When the replaced files may be deleted, in milliseconds since 1970."""
    record: Mapping[str, int] = field(default_factory=dict)
    """What is to be known of it afterwards."""

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """Read what `document` has written."""
        return cls(
            adds=tuple((str(staged), str(place)) for staged, place in document["adds"]),
            removes=tuple(map(str, document["removes"])),
            kept_until_ms=int(document["kept_until_ms"]),
            record={str(key): int(value) for key, value in document["record"].items()},
        )

    def document(self) -> dict[str, object]:
        """Give it as JSON's types."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class View:
    """What a reader has to know; another one has other `entries` if anything changed in between."""

    entries: frozenset[str]
    """The names of all entries, with how far they are."""
    hidden: frozenset[str]
    """The files that are not, or no longer, part of the table although they are there."""


class Journal:
    """The changes of one table."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def carry_out(self, series: str, number: int, change: Change, now_ms: int) -> None:
        """Prepare a change and take all its steps.

        series: what it belongs to, without dots; number: above those of the series so far
        """
        name = f"{series}.{number:012d}"
        self._storage.write_document(_file(name, _PREPARED), change.document())
        self._switch(name, change)
        self.clear(now_ms)

    def roll_forward(self, now_ms: int) -> None:
        """Bring to its end what an ended process has begun, and delete what it had only staged."""
        for name in self._names(_PREPARED):
            self._switch(name, self._change(name, _PREPARED))
        self.clear(now_ms)
        for each in self._storage.directories(STAGING):
            self._storage.delete(each)

    def clear(self, now_ms: int) -> None:
        """Delete replaced files that are old enough, and the entries that are not needed any more."""
        for name in self._names(_DONE):
            change = self._change(name, _DONE)
            if now_ms >= change.kept_until_ms:
                for each in change.removes:
                    self._storage.delete(each)
                self._storage.rename(_file(name, _DONE), _file(name, _CLEARED))
        cleared = self._names(_CLEARED)
        last = {name.partition(".")[0]: name for name in cleared}
        for name in set(cleared) - set(last.values()):
            self._storage.delete(_file(name, _CLEARED))

    def last(self, series: str) -> int:
        """Give the number of the last change of a series that was carried out, -1 when there was none."""
        names = [*self._names(_DONE), *self._names(_CLEARED)]
        return max((int(name.partition(".")[2]) for name in names if name.partition(".")[0] == series), default=-1)

    def records(self) -> list[Mapping[str, int]]:
        """Give what is known of the changes that were carried out, the last of each series among them."""
        return [self._change(name, state).record for state in (_DONE, _CLEARED) for name in self._names(state)]

    def view(self) -> View:
        """Say what is hidden now.

        Raises:
            TableBroken: an entry cannot be read.
        """
        while True:
            entries = self._entries()
            try:
                added = [self._change(name, _PREPARED).adds for name in self._names(_PREPARED)]
                removed = [self._change(name, _DONE).removes for name in self._names(_DONE)]
            except FileNotFoundError:
                continue  # it went on while we looked
            if self._entries() == entries:
                places = (place for adds in added for _, place in adds)
                return View(entries, frozenset(places).union(*removed))

    def _switch(self, name: str, change: Change) -> None:
        for staged, place in change.adds:
            self._storage.rename(staged, place)
        self._storage.rename(_file(name, _PREPARED), _file(name, _DONE))

    def _entries(self) -> frozenset[str]:
        endings = tuple(f".{state}" for state in (_PREPARED, _DONE, _CLEARED))
        return frozenset(file.name for file in self._storage.files(JOURNAL) if file.name.endswith(endings))

    def _names(self, state: str) -> list[str]:
        found = (each for each in sorted(self._entries()) if each.endswith(f".{state}"))
        return [each.removeprefix(f"{JOURNAL}/").removesuffix(f".{state}") for each in found]

    def _change(self, name: str, state: str) -> Change:
        file = _file(name, state)
        document = self._storage.read_document(file)
        try:
            return Change.of(document)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise TableBroken(self._storage.uri(file), "it is no entry of the journal") from error


def _file(name: str, state: str) -> str:
    return f"{JOURNAL}/{name}.{state}"
