"""Look whether audit files are as the node wrote them: find lines that were altered, removed or reordered.

    for series in verified(directory, keys):
        series.faults

The files of one worker are a series. Each batch of lines carries the hash of the batch before it, and each complete
file has a digest, which the node signs if it has a key. So a change shows at the next batch, and at the last batch of a
file in the digest. The numbers at the end of the events' ids tell which events the node itself could not write.

Limits: without signatures, a user who may write to the folder can make a new chain. Nothing shows the removal of the
newest files, nor of the oldest ones: retention removes those as well. Lines of a file that is still being written are
covered up to its last batch.

Source: docs/audit.md, "Evidence".
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from kafka_dt.audit.chain import (
    START,
    DigestUnreadable,
    FileDigest,
    ReadDigest,
    batches,
    link_after,
    link_in,
)
from kafka_dt.audit.file_names import DIGEST, FileName, digest_path, files_in
from kafka_dt.audit.line_file import whole_lines

LOOKS: Final = 3
"""How many times the command looks at a series with faults: a node may complete or remove files meanwhile."""
_EVENT_ID: Final = re.compile(r"(?P<instance>.+)-(?P<number>\d{1,19})")


class FaultKind(StrEnum):
    """What is wrong with a file."""

    ALTERED = "altered"
    """A batch does not have the hash that the next batch or the digest names."""
    MISSING_FILE = "missing-file"
    """The file does not continue the file before it."""
    NEW_CHAIN = "new-chain"
    """The file begins a chain though it is not the first one."""
    NO_CHAIN = "no-chain"
    """A complete file has lines before its first link."""
    NO_DIGEST = "no-digest"
    """A complete file has no digest, or one that cannot be read or is another file's."""
    NOT_SIGNED = "not-signed"
    """The digest has no signature of the key that it names, or that key was not given."""
    NO_EVENT = "no-event"
    """A line is no event."""
    LOST = "lost"
    """The node made events that are not there, and the chain is whole: the node could not write them."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that is wrong with a file."""

    kind: FaultKind
    file: str
    text: str
    first_line: int | None = None
    """The first line that it is about, from 1; None for a whole file."""
    last_line: int | None = None


@dataclass(slots=True)
class Series:
    """The files of one worker, as they were found."""

    worker: str
    files: int = 0
    lines: int = 0
    continues: bool = False
    """Whether the oldest file continues one that is not there, as after retention has removed it."""
    faults: list[Fault] = field(default_factory=list)


@dataclass(slots=True)
class _Before:
    """What is known of the lines before a file."""

    link: str | None = None
    """The hash of the last batch of the file before; None before the first file."""
    intact: bool = True
    """Whether the file before has a digest that says the same."""
    numbers: dict[str, int] = field(default_factory=dict)
    """The number of the last event of each start of a worker."""


def verified(directory: Path, keys: Collection[Ed25519PublicKey] = ()) -> Iterator[Series]:
    """Look at the files of each worker, in turn, also while nodes write to the folder.

    Args:
        directory: the folder with the files.
        keys: verify the digests, each those that name it; without one signatures are not looked at.

    Raises:
        OSError: a file cannot be read.
    """
    for worker in dict.fromkeys(name.series for name in files_in(directory)):
        yield _verified(directory, worker, keys)


def _verified(directory: Path, worker: str, keys: Collection[Ed25519PublicKey]) -> Series:
    """Look at the files of one worker, again if its node has completed or removed some meanwhile."""
    for _ in range(LOOKS - 1):
        names = _names(directory, worker)
        with suppress(FileNotFoundError):
            series = _SeriesLook(directory, worker, keys).look(names)
            if not series.faults or names == _names(directory, worker):
                return series
    return _SeriesLook(directory, worker, keys).look(_names(directory, worker))


def _names(directory: Path, worker: str) -> list[FileName]:
    return [name for name in files_in(directory) if name.series == worker]


def without_chain(directory: Path) -> list[str]:
    """Name the files whose lines begin without a hash, which no node in strict mode wrote (`FaultKind.NO_CHAIN`).

    Raises:
        OSError: a file cannot be read.
    """
    return [str(name) for name in files_in(directory) if _begins_without_hash(directory / str(name))]


def shows_strict_mode(directory: Path) -> bool:
    """Say whether anything in a folder is of a node in strict mode: a digest, or a line with the key `chain`.

    Raises:
        OSError: a file cannot be read.
    """
    if any(DIGEST in path.name for path in directory.iterdir()):
        return True
    return any(_has_chain(directory / str(name)) for name in files_in(directory))


def _has_chain(path: Path) -> bool:
    # What is left of a damaged hash counts as well. No text of a client can look like it: JSON escapes quotation marks.
    with path.open("rb") as file:
        return any(b'"chain"' in line for line in file)


def _begins_without_hash(path: Path) -> bool:
    with path.open("rb") as file:
        line = file.readline()
    return line.endswith(b"\n") and link_in(line) is None  # a file that is being written may have no line yet


