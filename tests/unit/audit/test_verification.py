"""Evidence: a changed audit file has a fault; a file as the node wrote it has none."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_dt.audit.chain import START, Chain, key_id, link_in
from kafka_dt.audit.chained_files import PATIENCE_SECONDS, ChainedFiles
from kafka_dt.audit.delivery import SinkFailed
from kafka_dt.audit.file_names import OPEN, digest_path
from kafka_dt.audit.files import FileRules
from kafka_dt.audit.verification import FaultKind, Series, verified
from tests.support.nodes.audit import write_durably

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
NOW = 1_795_283_056_000  # 2026-11-21T17:44:16Z
PER_BATCH = 3


class Writer:
    """Writes the files of one worker, some batches a file."""

    def __init__(
        self,
        directory: Path,
        *,
        instance: str = "aa",
        worker: int = 0,
        now_ms: int = NOW,
        key: Ed25519PrivateKey | None = KEY,
    ) -> None:
        self.seconds = 100.0
        self.clock_ms = now_ms
        self._instance = instance
        self._number = 0
        rules = FileRules(
            directory=directory,
            node="kdt1",
            worker=worker,
            file_bytes=64 * 1024 * 1024,
            roll_ms=5_000,
            retention_ms=-1,
            now_ms=lambda: self.clock_ms + int((self.seconds - 100) * 1000),
            monotonic=lambda: self.seconds,
        )
        self.sink = ChainedFiles(rules, Chain(key))
        self.sink.open()

    def batch(self, lines: int = PER_BATCH) -> None:
        numbers = range(self._number + 1, self._number + lines + 1)
        self._number += lines
        instance = self._instance.encode()
        write_durably(self.sink, [b'{"id":"%s-%d","type":"login"}\n' % (instance, each) for each in numbers])

    def lose(self, lines: int) -> None:
        """Make events that are never written."""
        self._number += lines

    def file(self, batches: int = 3) -> None:
        """Write a complete file."""
        for _ in range(batches):
            self.batch()
        self.seconds += 5
        self.sink.tend()


def look(directory: Path, *keys: Ed25519PrivateKey) -> Series:
    (series,) = verified(directory, [key.public_key() for key in keys or (KEY,)])
    return series


def kinds(directory: Path) -> set[FaultKind]:
    return {fault.kind for fault in look(directory).faults}


def complete(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.jsonl"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three complete files and one that is being written."""
    writer = Writer(tmp_path)
    for _ in range(3):
        writer.file()
    writer.batch()
    return tmp_path


def test_files_as_the_node_wrote_them_have_no_fault(folder: Path) -> None:
    assert look(folder) == Series("audit-kdt1-0", files=4, lines=30)


def test_each_batch_and_each_file_carries_the_hash_of_what_came_before(folder: Path) -> None:
    links = [link_in(line) for path in complete(folder) for line in path.read_bytes().splitlines(keepends=True)]
    assert links[0] == START
    assert [link is not None for link in links] == [True, False, False] * 9
    assert len({link for link in links if link}) == 9
    json.loads(complete(folder)[0].read_text().splitlines()[0])


