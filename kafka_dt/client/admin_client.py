"""The client for SCRAM users, ACLs and the settings of a broker, of kafka-dt and of Kafka's own brokers.

    async with AdminClient.from_config({"bootstrap.servers": "broker:9092", ...}) as client:
        await client.set_password("alice", password)
        await client.create_acls([Acl(ResourceType.TOPIC, "orders", principal="User:alice", operation=...)])

The password stays here: the server gets the salted password of each mechanism. Brokers in ZooKeeper mode take changes
of users at the controller alone; the client finds it, and logs in there the same way.

Source: KIP-554, KIP-140, KIP-290; org.apache.kafka.clients.admin.Admin (alterUserScramCredentials, createAcls,
deleteAcls).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any, Final

from kio.schema.errors import ErrorCode

from kafka_dt.client.config import Address
from kafka_dt.client.connection import Connection
from kafka_dt.client.errors import UnexpectedAnswer, UnsupportedByServer, refused
from kafka_dt.client.session_client import SessionClient
from kafka_dt_protocol.api.acls import AclOperation, AclPermissionType, PatternType, ResourceType
from kafka_dt_protocol.api.registry import APIS, ApiKey
from kafka_dt_protocol.api.responses import element_type
from kafka_dt_protocol.sasl import ScramMechanism, salt_password

DEFAULT_ITERATIONS: Final = 4096
"""As Kafka's tools."""
MAX_ITERATIONS: Final = 16_384
"""Servers take no more."""
SALT_BYTES: Final = 24
_SCRAM_VERSION: Final = 0
_NUMBERS: Final = {ScramMechanism.SHA_256: 1, ScramMechanism.SHA_512: 2}
_MECHANISMS: Final = {number: mechanism for mechanism, number in _NUMBERS.items()}
_BROKER: Final = 4
"""The type of a resource of DescribeConfigs (KIP-133)."""
_PATTERN_TYPES_VERSION: Final = 1
"""The version of the ACL APIs from which on patterns have types (KIP-290)."""


@dataclass(frozen=True, slots=True, order=True)
class Acl:
    """One ACL. `host` is an address, `*` is every one; the name of a User resource is a principal."""

    resource_type: ResourceType
    resource_name: str
    pattern_type: PatternType
    principal: str
    host: str
    operation: AclOperation
    permission_type: AclPermissionType


@dataclass(frozen=True, slots=True)
class AclFilter:
    """Which ACLs are meant; a field that is ANY or None matches all."""

    resource_type: ResourceType = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission_type: AclPermissionType = AclPermissionType.ANY

    @classmethod
    def of(cls, acl: Acl) -> AclFilter:
        """Make the filter of exactly one ACL."""
        return cls(*astuple(acl))


