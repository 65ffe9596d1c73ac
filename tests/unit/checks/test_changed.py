"""Which unit tests `make check` runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from checks.changed import chosen


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for folder in ("tokens", "zookeeper/sealing", "protocol/sasl"):
        (tmp_path / "tests/unit" / folder).mkdir(parents=True)
    (tmp_path / "tests/unit/tokens/test_purge.py").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        (["kafka_dt/tokens/purge.py"], ["tests/unit/tokens"]),
        (["kafka_dt/zookeeper/sealing/seal.py"], ["tests/unit/zookeeper/sealing"]),
        (["kafka_dt/zookeeper/znodes/kafka.py"], ["tests/unit/zookeeper"]),
        (["protocol/kafka_dt_protocol/sasl/scram.py"], ["tests/unit/protocol/sasl"]),
        (["protocol/kafka_dt_protocol/wire/frames.py"], ["tests/unit/protocol"]),
        (["tests/unit/tokens/test_purge.py"], ["tests/unit/tokens/test_purge.py"]),
        (["tests/unit/tokens/test_gone.py"], ["tests/unit/tokens"]),
        (["tests/unit/tokens/test_purge.py", "kafka_dt/tokens/store.py"], ["tests/unit/tokens"]),
        (["docs/terms.md", "tests/chaos/test_ensemble.py", "kafka_dt/app.py", "kafka_dt/py.typed"], []),
    ],
)
def test_the_chosen_a_file_stand_in_the_folder_of_its_name(root: Path, changed: list[str], tests: list[str]) -> None:
    assert chosen(changed, root) == tests
