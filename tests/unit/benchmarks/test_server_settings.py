"""Test the settings with which the compared servers start."""

from __future__ import annotations

from pathlib import Path

import javaproperties
import pytest

from benchmarks.servers import BROKER, Kit, Subject, make_server
from benchmarks.tokens import PreparedTokens
from kafka_dt.zookeeper.embedded.server import EmbeddedZooKeeper
from tests.support.java.jvm import Java


def _settings(subject: Subject, folder: Path) -> dict[str, str]:
    """Read what a server of the benchmarks would start with."""
    kit = Kit(Java(Path("java"), 17, has_compiler=True), (), folder / "server.pem", folder)
    zookeeper = EmbeddedZooKeeper(folder / "zookeeper", port=1)
    make_server(subject, kit, folder / "server", PreparedTokens(folder, 1), zookeeper)
    (file,) = (path for path in (folder / "server").rglob("*.properties") if path.stem != "log4j")
    return javaproperties.loads(file.read_text())


@pytest.mark.parametrize(
    ("key", "default"), [("num.network.threads", "3"), ("num.io.threads", "8"), ("background.threads", "10")]
)
def test_the_broker_has_as_many_threads_as_kafka_gives_it(key: str, default: str, tmp_path: Path) -> None:
    assert _settings(BROKER, tmp_path)[key] == default
