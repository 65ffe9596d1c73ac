"""The three ACL APIs: each answer and each refusal, in every version, on a store in memory."""

from __future__ import annotations

from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt.config import Endpoint, SecurityProtocol
from kafka_dt.identity.acls.authorizer import Authorizer
from kafka_dt.identity.acls.binding import AclBinding, AclOperation, AclPermissionType, PatternType, ResourceType
from kafka_dt.identity.acls.cache import AclCache
from kafka_dt.identity.acls.manager import AclManager
from kafka_dt.server.handlers import RequestContext, dispatcher
from kafka_dt.server.handlers.acls import AclHandlers
from kafka_dt.tokens import Principal
from kafka_dt_protocol import APIS, ApiKey, MalformedMessage, RequestHeader, build, element_type, encode_response
from tests.support.identity.authorization import ADMIN, MemoryAclStore, acl

DESCRIBE, CREATE, DELETE = ApiKey.DESCRIBE_ACLS, ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS
APIS_OF_ACLS = (DESCRIBE, CREATE, DELETE)
VERSIONS = range(4)
ALICE = Principal.user("alice")
ANY = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}
LITERAL = {**ANY, "pattern_type_filter": 3}
RULE = acl(ResourceType.USER, "User:x", "bob", AclOperation.CREATE_TOKENS)
PREFIXED = acl(
    ResourceType.TOPIC,
    "t-",
    "bob",
    AclOperation.READ,
    pattern=PatternType.PREFIXED,
    permission=AclPermissionType.DENY,
    host="10.0.0.7",
)


class Server:
    """The handlers over a store in memory, asked as clients ask."""

    def __init__(self, *, enabled: bool = True) -> None:
        self.store = MemoryAclStore()
        cache = AclCache()
        self.manager = AclManager(self.store, cache)
        authorizer = Authorizer(
            cache, enabled=enabled, super_users=frozenset({ADMIN}), allow_everyone=False, super_users_revoke_any=True
        )
        self._handler = dispatcher(AclHandlers(self.manager, authorizer).served())

    async def ask(self, api: ApiKey, version: int, values: dict[str, Any], principal: Principal = ADMIN) -> Any:
        """Ask, and see that the answer can be written."""
        context = RequestContext(
            header=RequestHeader(api, version, 1, None),
            principal=principal,
            client_host="127.0.0.1",
            token_login=False,
            security_protocol=SecurityProtocol.SASL_PLAINTEXT,
            endpoint=Endpoint("SASL_PLAINTEXT", "localhost", 9092),
        )
        answer = await self._handler(context, build(APIS[api].request[version], **values))
        assert type(answer) is APIS[api].response[version]
        assert encode_response(api, version, 1, answer)
        return answer

    async def describe(self, version: int = 3, principal: Principal = ADMIN, **values: Any) -> Any:
        return await self.ask(DESCRIBE, version, {**(ANY if version else LITERAL), **values}, principal)

    async def create(self, *creations: dict[str, Any], version: int = 3, principal: Principal = ADMIN) -> list[Any]:
        element = element_type(APIS[CREATE].request[version], "creations")
        entities = tuple(build(element, **each) for each in creations)
        return list((await self.ask(CREATE, version, {"creations": entities}, principal)).results)

    async def delete(self, *filters: dict[str, Any], version: int = 3, principal: Principal = ADMIN) -> list[Any]:
        element = element_type(APIS[DELETE].request[version], "filters")
        entities = tuple(build(element, **each) for each in filters)
        return list((await self.ask(DELETE, version, {"filters": entities}, principal)).filter_results)


def creation(binding: AclBinding, **changes: Any) -> dict[str, Any]:
    return {
        "resource_type": binding.pattern.resource_type,
        "resource_name": binding.pattern.name,
        "resource_pattern_type": binding.pattern.pattern_type,
        "principal": str(binding.entry.principal),
        "host": binding.entry.host,
        "operation": binding.entry.operation,
        "permission_type": binding.entry.permission_type,
        **changes,
    }


def errors(results: list[Any]) -> list[int]:
    return [each.error_code.value for each in results]


@pytest.mark.parametrize("version", VERSIONS)
async def test_every_version_creates_lists_and_deletes(version: int) -> None:
    server = Server()
    assert errors(await server.create(creation(RULE), version=version)) == [0]
    answer = await server.describe(version)
    (resource,) = answer.resources
    (entry,) = resource.acls
    assert (answer.error_code.value, answer.error_message) == (0, None)
    assert (resource.resource_type, resource.resource_name, getattr(resource, "pattern_type", 3)) == (7, "User:x", 3)
    assert (entry.principal, entry.host, entry.operation, entry.permission_type) == ("User:bob", "*", 13, 3)
    (result,) = await server.delete(ANY if version else LITERAL, version=version)
    (matched,) = result.matching_acls
    assert (result.error_code.value, matched.error_code.value, matched.resource_name) == (0, 0, "User:x")
    assert (matched.principal, matched.operation) == ("User:bob", 13)
    assert (await server.describe(version)).resources == ()