class AdminClient(SessionClient):
    """An async context manager with the requests about SCRAM users and ACLs; its arguments are `SessionClient`'s."""

    async def scram_users(self, names: Iterable[str] | None = None) -> dict[str, dict[ScramMechanism, int]]:
        """Return the mechanisms of users, each with its iterations; a user that does not exist is left out.

        names: of users; None = all
        Raises RequestRefused, UnsupportedByServer, ConnectionFailed.
        """
        api, action = ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, "describe users"
        name = _element(api, _SCRAM_VERSION, "users")
        asked = None if names is None else tuple(name(name=each) for each in names)
        answer = await self._call(api, lambda _: {"users": asked}, repeatable=True)
        if answer.error_code is not ErrorCode.none:
            raise refused(answer.error_code, action, answer.error_message)
        users = {}
        for each in answer.results:
            if each.error_code is ErrorCode.none:
                # A newer server may have mechanisms that are not known here.
                users[each.user] = {
                    _MECHANISMS[info.mechanism]: info.iterations
                    for info in each.credential_infos
                    if info.mechanism in _MECHANISMS
                }
            elif each.error_code is not ErrorCode.resource_not_found:
                raise refused(each.error_code, action, each.error_message)
        return users

    async def set_password(
        self,
        user: str,
        password: str,
        mechanisms: Iterable[ScramMechanism] = ScramMechanism,
        iterations: int = DEFAULT_ITERATIONS,
    ) -> None:
        """Set the password of a user for some mechanisms; makes the user if there is none.

        iterations: rounds of PBKDF2, 4,096 to 16,384; each login of the user costs as many
        Raises RequestRefused, UnsupportedByServer, ConnectionFailed.
        """
        upsertion = _element(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, _SCRAM_VERSION, "upsertions")
        for mechanism in mechanisms:
            salt = self._random_bytes(SALT_BYTES)
            salted = await asyncio.to_thread(salt_password, mechanism, password, salt, iterations)
            made = upsertion(
                name=user, mechanism=_NUMBERS[mechanism], iterations=iterations, salt=salt, salted_password=salted
            )
            await self._alter({"deletions": (), "upsertions": (made,)}, f"set password for {mechanism}")

    async def delete_user(self, user: str, mechanisms: Iterable[ScramMechanism]) -> None:
        """Delete the credentials of a user; one without any is no user any more.

        Raises RequestRefused, UnsupportedByServer, ConnectionFailed.
        """
        deletion = _element(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, _SCRAM_VERSION, "deletions")
        for mechanism in mechanisms:
            gone = deletion(name=user, mechanism=_NUMBERS[mechanism])
            await self._alter({"deletions": (gone,), "upsertions": ()}, f"delete {mechanism} of user")

    async def acls(self, meant: AclFilter) -> list[Acl]:
        """Return the ACLs that a filter matches.

        Raises RequestRefused, UnsupportedByServer, ConnectionFailed.
        """
        api = ApiKey.DESCRIBE_ACLS

        def values(connection: Connection) -> Mapping[str, Any]:
            _require_patterns(connection, api)
            return _filter_fields(meant)

        answer = await self._call(api, values, repeatable=True)
        if answer.error_code is not ErrorCode.none:
            raise refused(answer.error_code, "list ACLs", answer.error_message)
        return [_acl(resource, entry) for resource in answer.resources for entry in resource.acls]

    async def create_acls(self, acls: Sequence[Acl]) -> None:
        """Create ACLs; those that exist already stay as they are.

        Raises RequestRefused for the first that the server refuses, UnsupportedByServer, ConnectionFailed.
        """
        api = ApiKey.CREATE_ACLS

        def values(connection: Connection) -> Mapping[str, Any]:
            creation = _element(api, _require_patterns(connection, api), "creations")
            return {"creations": tuple(creation(**_creation_fields(acl)) for acl in acls)}

        answer = await self._call(api, values, repeatable=True)
        for result in answer.results:
            if result.error_code is not ErrorCode.none:
                raise refused(result.error_code, "add ACLs", result.error_message)

    async def delete_acls(self, filters: Sequence[AclFilter]) -> list[Acl]:
        """Delete the ACLs that any of the filters matches, and return them.

        Raises RequestRefused for the first that the server refuses, UnsupportedByServer, ConnectionFailed.
        """
        api = ApiKey.DELETE_ACLS

        def values(connection: Connection) -> Mapping[str, Any]:
            element = _element(api, _require_patterns(connection, api), "filters")
            return {"filters": tuple(element(**_filter_fields(each)) for each in filters)}

        answer = await self._call(api, values, repeatable=False)
        deleted = []
        for result in answer.filter_results:
            for each in (result, *result.matching_acls):
                if each.error_code is not ErrorCode.none:
                    raise refused(each.error_code, "remove ACLs", each.error_message)
            deleted += [_acl(each, each) for each in result.matching_acls]
        return deleted

    async def broker_settings(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the settings of one broker that it shows; a key that it has not, or that is secret, is left out.

        Raises RequestRefused, UnsupportedByServer, ConnectionFailed.
        """
        api = ApiKey.DESCRIBE_CONFIGS
        broker = (await self._brokers()).brokers[0]

        def values(connection: Connection) -> Mapping[str, Any]:
            resource = _element(api, connection.version(api), "resources")
            name = str(broker.node_id)
            asked = resource(resource_type=_BROKER, resource_name=name, configuration_keys=tuple(keys))
            return {"resources": (asked,), "include_synonyms": False, "include_documentation": False}

        # A broker tells its own settings only.
        answer = await self._call_at(Address(broker.host, broker.port), api, values)
        (result,) = answer.results
        if result.error_code is not ErrorCode.none:
            raise refused(result.error_code, "describe settings", result.error_message)
        return {each.name: each.value for each in result.configs if each.value is not None}

    async def _alter(self, values: Mapping[str, Any], action: str) -> None:
        """Change one credential: Kafka 4 refuses a request with several of one user (DUPLICATE_RESOURCE)."""
        api = ApiKey.ALTER_USER_SCRAM_CREDENTIALS
        answer = await self._call(api, lambda _: values, repeatable=False)
        if any(result.error_code is ErrorCode.not_controller for result in answer.results):
            answer = await self._call_at(await self._controller(), api, lambda _: values)
        for result in answer.results:
            if result.error_code is not ErrorCode.none:
                raise refused(result.error_code, action, result.error_message)

    async def _controller(self) -> Address:
        """Ask where the controller of a cluster in ZooKeeper mode is."""
        answer = await self._brokers()
        for broker in answer.brokers:
            if broker.node_id == answer.controller_id:
                return Address(broker.host, broker.port)
        server = self._session.connection.server if self._session.connection else "the server"
        raise UnexpectedAnswer(server, "the cluster has no controller at present; try again")

    async def _brokers(self) -> Any:
        """Ask which brokers there are."""
        no_topics = {
            "topics": (),
            "allow_auto_topic_creation": False,
            "include_cluster_authorized_operations": False,
            "include_topic_authorized_operations": False,
        }
        return await self._call(ApiKey.METADATA, lambda _: no_topics, repeatable=True)


def _element(api: ApiKey, version: int, field: str) -> Any:
    return element_type(APIS[api].request[version], field)


def _require_patterns(connection: Connection, api: ApiKey) -> int:
    """Return the version that is spoken; a server that is too old would take every pattern for a literal one."""
    version = connection.version(api)
    if version < _PATTERN_TYPES_VERSION:
        raise UnsupportedByServer(connection.server, "types of resource patterns (Kafka 2.0 does)")
    return version


def _creation_fields(acl: Acl) -> dict[str, Any]:
    return {
        "resource_type": acl.resource_type,
        "resource_name": acl.resource_name,
        "resource_pattern_type": acl.pattern_type,
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation,
        "permission_type": acl.permission_type,
    }


def _filter_fields(meant: AclFilter) -> dict[str, Any]:
    return {
        "resource_type_filter": meant.resource_type,
        "resource_name_filter": meant.resource_name,
        "pattern_type_filter": meant.pattern_type,
        "principal_filter": meant.principal,
        "host_filter": meant.host,
        "operation": meant.operation,
        "permission_type": meant.permission_type,
    }


def _acl(resource: Any, entry: Any) -> Acl:
    return Acl(
        ResourceType(resource.resource_type),
        resource.resource_name,
        PatternType(resource.pattern_type),
        entry.principal,
        entry.host,
        AclOperation(entry.operation),
        AclPermissionType(entry.permission_type),
    )
