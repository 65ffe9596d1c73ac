"""One broker of a cluster without ZooKeeper as a script: its image, its watermark, and the tokens that it describes.

    async with ScriptedCluster().running() as cluster: ...
    cluster.described[token.token_id] = token      # what a describe has from now on

It says at once what a real broker says only in the tenths of a second after a change. `tests/interop/kraft` has a real
one.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

from kio.schema.errors import ErrorCode

from kafka_dt.client import ClientConfig, parse_addresses
from kafka_dt.client.session import ClientSession
from kafka_dt.identity.acls.binding import AclBinding
from kafka_dt.kraft.fitness import METADATA_VERSION
from kafka_dt.kraft.session import session
from kafka_dt.tokens import DelegationToken, Principal
from kafka_dt_protocol import NO_TIMESTAMP
from kafka_dt_protocol.api.registry import ASKED, ApiKey, AskedApi
from kafka_dt_protocol.api.responses import element_type
from kafka_dt_protocol.wire.headers import RequestHeader
from kafka_dt_protocol.wire.layout import entity_layout
from tests.support.protocol.scripted_server import ScriptedServer

GATEWAY = Principal.user("gateway")
CLUSTER_ID = "aClusterOfTheTest12345"
_ANY = 1


@dataclass
class ScriptedCluster:
    """What it says; of `offsets`, `epochs` and `errors` the first is used up, and the last stays."""

    offsets: list[int] = field(default_factory=list)
    """Of the image, for each question; when used up, each is one more than the one before."""
    watermark: int = 10
    """At least; a controller that leads has committed what is in the image."""
    elected: int = 0
    """How often the controller has yet to answer that it does not know the watermark, since it was just elected."""
    deposed: bool = False
    """Whether the controller that answers leads no more and does not know it: it commits nothing."""
    clock_is_ahead_ms: int | None = 0
    """By how much the controller's clock is; None if it does not tell its time."""
    epochs: list[int] = field(default_factory=lambda: [1])
    """Of the leader."""
    quorum_error: ErrorCode = ErrorCode.none
    describe_error: ErrorCode = ErrorCode.none
    acl_error: ErrorCode = ErrorCode.none
    create_error: ErrorCode = ErrorCode.invalid_principal_type
    metadata_version: int | None = METADATA_VERSION
    """None for a cluster with ZooKeeper."""
    brokers: dict[int, str] = field(default_factory=dict)
    """Which brokers it names: `host:port` by id."""
    described: dict[str, DelegationToken] = field(default_factory=dict)
    acls: list[AclBinding] = field(default_factory=list)
    server: ScriptedServer = field(default_factory=ScriptedServer)
    _offset: int = 10

    def __post_init__(self) -> None:
        server = self.server
        server.versions[AskedApi.DESCRIBE_QUORUM] = (0, 2)
        server.features = self._features
        server.scripts[AskedApi.DESCRIBE_QUORUM] = self._quorum
        server.scripts[ApiKey.DESCRIBE_DELEGATION_TOKEN] = self._describe
        server.scripts[ApiKey.DESCRIBE_ACLS] = self._describe_acls

    @classmethod
    def fit(cls, user: str, password: str) -> Self:
        """One that can be the store of a gateway with that login, and that creates no token."""
        cluster = cls()
        cluster.server.users[user] = password
        cluster.server.scripts |= {
            ApiKey.CREATE_DELEGATION_TOKEN: cluster._create,
            ApiKey.DESCRIBE_CLUSTER: cluster._describe_cluster,
        }
        return cluster

    @asynccontextmanager
    async def running(self) -> AsyncIterator[ScriptedCluster]:
        async with self.server.running():
            yield self

    def session(self) -> ClientSession:
        return session(ClientConfig(bootstrap_servers=parse_addresses(self.server.address), request_timeout_ms=5_000))

    @property
    def asked(self) -> list[Any]:
        """The APIs of the requests so far, without the one that opens a connection."""
        return [api for api, _ in self.server.requests]

    def _features(self) -> dict[str, Any]:
        self._offset = self.offsets.pop(0) if self.offsets else self._offset + 1
        tagged = entity_layout(ASKED[ApiKey.API_VERSIONS].response[4]).tagged
        feature: Any = next(each.entity for each in tagged if each.name == "finalized_features")
        levels = self.metadata_version and (
            feature(name="metadata.version", max_version_level=self.metadata_version, min_version_level=1),
        )
        return {"finalized_features_epoch": self._offset, "finalized_features": levels or ()}

    def _quorum(self, header: RequestHeader, _: Any) -> dict[str, Any]:
        topic = element_type(ASKED[AskedApi.DESCRIBE_QUORUM].response[header.api_version], "topics")
        partition = element_type(topic, "partitions")
        epoch = self.epochs.pop(0) if len(self.epochs) > 1 else self.epochs[0]
        watermark = self.watermark if self.deposed else max(self.watermark, self._offset + 1)
        if self.elected:
            self.elected -= 1
            watermark = -1
        told = partition(
            partition_index=0,
            error_code=self.quorum_error,
            error_message=None,
            leader_id=1,
            leader_epoch=epoch,
            high_watermark=watermark,
            current_voters=self._voters(partition),
            observers=(),
        )
        topics = (topic(topic_name="__cluster_metadata", partitions=(told,)),)
        return {"error_code": ErrorCode.none, "error_message": None, "topics": topics, "nodes": ()}

    def _voters(self, partition: Any) -> tuple[Any, ...]:
        if self.clock_is_ahead_ms is None:
            return ()
        now_ms = int(time.time() * 1000) + self.clock_is_ahead_ms
        voter = partial(element_type(partition, "current_voters"), replica_directory_id=None, log_end_offset=1)
        return tuple(
            voter(replica_id=each, last_fetch_timestamp=time_ms, last_caught_up_timestamp=time_ms)
            for each, time_ms in ((2, 1), (1, now_ms))
        )

    def _describe_acls(self, header: RequestHeader, request: Any) -> dict[str, Any]:
        resource = element_type(ASKED[ApiKey.DESCRIBE_ACLS].response[header.api_version], "resources")
        description = element_type(resource, "acls")
        of_kind = [each for each in self.acls if each.pattern.resource_type in (request.resource_type_filter, _ANY)]
        resources = tuple(
            resource(
                resource_type=pattern.resource_type,
                resource_name=pattern.name,
                pattern_type=pattern.pattern_type,
                acls=tuple(
                    description(
                        principal=str(each.entry.principal),
                        host=each.entry.host,
                        operation=each.entry.operation,
                        permission_type=each.entry.permission_type,
                    )
                    for each in of_kind
                    if each.pattern == pattern
                ),
            )
            for pattern in dict.fromkeys(each.pattern for each in of_kind)
        )
        return {
            "error_code": self.acl_error,
            "error_message": None,
            "resources": () if self.acl_error else resources,
        }

    def _create(self, _header: RequestHeader, request: Any) -> dict[str, Any]:
        assert [each.principal_type for each in request.renewers] == ["NoUser", "User"], "no cluster may make it"
        return {
            "error_code": self.create_error,
            "principal_type": "User",
            "principal_name": "x",
            "token_requester_principal_type": "User",
            "token_requester_principal_name": "x",
            "issue_timestamp": NO_TIMESTAMP,
            "expiry_timestamp": NO_TIMESTAMP,
            "max_timestamp": NO_TIMESTAMP,
            "token_id": "",
            "hmac": b"",
        }

    def _describe_cluster(self, header: RequestHeader, _: Any) -> dict[str, Any]:
        broker = element_type(ASKED[ApiKey.DESCRIBE_CLUSTER].response[header.api_version], "brokers")
        later = {"is_fenced": False} if header.api_version > 1 else {}
        addresses = {each: parse_addresses(text)[0] for each, text in self.brokers.items()}
        return {
            "error_code": ErrorCode.none,
            "error_message": None,
            "cluster_id": CLUSTER_ID,
            "controller_id": 1,
            "brokers": tuple(
                broker(broker_id=each, host=address.host, port=address.port, rack=None, **later)
                for each, address in addresses.items()
            ),
        }

    def _describe(self, header: RequestHeader, request: Any) -> dict[str, Any]:
        entry = element_type(ASKED[ApiKey.DESCRIBE_DELEGATION_TOKEN].response[header.api_version], "tokens")
        renewer = element_type(entry, "renewers")
        owners = request and request.owners
        wanted = owners and [Principal(each.principal_type, each.principal_name) for each in owners]
        tokens = tuple(
            entry(
                principal_type=held.token.owner.type,
                principal_name=held.token.owner.name,
                token_requester_principal_type=held.token.requester.type,
                token_requester_principal_name=held.token.requester.name,
                issue_timestamp=held.token.issue_timestamp_ms,
                expiry_timestamp=held.token.expiry_timestamp_ms,
                max_timestamp=held.token.max_timestamp_ms,
                token_id=held.token.token_id,
                hmac=held.hmac,
                renewers=tuple(renewer(principal_type=p.type, principal_name=p.name) for p in held.token.renewers),
            )
            for held in self.described.values()
            if owners is None or held.token.owner in wanted
        )
        return {"error_code": self.describe_error, "tokens": tokens if not self.describe_error else ()}
