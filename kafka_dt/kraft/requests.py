"""The requests of a node to the cluster whose tokens it serves, and its answers as values of the domain.

The gateway's own principal is among the renewers of each token that a node creates. It is taken out of what nodes see.

Source: KIP-48, KIP-373, KIP-595 and KIP-836 (DescribeQuorum), KIP-584 (the epoch of the finalized features);
org.apache.kafka.controller.DelegationTokenControlManager.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kio.schema.errors import ErrorCode

from kafka_dt.client.connection import Connection
from kafka_dt.client.errors import UnexpectedAnswer, UnsupportedByServer, refused
from kafka_dt.client.login import Channel
from kafka_dt.kraft.offsets import LogEnd
from kafka_dt.tokens import DelegationToken, Expiry, NewToken, Principal, Renewal, StoredToken, Token
from kafka_dt_protocol.api.registry import ASKED, ApiKey, AskedApi
from kafka_dt_protocol.api.responses import element_type
from kafka_dt_protocol.wire.times import from_timestamp, to_duration

METADATA_LOG: Final = "__cluster_metadata"
_ANY: Final = 1
"""The number of "any" in the filters of ACLs."""


async def image_offset(connection: Connection) -> int:
    """Return the offset of the last record in the broker's image of the metadata.

    Raises UnsupportedByServer if the server has none, and what Connection.request raises.
    """
    offset: int = getattr(await connection.ask_versions(), "finalized_features_epoch", -1)
    if offset < 0:
        raise UnsupportedByServer(connection.server, "the offset of its metadata (finalized features)")
    return offset


async def log_end(connection: Connection) -> LogEnd:
    """Return how far the metadata log is committed; the broker asks the active controller.

    Raises RequestRefused, and what Connection.request raises.
    """
    api = AskedApi.DESCRIBE_QUORUM
    topic = element_type(ASKED[api].request[connection.version(api)], "topics")
    partition = element_type(topic, "partitions")(partition_index=0)
    answer = await connection.request(api, topics=(topic(topic_name=METADATA_LOG, partitions=(partition,)),))
    raise_if(answer.error_code, "describe quorum")
    partitions = [each for told in answer.topics for each in told.partitions]
    if len(partitions) != 1:
        raise UnexpectedAnswer(connection.server, "it does not describe the metadata log")
    (found,) = partitions
    raise_if(found.error_code, "describe quorum")
    # The controller that leads has caught up with itself at the moment of its answer. Version 0 has no such field.
    times_ms = [each.last_caught_up_timestamp for each in found.current_voters if each.replica_id == found.leader_id]
    return LogEnd(found.leader_epoch, found.high_watermark, next(iter(times_ms), None))


async def describe_cluster(connection: Connection) -> Any:
    """Return the answer that names the cluster and its brokers, without the fenced ones.

    Raises RequestRefused, and what Connection.request raises.
    """
    answer = await connection.request(
        ApiKey.DESCRIBE_CLUSTER, include_cluster_authorized_operations=False, include_fenced_brokers=False
    )
    raise_if(answer.error_code, "describe the cluster")
    return answer


def stored_token(described: Any, gateway: Principal) -> StoredToken:
    """Return one of the tokens of an answer to DescribeDelegationToken."""
    renewers = (Principal(renewer.principal_type, renewer.principal_name) for renewer in described.renewers)
    timestamps_ms = (described.issue_timestamp, described.expiry_timestamp, described.max_timestamp)
    return StoredToken(_token(described, renewers, timestamps_ms, gateway), hmac=described.hmac)


async def create(connection: Channel, wanted: NewToken, gateway: Principal) -> DelegationToken:
    """Create a token that the gateway may renew.

    Raises RequestRefused, and what Connection.request raises.
    """
    api = ApiKey.CREATE_DELEGATION_TOKEN
    renewer = element_type(ASKED[api].request[connection.version(api)], "renewers")
    renewers = [each for each in wanted.renewers if each != gateway]
    answer = await connection.request(
        api,
        owner_principal_type=wanted.owner.type,
        owner_principal_name=wanted.owner.name,
        renewers=tuple(renewer(principal_type=each.type, principal_name=each.name) for each in (*renewers, gateway)),
        max_lifetime=to_duration(wanted.max_lifetime_ms),
    )
    raise_if(answer.error_code, "create")
    instants = (answer.issue_timestamp, answer.expiry_timestamp, answer.max_timestamp)
    return DelegationToken(_token(answer, renewers, map(from_timestamp, instants), gateway), answer.hmac)


async def change(connection: Channel, hmac: bytes, wanted: Renewal | Expiry) -> int:
    """Renew or expire a token as the gateway; returns its expiry timestamp in milliseconds since 1970.

    Raises RequestRefused, and what Connection.request raises.
    """
    period = to_duration(wanted.period_ms)
    if isinstance(wanted, Renewal):
        answer = await connection.request(ApiKey.RENEW_DELEGATION_TOKEN, hmac=hmac, renew_period=period)
        raise_if(answer.error_code, "renew")
    else:
        answer = await connection.request(ApiKey.EXPIRE_DELEGATION_TOKEN, hmac=hmac, expiry_time_period=period)
        raise_if(answer.error_code, "expire")
    return from_timestamp(answer.expiry_timestamp)


def _token(answer: Any, renewers: Iterable[Principal], timestamps_ms: Iterable[int], gateway: Principal) -> Token:
    """Return the token of an answer; timestamps_ms: of its issue, expiry and maximum."""
    issue_timestamp_ms, expiry_timestamp_ms, max_timestamp_ms = timestamps_ms
    return Token(
        token_id=answer.token_id,
        owner=Principal(answer.principal_type, answer.principal_name),
        requester=Principal(answer.token_requester_principal_type, answer.token_requester_principal_name),
        renewers=tuple(each for each in renewers if each != gateway),
        issue_timestamp_ms=issue_timestamp_ms,
        max_timestamp_ms=max_timestamp_ms,
        expiry_timestamp_ms=expiry_timestamp_ms,
    )


async def acls_about(connection: Connection, resource_type: int) -> bytes:
    """Return the answer that lists all ACLs about resources of a type, as `Connection.request_undecoded` does."""
    return await connection.request_undecoded(
        ApiKey.DESCRIBE_ACLS,
        resource_type_filter=resource_type,
        resource_name_filter=None,
        pattern_type_filter=_ANY,
        principal_filter=None,
        host_filter=None,
        operation=_ANY,
        permission_type=_ANY,
    )


def raise_if(code: ErrorCode, action: str) -> None:
    """Raise RequestRefused for an error that answers a request; action: what was asked, in a word."""
    if code is not ErrorCode.none:
        raise refused(code, action)