@pytest.mark.parametrize("version", [1, 2, 3])
async def test_prefixed_patterns_are_told_apart(version: int) -> None:
    server = Server()
    await server.create(creation(PREFIXED), creation(RULE), version=version)
    (resource,) = (await server.describe(version, pattern_type_filter=4)).resources
    assert (resource.resource_name, resource.pattern_type) == ("t-", 4)
    assert (resource.acls[0].host, resource.acls[0].permission_type) == ("10.0.0.7", 2)


async def test_version_0_knows_literal_patterns_only() -> None:
    server = Server()
    await server.create(creation(PREFIXED), creation(RULE))
    assert [each.resource_name for each in (await server.describe(0)).resources] == ["User:x"]
    (result,) = await server.delete(LITERAL, version=0)
    assert [each.resource_name for each in result.matching_acls] == ["User:x"]
    assert [each.resource_name for each in (await server.describe()).resources] == ["t-"]


async def test_the_acls_of_one_pattern_are_told_together() -> None:
    server = Server()
    await server.create(creation(RULE), creation(PREFIXED), creation(RULE, principal="User:carol"))
    told = {each.resource_name: [acl.principal for acl in each.acls] for each in (await server.describe()).resources}
    assert told == {"User:x": ["User:bob", "User:carol"], "t-": ["User:bob"]}


async def test_each_acl_is_refused_for_itself() -> None:
    server = Server()
    results = await server.create(
        creation(RULE, principal="bob"),
        creation(RULE),
        creation(RULE, resource_name=""),
        creation(RULE, operation=1),
        creation(RULE, resource_type=100),
        creation(PREFIXED),
    )
    assert errors(results) == [42, 0, 42, 42, 42, 0]
    assert [each.error_message is None for each in results] == [False, True, False, False, False, True]
    assert len((await server.describe()).resources) == 2


@pytest.mark.parametrize("principal", ["x" * 32_767, "\0" * 32_767])
async def test_a_long_text_that_is_no_principal_leaves_the_other_answers_readable(principal: str) -> None:
    server = Server()
    refused, created = await server.create(creation(RULE, principal=principal), creation(RULE))
    assert errors([refused, created]) == [ErrorCode.invalid_request, ErrorCode.none]


@pytest.mark.parametrize("field", ["resource_type", "resource_pattern_type", "operation", "permission_type"])
async def test_a_creation_with_a_code_of_0_is_malformed(field: str) -> None:
    with pytest.raises(MalformedMessage):
        await Server().create(creation(RULE), creation(RULE, **{field: 0}), principal=ALICE)


@pytest.mark.parametrize("field", ["resource_type_filter", "pattern_type_filter", "operation", "permission_type"])
async def test_a_filter_with_a_code_of_0_is_malformed(field: str) -> None:
    with pytest.raises(MalformedMessage):
        await Server().ask(DESCRIBE, 3, {**ANY, field: 0})
    with pytest.raises(MalformedMessage):
        await Server().delete(ANY, {**ANY, field: 0})


@pytest.mark.parametrize("version", VERSIONS)
async def test_who_may_not_alter_or_describe_the_cluster_is_refused(version: int) -> None:
    server = Server()
    described = await server.describe(version, ALICE)
    assert (described.error_code.value, described.resources) == (31, ())
    assert errors(await server.create(creation(RULE), creation(RULE), version=version, principal=ALICE)) == [31, 31]
    wanted = ANY if version else LITERAL
    assert errors(await server.delete(wanted, wanted, version=version, principal=ALICE)) == [31, 31]
    assert server.store.writes == 0


async def test_describe_is_enough_to_list_and_alter_to_change() -> None:
    server = Server()
    cluster = ResourceType.CLUSTER
    await server.create(
        creation(acl(cluster, "kafka-cluster", "alice", AclOperation.DESCRIBE)),
        creation(acl(cluster, "kafka-cluster", "bob", AclOperation.ALTER)),
    )
    assert (await server.describe(principal=ALICE)).error_code.value == 0
    assert errors(await server.create(creation(RULE), principal=ALICE)) == [31]
    bob = Principal.user("bob")
    assert (await server.describe(principal=bob)).error_code.value == 0
    assert errors(await server.create(creation(RULE), principal=bob)) == [0]
    assert errors(await server.delete(ANY, principal=bob)) == [0]


@pytest.mark.parametrize("version", VERSIONS)
async def test_without_an_authorizer_there_are_no_acls(version: int) -> None:
    server = Server(enabled=False)
    described = await server.describe(version, ALICE)
    assert (described.error_code.value, described.resources) == (54, ())
    assert "authorizer.class.name" in described.error_message
    assert errors(await server.create(creation(RULE), version=version, principal=ALICE)) == [54]
    assert errors(await server.delete(ANY if version else LITERAL, version=version, principal=ALICE)) == [54]


async def test_while_zookeeper_is_away_the_answer_is_to_try_again() -> None:
    server = Server()
    await server.create(creation(RULE))
    server.store.connected = False
    assert (await server.describe()).error_code.value == 7
    assert errors(await server.create(creation(PREFIXED))) == [7]
    assert errors(await server.delete(ANY, ANY)) == [7, 7]
