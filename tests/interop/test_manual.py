"""Each page of the README and the manual is followed word for word, and prints what it shows.

Most pages need a node and nothing else. A page that uses Kafka's own scripts needs Java.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.interop.conftest import unavailable
from tests.support.brokers.broker import sasl_properties
from tests.support.brokers.kraft import RELEASES, KraftCluster
from tests.support.docs.documents import all_blocks, documents
from tests.support.docs.terminal import NOT_FOLLOWED, PASSWORD, TOOLS, TYPED, USERS, Terminal, World, names_in_front_of
from tests.support.java.jvm import Java
from tests.support.java.maven import Bundle, Classpath
from tests.support.nodes.gateway import PORTS
from tests.support.processes.ports import free_ports
from tests.support.zookeeper.server import make_chroot, running_zookeeper

SOAK = bool(os.environ.get("KAFKA_DT_TEST_SOAK"))
PAGES = [
    page
    for page in documents()
    if page not in NOT_FOLLOWED and any(each.language in TYPED for each in all_blocks(page))
]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """What all pages share."""
    with (
        running_zookeeper(tmp_path_factory.mktemp("manual-zookeeper")) as address,
        World(
            tmp_path_factory.mktemp("manual"), make_chroot(address, "manual"), make_chroot(address, "brokers")
        ) as world,
    ):
        yield world


@pytest.fixture(scope="module")
def cluster(
    java: Java, classpath_of: Callable[[Bundle], Classpath], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KraftCluster]:
    """A Kafka 4 cluster with the users of the manual, whose administrator has not met kafka-dt yet."""
    users = sasl_properties(dict.fromkeys(USERS, PASSWORD))
    classpath = tuple(jar for bundle in RELEASES["4.x"] for jar in classpath_of(bundle))
    with KraftCluster(
        tmp_path_factory.mktemp("manual-kafka"),
        java=java,
        classpath=classpath,
        brokers=1,
        overrides={**users, "super.users": "User:admin;User:ANONYMOUS"},
    ) as running:
        yield running


@pytest.mark.parametrize("page", PAGES)
def test_a_page_does_what_it_says(page: str, world: World, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    typed = [block for block in all_blocks(page) if "not run" not in block.notes]
    for program in {block.notes["needs"] for block in typed if "needs" in block.notes}:
        if shutil.which(program) is None:
            unavailable(f"{program} is missing")
    if any(tool in block.text for tool in TOOLS for block in typed if block.language == "sh"):
        world.install(request.getfixturevalue("kafka_4x"))
    names = {}
    if SOAK and any("kafka1:9093" in block.text for block in typed if block.language == "sh"):
        names = names_in_front_of(request.getfixturevalue("cluster").sasl, free_ports(PORTS))
    Terminal(world, tmp_path / "page", patient=SOAK, names=names).follow(page)
