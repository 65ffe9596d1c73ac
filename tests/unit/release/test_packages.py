"""Wheels and source distributions are the same bytes wherever, whenever and by whomever they are built."""

from __future__ import annotations

import os
import shutil
import zipfile
from pathlib import Path

import pytest

from release.packages import build
from release.tools import NotReleased
from release.tree import unpack
from tests.support.docs.documents import ROOT

TIME_S = 1_700_000_000
SOURCE = ("kafka_dt", "protocol", "ops", "pyproject.toml", "README.md", "LICENSE", ".gitignore")


def copy(folder: Path, *, time_s: int, umask: int) -> Path:
    """Copy what packages are made of, with other times and permissions."""
    before = os.umask(umask)
    try:
        folder.mkdir()
        for name in SOURCE:
            if (ROOT / name).is_dir():
                leave_out = shutil.ignore_patterns("__pycache__")
                shutil.copytree(ROOT / name, folder / name, copy_function=shutil.copyfile, ignore=leave_out)
            else:
                shutil.copyfile(ROOT / name, folder / name)
    finally:
        os.umask(before)
    for path in folder.rglob("*"):
        os.utime(path, (time_s, time_s))
    return folder


def built(source: Path, output: Path) -> dict[str, bytes]:
    build(source, output, TIME_S)
    return {path.name: path.read_bytes() for path in output.iterdir()}


def test_the_same_source_makes_the_same_bytes_in_another_folder_at_another_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = built(copy(tmp_path / "first", time_s=10**9, umask=0o022), tmp_path / "made")
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    second = built(copy(tmp_path / "a longer name", time_s=1_800_000_000, umask=0o077), tmp_path / "made again")
    assert sorted(name.split("-")[0] for name in first) == ["kafka_dt"] * 2 + ["kafka_dt_protocol"] * 2
    assert first == second


def test_the_source_distributions_make_the_same_wheels(tmp_path: Path) -> None:
    made = built(copy(tmp_path / "source", time_s=10**9, umask=0o022), tmp_path / "made")
    unpacked = tmp_path / "unpacked"
    for name in made:
        if name.endswith(".tar.gz"):
            unpack(tmp_path / "made" / name, tmp_path)
            inside = unpacked / "protocol" if "protocol" in name else unpacked
            shutil.copytree(tmp_path / name.removesuffix(".tar.gz"), inside, dirs_exist_ok=True)
    again = built(unpacked, tmp_path / "made again")
    assert {name: made[name] for name in made if name.endswith(".whl")} == {
        name: again[name] for name in again if name.endswith(".whl")
    }


def test_files_have_the_time_of_the_commit(tmp_path: Path) -> None:
    build(copy(tmp_path / "source", time_s=10**9, umask=0o022), tmp_path / "made", TIME_S)
    for wheel in (tmp_path / "made").glob("*.whl"):
        with zipfile.ZipFile(wheel) as files:
            assert {each.date_time for each in files.infolist()} == {(2023, 11, 14, 22, 13, 20)}


def test_what_cannot_be_built_is_said(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("nonsense")
    with pytest.raises(NotReleased, match=r"(?s)hatchling build .* ended with status 1\n.*TOML"):
        build(tmp_path, tmp_path / "made", TIME_S)