@pytest.fixture(scope="module")
def two_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Two complete files and their digests."""
    directory = tmp_path_factory.mktemp("two")
    writer = Writer(directory)
    writer.file()
    writer.file()
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def restored(files: dict[str, bytes], factory: pytest.TempPathFactory) -> Path:
    directory = factory.mktemp("audit")
    for name, content in files.items():
        (directory / name).write_bytes(content)
    return directory


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_any_byte_that_is_changed_is_found(
    tmp_path_factory: pytest.TempPathFactory, two_files: dict[str, bytes], data: st.DataObject
) -> None:
    directory = restored(two_files, tmp_path_factory)
    path = data.draw(st.sampled_from(complete(directory)))
    content = bytearray(path.read_bytes())
    where = data.draw(st.integers(0, len(content) - 1))
    content[where] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    assert look(directory).faults


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_lines_that_are_removed_doubled_or_reordered_are_found(
    tmp_path_factory: pytest.TempPathFactory, two_files: dict[str, bytes], data: st.DataObject
) -> None:
    directory = restored(two_files, tmp_path_factory)
    path = complete(directory)[0]
    lines = path.read_bytes().splitlines(keepends=True)
    changed = data.draw(
        st.one_of(
            st.permutations(lines),
            st.lists(st.sampled_from(lines), max_size=12),
            st.integers(0, len(lines) - 1).map(lambda end: lines[:end]),
        ).filter(lambda changed: changed != lines)
    )
    path.write_bytes(b"".join(changed))
    assert FaultKind.ALTERED in kinds(directory) or FaultKind.NO_CHAIN in kinds(directory)


def test_a_change_is_located_in_its_batch(folder: Path) -> None:
    path = complete(folder)[1]
    path.write_bytes(path.read_bytes().replace(b'"aa-14"', b'"aa-99"'))
    (fault,) = look(folder).faults
    assert (fault.kind, fault.file, fault.first_line, fault.last_line) == (FaultKind.ALTERED, path.name, 4, 6)


def test_each_of_several_changes_is_found(folder: Path) -> None:
    for path in complete(folder):
        path.write_bytes(path.read_bytes().replace(b"login", b"LOGIN"))
    assert len([fault for fault in look(folder).faults if fault.kind is FaultKind.ALTERED]) == 9


def test_a_file_that_was_removed_in_the_middle_is_missed(folder: Path) -> None:
    gone, following = complete(folder)[1:]
    gone.unlink()
    digest_path(gone).unlink()
    (fault,) = look(folder).faults
    assert (fault.kind, fault.file) == (FaultKind.MISSING_FILE, following.name)


def test_the_oldest_files_may_be_gone(folder: Path) -> None:
    complete(folder)[0].unlink()
    found = look(folder)
    assert (found.continues, found.faults) == (True, [])


def test_a_digest_that_is_missing_torn_or_of_another_file_is_a_fault(folder: Path) -> None:
    first, second, third = complete(folder)
    digest_path(third).write_bytes(digest_path(first).read_bytes())
    digest_path(second).write_bytes(b"{")
    digest_path(first).unlink()
    assert [fault.kind for fault in look(folder).faults if fault.kind is not FaultKind.NOT_SIGNED] == (
        [FaultKind.NO_DIGEST] * 3
    )


@pytest.mark.parametrize(
    "line", [b"[" * 200_000, b'{"id":"aa-' + b"9" * 5_000 + b'"}'], ids=["deeply nested", "a long number"]
)
def test_what_somebody_has_put_there_to_stop_the_look_is_a_fault(folder: Path, line: bytes) -> None:
    first, second = complete(folder)[:2]
    first.write_bytes(first.read_bytes() + line + b"\n")
    digest_path(second).write_bytes(line)
    assert {FaultKind.NO_EVENT, FaultKind.NO_DIGEST} <= kinds(folder)


def test_a_chain_that_somebody_made_anew_is_not_signed(tmp_path: Path) -> None:
    forged = tmp_path
    Writer(forged).file()
    other = Ed25519PrivateKey.generate()
    assert {fault.kind for fault in look(forged, other).faults} == {FaultKind.NOT_SIGNED}
    (path,) = complete(forged)
    digest = digest_path(path)
    digest.write_bytes(digest.read_bytes().replace(b'"lines":9', b'"lines":8'))
    assert FaultKind.NOT_SIGNED in kinds(forged)


def test_each_digest_is_judged_by_the_key_that_it_names_when_the_signing_key_was_changed(tmp_path: Path) -> None:
    new = Ed25519PrivateKey.generate()
    Writer(tmp_path).file()
    Writer(tmp_path, instance="bb", now_ms=NOW + 60_000, key=new).file()
    assert look(tmp_path, KEY, new) == look(tmp_path, new, KEY) == Series("audit-kdt1-0", files=2, lines=18)

    first, second = complete(tmp_path)
    assert [(fault.kind, fault.file) for fault in look(tmp_path, KEY).faults] == [(FaultKind.NOT_SIGNED, second.name)]
    assert [(fault.kind, fault.file) for fault in look(tmp_path, new).faults] == [(FaultKind.NOT_SIGNED, first.name)]


def test_a_digest_that_names_another_key_than_the_one_that_signed_it_is_not_signed(tmp_path: Path) -> None:
    other = Ed25519PrivateKey.generate()
    Writer(tmp_path).file()
    (path,) = complete(tmp_path)
    line, _, _ = digest_path(path).read_bytes().partition(b"\n")
    for named in (key_id(other.public_key()), ["x"], None):
        changed = json.dumps(json.loads(line) | {"key": named}).encode() + b"\n"
        digest_path(path).write_bytes(changed + base64.b64encode(KEY.sign(changed)) + b"\n")
        assert {fault.kind for fault in look(tmp_path, KEY, other).faults} == {FaultKind.NOT_SIGNED}


def test_events_that_the_node_could_not_write_are_told(tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    writer.batch()
    writer.lose(5)
    writer.file()
    (fault,) = look(tmp_path).faults
    assert fault.kind is FaultKind.LOST
    assert fault.text == "the node could not write the events aa-4 to aa-8"


def test_a_worker_that_starts_again_continues_the_chain_of_a_crash(tmp_path: Path) -> None:
    crashed = Writer(tmp_path)
    crashed.file()
    crashed.batch()
    (left,) = tmp_path.glob(f"*{OPEN}")
    torn = left.read_bytes() + b'{"id":"aa-13","ty'
    left.unlink()  # so that the lock is on another file
    left.write_bytes(torn)
    Writer(tmp_path, instance="bb", now_ms=NOW + 60_000).file()
    assert look(tmp_path) == Series("audit-kdt1-0", files=3, lines=21)


def test_a_clock_that_was_set_back_does_not_break_the_chain(tmp_path: Path) -> None:
    Writer(tmp_path).file()
    again = Writer(tmp_path, instance="bb", now_ms=NOW - 3_600_000)
    again.file()
    again.file()
    assert look(tmp_path) == Series("audit-kdt1-0", files=3, lines=27)


def test_retention_does_not_break_the_chain_of_a_clock_that_was_set_back(tmp_path: Path) -> None:
    Writer(tmp_path).file()
    writer = Writer(tmp_path, instance="bb", now_ms=NOW - 3_600_000)
    writer.file()
    oldest, last = complete(tmp_path)
    for path in (oldest, digest_path(oldest)):
        path.unlink()
    writer.file()
    assert look(tmp_path) == Series("audit-kdt1-0", files=2, lines=18, continues=True)
    assert complete(tmp_path)[0] == last


def test_a_file_that_could_not_be_completed_keeps_its_place_when_the_clock_is_set_back(tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    writer.file()
    writer.clock_ms += 100_000
    writer.batch()
    (left,) = tmp_path.glob(f"*{OPEN}")
    digest = digest_path(left.with_suffix(""))
    digest.mkdir()  # as if the disk had no room for it
    with pytest.raises(SinkFailed):
        writer.file()
    writer.clock_ms -= 50_000
    writer.batch()
    digest.rmdir()
    writer.file()
    assert look(tmp_path) == Series("audit-kdt1-0", files=3, lines=33)


def test_files_that_were_moved_away_before_a_start_break_the_chain(tmp_path: Path) -> None:
    Writer(tmp_path).file()
    away = tmp_path / "away"
    away.mkdir()
    for path in [*tmp_path.glob("*.jsonl"), *tmp_path.glob("*.digest")]:
        path.rename(away / path.name)
    Writer(tmp_path, instance="bb", now_ms=NOW + 60_000).file()
    for path in away.iterdir():
        path.rename(tmp_path / path.name)
    assert kinds(tmp_path) == {FaultKind.NEW_CHAIN}


def test_a_worker_waits_for_the_file_that_another_one_finishes_and_then_no_longer(tmp_path: Path) -> None:
    first, second = Writer(tmp_path), Writer(tmp_path, instance="bb")
    first.batch()
    with pytest.raises(SinkFailed, match="another worker finishes the last file"):
        second.batch()
    second.seconds += PATIENCE_SECONDS
    second.batch()


@pytest.mark.parametrize(("times", "removes"), [(100, False), (1, True), (2, True)])
def test_files_that_a_node_completes_and_removes_meanwhile_are_no_faults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int, removes: bool
) -> None:
    writer = Writer(tmp_path)
    for _ in range(4):
        writer.file()
    writer.batch()
    read = Path.read_bytes
    changes = iter(range(times))

    def read_slowly(path: Path) -> bytes:
        if path.name.endswith((".jsonl", OPEN)) and next(changes, None) is not None:
            writer.file()
            if removes:
                oldest = complete(tmp_path)[0]
                oldest.unlink()
                digest_path(oldest).unlink()
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", read_slowly)
    assert not look(tmp_path).faults


def test_a_file_that_a_node_removes_between_its_lines_and_its_digest_is_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = Writer(tmp_path)
    for _ in range(2):
        writer.file()
    oldest = complete(tmp_path)[0]
    read = Path.read_bytes

    def read_slowly(path: Path) -> bytes:
        if path == digest_path(oldest) and oldest.exists():
            oldest.unlink()
            path.unlink()
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", read_slowly)
    assert look(tmp_path) == Series("audit-kdt1-0", files=1, lines=9, continues=True)


def test_a_file_that_is_not_there_is_told(folder: Path) -> None:
    """A user who may write to the folder can leave a link to nothing."""
    (folder / "audit-kdt1-0-20261121T174416Z-7.jsonl").symlink_to(folder / "nothing")
    with pytest.raises(FileNotFoundError):
        look(folder)


def test_workers_have_chains_of_their_own(tmp_path: Path) -> None:
    for number in range(2):
        Writer(tmp_path, worker=number, instance=f"w{number}").file()
    assert [series.worker for series in verified(tmp_path) if not series.faults] == ["audit-kdt1-0", "audit-kdt1-1"]
