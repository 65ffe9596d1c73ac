"""`kafka-dt audit verify` on files that no node in strict mode wrote, and on files that lost what it left in them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from kafka_dt.audit.chain import START, FileDigest, chained, last_link
from kafka_dt.audit.file_names import digest_path
from kafka_dt.cli import main

FIRST, SECOND = "audit-kdt1-0-20261126T000000Z-0.jsonl", "audit-kdt1-0-20261126T010000Z-0.jsonl"
NOTHING = 3


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two files of a node that was not strict."""
    folder = tmp_path / "audit"
    folder.mkdir()
    (folder / FIRST).write_bytes(b'{"id":"aa-1"}\n{"id":"aa-2"}\n')
    (folder / SECOND).write_bytes(b'{"id":"aa-3"}\n')
    return folder


def verify(folder: Path, *options: str) -> Result:
    return CliRunner().invoke(main, ["audit", "verify", str(folder), *options])


def test_files_without_a_trace_of_strict_mode_are_one_line_and_a_status_of_their_own(folder: Path) -> None:
    done = verify(folder)
    assert (done.exit_code, done.stdout) == (NOTHING, "")
    assert done.stderr == (
        f"Error: nothing to verify: no file in {folder} shows that it was written with kafka.dt.audit.mode=strict. A "
        "node in strict mode leaves a chain and digests: if one wrote these files, they were altered\n"
    )


def test_json_has_the_faults_of_files_without_a_trace_of_strict_mode_for_programs(folder: Path) -> None:
    done = verify(folder, "--output", "json")
    assert done.exit_code == NOTHING
    (series,) = json.loads(done.stdout)
    assert {fault["kind"] for fault in series["faults"]} == {"no-chain", "no-digest"}


def test_with_a_public_key_files_without_a_trace_of_strict_mode_are_faults(folder: Path, tmp_path: Path) -> None:
    key = tmp_path / "audit.pub"
    public = Ed25519PrivateKey.generate().public_key()
    key.write_bytes(public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    done = verify(folder, "--public-key", str(key))
    assert (done.exit_code, done.stderr) == (1, f"Error: 4 faults in {folder}\n")


def test_names_of_files_are_shown_as_they_are(folder: Path) -> None:
    (folder / "audit-[red]k:key:-0-20261126T000000Z-0.jsonl").write_bytes(b'{"id":"aa-1"}\n')
    (folder / "audit-\x1b[31mk-0-20261126T000000Z-0.jsonl").write_bytes(b'{"id":"aa-1"}\n')
    (folder / digest_path(folder / FIRST)).write_bytes(b"{}")
    done = verify(folder)
    assert done.exit_code == 1
    assert "audit-[red]k:key:-0  " in done.stdout
    assert "audit-[red]k:key:-0-20261126T000000Z-0.jsonl  " in done.stdout
    assert "audit-\\x1b[31mk-0-20261126T000000Z-0.jsonl" in done.stdout
    assert "\x1b" not in done.stdout


def test_the_public_key_may_be_given_for_each_key_that_has_signed(tmp_path: Path) -> None:
    folder, files = tmp_path / "audit", list[str]()
    folder.mkdir()
    content = b""
    for name in (FIRST, SECOND):
        key, file = Ed25519PrivateKey.generate(), tmp_path / f"{name}.pub"
        file.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
        files += ["--public-key", str(file)]
        content = chained([b'{"id":"aa-%d"}\n' % len(files)], last_link(content))
        (folder / name).write_bytes(content)
        digest_path(folder / name).write_bytes(FileDigest.of(name, content).signed(key))
    assert verify(folder, *files, "--output", "json").stdout.count("not-signed") == 0
    assert verify(folder, *files[:2], "--output", "json").stdout.count("not-signed") == 1


def test_one_digest_or_one_hash_makes_all_other_files_faults(folder: Path) -> None:
    content = (folder / SECOND).read_bytes()
    digest = digest_path(folder / SECOND)
    digest.write_bytes(FileDigest.of(SECOND, content).signed(None))
    assert verify(folder).exit_code == 1
    digest.rename(folder / "gone.jsonl.digest")  # the digest of a file that is not there
    assert verify(folder).exit_code == 1
    (folder / "gone.jsonl.digest").unlink()
    assert verify(folder).exit_code == NOTHING

    (folder / SECOND).write_bytes(content + chained([b'{"id":"aa-4"}\n'], START))
    assert verify(folder).exit_code == 1


def test_a_file_in_which_a_node_has_begun_no_line_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / f"{FIRST}.open").touch()
    assert verify(tmp_path).exit_code == 0
