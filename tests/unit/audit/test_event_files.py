"""Files of events: rolled by size and age, whole lines alone, finished after a crash, removed when they are old."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_dt.audit.delivery import SinkFailed
from kafka_dt.audit.file_names import OPEN
from kafka_dt.audit.files import SYNC_SECONDS, EventFiles, FileRules
from kafka_dt.audit.line_file import finish
from tests.support.nodes.full_disk import files_of_at_most

NOW = 1_795_283_056_000  # 2026-11-21T17:44:16Z
DAY_MS = 86_400_000


class Clock:
    """Both clocks of a node."""

    seconds = 100.0

    def now_ms(self) -> int:
        return NOW + int((self.seconds - 100) * 1000)

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


def rules(directory: Path, clock: Clock, node: str = "kdt1", worker: int = 0, **settings: Any) -> FileRules:
    given: dict[str, Any] = {"file_bytes": 64 * 1024 * 1024, "roll_ms": 300_000, "retention_ms": -1} | settings
    return FileRules(
        directory=directory, node=node, worker=worker, now_ms=clock.now_ms, monotonic=clock.monotonic, **given
    )


def files(directory: Path, clock: Clock, node: str = "kdt1", worker: int = 0, **settings: Any) -> EventFiles:
    return EventFiles(rules(directory, clock, node, worker, **settings))


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_a_file_has_its_name_when_it_is_complete(tmp_path: Path, clock: Clock) -> None:
    sink = files(tmp_path, clock)
    sink.open()
    assert names(tmp_path) == []
    sink.write([b"1\n", b"2\n"])
    assert names(tmp_path) == ["audit-kdt1-0-20261121T174416Z-0.jsonl.open"]
    sink.write([b"3\n"])
    sink.close()
    assert names(tmp_path) == ["audit-kdt1-0-20261121T174416Z-0.jsonl"]
    (path,) = tmp_path.iterdir()
    assert path.read_bytes() == b"1\n2\n3\n"


def test_files_are_for_their_owner_and_group(tmp_path: Path, clock: Clock) -> None:
    sink = files(tmp_path, clock)
    sink.write([b"1\n"])
    (path,) = tmp_path.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) & 0o027 == 0
    sink.close()


def test_a_file_that_would_grow_too_long_is_complete(tmp_path: Path, clock: Clock) -> None:
    sink = files(tmp_path, clock, file_bytes=10)
    for number in range(5):
        sink.write([b"line%d\n" % number])
    sink.write([b"longer than a file may be\n"])
    sink.close()
    # In the same second: the number tells them apart.
    parts = [path.read_bytes() for path in sorted(tmp_path.iterdir())]
    assert parts == [b"line0\n", b"line1\n", b"line2\n", b"line3\n", b"line4\n", b"longer than a file may be\n"]


def test_a_file_that_is_old_is_complete_though_nothing_comes(tmp_path: Path, clock: Clock) -> None:
    sink = files(tmp_path, clock, roll_ms=5000)
    sink.write([b"1\n"])
    clock.seconds += SYNC_SECONDS
    assert sink.tend() == 4.0
    clock.seconds += 4.0
    assert sink.tend() is None
    assert names(tmp_path) == ["audit-kdt1-0-20261121T174416Z-0.jsonl"]
    sink.write([b"2\n"])
    sink.close()
    assert names(tmp_path)[1] == "audit-kdt1-0-20261121T174421Z-0.jsonl"


def test_what_was_written_is_due_to_be_synced_soon(tmp_path: Path, clock: Clock) -> None:
    sink = files(tmp_path, clock)
    sink.write([b"1\n"])
    assert sink.tend() == SYNC_SECONDS
    clock.seconds += SYNC_SECONDS
    assert sink.tend() == 300 - SYNC_SECONDS
    sink.close()


def test_what_a_full_disk_cuts_off_is_taken_back_and_written_again(tmp_path: Path, clock: Clock) -> None:
    sink = files(tmp_path, clock)
    sink.write([b"0123\n"])
    with files_of_at_most(8), pytest.raises(SinkFailed, match="File too large"):
        sink.write([b"4567\n", b"89\n"])
    (path,) = tmp_path.iterdir()
    assert path.read_bytes() == b"0123\n"
    sink.write([b"4567\n", b"89\n"])
    sink.close()
    (path,) = tmp_path.iterdir()
    assert path.read_bytes() == b"0123\n4567\n89\n"


def test_a_folder_that_is_gone_is_told_and_used_when_it_is_back(tmp_path: Path, clock: Clock) -> None:
    folder = tmp_path / "audit"
    sink = files(folder, clock)
    with pytest.raises(SinkFailed, match="No such file"):
        sink.open()
    with pytest.raises(SinkFailed, match="No such file"):
        sink.write([b"1\n"])
    folder.mkdir()
    sink.write([b"1\n"])
    sink.close()
    assert len(names(folder)) == 1


def test_a_full_disk_does_not_keep_what_is_old(tmp_path: Path, clock: Clock) -> None:
    sink = files(tmp_path, clock, retention_ms=10 * DAY_MS)
    sink.open()
    sink.write([b"0123\n"])
    old = aged(tmp_path, "audit-kdt1-0-20261101T000000Z-0.jsonl", days=20)
    with files_of_at_most(8), pytest.raises(SinkFailed, match="File too large"):
        sink.write([b"4567\n"])
    assert not old.exists()
    sink.close()


def test_a_file_that_could_not_be_completed_is_finished_when_it_can_be(tmp_path: Path, clock: Clock) -> None:
    folder = tmp_path / "audit"
    folder.mkdir()
    sink = files(folder, clock, roll_ms=5000)
    sink.write([b"1\n"])
    folder.rename(tmp_path / "elsewhere")
    clock.seconds += 5
    for _ in range(2):
        with pytest.raises(SinkFailed, match="No such file"):
            sink.tend()
    (tmp_path / "elsewhere").rename(folder)
    assert sink.tend() is None
    assert names(folder) == ["audit-kdt1-0-20261121T174416Z-0.jsonl"]
    assert (folder / names(folder)[0]).read_bytes() == b"1\n"


def test_what_could_not_be_completed_at_the_end_of_a_file_is_finished_though_others_are_written(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = files(tmp_path, clock, file_bytes=1024)
    sink.write([b"1\n"])

    def refuse(_descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(SinkFailed, match="Input/output error"):
        sink.write([b"x" * 1024 + b"\n"])
    monkeypatch.undo()
    sink.write([b"2\n"])
    assert len([name for name in names(tmp_path) if name.endswith(OPEN)]) == 2
    sink.tend()
    assert len([name for name in names(tmp_path) if name.endswith(OPEN)]) == 1
    sink.close()
    assert sorted(path.read_bytes() for path in tmp_path.iterdir()) == [b"1\n", b"2\n"]


# After a crash


def left_open(directory: Path, content: bytes, node: str = "kdt1", worker: int = 0) -> Path:
    path = directory / f"audit-{node}-{worker}-20261120T000000Z-0.jsonl{OPEN}"
    path.write_bytes(content)
    return path


def test_what_a_crash_has_left_is_cut_after_its_last_whole_line(tmp_path: Path, clock: Clock) -> None:
    left_open(tmp_path, b'{"a":1}\n{"b":2}\n{"c"')
    files(tmp_path, clock).open()
    assert names(tmp_path) == ["audit-kdt1-0-20261120T000000Z-0.jsonl"]
    (path,) = tmp_path.iterdir()
    assert path.read_bytes() == b'{"a":1}\n{"b":2}\n'


@pytest.mark.parametrize("content", [b"", b"half a line", b"\0" * 5000])
def test_a_file_without_a_whole_line_goes(tmp_path: Path, clock: Clock, content: bytes) -> None:
    left_open(tmp_path, content)
    files(tmp_path, clock).open()
    assert names(tmp_path) == []


@settings(deadline=None)
@given(lines=st.lists(st.binary(max_size=70_000), max_size=4), rest=st.binary(max_size=140_000))
def test_wherever_a_crash_comes_the_whole_lines_stay(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], rest: bytes
) -> None:
    whole = b"".join(line.translate(None, b"\0\n") + b"\n" for line in lines)
    path = left_open(tmp_path_factory.mktemp("crash"), whole + rest.replace(b"\n", b""))
    finish(path)
    complete = path.with_name(path.name.removesuffix(OPEN))
    assert not path.exists()
    assert (complete.read_bytes() if lines else b"") == whole


def test_a_node_finishes_the_files_of_all_its_workers_and_no_others(tmp_path: Path, clock: Clock) -> None:
    left_open(tmp_path, b"1\n", worker=7)
    others = [left_open(tmp_path, b"1\n", node="kdt2"), left_open(tmp_path, b"1\n", node="kdt1-0")]
    (tmp_path / "notes.txt").write_text("of another program")
    files(tmp_path, clock).open()
    assert names(tmp_path) == sorted(
        ["audit-kdt1-7-20261120T000000Z-0.jsonl", "notes.txt", *(path.name for path in others)]
    )


def test_a_file_that_somebody_writes_is_left_alone(tmp_path: Path, clock: Clock) -> None:
    writing = files(tmp_path, clock)
    writing.write([b"1\n"])
    files(tmp_path, clock, worker=1).open()
    assert names(tmp_path) == ["audit-kdt1-0-20261121T174416Z-0.jsonl.open"]
    writing.write([b"2\n"])
    writing.close()
    (path,) = tmp_path.iterdir()
    assert path.read_bytes() == b"1\n2\n"


def test_two_nodes_of_one_name_do_not_write_to_one_file(tmp_path: Path, clock: Clock) -> None:
    sinks = [files(tmp_path, clock), files(tmp_path, clock)]
    for number, sink in enumerate(sinks):
        sink.write([b"%d\n" % number])
    for sink in sinks:
        sink.close()
    assert sorted(path.read_bytes() for path in tmp_path.iterdir()) == [b"0\n", b"1\n"]


def test_a_file_that_another_node_of_the_name_has_just_completed_stays(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    sinks = [files(tmp_path, clock), files(tmp_path, clock)]
    sinks[0].write([b"0\n"])
    there = Path.exists

    def seen_too_early(path: Path) -> bool:
        monkeypatch.undo()
        found = there(path)
        sinks[0].close()
        return found

    monkeypatch.setattr(Path, "exists", seen_too_early)
    sinks[1].write([b"1\n"])
    sinks[1].close()
    assert sorted(path.read_bytes() for path in tmp_path.iterdir()) == [b"0\n", b"1\n"]


def test_a_file_that_somebody_has_just_finished_is_no_error(tmp_path: Path) -> None:
    finish(tmp_path / f"audit-kdt1-0-20261120T000000Z-0.jsonl{OPEN}")
    assert names(tmp_path) == []


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_folder_in_which_no_file_can_be_locked_costs_neither_descriptors_nor_names(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_descriptor: int, _operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    sink = files(tmp_path, clock)
    sink.open()
    before = descriptors()
    with monkeypatch.context() as patched:
        patched.setattr(fcntl, "flock", refuse)
        for _ in range(5):
            with pytest.raises(SinkFailed, match="No locks available"):
                sink.write([b"1\n"])
    assert names(tmp_path) == []
    assert descriptors() == before
    sink.write([b"1\n"])
    sink.close()
    assert len(names(tmp_path)) == 1


def test_a_locked_file_is_not_finished(tmp_path: Path) -> None:
    path = left_open(tmp_path, b"1\n")
    with path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        finish(path)
        assert path.exists()
    finish(path)
    assert not path.exists()


# How long files stay


def aged(directory: Path, name: str, days: float) -> Path:
    path = directory / name
    path.write_bytes(b"1\n")
    when = NOW / 1000 - days * 86_400
    os.utime(path, (when, when))
    return path


def test_complete_files_of_the_node_are_removed_when_they_are_old(tmp_path: Path, clock: Clock) -> None:
    aged(tmp_path, "audit-kdt1-0-20261101T000000Z-0.jsonl", days=20)
    aged(tmp_path, "audit-kdt1-5-20261101T000000Z-0.jsonl", days=20)
    kept = [
        aged(tmp_path, "audit-kdt1-0-20261120T000000Z-0.jsonl", days=1),
        aged(tmp_path, "audit-kdt2-0-20261101T000000Z-0.jsonl", days=20),
        aged(tmp_path, "another.jsonl", days=20),
    ]
    sink = files(tmp_path, clock, retention_ms=10 * DAY_MS)
    sink.open()
    assert names(tmp_path) == sorted(path.name for path in kept)
    clock.seconds += 86_400 * 9.5
    sink.write([b"1\n"])
    sink.close()
    assert kept[0].name not in names(tmp_path)


def test_a_file_of_a_clock_that_was_behind_goes_with_the_file_before_it(tmp_path: Path, clock: Clock) -> None:
    """Else the chain of strict mode would have a gap, as if a user had removed a file."""
    before = aged(tmp_path, "audit-kdt1-0-20261120T000000Z-0.jsonl", days=1)
    behind = aged(tmp_path, "audit-kdt1-0-20261120T000000Z-1.jsonl", days=20_000)
    sink = files(tmp_path, clock, retention_ms=10 * DAY_MS)
    sink.open()
    assert names(tmp_path) == [before.name, behind.name]
    clock.seconds += 86_400 * 9.5
    files(tmp_path, clock, retention_ms=10 * DAY_MS).open()
    assert names(tmp_path) == []


def test_a_file_of_a_clock_that_was_ahead_goes_with_the_file_after_it(tmp_path: Path, clock: Clock) -> None:
    """Else it would stay for years, and the chain of strict mode would have a gap behind it."""
    ahead = aged(tmp_path, "audit-kdt1-0-20361120T000000Z-0.jsonl", days=-3650)
    after = aged(tmp_path, "audit-kdt1-0-20361120T000000Z-1.jsonl", days=1)
    other = aged(tmp_path, "audit-kdt1-1-20361120T000000Z-0.jsonl", days=-3650)
    sink = files(tmp_path, clock, retention_ms=10 * DAY_MS)
    sink.open()
    assert names(tmp_path) == [ahead.name, after.name, other.name]
    clock.seconds += 86_400 * 9.5
    files(tmp_path, clock, retention_ms=10 * DAY_MS).open()
    assert names(tmp_path) == [other.name]


def test_files_stay_unless_a_setting_says_otherwise(tmp_path: Path, clock: Clock) -> None:
    aged(tmp_path, "audit-kdt1-0-20000101T000000Z-0.jsonl", days=9000)
    sink = files(tmp_path, clock)
    sink.open()
    sink.write([b"1\n"])
    sink.close()
    assert len(names(tmp_path)) == 2
