"""The files of a node's keys: what they say of a rotation, and how they change."""

from __future__ import annotations

import errno
import os
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafka_dt.cli import main
from kafka_dt.cli.keys.files import KeyFiles, KeysError, Stage
from kafka_dt.config import ConfigError, SecretKeys, from_properties
from kafka_dt.tokens import SecretKey

CURRENT = "delegation.token.secret.key"
PREVIOUS = "kafka.dt.secret.keys.previous"
OLD, NOW, NEW = "old " * 10, "now " * 10, "new " * 10


@pytest.fixture
def files(tmp_path: Path) -> KeyFiles:
    (tmp_path / "current").write_text(f"{NOW}\n")
    (tmp_path / "previous").write_text(f"{OLD}\n")
    return KeyFiles(
        from_properties({CURRENT: f"file:{tmp_path}/current", PREVIOUS: f"file:{tmp_path}/previous"}).settings
    )


def test_each_step_of_a_rotation_is_seen_in_the_files(files: KeyFiles) -> None:
    assert files.read().stage is Stage.IDLE
    files.prepare(NEW)
    assert files.read().stage is Stage.PREPARED
    assert files.read().texts.previous == (NEW, NEW, NOW, OLD)
    files.activate(SecretKey(NEW))
    assert files.read().stage is Stage.ACTIVATED
    assert files.read().texts.current == NEW
    files.drop(SecretKey(NEW))
    assert files.read().stage is Stage.IDLE
    assert files.read().texts.previous == (NOW, OLD)


@pytest.mark.parametrize("lines", [[OLD, NOW], [NOW, OLD], [OLD, "older " * 9, NOW], [NOW], [OLD, OLD], []])
def test_files_that_somebody_wrote_are_not_taken_for_a_rotation(files: KeyFiles, lines: list[str]) -> None:
    files.previous.write_text("\n".join(lines))
    assert files.read().stage is Stage.IDLE
    files.prepare(NEW)
    assert files.read().stage is Stage.PREPARED
    assert files.read().texts.previous == (NEW, NEW, NOW, *(line for line in lines if line != NOW))
    assert files.read().texts.current == NOW


def test_a_rotation_that_somebody_else_has_begun_is_not_overwritten(files: KeyFiles) -> None:
    files.prepare(NEW)
    with pytest.raises(KeysError, match=f"another process has begun a rotation, to the key {SecretKey(NEW).id}"):
        files.prepare("newer " * 10)
    assert files.read().texts.previous[0] == NEW


def test_a_key_that_somebody_took_away_is_not_made_the_current_one(files: KeyFiles) -> None:
    files.prepare(NEW)
    files.drop(SecretKey(NEW))
    with pytest.raises(KeysError, match=f"the key {SecretKey(NEW).id} has left .*previous"):
        files.activate(SecretKey(NEW))
    assert files.read().texts.current == NOW


@pytest.mark.parametrize("number", [errno.EBUSY, errno.EROFS, errno.EPERM, errno.EACCES])
@pytest.mark.parametrize("which", ["current", "previous"])
def test_files_that_cannot_be_replaced_are_told_of_before_anything_is_changed(
    files: KeyFiles, monkeypatch: pytest.MonkeyPatch, which: str, number: int
) -> None:
    target = getattr(files, which)
    replace = Path.replace

    def mounted(self: Path, path: Path) -> Path:
        if path == target:
            raise OSError(number, os.strerror(number), str(path))
        return replace(self, path)

    monkeypatch.setattr(Path, "replace", mounted)
    with pytest.raises((KeysError, PermissionError)) as refused:
        files.prepare(NEW)
    assert str(target) in str(refused.value)
    expected = {
        errno.EBUSY: "mount its directory instead",
        errno.EROFS: "where its directory can be written",
        errno.EPERM: "run the command as root",
    }
    assert expected.get(number, "Permission denied") in str(refused.value)
    assert files.read().texts == SecretKeys(NOW, (OLD,))


def test_at_every_step_each_mixture_of_old_and_new_files_holds_every_key_in_use(files: KeyFiles) -> None:
    contents = [(files.current.read_text(), files.previous.read_text())]
    files.prepare(NEW)
    contents.append((files.current.read_text(), files.previous.read_text()))
    files.activate(SecretKey(NEW))
    contents.append((files.current.read_text(), files.previous.read_text()))
    files.drop(SecretKey(NEW))
    contents.append((files.current.read_text(), files.previous.read_text()))
    # A node has read both files of a step before the next step; within a step it may have read only one of them.
    for before, after in pairwise(contents):
        in_use = {before[0].strip(), after[0].strip()}
        for current in (before[0], after[0]):
            for previous in (before[1], after[1]):
                held = {current.strip(), *(line.strip() for line in previous.splitlines())}
                assert in_use <= held


