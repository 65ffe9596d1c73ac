"""Change files while another process reads them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_dt.files import naming, open_to_others, replace_file, stamp, why_unusable


@pytest.fixture
def reached_by_all() -> Iterator[Path]:
    """A folder that every user of the machine can enter, unlike those that pytest makes."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.parametrize(("mode", "is_open"), [(0o644, True), (0o602, True), (0o660, False), (0o600, False)])
def test_a_file_is_open_to_others_by_its_mode_for_others(reached_by_all: Path, mode: int, is_open: bool) -> None:
    path = reached_by_all / "key"
    path.touch()
    path.chmod(mode)
    assert open_to_others(path) is is_open
    (reached_by_all / "link").symlink_to(path)
    assert open_to_others(reached_by_all / "link") is is_open


def test_a_file_in_a_folder_that_others_cannot_enter_is_not_open_to_them(reached_by_all: Path) -> None:
    path = reached_by_all / "secrets" / "key"
    path.parent.mkdir(mode=0o750)
    path.touch(mode=0o644)
    assert not open_to_others(path)
    path.parent.chmod(0o711)
    assert open_to_others(path)


def test_a_file_that_is_not_there_is_not_open(reached_by_all: Path) -> None:
    assert not open_to_others(reached_by_all / "key")


def test_a_directory_that_is_not_there_is_usable_if_it_could_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    below = tmp_path / "a" / "b"
    assert why_unusable(below, os.W_OK) is None
    assert not below.parent.exists()
    (tmp_path / "file").touch()
    assert why_unusable(tmp_path / "file", os.W_OK) == f"{tmp_path / 'file'} is not a directory"
    assert why_unusable(tmp_path / "file" / "b", os.W_OK) == f"{tmp_path / 'file'} is not a directory"
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    assert why_unusable(tmp_path / "link", os.W_OK) == f"{tmp_path / 'link'} is not a directory"
    monkeypatch.setattr(os, "access", lambda *_: False)  # root, which tests may run as, can write anywhere
    assert why_unusable(tmp_path, os.W_OK) == f"{tmp_path} cannot be written to"
    assert why_unusable(below, os.W_OK) == f"{below} cannot be made: {tmp_path} cannot be written to"


def test_an_error_of_a_full_disk_names_the_file() -> None:
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"), naming(Path("/dev/full")):
        Path("/dev/full").write_text("text")


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


def test_a_new_file_gets_the_mode_that_is_asked_for_and_an_old_one_keeps_its_own(tmp_path: Path) -> None:
    path = tmp_path / "metrics"
    before = os.umask(0o077)
    try:
        replace_file(path, "text\n", new_mode=0o644)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o644
    path.chmod(0o640)
    replace_file(path, "text\n", new_mode=0o644)
    assert path.stat().st_mode & 0o777 == 0o640


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


NOBODY = 65534


@pytest.fixture
def folder_of_nobody() -> Iterator[Path]:
    """A folder of another user; the test goes on as that user, because root may give files to everybody."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    with tempfile.TemporaryDirectory() as folder:  # users other than root do not reach pytest's folders
        os.chown(folder, NOBODY, 0)
        groups = os.getgroups()
        os.setgroups([])
        os.setegid(NOBODY)
        os.seteuid(NOBODY)
        try:
            yield Path(folder)
        finally:
            os.seteuid(0)
            os.setegid(0)
            os.setgroups(groups)


def made_by_root(path: Path, mode: int) -> None:
    """Make a file as root does for another user, who is not in root's group."""
    os.seteuid(0)
    path.write_text("old")
    os.chown(path, NOBODY, 0)
    path.chmod(mode)
    os.seteuid(NOBODY)


def test_a_file_that_root_has_given_to_its_user_can_be_replaced_by_that_user(folder_of_nobody: Path) -> None:
    path = folder_of_nobody / "key"
    made_by_root(path, 0o600)
    replace_file(path, "new")
    assert path.read_text() == "new"
    assert (path.stat().st_uid, path.stat().st_mode & 0o777) == (NOBODY, 0o600)


def test_a_group_that_may_read_a_file_is_not_replaced_by_another_one(folder_of_nobody: Path) -> None:
    path = folder_of_nobody / "key"
    made_by_root(path, 0o640)
    with pytest.raises(PermissionError, match="owner and group cannot be kept") as refused:
        replace_file(path, "new")
    assert refused.value.filename == str(path)
    assert path.read_text() == "old"
    assert list(folder_of_nobody.iterdir()) == [path]
