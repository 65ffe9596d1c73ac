"""Tools of administrators at kafka-dt, and where a broker answers the same, at a broker as well."""

from __future__ import annotations

import re
import shutil
import subprocess
import uuid

from tests.interop.conftest import Authority, unavailable
from tests.support.brokers.broker import USERS
from tests.support.java.properties import plain
from tests.support.java.reference_client import ReferenceClient
from tests.support.java.tools import KafkaTools
from tests.support.nodes.server import KafkaDt

ALICE = plain("alice", USERS["alice"])
CLUSTER_OPERATIONS = 7
"""How many a cluster has (KIP-430); everyone may do everything here."""
BROKER_ID = "1001"
"""The id that a node shows unless broker.id says another."""


def test_kafka_configs_alters_and_describes_users(tools: KafkaTools, authority: Authority) -> None:
    name = f"user-{uuid.uuid4().hex}"
    of_user = ("--entity-type", "users", "--entity-name", name)
    credential = "SCRAM-SHA-256=[iterations=5000,password=secret]"
    tools.configs(authority.sasl, ALICE, "--alter", *of_user, "--add-config", credential).ok()
    described = tools.configs(authority.sasl, ALICE, "--describe", *of_user).ok().stdout
    assert described == f"SCRAM credential configs for user-principal '{name}' are SCRAM-SHA-256=iterations=5000\n"
    every = tools.configs(authority.sasl, ALICE, "--describe", "--entity-type", "users").ok().stdout
    assert described in every
    tools.configs(authority.sasl, ALICE, "--alter", *of_user, "--delete-config", "SCRAM-SHA-256").ok()
    assert tools.configs(authority.sasl, ALICE, "--describe", *of_user).ok().stdout == ""


def test_a_quota_is_refused_in_words(tools: KafkaTools, server: KafkaDt) -> None:
    of_user = ("--entity-type", "users", "--entity-name", "alice")
    refused = tools.configs(server.sasl, ALICE, "--alter", *of_user, "--add-config", "producer_byte_rate=1")
    assert refused.status == 1
    assert "kafka-dt has no client quotas" in refused.stdout + refused.stderr


def test_tools_that_list_what_a_node_does_not_have_end_well(tools: KafkaTools, server: KafkaDt) -> None:
    assert tools.topics(server.sasl, ALICE, "--list").ok().stdout.strip() == ""
    assert tools.consumer_groups(server.sasl, ALICE, "--list").ok().stdout.strip() == ""
    of_broker = ("--describe", "--entity-type", "brokers", "--entity-name", BROKER_ID)
    described = tools.configs(server.sasl, ALICE, *of_broker).ok().stdout
    assert described == f"Dynamic configs for broker {BROKER_ID} are:\n"
    versions = tools.broker_api_versions(server.sasl, ALICE).ok().stdout
    for name in ("DescribeConfigs(32): 1 to 4", "ListGroups(16): 0 to 5", "DescribeClientQuotas(48): 0 to 1"):
        assert name in versions


def test_kcat_lists_the_node(server: KafkaDt) -> None:
    login = ("sasl.username=alice", f"sasl.password={USERS['alice']}", "sasl.mechanisms=PLAIN")
    options = [word for each in ("security.protocol=SASL_PLAINTEXT", *login) for word in ("-X", each)]
    if shutil.which("kcat") is None:
        unavailable("kcat is not installed")
    command = ["kcat", "-L", "-b", server.sasl, *options]
    listed = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert listed.returncode == 0, listed.stderr
    assert re.search(rf" 1 brokers:\n  broker {BROKER_ID} at {re.escape(server.sasl)} \(controller\)", listed.stdout)
    assert " 0 topics:" in listed.stdout


def test_what_kafka_ui_asks_first_is_answered_and_the_rest_is_not_offered(
    java_client: ReferenceClient, server: KafkaDt
) -> None:
    with java_client.open(server.sasl, ALICE) as session:
        answers = session.survey()
    assert answers.pop("acls") in range(100)
    assert answers == {
        "nodes": 1,
        "operations": CLUSTER_OPERATIONS,
        "configs": 0,
        "features": 0,
        "topics": 0,
        "groups": 0,
        # kafka-ui takes these for a broker that is too old to tell.
        "logDirs": "UnsupportedVersionException",
        "quorum": "UnsupportedVersionException",
    }
