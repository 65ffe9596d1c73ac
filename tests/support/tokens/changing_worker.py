"""One worker's changes of a scripted cluster's tokens, and a client with a connection of its own there.

worker.answers(ApiKey.RENEW_DELEGATION_TOKEN, ErrorCode.none)
held = await worker.holds()                       # a token of alice's
await worker.change(held, Renewal(ALICE, HOUR, DAY))
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any

from kio.schema.errors import ErrorCode

from kafka_dt.client.connection import Connection
from kafka_dt.kraft.changes import ClusterChanges
from kafka_dt.kraft.source import ClusterTokens
from kafka_dt.tokens import (
    DelegationToken,
    Expiry,
    Renewal,
    TokenCache,
)
from kafka_dt_protocol.api.registry import ApiKey
from kafka_dt_protocol.wire.times import NO_THROTTLE, to_timestamp
from tests.support.tokens.nodes import ALICE, BOB, DAY, HOUR, START
from tests.support.tokens.scripted_cluster import GATEWAY, ScriptedCluster
from tests.support.tokens.store_contract import new_token

HMAC = bytes(64)
RENEW, EXPIRE, CREATE = (
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    ApiKey.CREATE_DELEGATION_TOKEN,
)


@dataclass
class Worker:
    """One worker's changes, and what it knows. `now_ms` is its clock."""

    cluster: ScriptedCluster
    cache: TokenCache
    source: ClusterTokens
    changes: ClusterChanges
    told: list[tuple[str, bytes, int | None]] = field(default_factory=list)
    """What it has told other nodes."""
    now_ms: int = START
    hanging: list[asyncio.Event] = field(default_factory=list)
    """Set at the end: what brokers that hang wait for."""

    def answers(self, api: ApiKey, *answers: ErrorCode | Callable[[], ErrorCode]) -> list[Any]:
        """Script an API: an error for each request, the last one for all later ones. Gives the requests."""
        left = list(answers)

        def script(_header: object, _request: Any) -> dict[str, Any]:
            answer = left.pop(0) if len(left) > 1 else left[0]
            code = answer() if callable(answer) else answer
            return {"error_code": code, "expiry_timestamp": to_timestamp(START + HOUR), "throttle_time": NO_THROTTLE}

        self.cluster.server.scripts[api] = script
        return self.cluster.server.record(api)

    async def holds(self, **changes: object) -> DelegationToken:
        """A token of alice's that the cluster has and the worker knows."""
        token = new_token(owner=ALICE, renewers=(BOB,), expiry_timestamp_ms=START + DAY, max_timestamp_ms=START + DAY)
        held = DelegationToken(replace(token, **changes), HMAC)  # type: ignore[arg-type]
        self.cluster.described[token.token_id] = held
        await self.source.prove()
        return held

    async def change(self, held: DelegationToken, wanted: Renewal | Expiry) -> int:
        return await self.changes.change(held.token.token_id, held.hmac, wanted)


def created(header: Any, request: Any) -> dict[str, Any]:
    """Make the token that is asked for, as the gateway asked."""
    del header
    return {
        "error_code": ErrorCode.none,
        "principal_type": request.owner_principal_type,
        "principal_name": request.owner_principal_name,
        "token_requester_principal_type": GATEWAY.type,
        "token_requester_principal_name": GATEWAY.name,
        "issue_timestamp": to_timestamp(START),
        "expiry_timestamp": to_timestamp(START + HOUR),
        "max_timestamp": to_timestamp(START + DAY),
        "token_id": new_token().token_id,
        "hmac": HMAC,
        "throttle_time": NO_THROTTLE,
    }


class OwnLogin:
    """A client's own connection to the cluster."""

    def __init__(self, connection: Connection) -> None:
        self.server = connection.server
        self.version = connection.version
        self.asked: list[IntEnum] = []
        self.served = asyncio.Event()
        self.served.set()
        self._connection = connection

    async def request(self, api: IntEnum, **values: object) -> Any:
        self.asked.append(api)
        await self.served.wait()
        return await self._connection.request(api, **values)
