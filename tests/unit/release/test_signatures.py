"""Checksums and signatures of the files of a release, verified by the programs that a user has."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from release.signatures import sign, write_sums
from release.tools import NotReleased, run

VERIFY = "ssh-keygen -Y verify -f allowed_signers -I kafka-dt -n file -s SHA256SUMS.sig < SHA256SUMS"
CHECK = "sha256sum --check --strict --quiet SHA256SUMS"


def succeeds(command: str, folder: Path) -> bool:
    return subprocess.run(["/bin/sh", "-c", command], cwd=folder, capture_output=True, check=False).returncode == 0


def make_key(path: Path) -> Path:
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], path.parent)
    return path


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """A key that only this test uses."""
    return make_key(tmp_path / "key")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Two files of a release, with their checksums."""
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "b.whl").write_bytes(b"b")
    (folder / "a.tar.gz").write_bytes(b"a")
    write_sums(folder)
    return folder


def test_checksums_are_those_of_all_files_by_name(files: Path) -> None:
    assert [line.split("  ")[1] for line in (files / "SHA256SUMS").read_text().splitlines()] == ["a.tar.gz", "b.whl"]
    assert succeeds(CHECK, files)
    (files / "b.whl").write_bytes(b"c")
    assert not succeeds(CHECK, files)


def test_a_user_verifies_the_signature_and_finds_other_checksums(files: Path, key: Path) -> None:
    sign(files, key)
    assert succeeds(VERIFY, files)
    (files / "SHA256SUMS").write_text((files / "SHA256SUMS").read_text().replace("a.tar.gz", "c.tar.gz"))
    assert not succeeds(VERIFY, files)


def test_another_key_verifies_nothing(files: Path, key: Path, tmp_path: Path) -> None:
    sign(files, key)
    public = make_key(tmp_path / "other").with_suffix(".pub").read_text()
    (files / "allowed_signers").write_text(f'kafka-dt namespaces="file" {public}')
    assert not succeeds(VERIFY, files)


def test_signing_again_changes_no_checksum(files: Path, key: Path) -> None:
    sign(files, key)
    before = (files / "SHA256SUMS").read_text()
    write_sums(files)
    assert (files / "SHA256SUMS").read_text() == before


def test_a_file_that_is_no_key_is_refused(files: Path) -> None:
    with pytest.raises(NotReleased, match="ssh-keygen -y -f"):
        sign(files, files / "a.tar.gz")
