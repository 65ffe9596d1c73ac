"""The topic of news is made once, with its settings, and whatever makes it unfit is told with its remedy."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt.client import ClientConfig, RequestRefused, parse_addresses
from kafka_dt.client.connection import Connection
from kafka_dt.identity.acls.binding import AclOperation
from kafka_dt.kraft.news.settings import POINT, ensure, examine_topic, settings_for
from kafka_dt.kraft.news.topic import FETCH_BYTES
from kafka_dt.kraft.session import session
from kafka_dt_protocol.api.registry import ApiKey, AskedApi
from tests.support.tokens.scripted_cluster import GATEWAY
from tests.support.tokens.scripted_topic import ScriptedTopic
from tests.unit.kraft.news.conftest import NAME


@pytest.fixture
async def connection(topic: ScriptedTopic) -> AsyncIterator[Connection]:
    asking = session(ClientConfig(bootstrap_servers=parse_addresses(topic.server.address)))
    yield await asking.ready()
    await asking.close()


@pytest.mark.parametrize(("brokers", "replicas", "in_sync"), [(1, 1, "1"), (2, 2, "1"), (3, 3, "2"), (7, 3, "2")])
def test_one_broker_may_be_away(brokers: int, replicas: int, in_sync: str) -> None:
    found, settings = settings_for(brokers)
    assert (found, settings["min.insync.replicas"]) == (replicas, in_sync)


async def test_a_missing_topic_is_made_and_fit(topic: ScriptedTopic, connection: Connection) -> None:
    topic.exists, topic.brokers = False, 3
    assert await ensure(connection, NAME)
    (made,) = topic.made
    assert (made.name, made.num_partitions, made.replication_factor) == (NAME, 1, 3)
    assert {each.name: each.value for each in made.configs} == {
        "cleanup.policy": "delete",
        "retention.ms": "3600000",
        "segment.ms": "3600000",
        "compression.type": "producer",
        "max.message.bytes": str(FETCH_BYTES),
        "min.insync.replicas": "2",
    }
    assert not await ensure(connection, NAME)
    assert len(topic.made) == 1
    assert (await examine_topic(connection, NAME, GATEWAY)).fit


async def test_a_topic_that_another_worker_is_making_is_waited_for(
    topic: ScriptedTopic, connection: Connection
) -> None:
    topic.errors[ApiKey.METADATA] = [ErrorCode.unknown_topic_or_partition, ErrorCode.none]
    topic.errors[ApiKey.METADATA] += [ErrorCode.unknown_topic_or_partition]
    assert not await ensure(connection, NAME)
    assert not topic.errors[ApiKey.METADATA]


@pytest.mark.parametrize(
    ("api", "code"),
    [
        (AskedApi.CREATE_TOPICS, ErrorCode.topic_authorization_failed),
        (AskedApi.CREATE_TOPICS, ErrorCode.policy_violation),
        (ApiKey.METADATA, ErrorCode.invalid_topic_exception),
    ],
)
async def test_a_topic_that_may_not_be_made_is_refused(
    topic: ScriptedTopic, connection: Connection, api: Any, code: ErrorCode
) -> None:
    topic.exists = False
    topic.errors[api] = [code]
    with pytest.raises(RequestRefused) as refusal:
        await ensure(connection, NAME)
    assert refusal.value.code is code


ALTER = f"kafka-configs.sh --bootstrap-server ... --alter --entity-type topics --entity-name {NAME} --add-config"
INIT = "kafka-dt upstream init --config ..."
AGAIN = f"kafka-topics.sh --bootstrap-server ... --delete --topic {NAME} && {INIT}"
ALLOW = (
    "kafka-acls.sh --bootstrap-server ... --add --allow-principal User:gateway --operation Read --operation Write "
    f"--operation Create --operation DescribeConfigs --topic {NAME}"
)


@pytest.mark.parametrize(
    ("spoil", "problem", "remedy"),
    [
        (lambda topic: setattr(topic, "exists", False), f"there is no topic {NAME}", INIT),
        (
            lambda topic: topic.errors.update({ApiKey.METADATA: [ErrorCode.topic_authorization_failed]}),
            f"User:gateway may not use topic {NAME}",
            ALLOW,
        ),
        (
            lambda topic: topic.errors.update({ApiKey.DESCRIBE_CONFIGS: [ErrorCode.topic_authorization_failed]}),
            "or not read its settings",
            ALLOW,
        ),
        (
            lambda topic: setattr(topic, "operations", 1 << AclOperation.READ),
            f"User:gateway has no right to Write on topic {NAME}",
            ALLOW,
        ),
        (
            lambda topic: topic.errors.update({ApiKey.METADATA: [ErrorCode.unknown_server_error]}),
            "Kafka error -1",
            "see the log of the broker",
        ),
        (lambda topic: setattr(topic, "partitions", 2), "has 2 partitions instead of one", AGAIN),
        (lambda topic: setattr(topic, "has_leader", False), "no broker leads topic", "start the brokers"),
        (lambda topic: setattr(topic, "brokers", 3), "has 1 replica, and the cluster 3 brokers", AGAIN),
        (
            lambda topic: topic.settings.update({"compression.type": "zstd"}),
            "has compression.type=zstd",
            f"{ALTER} compression.type=producer",
        ),
        (
            lambda topic: topic.settings.update({"max.message.bytes": "999", "retention.ms": "100"}),
            "has max.message.bytes=999, retention.ms=100",
            f"{ALTER} max.message.bytes={FETCH_BYTES},retention.ms=3600000",
        ),
        (
            lambda topic: topic.settings.pop("retention.ms"),
            "has retention.ms=unknown",
            f"{ALTER} retention.ms=3600000",
        ),
        (
            lambda topic: topic.settings.update({"retention.ms": "one hour"}),
            "has retention.ms=one hour",
            f"{ALTER} retention.ms=3600000",
        ),
        (
            lambda topic: topic.settings.update({"min.insync.replicas": "2"}),
            "has min.insync.replicas=2",
            f"{ALTER} min.insync.replicas=1",
        ),
    ],
)
async def test_an_unfit_topic_is_a_warning_with_its_remedy(
    topic: ScriptedTopic,
    connection: Connection,
    spoil: Callable[[ScriptedTopic], object],
    problem: str,
    remedy: str,
) -> None:
    spoil(topic)
    finding = await examine_topic(connection, NAME, GATEWAY)
    assert (finding.point, finding.needed) == (POINT, False)
    assert problem in finding.problem
    assert remedy in finding.remedy


async def test_records_may_be_kept_for_ever(topic: ScriptedTopic, connection: Connection) -> None:
    topic.settings["retention.ms"] = "-1"
    assert (await examine_topic(connection, NAME, GATEWAY)).fit
