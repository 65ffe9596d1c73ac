"""How the topic of news is made, and what may be wrong with it.

    await ensure(connection, "__kafka_dt_revocations")        # makes it if it is not there
    finding = await examine_topic(connection, "__kafka_dt_revocations", gateway)

Messages tell nothing any more after the time for which a node may be stale, so the topic keeps them for an hour, and no
backup of it is needed. Whatever is wrong with it can be put right by deleting it and making it again.

Source: docs/decisions/0034-news-of-revocations.md; org.apache.kafka.common.config.TopicConfig.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from kio.schema.errors import ErrorCode

from kafka_dt.client import RequestRefused
from kafka_dt.identity.acls.binding import AclOperation
from kafka_dt.kraft.finding import Finding, allow
from kafka_dt.kraft.news.topic import FETCH_BYTES, TopicState, count_brokers, create, describe, settings_of

if TYPE_CHECKING:
    from kafka_dt.client.connection import Connection
    from kafka_dt.tokens import Principal

POINT: Final = "topic of revocations"
MOST_REPLICAS: Final = 3
RETENTION_MS: Final = 3_600_000
SHORTEST_RETENTION_MS: Final = 60_000
CREATE_MS: Final = 10_000
"""How long the cluster may take to create the topic."""
LEADER_S: Final = 5.0
"""How long a new topic may take to have a leader."""
LOOK_S: Final = 0.1
SETTINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "cleanup.policy": "delete",
        "retention.ms": str(RETENTION_MS),
        "segment.ms": str(RETENTION_MS),
        "compression.type": "producer",
        "max.message.bytes": str(FETCH_BYTES),
    }
)
"""Those that do not depend on the size of the cluster."""
_FIT: Final[Mapping[str, Callable[[str, int], bool]]] = MappingProxyType(
    {
        "compression.type": lambda value, _: value in {"producer", "uncompressed"},
        "max.message.bytes": lambda value, _: int(value) >= FETCH_BYTES,
        "retention.ms": lambda value, _: not 0 <= int(value) < SHORTEST_RETENTION_MS,
        "min.insync.replicas": lambda value, replicas: int(value) <= max(1, replicas - 1),
    }
)
"""Whether the value of a setting will do for so many replicas, for those that nodes depend on."""
OPERATIONS: Final = (AclOperation.READ, AclOperation.WRITE, AclOperation.CREATE, AclOperation.DESCRIBE_CONFIGS)
"""What the gateway's user needs on the topic; the last two to create it, and to check it."""
_USED: Final = (AclOperation.READ, AclOperation.WRITE)
_INIT: Final = "kafka-dt upstream init --config ..."


def settings_for(brokers: int) -> tuple[int, Mapping[str, str]]:
    """Return how many replicas the topic has in a cluster of so many brokers, and its settings.

    One broker may be away: with three replicas two have to have each message, else one.
    """
    replicas = min(brokers, MOST_REPLICAS)
    in_sync = replicas - 1 if replicas == MOST_REPLICAS else 1
    return replicas, {**SETTINGS, "min.insync.replicas": str(in_sync)}


async def ensure(connection: Connection, name: str) -> bool:
    """Make the topic if it is not there, and wait until it has a leader; says whether it was made.

    Raises:
        RequestRefused: the user may not do that, or the cluster cannot.
        TokenClientError: the cluster cannot be asked.
    """
    if await _is_there(connection, name):
        return False
    replicas, settings = settings_for(await count_brokers(connection))
    made = True
    try:
        await create(connection, name, replicas=replicas, settings=settings, timeout_ms=CREATE_MS)
    except RequestRefused as refusal:
        if refusal.code is not ErrorCode.topic_already_exists:
            raise
        made = False  # another worker was faster
    await _wait_for_leader(connection, name)
    return made


async def _is_there(connection: Connection, name: str) -> bool:
    """Ask for the topic; without Describe on it one that is there looks like one that is not."""
    try:
        await describe(connection, name)
    except RequestRefused as refusal:
        if refusal.code not in {ErrorCode.unknown_topic_or_partition, ErrorCode.topic_authorization_failed}:
            raise
        return False
    return True


async def _wait_for_leader(connection: Connection, name: str) -> None:
    """Wait until the broker knows the new topic; who comes too early waits for himself."""
    for _ in range(round(LEADER_S / LOOK_S)):
        try:
            if (await describe(connection, name)).leader is not None:
                return
        except RequestRefused:
            pass  # it does not know the topic yet
        await asyncio.sleep(LOOK_S)


async def examine_topic(connection: Connection, name: str, gateway: Principal) -> Finding:
    """Look at the topic; no problem with it keeps a node from serving tokens.

    Raises TokenClientError if the cluster cannot be asked.
    """
    try:
        state = await describe(connection, name)
        problem = _of_state(state, name, gateway)
        if problem is None:
            problem = _of_settings(await settings_of(connection, name), state, name)
    except RequestRefused as refusal:
        problem = _of_refusal(refusal, name, gateway)
    return Finding(POINT) if problem is None else Finding(POINT, *problem, needed=False)


def allowed(name: str, gateway: Principal) -> str:
    """Return the command that gives the gateway's user what it needs on the topic."""
    return allow(gateway, f"{' '.join(f'--operation {_word(each)}' for each in OPERATIONS)} --topic {name}")


def _word(operation: AclOperation) -> str:
    return "".join(part.capitalize() for part in operation.name.split("_"))


def _of_refusal(refusal: RequestRefused, name: str, gateway: Principal) -> tuple[str, str]:
    if refusal.code is ErrorCode.unknown_topic_or_partition:
        return f"there is no topic {name}, so nodes hear of each other's revocations when their brokers do", _INIT
    if refusal.code is ErrorCode.topic_authorization_failed:
        return f"{gateway} may not use topic {name}, or not read its settings", allowed(name, gateway)
    return str(refusal), "see the log of the broker"


def _of_state(state: TopicState, name: str, gateway: Principal) -> tuple[str, str] | None:
    missing = [_word(each) for each in _USED if not state.operations & 1 << each]
    if missing:
        return f"{gateway} has no right to {' and '.join(missing)} on topic {name}", allowed(name, gateway)
    if state.partitions != 1:
        return f"topic {name} has {state.partitions} partitions instead of one", _again(name)
    if state.leader is None:
        return f"no broker leads topic {name}", "start the brokers that have its replicas"
    count = len(state.replicas)
    if count < settings_for(state.brokers)[0]:
        replicas = f"{count} replica{'s'[: count != 1]}"
        return f"topic {name} has {replicas}, and the cluster {state.brokers} brokers", _again(name)
    return None


def _of_settings(found: Mapping[str, str | None], state: TopicState, name: str) -> tuple[str, str] | None:
    wrong = {key: found.get(key) for key in _FIT if not _fits(key, found.get(key), len(state.replicas))}
    if not wrong:
        return None
    _, wanted = settings_for(len(state.replicas))
    told = ", ".join(f"{key}={value or 'unknown'}" for key, value in wrong.items())
    right = ",".join(f"{key}={wanted[key]}" for key in wrong)
    command = "kafka-configs.sh --bootstrap-server ... --alter --entity-type topics"
    return f"topic {name} has {told}", f"{command} --entity-name {name} --add-config {right}"


def _fits(key: str, value: str | None, replicas: int) -> bool:
    """Say whether a setting will do; not if the cluster does not tell it."""
    try:
        return value is not None and _FIT[key](value, replicas)
    except ValueError:
        return False


def _again(name: str) -> str:
    return f"kafka-topics.sh --bootstrap-server ... --delete --topic {name} && {_INIT}"