class _SeriesLook:
    """The look at one series."""

    def __init__(self, directory: Path, worker: str, keys: Collection[Ed25519PublicKey]) -> None:
        self._directory = directory
        self._series = Series(worker)
        self._keys = keys
        self._before = _Before()

    def look(self, names: Iterable[FileName]) -> Series:
        """Look at the files, which are in the order in which they were written."""
        for listed in names:
            name, content = self._read(listed)
            path = self._directory / str(name)
            parts = list(batches(content))
            self._series.files += 1
            self._series.lines += content.count(b"\n")
            if parts:
                self._look_at_links(path.name, parts)
            last = link_after(parts[-1]) if parts else START
            self._before.intact = not name.complete or self._look_at_digest(path, content, last, parts)
            self._look_at_events(path.name, content)
            self._before.link = last
        return self._series

    def _read(self, name: FileName) -> tuple[FileName, bytes]:
        """Return the lines of a file, and what it is called now: its node may have completed it meanwhile."""
        try:
            content = (self._directory / str(name)).read_bytes()
        except FileNotFoundError:
            if name.complete:
                raise
            return self._read(replace(name, complete=True))
        return name, content if name.complete else whole_lines(content)  # the node is writing the rest

    def _look_at_links(self, name: str, parts: Sequence[bytes]) -> None:
        """See that each batch carries the hash of the one before it."""
        self._look_at_first(name, link_in(_first_line(parts[0])))
        line = 1
        for part, following in pairwise(parts):
            last = line + part.count(b"\n") - 1
            if link_in(_first_line(following)) != link_after(part):
                self._fault(FaultKind.ALTERED, name, "lines were altered, removed or reordered here", line, last)
            line = last + 1

    def _look_at_first(self, name: str, link: str | None) -> None:
        """See that a file continues the file before it."""
        before = self._before
        if link is None:
            self._fault(FaultKind.NO_CHAIN, name, "the first line carries no hash")
        elif before.link is None:
            self._series.continues = link != START
        elif link == START:
            self._fault(
                FaultKind.NEW_CHAIN, name, "a chain begins anew: the node did not find the file before this one"
            )
        elif link != before.link and before.intact:
            self._fault(FaultKind.MISSING_FILE, name, "the file that it continues is missing")

    def _look_at_digest(self, path: Path, content: bytes, link: str, parts: Sequence[bytes]) -> bool:
        """Compare a complete file with its digest; returns whether they agree."""
        try:
            found = ReadDigest.parse(digest_path(path).read_bytes())
        except FileNotFoundError:
            self._fault(FaultKind.NO_DIGEST, path.name, "it has no digest")
            return False
        except DigestUnreadable as error:
            self._fault(FaultKind.NO_DIGEST, path.name, f"its digest cannot be read: {error}")
            return False
        if self._keys and not any(found.is_signed_by(key) for key in self._keys):
            self._fault(FaultKind.NOT_SIGNED, path.name, "its digest is not signed by a key that was given")
        if found.digest.file != path.name:
            self._fault(FaultKind.NO_DIGEST, path.name, f"its digest is that of {found.digest.file}")
            return False
        return self._compare(found.digest, content.count(b"\n"), link, parts)

    def _compare(self, said: FileDigest, lines: int, link: str, parts: Sequence[bytes]) -> bool:
        if said.lines != lines:
            self._fault(FaultKind.ALTERED, said.file, f"the node wrote {said.lines} lines, {lines} are there")
        if said.link == link:
            return said.lines == lines
        last = parts[-1].count(b"\n") if parts else 0
        first = max(1, lines - last + 1)
        self._fault(FaultKind.ALTERED, said.file, "the end is not as the node wrote it", first, max(first, lines))
        return False

    def _look_at_events(self, name: str, content: bytes) -> None:
        """See that no event is missing. One may be there twice, if the node could not take back a batch that failed."""
        altered = any(fault.file == name and fault.kind is not FaultKind.NOT_SIGNED for fault in self._series.faults)
        for number, line in enumerate(content.splitlines(), start=1):
            found = _event_number(line)
            if found is None:
                self._fault(FaultKind.NO_EVENT, name, "it is no event", number, number)
                continue
            instance, count = found
            before = self._before.numbers.get(instance, count - 1 if self._series.files == 1 else 0)
            self._before.numbers[instance] = max(before, count)
            if count > before + 1 and not altered:
                lost = f"{instance}-{before + 1} to {instance}-{count - 1}"
                self._fault(FaultKind.LOST, name, f"the node could not write the events {lost}", number, number)

    def _fault(self, kind: FaultKind, name: str, text: str, first: int | None = None, last: int | None = None) -> None:
        self._series.faults.append(Fault(kind, name, text, first, last))


def _first_line(batch: bytes) -> bytes:
    return batch[: batch.find(b"\n") + 1]


def _event_number(line: bytes) -> tuple[str, int] | None:
    try:
        event = json.loads(line)
        match = _EVENT_ID.fullmatch(event["id"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return None if match is None else (match["instance"], int(match["number"]))
