"""Fixtures of the tests that need a real ZooKeeper; every test of this folder gets the marker `integration`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.zookeeper import make_chroot, running_zookeeper

if TYPE_CHECKING:
    from collections.abc import Iterator


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.integration)


@pytest.fixture(scope="session")
def zookeeper_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`host:port` of the ZooKeeper that the whole run shares."""
    with running_zookeeper(tmp_path_factory.mktemp("zookeeper")) as address:
        yield address


@pytest.fixture
def zookeeper_connect(zookeeper_address: str, request: pytest.FixtureRequest) -> str:
    """`host:port/chroot` with an empty chroot that is this test's own."""
    name = "".join(character if character.isalnum() else "-" for character in request.node.name)
    return make_chroot(zookeeper_address, name[:40])
