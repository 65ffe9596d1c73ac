"""A real Prometheus scrapes nodes that serve a cluster's tokens: the alert about news of revocations, and its panel."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.interop.kraft.test_kraft_nodes import expire
from tests.support.brokers.kraft import KraftCluster
from tests.support.nodes.gateway import PORTS, Gateway, upstream_store_properties
from tests.support.nodes.metrics import metrics_properties
from tests.support.nodes.prometheus import Prometheus, dashboard_queries, programs
from tests.support.processes.ports import free_ports

pytestmark = pytest.mark.soak

NO_TOPIC = "not the name of a topic"


def revoke(node: Gateway) -> None:
    """Make a token and revoke it."""
    asyncio.run(expire(node.client("alice"), node.make_token("alice")))


def test_the_dashboard_shows_the_news_of_revocations(cluster: KraftCluster, tmp_path: Path) -> None:
    port = free_ports(1)
    properties = upstream_store_properties(cluster, free_ports(PORTS)) | metrics_properties(port)
    with (
        Gateway(tmp_path, properties, name="watched") as node,
        Prometheus(programs(), tmp_path, port).running() as prometheus,
    ):
        about_news = [query for query in dashboard_queries() if "kafka_dt_revocation_news" in query]
        assert about_news
        prometheus.wait_for_data(about_news, lambda: revoke(node))
        assert prometheus.firing() == set()


def test_a_node_that_cannot_use_the_topic_of_revocations_is_an_alert(cluster: KraftCluster, tmp_path: Path) -> None:
    port = free_ports(1)
    properties = upstream_store_properties(cluster, free_ports(PORTS)) | metrics_properties(port)
    properties |= {"kafka.dt.upstream.news.topic": NO_TOPIC}
    with (
        Gateway(tmp_path, properties, name="deaf"),
        Prometheus(programs(), tmp_path, port).running() as prometheus,
    ):
        prometheus.wait_for_alerts("KafkaDtNoNewsOfRevocations")
