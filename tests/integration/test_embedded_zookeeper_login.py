"""An embedded ZooKeeper with a login: other users of the machine get nothing from it, nor from its files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.retry import KazooRetry

from kafka_dt.zookeeper.connection.settings import LoginScheme, ZooKeeperLogin
from kafka_dt.zookeeper.embedded.server import EmbeddedZooKeeper
from kafka_dt.zookeeper.errors import DataDirOpen, LoginNeeded
from tests.support.zookeeper.server import child_zookeeper

PASSWORD = "a-password-of-the-embedded-zookeeper"
LOGIN = ZooKeeperLogin(LoginScheme.SASL_DIGEST_MD5, "kafka-dt", PASSWORD)


def sasl(username: str, password: str) -> dict[str, str]:
    return {"mechanism": "DIGEST-MD5", "username": username, "password": password}


@contextmanager
def connected(server: EmbeddedZooKeeper, **login: Any) -> Iterator[KazooClient]:
    once = KazooRetry(max_tries=0)
    client = KazooClient(server.address, connection_retry=once, command_retry=once, **login)
    with closing(client):
        try:
            client.start(10)
            yield client
        finally:
            client.stop()


STRANGERS = {
    "without a login": {},
    "with a digest of its own": {"auth_data": [("digest", f"kafka-dt:{PASSWORD}")]},
    "with a wrong password": {"sasl_options": sasl("kafka-dt", "guessed")},
    "with another name": {"sasl_options": sasl("super", PASSWORD)},
}
REQUESTS: dict[str, Callable[[KazooClient], object]] = {
    "list": lambda client: client.get_children("/"),
    "read": lambda client: client.get("/zookeeper/config"),
    "exists": lambda client: client.exists("/kept"),
    "create": lambda client: client.create("/mine", b""),
    "set": lambda client: client.set("/kept", b""),
    "delete": lambda client: client.delete("/kept"),
    "ACL": lambda client: client.get_acls("/"),
    "multi": lambda client: client.transaction().commit(),
    "sync": lambda client: client.sync("/"),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedZooKeeper]:
    """A ZooKeeper with a login, on the data of one that had none."""
    folder = tmp_path_factory.mktemp("zookeeper")
    with child_zookeeper(folder) as before, connected(before) as client:
        client.create("/kept", b"from before there was a login")
    with child_zookeeper(folder, login=LOGIN) as server:
        yield server


def test_its_login_has_what_an_older_version_left_there(server: EmbeddedZooKeeper) -> None:
    with connected(server, sasl_options=sasl("kafka-dt", PASSWORD)) as client:
        assert client.get("/kept")[0] == b"from before there was a login"
        client.create("/more", b"")
        client.delete("/more")


@pytest.mark.parametrize("request_of", REQUESTS.values(), ids=REQUESTS)
@pytest.mark.parametrize("login", STRANGERS.values(), ids=STRANGERS)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_stranger_gets_no_answer(
    server: EmbeddedZooKeeper, login: dict[str, Any], request_of: Callable[[KazooClient], object]
) -> None:
    with pytest.raises((KazooException, KazooTimeoutError)), connected(server, **login) as client:
        request_of(client)


def test_the_password_is_in_one_file_that_its_owner_alone_can_read(server: EmbeddedZooKeeper) -> None:
    files = [path for path in server.data_dir.rglob("*") if path.is_file() and PASSWORD.encode() in path.read_bytes()]
    assert [path.name for path in files] == ["zookeeper.jaas"]
    assert files[0].stat().st_mode & 0o077 == 0
    for what in ("cmdline", "environ"):
        assert PASSWORD.encode() not in Path(f"/proc/{server.server_pid}/{what}").read_bytes()


def test_data_with_a_login_is_not_served_without_it(server: EmbeddedZooKeeper) -> None:
    with pytest.raises(LoginNeeded, match="--login"):
        EmbeddedZooKeeper(server.data_dir).start()


@pytest.mark.parametrize("mode", [0o755, 0o750, 0o701])
def test_a_data_directory_that_others_can_open_is_refused(tmp_path: Path, mode: int) -> None:
    data = tmp_path / "zoo keeper"
    data.mkdir()
    data.chmod(mode)
    with pytest.raises(DataDirOpen, match=f"chmod 700 '{data}'"):
        EmbeddedZooKeeper(data).start()
    assert list(data.iterdir()) == []


def test_a_data_directory_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.raises(DataDirOpen, match="another user owns"):
        EmbeddedZooKeeper(tmp_path).start()
