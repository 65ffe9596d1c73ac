"""A scripted server with a user, and clients for it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt.client import DelegationToken
from kafka_dt_protocol.api.registry import ApiKey
from kafka_dt_protocol.wire.times import to_timestamp
from tests.support.protocol.scripted_server import ScriptedServer

TOKEN = DelegationToken(
    token_id="TYTAwbuPTwKVcmdwjVXRGw",
    owner="User:alice",
    requester="User:boss",
    renewers=("User:carol", "User:dave"),
    issue_timestamp_ms=1_000_001,
    expiry_timestamp_ms=2_000_002,
    max_timestamp_ms=3_000_003,
    hmac=bytes(range(64)),
)


def created(token: DelegationToken = TOKEN) -> dict[str, Any]:
    """The answer to a create."""
    owner, requester = token.owner.split(":"), token.requester.split(":")
    return {
        "error_code": ErrorCode.none,
        "principal_type": owner[0],
        "principal_name": owner[1],
        "token_requester_principal_type": requester[0],
        "token_requester_principal_name": requester[1],
        "issue_timestamp": to_timestamp(token.issue_timestamp_ms),
        "expiry_timestamp": to_timestamp(token.expiry_timestamp_ms),
        "max_timestamp": to_timestamp(token.max_timestamp_ms),
        "token_id": token.token_id,
        "hmac": token.hmac,
    }


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    scripted = ScriptedServer(users={"alice": "wonder"})
    scripted.scripts = {
        ApiKey.CREATE_DELEGATION_TOKEN: lambda _header, _request: created(),
        ApiKey.RENEW_DELEGATION_TOKEN: lambda _header, _request: expiry(7_000_000),
        ApiKey.EXPIRE_DELEGATION_TOKEN: lambda _header, _request: expiry(8_000_000),
        ApiKey.DESCRIBE_DELEGATION_TOKEN: lambda _header, _request: {"error_code": ErrorCode.none, "tokens": ()},
    }
    async with scripted.running():
        yield scripted


def expiry(timestamp_ms: int) -> dict[str, Any]:
    """The answer to a renew or expire."""
    return {"error_code": ErrorCode.none, "expiry_timestamp": to_timestamp(timestamp_ms)}


def properties(
    server: ScriptedServer, mechanism: str = "PLAIN", user: str = "alice", password: str = "wonder", token: bool = False
) -> Mapping[str, str]:
    """Client properties for a SASL_PLAINTEXT listener."""
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    extension = ' tokenauth="true"' if token else ""
    return {
        "bootstrap.servers": server.address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f"org.apache.kafka.common.security.{module} required"
        f' username="{user}" password="{password}"{extension};',
    }
