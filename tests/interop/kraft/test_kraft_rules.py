"""Each rule of a cluster about tokens is that of `tests/vectors/kraft`, and a node differs only where it is said to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.interop.gateway.conftest import RELEASE
from tests.interop.kraft.rules import (
    AT_A_NODE,
    NO_AUTHORIZER,
    RULES,
    WITHOUT_AUTHORIZER,
    at_a_broker,
    at_a_node,
    record,
    vectors,
)
from tests.interop.kraft.test_kraft_nodes import Nodes
from tests.support.brokers.kraft import KraftCluster
from tests.support.java.jvm import Java
from tests.support.java.maven import Classpath

AT_BROKERS = json.loads(vectors(RELEASE).read_text())


@pytest.mark.soak
@pytest.mark.parametrize("rule", RULES)
async def test_a_broker_has_the_rule_that_was_recorded(cluster: KraftCluster, rule: str) -> None:
    assert as_recorded(await RULES[rule](at_a_broker(cluster))) == AT_BROKERS[rule]


@pytest.mark.parametrize("rule", RULES)
async def test_a_node_has_the_rule_of_the_cluster_or_differs_on_purpose(
    cluster: KraftCluster, nodes: Nodes, rule: str
) -> None:
    different = AT_A_NODE.get(rule, {})
    wanted = different if isinstance(different, str) else AT_BROKERS[rule] | different
    assert as_recorded(await RULES[rule](at_a_node(cluster, nodes[0]))) == wanted


@pytest.mark.soak
async def test_a_cluster_without_an_authorizer_shows_everyone_all_secrets(
    java: Java, kraft_classpath: Classpath, tmp_path: Path
) -> None:
    """This is why no node starts in front of one: test_kraft_faults.py."""
    with KraftCluster(tmp_path, java=java, classpath=kraft_classpath, brokers=1, overrides=NO_AUTHORIZER) as open_one:
        assert as_recorded(await record(open_one, WITHOUT_AUTHORIZER)).items() <= AT_BROKERS.items()


def as_recorded(answer: object) -> Any:
    """An answer with the types of JSON."""
    return json.loads(json.dumps(answer))
