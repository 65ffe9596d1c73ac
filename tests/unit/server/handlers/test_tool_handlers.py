"""What tools ask on their way: empty answers, refusals in words, and the rights that a broker asks for."""

from __future__ import annotations

from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt.identity.acls.authorizer import Authorizer
from kafka_dt.identity.acls.binding import AclOperation, ResourceType
from kafka_dt.server.handlers.tools import BROKER, BROKER_LOGGER, TOPIC, ToolHandlers
from kafka_dt_protocol import APIS, ApiKey, element_type
from tests.support.identity.authorization import acl, authorizer
from tests.support.server.asked import asked

EVERYBODY_MAY = authorizer(enabled=False)
NOBODY_MAY = authorizer()
GROUP = 32
NONE, CLUSTER_REFUSED = ErrorCode.none, ErrorCode.cluster_authorization_failed


async def ask(api: ApiKey, version: int, authorizer: Authorizer = EVERYBODY_MAY, **values: Any) -> Any:
    return await asked(ToolHandlers(authorizer).served(), api, version, **values)


async def configs(version: int, authorizer: Authorizer, *resources: tuple[int, str]) -> list[tuple[str, ErrorCode]]:
    element = element_type(APIS[ApiKey.DESCRIBE_CONFIGS].request[version], "resources")
    asked = tuple(element(resource_type=kind, resource_name=name, configuration_keys=None) for kind, name in resources)
    answer = await ask(
        ApiKey.DESCRIBE_CONFIGS,
        version,
        authorizer,
        resources=asked,
        include_synonyms=False,
        include_documentation=False,
    )
    assert [(each.resource_type, each.resource_name) for each in answer.results] == list(resources)
    assert all(each.configs == () for each in answer.results)
    return [(each.resource_name, each.error_code) for each in answer.results]


@pytest.mark.parametrize("version", APIS[ApiKey.DESCRIBE_CONFIGS].request)
async def test_only_the_node_has_a_configuration_and_it_is_empty(version: int) -> None:
    resources = ((BROKER, "1"), (BROKER_LOGGER, "1"), (TOPIC, "orders"), (GROUP, "readers"))
    assert await configs(version, EVERYBODY_MAY, *resources) == [
        ("1", NONE),
        ("1", NONE),
        ("orders", ErrorCode.unknown_topic_or_partition),
        ("readers", ErrorCode.invalid_request),
    ]
    assert await configs(version, EVERYBODY_MAY) == []


async def test_a_configuration_needs_the_right_to_describe_it() -> None:
    resources = ((BROKER, "1"), (TOPIC, "orders"), (TOPIC, "others"))
    refused = ErrorCode.topic_authorization_failed
    assert await configs(4, NOBODY_MAY, *resources) == [
        ("1", CLUSTER_REFUSED),
        ("orders", refused),
        ("others", refused),
    ]
    some = authorizer(acl(ResourceType.TOPIC, "orders", "alice", AclOperation.ALTER_CONFIGS))
    assert await configs(4, some, *resources[1:]) == [
        ("orders", ErrorCode.unknown_topic_or_partition),
        ("others", refused),
    ]


@pytest.mark.parametrize("version", APIS[ApiKey.LIST_GROUPS].request)
async def test_there_are_no_groups(version: int) -> None:
    answer = await ask(ApiKey.LIST_GROUPS, version, NOBODY_MAY, states_filter=(), types_filter=())
    assert (answer.error_code, answer.groups) == (NONE, ())


@pytest.mark.parametrize("version", APIS[ApiKey.DESCRIBE_CLIENT_QUOTAS].request)
async def test_there_are_no_quotas(version: int) -> None:
    answer = await ask(ApiKey.DESCRIBE_CLIENT_QUOTAS, version, components=(), strict=False)
    assert (answer.error_code, answer.entries) == (NONE, ())
    refused = await ask(ApiKey.DESCRIBE_CLIENT_QUOTAS, version, NOBODY_MAY, components=(), strict=False)
    assert (refused.error_code, refused.entries) == (CLUSTER_REFUSED, None)


@pytest.mark.parametrize("version", APIS[ApiKey.ALTER_CLIENT_QUOTAS].request)
async def test_a_quota_is_refused_in_words(version: int) -> None:
    entry = element_type(APIS[ApiKey.ALTER_CLIENT_QUOTAS].request[version], "entries")
    part, operation = element_type(entry, "entity"), element_type(entry, "ops")
    entity = (part(entity_type="user", entity_name="alice"), part(entity_type="client-id", entity_name=None))
    entries = (entry(entity=entity, ops=(operation(key="producer_byte_rate", value=1.0, remove=False),)),)

    async def refused(authorizer: Authorizer) -> Any:
        answer = await ask(ApiKey.ALTER_CLIENT_QUOTAS, version, authorizer, entries=entries, validate_only=False)
        (each,) = answer.entries
        assert [(of.entity_type, of.entity_name) for of in each.entity] == [("user", "alice"), ("client-id", None)]
        return each

    answer = await refused(EVERYBODY_MAY)
    assert (answer.error_code, answer.error_message) == (
        ErrorCode.invalid_request,
        "kafka-dt has no client quotas",
    )
    assert (await refused(NOBODY_MAY)).error_code is CLUSTER_REFUSED
