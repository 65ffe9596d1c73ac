"""The keys of tokens, in the configuration and in files that change."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_dt.config import ConfigError, SecretKeyFiles, SecretKeys, from_properties
from kafka_dt.config.options.option import Secret, resolve_secret
from kafka_dt.config.secret_keys import join_keys, split_keys

CURRENT = "delegation.token.secret.key"
PREVIOUS = "kafka.dt.secret.keys.previous"


class Files:
    """A secret key and older ones, each in a file."""

    def __init__(self, directory: Path) -> None:
        self.current = directory / "current"
        self.previous = directory / "previous"
        self.current.write_text("second\n")
        self.previous.write_text("first\n")

    def load(self) -> SecretKeyFiles:
        properties = {CURRENT: f"file:{self.current}", PREVIOUS: f"file:{self.previous}"}
        return SecretKeyFiles(from_properties(properties).settings)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_without_a_current_key_there_are_none() -> None:
    found = SecretKeyFiles(from_properties({PREVIOUS: "old"}).settings)
    assert found.keys is None
    assert found.refresh() is False


def test_older_keys_stand_one_a_line_also_in_the_setting_itself() -> None:
    settings = from_properties({CURRENT: "c", PREVIOUS: "b\n\n  \r\na\r\n"}).settings
    assert SecretKeyFiles(settings).keys == SecretKeys("c", ("b", "a"))


def test_keys_that_stay_are_no_change(files: Files) -> None:
    found = files.load()
    assert found.keys == SecretKeys("second", ("first",))
    assert found.refresh() is False
    files.current.write_text("second")
    assert found.refresh() is False


def test_changed_files_are_read_again(files: Files) -> None:
    found = files.load()
    files.previous.write_text("second\nfirst\n")
    files.current.write_text("third\n")
    assert found.refresh() is True
    assert found.keys == SecretKeys("third", ("second", "first"))


def test_the_previous_keys_may_all_be_gone_and_come_back(files: Files) -> None:
    files.previous.write_text("")
    found = files.load()
    assert found.keys == SecretKeys("second")
    files.previous.write_text("first\n")
    assert found.refresh() is True
    assert found.keys == SecretKeys("second", ("first",))


@pytest.mark.parametrize(
    "content",
    [None, b"", b"\n", b" \n", b"\xff\xfe", b"a\nb\n"],
    ids=["gone", "empty", "a line end", "a blank", "no text", "two lines"],
)
def test_a_file_that_cannot_be_used_is_an_error_and_changes_nothing(files: Files, content: bytes | None) -> None:
    found = files.load()
    files.previous.write_text("zero\n")
    if content is None:
        files.current.unlink()
    else:
        files.current.write_bytes(content)
    problem = rf"^{CURRENT}: the secret's file \S+/current (cannot be read: .+|is empty|has more than one line: .+)$"
    for _ in range(2):
        with pytest.raises(ConfigError, match=problem):
            found.refresh()
    assert found.keys == SecretKeys("second", ("first",))
    files.current.write_text("third\n")
    assert found.refresh() is True
    assert found.keys == SecretKeys("third", ("zero",))


@pytest.mark.parametrize("name", [CURRENT, PREVIOUS])
def test_a_file_that_could_not_be_read_once_is_read_though_it_has_not_changed(
    files: Files, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    found = files.load()
    files.previous.write_text("zero\n")
    files.current.write_text("third\n")

    def failing(of: str, text: str) -> Secret:
        if of == name:
            raise ConfigError(of, "too many open files")
        return resolve_secret(of, text)

    with monkeypatch.context() as patch:
        patch.setattr("kafka_dt.config.secret_keys.resolve_secret", failing)
        with pytest.raises(ConfigError, match="too many open files"):
            found.refresh()
    assert found.keys == SecretKeys("second", ("first",))
    assert found.refresh() is True
    assert found.keys == SecretKeys("third", ("zero",))


@pytest.mark.parametrize("name", [CURRENT, "ssl.key.password"])
def test_an_empty_file_ends_the_start(tmp_path: Path, name: str) -> None:
    empty = tmp_path / "empty"
    empty.write_text("\n")
    with pytest.raises(ConfigError, match=f"{name}: the secret's file {empty} is empty"):
        from_properties({name: f"file:{empty}"})


def test_a_current_key_of_several_lines_ends_the_start_if_it_is_in_a_file(files: Files) -> None:
    files.current.write_text("second\nfirst\n")
    with pytest.raises(ConfigError, match=f"^{CURRENT}: the secret's file {files.current} has more than one line: "):
        files.load()
    # A broker's properties can hold a line end as well.
    settings = from_properties({CURRENT: "second\nfirst", PREVIOUS: f"file:{files.previous}"}).settings
    assert SecretKeyFiles(settings).keys == SecretKeys("second\nfirst", ("first",))


@pytest.mark.parametrize("link", [None, "symlink_to", "hardlink_to"])
def test_one_file_for_both_settings_ends_the_start(files: Files, link: str | None) -> None:
    files.previous.unlink()
    if link is None:
        files.previous = files.current
    else:
        getattr(files.previous, link)(files.current)
    with pytest.raises(ConfigError, match=f"^{PREVIOUS}: {files.previous} is also the file of {CURRENT}: "):
        files.load()


def test_nothing_shows_a_key(files: Files) -> None:
    found = files.load()
    shown = f"{found!r} {found.keys!r} {found.keys}"
    assert "first" not in shown
    assert "second" not in shown


@given(st.lists(st.text(st.characters(exclude_characters="\n\r", codec="utf-8")).filter(lambda key: key.strip())))
def test_keys_survive_writing_and_reading(keys: list[str]) -> None:
    assert list(split_keys(join_keys(keys))) == keys
