"""What the operator of a KRaft cluster does on its brokers' ports without login: topics, ACLs and quotas.

    operator = Operator(cluster)
    topic = operator.make_topic("alice-records", 1, 2)       # the leader of each partition
    operator.allow("alice", ResourceType.TOPIC, topic)
    with operator.limiting("alice", producer_byte_rate=1024): ...
    with operator.allowing(Acl("User:carol", AclOperation.DESCRIBE_TOKENS, ResourceType.USER, "User:alice")): ...
    operator.share_from_the_beginning("alice-group")

All but `limiting` return when every broker knows of it, so that no client has to try again. Also requests for topics
and records that tests send over raw connections.

Source: KIP-500 (changes go to the controller, brokers learn of them from its log); KIP-932 (settings of
groups); KIP-546 (quotas).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from kafka_dt.identity.acls.binding import AclOperation, PatternType, ResourceType
from kafka_dt_protocol.api.responses import element_type
from tests.support.brokers.kraft import KraftCluster
from tests.support.identity.acl_client import Acl, create_acls, delete_acls, describe_acls, filter_of
from tests.support.processes.waiting import eventually
from tests.support.protocol.raw import METADATA, RawConnection, ms, request_type

FETCH: Final = 1
CREATE_TOPICS: Final = 19
DESCRIBE_CONFIGS: Final = 32
INCREMENTAL_ALTER_CONFIGS: Final = 44
ALTER_CLIENT_QUOTAS: Final = 49
KNOWN_WITHIN_S: Final = 10.0
MIB: Final = 1 << 20

_CREATE_TOPICS_VERSION: Final = 4
_CONFIGS_VERSION: Final = 1
_GROUP_RESOURCE: Final = 32
_SET: Final = 0
_ANY_NUMBER: Final = -1
_INVALID_REPLICA_ASSIGNMENT: Final = 39


class Operator:
    """Who may do everything."""

    def __init__(self, cluster: KraftCluster) -> None:
        self._addresses = cluster.plaintext.split(",")

    def make_topic(self, name: str, *leaders: int, replicas: int = 1) -> str:
        """Make a topic with a partition for each of `leaders`; gives its name.

        A second replica is at broker 1, or at 2 of what 1 leads.
        """
        topic_type = element_type(request_type(CREATE_TOPICS, _CREATE_TOPICS_VERSION), "topics")
        assignment_type = element_type(topic_type, "assignments")
        topic = topic_type(
            name=name,
            num_partitions=_ANY_NUMBER,
            replication_factor=_ANY_NUMBER,
            assignments=tuple(
                assignment_type(partition_index=index, broker_ids=(leader, 2 if leader == 1 else 1)[:replicas])
                for index, leader in enumerate(leaders)
            ),
            configs=(),
        )

        def is_made() -> bool:
            with RawConnection(self._addresses[0]) as connection:
                answer = connection.ask(CREATE_TOPICS, _CREATE_TOPICS_VERSION, topics=(topic,), timeout=ms(10_000))
            code = answer.topics[0].error_code.value
            # A broker that has started again gets no partitions for a moment.
            assert code in {0, _INVALID_REPLICA_ASSIGNMENT}, answer
            return bool(code == 0)

        eventually(is_made, KNOWN_WITHIN_S)
        for address in self._addresses:
            _wait_for_leaders(address, name, leaders)
        return name

    def allow(self, user: str, resource: ResourceType, name: str, pattern: PatternType = PatternType.LITERAL) -> None:
        """Let a user do everything with a resource."""
        self._allow(Acl(f"User:{user}", AclOperation.ALL, resource, name, pattern=pattern))

    @contextmanager
    def allowing(self, acl: Acl) -> Iterator[None]:
        """Allow something while a block runs."""
        self._allow(acl)
        try:
            yield
        finally:
            with RawConnection(self._addresses[0]) as connection:
                assert delete_acls(connection, filter_of(acl)) == [(0, {acl})]
            self._wait_for_acls(acl, set())

    @contextmanager
    def limiting(self, user: str, **quotas: float) -> Iterator[None]:
        """Give a user quotas while a block runs, by their names in Kafka."""
        self._set_quotas(user, quotas, remove=False)
        try:
            yield
        finally:
            self._set_quotas(user, quotas, remove=True)

    def share_from_the_beginning(self, group: str) -> None:
        """Let a share group begin with the oldest records, and not with those that come after its first member."""
        name, value = "share.auto.offset.reset", "earliest"
        resource_type = element_type(request_type(INCREMENTAL_ALTER_CONFIGS, _CONFIGS_VERSION), "resources")
        config = element_type(resource_type, "configs")(name=name, config_operation=_SET, value=value)
        changed = resource_type(resource_type=_GROUP_RESOURCE, resource_name=group, configs=(config,))
        with RawConnection(self._addresses[0]) as connection:
            answer = connection.ask(
                INCREMENTAL_ALTER_CONFIGS, _CONFIGS_VERSION, resources=(changed,), validate_only=False
            )
        assert answer.responses[0].error_code.value == 0, answer
        for address in self._addresses:
            with RawConnection(address) as connection:
                eventually(lambda: _group_config(connection, group)[name] == value, KNOWN_WITHIN_S)

    def _set_quotas(self, user: str, quotas: Mapping[str, float], *, remove: bool) -> None:
        entry = element_type(request_type(ALTER_CLIENT_QUOTAS, 0), "entries")
        entity, operation = element_type(entry, "entity"), element_type(entry, "ops")
        changed = entry(
            entity=(entity(entity_type="user", entity_name=user),),
            ops=tuple(operation(key=key, value=value, remove=remove) for key, value in quotas.items()),
        )
        with RawConnection(self._addresses[0]) as connection:
            answer = connection.ask(ALTER_CLIENT_QUOTAS, 0, entries=(changed,), validate_only=False)
        assert answer.entries[0].error_code.value == 0, answer

    def _allow(self, acl: Acl) -> None:
        with RawConnection(self._addresses[0]) as connection:
            assert create_acls(connection, acl) == [0]
        self._wait_for_acls(acl, {acl})

    def _wait_for_acls(self, acl: Acl, wanted: set[Acl]) -> None:
        """Wait until all brokers have exactly these of the ACLs that one matches."""
        for address in self._addresses:
            with RawConnection(address) as connection:
                eventually(lambda: describe_acls(connection, filter_of(acl)) == (0, wanted), KNOWN_WITHIN_S)


def describe_topic(connection: RawConnection, name: str, version: int = 12) -> Any:
    """What Metadata says of one topic."""
    topic_type = element_type(request_type(METADATA, version), "topics")
    asked = topic_type(name=name) if version < 10 else topic_type(name=name, topic_id=None)
    (topic,) = connection.ask(
        METADATA,
        version,
        topics=(asked,),
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    ).topics
    return topic


def request_records(
    connection: RawConnection, topic: Any, version: int = 12, *, max_wait_ms: int = 0, max_bytes: int = MIB
) -> None:
    """Ask for records from the beginning of partition 0; the answer is not read.

    Args:
        connection: to the broker that leads it.
        topic: its name, from version 13 on its id.
        version: of Fetch.
        max_wait_ms: how long the broker may wait for the first record.
        max_bytes: how much is wanted.
    """
    topic_type = element_type(request_type(FETCH, version), "topics")
    partition_type = element_type(topic_type, "partitions")
    partition = partition_type(partition=0, fetch_offset=0, partition_max_bytes=max_bytes)
    named = {"topic_id": topic} if version > 12 else {"topic": topic}
    connection.request(
        FETCH,
        version,
        max_wait=ms(max_wait_ms),
        min_bytes=1,
        max_bytes=max_bytes,
        topics=(topic_type(**named, partitions=(partition,)),),
        forgotten_topics_data=(),
    )


def _group_config(connection: RawConnection, group: str) -> dict[str, str | None]:
    resource_type = element_type(request_type(DESCRIBE_CONFIGS, _CONFIGS_VERSION), "resources")
    resource = resource_type(resource_type=_GROUP_RESOURCE, resource_name=group, configuration_keys=None)
    (found,) = connection.ask(DESCRIBE_CONFIGS, _CONFIGS_VERSION, resources=(resource,), include_synonyms=False).results
    assert found.error_code.value == 0, found
    return {each.name: each.value for each in found.configs}


def _wait_for_leaders(address: str, topic: str, leaders: Sequence[int]) -> None:
    def known() -> bool:
        found = {each.partition_index: each.leader_id for each in describe_topic(connection, topic).partitions}
        return found == dict(enumerate(leaders))

    with RawConnection(address) as connection:
        eventually(known, KNOWN_WITHIN_S)
