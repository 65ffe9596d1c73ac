"""Change files while another process reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_dt.files import replace_file, stamp


def test_a_new_file_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "key"
    replace_file(path, "text\n")
    assert path.read_bytes() == b"text\n"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_replaced_file_keeps_its_mode_and_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("old")
    path.chmod(0o640)
    before = stamp(path)
    replace_file(path, "new")
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert stamp(path) != before
    assert list(tmp_path.iterdir()) == [path]


def test_of_a_link_the_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("old")
    link = tmp_path / "link"
    link.symlink_to("target")
    replace_file(link, "new")
    assert link.is_symlink()
    assert (tmp_path / "target").read_text() == "new"


def test_a_file_that_cannot_be_replaced_stays(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.mkdir()
    (path / "inside").touch()
    with pytest.raises(OSError, match="directory"):
        replace_file(path, "new")
    assert list(tmp_path.iterdir()) == [path]


def test_a_stamp_tells_of_every_change(tmp_path: Path) -> None:
    path = tmp_path / "key"
    assert stamp(path) is None
    path.write_text("a")
    seen = stamp(path)
    assert stamp(path) == seen
    path.chmod(0o600 if path.stat().st_mode & 0o777 != 0o600 else 0o640)
    assert stamp(path) != seen