def test_only_one_command_works_on_the_files(files: KeyFiles) -> None:
    with files.locked(), pytest.raises(KeysError, match="another `kafka-dt keys` command"), files.locked():
        pytest.fail("two have the lock")
    with files.locked():
        pass


def test_sealing_takes_part_in_that_unless_it_only_counts(files: KeyFiles) -> None:
    settings = {
        CURRENT: f"file:{files.current}",
        PREVIOUS: f"file:{files.previous}",
        "zookeeper.connect": "127.0.0.1:1",
        "zookeeper.connection.timeout.ms": "100",
    }
    overrides = [f"--override={key}={value}" for key, value in settings.items()]
    with files.locked():
        refused = CliRunner().invoke(main, ["keys", "seal", *overrides])
        counting = CliRunner().invoke(main, ["keys", "seal", "--dry-run", *overrides])
    sealing = CliRunner().invoke(main, ["keys", "seal", *overrides])
    assert refused.stderr == "Error: another `kafka-dt keys` command is at work on these files\n"
    assert counting.stderr == sealing.stderr
    assert sealing.stderr.startswith("Error: cannot connect to ZooKeeper")


def test_nothing_shows_a_key(files: KeyFiles) -> None:
    assert "now now" not in repr(files.read())


def test_a_key_of_several_lines_is_not_made_a_previous_one(files: KeyFiles) -> None:
    files.current.write_text("first line\nsecond line")
    with pytest.raises(ConfigError, match="more than one line"):
        files.prepare(NEW)
    assert files.previous.read_text() == f"{OLD}\n"


@pytest.mark.parametrize("missing", [CURRENT, PREVIOUS])
@pytest.mark.parametrize("command", [["rotate"], ["retire", "0" * 16]], ids=["rotate", "retire"])
def test_keys_that_are_in_no_files_are_one_line_that_says_how_to_get_there(
    tmp_path: Path, missing: str, command: list[str]
) -> None:
    (tmp_path / "key").write_text("k" * 40)
    settings = {CURRENT: f"file:{tmp_path}/key", PREVIOUS: f"file:{tmp_path}/key", missing: "k" * 40}
    overrides = [f"--override={key}={value}" for key, value in settings.items()]
    result = CliRunner().invoke(main, ["keys", *command, "--override=zookeeper.connect=127.0.0.1:1", *overrides])
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"Error: {missing} has to be a file, ")
    assert f"{missing}=file:/path/to/it" in line
    assert "k" * 40 not in line


@pytest.mark.parametrize(
    "command", [["list"], ["rotate"], ["retire", "0" * 16], ["seal"], ["unseal"], ["verify"]], ids=lambda each: each[0]
)
def test_one_file_for_both_settings_is_refused_and_stays_as_it_is(files: KeyFiles, command: list[str]) -> None:
    files.previous.unlink()
    files.previous.symlink_to(files.current)
    settings = {CURRENT: f"file:{files.current}", PREVIOUS: f"file:{files.previous}"}
    overrides = [f"--override={key}={value}" for key, value in settings.items()]
    result = CliRunner().invoke(main, ["keys", *command, "--override=zookeeper.connect=127.0.0.1:1", *overrides])
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: {PREVIOUS}: {files.previous} is also the file of {CURRENT}: ")
    assert files.current.read_text() == f"{NOW}\n"


@pytest.mark.parametrize("settings", [{}, {"zookeeper.connect": "127.0.0.1:1"}])
@pytest.mark.parametrize("command", [["list"], ["rotate"], ["retire", "0" * 16]], ids=["list", "rotate", "retire"])
def test_settings_that_are_needed_are_named(settings: dict[str, str], command: list[str]) -> None:
    overrides = [f"--override={key}={value}" for key, value in settings.items()]
    result = CliRunner().invoke(main, ["keys", *command, *overrides])
    assert result.exit_code == 2
    needed = CURRENT if settings else "zookeeper.connect"
    assert f"Missing option '--config', the server.properties of a node: {needed} is needed" in result.stderr


@pytest.mark.parametrize(
    ("content", "reason"),
    [("", "in one line"), ("a" * 40 + "\n" + "b" * 40, "in one line"), ("short", "fewer than 32 characters")],
)
def test_a_new_key_that_is_none_is_refused_before_anything_is_asked(
    tmp_path: Path, files: KeyFiles, content: str, reason: str
) -> None:
    (tmp_path / "new").write_text(content)
    settings = {
        CURRENT: f"file:{files.current}",
        PREVIOUS: f"file:{files.previous}",
        "zookeeper.connect": "127.0.0.1:1",
    }
    overrides = [f"--override={key}={value}" for key, value in settings.items()]
    result = CliRunner().invoke(main, ["keys", "rotate", "--new-key-file", str(tmp_path / "new"), *overrides])
    assert result.exit_code == 1
    assert reason in result.stderr
    assert files.read().stage is Stage.IDLE
