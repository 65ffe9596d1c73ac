"""What the embedded mode keeps in its data directory."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import click
import pytest

from kafka_dt.cli import run as embedded
from kafka_dt.cli.tables import messages
from kafka_dt.client import DelegationToken
from kafka_dt.config import from_properties
from kafka_dt.zookeeper.errors import DataDirOpen


def test_the_secrets_are_made_once(tmp_path: Path) -> None:
    data = tmp_path / "data"
    made = embedded.prepare(data)
    again = embedded.prepare(data)
    assert again == made
    assert len({made.password, made.secret_key, made.zookeeper_password}) == 3
    assert made.zookeeper_password not in repr(made)
    assert (data / "secrets.json").stat().st_mode & 0o077 == 0


def test_a_directory_of_an_older_version_keeps_its_secrets_and_gets_the_new_one(tmp_path: Path) -> None:
    (tmp_path / "secrets.json").write_text(json.dumps({"password": "old password", "secret_key": "old key"}))
    node = embedded.prepare(tmp_path)
    assert (node.password, node.secret_key) == ("old password", "old key")
    assert len(node.zookeeper_password) > 32
    assert embedded.prepare(tmp_path) == node


@pytest.mark.parametrize("content", ["", "[]", '{"password": 1}', "\0"])
def test_secrets_that_are_damaged_are_left_as_they_are_and_named(tmp_path: Path, content: str) -> None:
    secrets = tmp_path / "secrets.json"
    secrets.write_text(content)
    with pytest.raises(click.ClickException, match=f"{secrets} does not hold the secrets"):
        embedded.prepare(tmp_path)
    assert secrets.read_text() == content


def test_a_directory_that_others_can_open_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o750)
    with pytest.raises(DataDirOpen, match="chmod 700"):
        embedded.prepare(tmp_path)
    assert not (tmp_path / "secrets.json").exists()


def test_the_folders_of_the_node_are_shown_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    node = embedded.prepare(tmp_path / "[red]:key:")
    node.configuration.write_text("kafka.dt.metrics.listener=http://127.0.0.1:9404\n")
    token = DelegationToken(
        token_id="id",
        owner="User:admin",
        requester="User:admin",
        renewers=(),
        issue_timestamp_ms=0,
        expiry_timestamp_ms=0,
        max_timestamp_ms=0,
        hmac=b"hmac",
    )
    embedded._show(messages(), node, cast("Any", SimpleNamespace(address="127.0.0.1:2181")), "127.0.0.1:9092", token)
    assert f"Audit events   {node.audit_dir}\n" in capsys.readouterr().out


def test_a_start_prepares_less_than_a_tenth_of_a_second_of_sealing(tmp_path: Path) -> None:
    properties = embedded.prepare(tmp_path / "data").server_properties(0, "127.0.0.1:2181")
    # Half a millisecond each; a test of a real worker holds that it prepares no more.
    assert from_properties(properties).settings.sealing_ahead * 0.0005 < 0.1
