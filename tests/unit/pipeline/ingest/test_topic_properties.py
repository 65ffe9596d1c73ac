"""The file of a topic's client properties changes while the topic is read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafka_dt.files import replace_file
from kafka_dt.pipeline.errors import NoSource
from kafka_dt.pipeline.ingest import TopicSource

OLD = "bootstrap.servers=k:9092\nsecurity.protocol=SASL_SSL\nsasl.jaas.config=old\n"
NEW = OLD.replace("old", "new")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "ingest.properties"
    path.write_text(OLD)
    return path


@pytest.fixture
def source(path: Path) -> TopicSource:
    source = TopicSource("audit", None, path)
    assert login(source) == "old"
    assert not changes(source)
    return source


def login(source: TopicSource) -> str:
    return source._client_properties()["sasl.jaas.config"]


def changes(source: TopicSource) -> bool:
    """Whether it changes within three looks."""
    return any(source.has_changed() for _ in range(3))


def test_other_properties_are_used_once_the_file_has_them(source: TopicSource, path: Path) -> None:
    replace_file(path, NEW)
    assert changes(source)
    assert login(source) == "new"
    assert not changes(source)


@pytest.mark.parametrize("servers", [None, "k:9092"])
@pytest.mark.parametrize("content", [b"", b"# nothing yet\n", b"\xff", b"a=\\u12"])
def test_the_login_stays_while_the_file_cannot_be_used(
    path: Path, servers: str | None, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    source = TopicSource("audit", servers, path)
    assert login(source) == "old"
    path.write_bytes(content)  # as the shell's `>`, which empties the file first
    assert not changes(source)
    assert login(source) == "old"
    (warning,) = caplog.records
    assert warning.getMessage().startswith("topic audit cannot be ingested from: ")
    assert warning.getMessage().endswith("; the properties stay as they were")
    path.write_text(NEW)
    assert changes(source)
    assert login(source) == "new"


def test_a_file_without_servers_changes_nothing_where_no_option_names_them(source: TopicSource, path: Path) -> None:
    path.write_text("security.protocol=SASL_SSL\n")
    assert not changes(source)
    assert login(source) == "old"


def test_a_file_that_is_being_written_is_looked_at_again(source: TopicSource, path: Path) -> None:
    for number in range(1, 5):
        path.write_text(NEW[: 20 * number])
        assert not source.has_changed()
    path.write_text(NEW)
    assert changes(source)
    assert login(source) == "new"


def test_a_file_that_is_gone_changes_nothing(source: TopicSource, path: Path) -> None:
    path.unlink()
    assert not changes(source)
    assert login(source) == "old"


def test_a_file_that_is_touched_is_read_again(source: TopicSource, path: Path) -> None:
    os.utime(path, (1, 1))  # a truststore that it names may be another one
    assert changes(source)


def test_at_the_start_a_file_has_to_be_usable(tmp_path: Path) -> None:
    (tmp_path / "ingest.properties").touch()
    with pytest.raises(NoSource, match="no bootstrap server is named"):
        login(TopicSource("audit", None, tmp_path / "ingest.properties"))
