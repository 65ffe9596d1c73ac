"""Files of strict mode: batches over zeros, chained, taken back if they are not durable."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from kafka_dt.audit import EventType, Outcome
from kafka_dt.audit.chain import Chain
from kafka_dt.audit.chained_files import ChainedFiles
from kafka_dt.audit.delivery import EventKind, SinkFailed
from kafka_dt.audit.file_names import OPEN
from kafka_dt.audit.files import FileRules
from kafka_dt.audit.line_file import ZEROS
from kafka_dt.audit.synced import SyncedDelivery
from kafka_dt.audit.verification import verified
from tests.support.nodes.audit import write_durably
from tests.support.nodes.full_disk import files_of_at_most

WITHIN_S = 5.0
FIRST, SECOND, THIRD = (b'{"id":"x-%d"}\n' % number for number in (1, 2, 3))


@pytest.fixture
def rules(tmp_path: Path) -> FileRules:
    return FileRules(
        directory=tmp_path,
        node="kdt1",
        worker=0,
        file_bytes=64 * 1024 * 1024,
        roll_ms=300_000,
        retention_ms=-1,
        now_ms=lambda: 1_795_283_056_000,
    )


@pytest.fixture
def sink(rules: FileRules) -> ChainedFiles:
    return ChainedFiles(rules, Chain())


def unchained(content: bytes) -> bytes:
    """The lines of a file as they were before they were chained."""
    return re.sub(rb',"chain":"[0-9a-f]{64}"', b"", content)


def complete(folder: Path) -> bytes:
    """The lines of all complete files, which have no fault."""
    assert [series.faults for series in verified(folder)] == [[]]
    return unchained(b"".join(path.read_bytes() for path in sorted(folder.glob("*.jsonl"))))


def only_open(folder: Path) -> Path:
    (path,) = folder.glob(f"*{OPEN}")
    return path


def test_a_file_has_zeros_behind_its_lines_until_it_is_complete(tmp_path: Path, sink: ChainedFiles) -> None:
    write_durably(sink, [FIRST])
    begun = only_open(tmp_path).read_bytes()
    assert len(begun) == len(ZEROS)
    assert unchained(begun.rstrip(b"\0")) == FIRST
    write_durably(sink, [SECOND])
    assert len(only_open(tmp_path).read_bytes()) == len(ZEROS), "it has not become longer"
    long = b'{"id":"x-3","text":"%s"}\n' % (b"x" * len(ZEROS))
    write_durably(sink, [long])
    sink.close()
    assert complete(tmp_path) == FIRST + SECOND + long


def test_a_batch_has_room_if_its_file_has_zeros_for_it(rules: FileRules) -> None:
    sink = ChainedFiles(replace(rules, file_bytes=1_000), Chain())
    assert not sink.has_room([FIRST]), "there is no file yet"
    sink.make_room([FIRST])
    assert sink.has_room([FIRST])
    assert sink.has_room([b"x" * 1_000]), "a batch that is longer by itself has a file of its own"
    write_durably(sink, [FIRST])
    assert not sink.has_room([b"x" * 1_000]), "the file would be too long"
    write_durably(sink, [b'{"id":"%s"}\n' % (b"x" * 1_000)])
    write_durably(sink, [SECOND])
    sink.close()
    assert len(list(rules.directory.glob("*.jsonl"))) == 3


async def test_a_batch_that_is_longer_than_a_file_may_be_is_written(rules: FileRules) -> None:
    """Whatever a client can make the node write: else every other client would wait for it, for ever."""
    delivery = SyncedDelivery(ChainedFiles(replace(rules, file_bytes=1_024), Chain()), buffer_bytes=1024 * 1024)
    kind = EventKind(EventType.TOKEN_CREATED, Outcome.OK)
    lines = [b'{"id":"x-%d","text":"%s"}\n' % (number, b"x" * 700) for number in range(1, 6)]
    for line in lines:
        delivery.put(line, kind)
    delivery.start()
    await delivery.close(WITHIN_S)
    assert delivery.written == len(lines)
    assert complete(rules.directory) == b"".join(lines)


def test_what_a_full_disk_cuts_off_is_taken_back_and_written_again(tmp_path: Path, sink: ChainedFiles) -> None:
    write_durably(sink, [FIRST])
    before = only_open(tmp_path).read_bytes().rstrip(b"\0")
    for limit in (len(before) + 8, len(before)):
        with files_of_at_most(limit), pytest.raises(SinkFailed, match="File too large"):
            write_durably(sink, [SECOND])
        assert only_open(tmp_path).read_bytes() == before
    write_durably(sink, [SECOND])
    sink.close()
    assert complete(tmp_path) == FIRST + SECOND


def test_a_digest_that_a_full_disk_cut_off_is_written_again(tmp_path: Path, sink: ChainedFiles) -> None:
    write_durably(sink, [FIRST])
    with files_of_at_most(1), pytest.raises(SinkFailed, match="File too large"):
        sink.close()
    sink.close()
    assert complete(tmp_path) == FIRST


def taken_back(sink: ChainedFiles, lines: Sequence[bytes]) -> None:
    """Write a batch that turns out not to be durable."""
    sink.make_room(lines)
    sink.write(lines)
    sink.take_back()


def test_a_batch_that_is_not_durable_leaves_nothing_behind(tmp_path: Path, sink: ChainedFiles) -> None:
    write_durably(sink, [FIRST])
    taken_back(sink, [SECOND, THIRD])
    write_durably(sink, [SECOND])
    sink.close()
    assert complete(tmp_path) == FIRST + SECOND


def test_a_file_whose_only_batch_is_not_durable_goes(tmp_path: Path, sink: ChainedFiles) -> None:
    taken_back(sink, [FIRST])
    sink.close()
    assert list(tmp_path.iterdir()) == []


def refuse(_descriptor: int, _length: int) -> None:
    raise OSError(errno.EIO, "Input/output error")


def test_a_batch_that_cannot_be_taken_back_is_in_the_chain(
    tmp_path: Path, sink: ChainedFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_durably(sink, [FIRST])
    monkeypatch.setattr(os, "ftruncate", refuse)
    taken_back(sink, [SECOND])
    monkeypatch.undo()
    write_durably(sink, [SECOND])
    sink.close()
    assert complete(tmp_path) == FIRST + SECOND + SECOND
