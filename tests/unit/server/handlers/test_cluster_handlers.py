"""What clients learn about the cluster: one node, no topics, no coordinators."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from kafka_dt.identity.acls.authorizer import Authorizer
from kafka_dt.identity.acls.binding import AclOperation, ResourceType
from kafka_dt.server.handlers.cluster import ClusterHandlers
from kafka_dt_protocol import APIS, ApiKey, build, element_type
from tests.support.identity.authorization import acl, authorizer
from tests.support.server.asked import asked

NOTHING_MORE = dict.fromkeys(
    (
        "allow_auto_topic_creation",
        "include_cluster_authorized_operations",
        "include_topic_authorized_operations",
        "include_fenced_brokers",
    ),
    False,
)
METADATA, DESCRIBE_CLUSTER, FIND_COORDINATOR = ApiKey.METADATA, ApiKey.DESCRIBE_CLUSTER, ApiKey.FIND_COORDINATOR


EVERYBODY_MAY = authorizer(enabled=False)
NOBODY_MAY = authorizer()
NOT_TOLD = -(2**31)


async def ask(api: ApiKey, version: int, authorizer: Authorizer = EVERYBODY_MAY, **values: Any) -> Any:
    return await asked(
        ClusterHandlers(7, "cluster-id", authorizer).served(), api, version, **{**NOTHING_MORE, **values}
    )


def versions(api: ApiKey) -> range:
    return range(APIS[api].min_version, APIS[api].max_version + 1)


@pytest.mark.parametrize("version", versions(METADATA))
async def test_metadata_names_this_node_where_the_client_has_reached_it(version: int) -> None:
    answer = await ask(METADATA, version, topics=())
    (broker,) = answer.brokers
    assert (broker.node_id, broker.host, broker.port) == (7, "tokens.example", 9094)
    assert answer.topics == ()
    assert getattr(answer, "cluster_id", "cluster-id") == "cluster-id"
    assert getattr(answer, "controller_id", 7) == 7


@pytest.mark.parametrize("version", versions(METADATA))
async def test_a_topic_that_is_asked_for_does_not_exist(version: int) -> None:
    element = element_type(APIS[METADATA].request[version], "topics")
    answer = await ask(METADATA, version, topics=(build(element, name="orders", topic_id=None),))
    assert [(each.name, each.error_code.value) for each in answer.topics] == [("orders", 3)]


async def test_a_topic_that_is_asked_for_by_id_is_unknown_by_id() -> None:
    element = element_type(APIS[METADATA].request[13], "topics")
    topic_id = uuid.uuid4()
    answer = await ask(METADATA, 13, topics=(build(element, name=None, topic_id=topic_id),))
    assert [(each.topic_id, each.error_code.value) for each in answer.topics] == [(topic_id, 100)]


@pytest.mark.parametrize("version", [10, 11])
@pytest.mark.parametrize(("name", "topic_id"), [(None, None), (None, uuid.uuid4()), ("orders", uuid.uuid4())])
async def test_versions_that_have_topic_ids_and_do_not_take_them_refuse_the_request(
    version: int, name: str | None, topic_id: uuid.UUID | None
) -> None:
    element = element_type(APIS[METADATA].request[version], "topics")
    answer = await ask(METADATA, version, topics=(build(element, name=name, topic_id=topic_id),))
    assert [(each.name, each.error_code.value) for each in answer.topics] == [(name or "", 42)]
    assert answer.brokers == ()


@pytest.mark.parametrize("version", versions(METADATA))
async def test_all_topics_are_none(version: int) -> None:
    # Version 0 has no null: there an empty list asks for all.
    assert (await ask(METADATA, version, topics=None if version else ())).topics == ()


@pytest.mark.parametrize("version", versions(DESCRIBE_CLUSTER))
async def test_the_cluster_is_this_node(version: int) -> None:
    answer = await ask(DESCRIBE_CLUSTER, version, endpoint_type=1)
    (broker,) = answer.brokers
    assert (answer.error_code.value, answer.cluster_id, answer.controller_id) == (0, "cluster-id", 7)
    assert (broker.broker_id, broker.host, broker.port) == (7, "tokens.example", 9094)


async def test_controllers_are_not_here() -> None:
    answer = await ask(DESCRIBE_CLUSTER, 2, endpoint_type=2)
    assert (answer.error_code.value, answer.brokers) == (114, ())


@pytest.mark.parametrize("version", versions(FIND_COORDINATOR))
async def test_there_is_no_coordinator(version: int) -> None:
    answer = await ask(FIND_COORDINATOR, version, key="group", key_type=0, coordinator_keys=("group", "other"))
    found = getattr(answer, "coordinators", None) or (answer,)
    assert {each.error_code.value for each in found} == {42}
    assert {each.port for each in found} == {-1}


def may(resource_type: ResourceType, name: str, operation: AclOperation = AclOperation.DESCRIBE) -> Authorizer:
    return authorizer(acl(resource_type, name, "alice", operation))


@pytest.mark.parametrize("version", versions(METADATA))
async def test_only_who_may_describe_a_topic_learns_whether_it_exists(version: int) -> None:
    element = element_type(APIS[METADATA].request[version], "topics")
    topics = tuple(build(element, name=name, topic_id=None) for name in ("orders", "bills"))
    answer = await ask(METADATA, version, may(ResourceType.TOPIC, "orders"), topics=topics)
    assert [(each.name, each.error_code.value) for each in answer.topics] == [("orders", 3), ("bills", 29)]


@pytest.mark.parametrize(
    ("key_type", "resource_type", "error"), [(0, ResourceType.GROUP, 30), (1, ResourceType.TRANSACTIONAL_ID, 53)]
)
@pytest.mark.parametrize("version", versions(FIND_COORDINATOR))
async def test_only_who_may_describe_a_group_is_told_that_there_is_no_coordinator(
    version: int, key_type: int, resource_type: ResourceType, error: int
) -> None:
    if key_type and not version:
        pytest.skip("version 0 knows groups only")
    authorizer = may(resource_type, "mine")
    keys = ("mine", "yours") if version >= 4 else ("mine",)
    answer = await ask(FIND_COORDINATOR, version, authorizer, key="mine", key_type=key_type, coordinator_keys=keys)
    found = getattr(answer, "coordinators", None) or (answer,)
    assert [each.error_code.value for each in found] == [42, error][: len(keys)]
    refused = await ask(
        FIND_COORDINATOR, version, NOBODY_MAY, key="mine", key_type=key_type, coordinator_keys=("mine",)
    )
    assert (getattr(refused, "coordinators", None) or (refused,))[0].error_code.value == error


@pytest.mark.parametrize(
    ("api", "version"), [(METADATA, 8), (METADATA, 10), *((DESCRIBE_CLUSTER, v) for v in range(3))]
)
async def test_what_the_caller_may_do_to_the_cluster_is_told_if_asked(api: ApiKey, version: int) -> None:
    async def told(authorizer: Authorizer, *, asked: bool = True) -> int:
        answer = await ask(
            api, version, authorizer, topics=(), endpoint_type=1, include_cluster_authorized_operations=asked
        )
        operations: int = answer.cluster_authorized_operations
        return operations

    assert await told(EVERYBODY_MAY, asked=False) == NOT_TOLD
    assert await told(EVERYBODY_MAY) == sum(1 << code for code in (5, 7, 8, 9, 10, 11, 12))
    assert await told(NOBODY_MAY) == 0
    assert await told(may(ResourceType.CLUSTER, "kafka-cluster")) == 1 << 8
    assert await told(may(ResourceType.CLUSTER, "kafka-cluster", AclOperation.ALTER)) == 1 << 7 | 1 << 8


@pytest.mark.parametrize("version", range(8, 14))
async def test_what_the_caller_may_do_to_a_topic_is_told_if_asked(version: int) -> None:
    element = element_type(APIS[METADATA].request[version], "topics")
    topics = tuple(build(element, name=name, topic_id=None) for name in ("orders", "bills"))
    authorizer = may(ResourceType.TOPIC, "orders", AclOperation.READ)
    answer = await ask(METADATA, version, authorizer, topics=topics, include_topic_authorized_operations=True)
    assert [each.topic_authorized_operations for each in answer.topics] == [1 << 3 | 1 << 8, NOT_TOLD]
