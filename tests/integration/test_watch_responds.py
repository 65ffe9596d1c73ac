"""What `kafka-dt pipeline watch --respond revoke` does at a node: a token ends, and its connections with it."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kafka_dt.client import (
    ClientConfig,
    ConnectionFailed,
    DelegationToken,
    LoginFailed,
    TokenClient,
    TokenRequestNotAllowed,
    settings,
)
from kafka_dt.pipeline.watch.responding import Policy, Responder, revoke_over_kafka
from kafka_dt.pipeline.watch.rules import judge
from kafka_dt.pipeline.watch.state import State
from tests.support.brokers.broker import USERS
from tests.support.java.properties import plain
from tests.support.processes.waiting import POLL_S, on_this_machine
from tests.unit.pipeline.watch.days import company, thief

if TYPE_CHECKING:
    from tests.integration.conftest import Addresses

NOW = datetime(2026, 4, 1, 12, tzinfo=UTC)


def login(user: str, addresses: Addresses) -> dict[str, str]:
    return {**plain(user, USERS[user]), "bootstrap.servers": addresses.bootstrap}


def by_token(made: DelegationToken, addresses: Addresses) -> TokenClient:
    """A client that logs in with a token."""
    servers, mechanism = addresses.bootstrap, "SCRAM-SHA-256"
    return TokenClient.from_config(
        settings(made, "java", bootstrap_servers=servers, security_protocol="SASL_PLAINTEXT", mechanism=mechanism)
    )


async def until_it_is_thrown_out(client: TokenClient) -> None:
    """Another worker of the node hears of the revocation within a second."""
    async with asyncio.timeout(on_this_machine(1)):
        while True:
            try:
                with suppress(TokenRequestNotAllowed):
                    await client.describe()
            except (ConnectionFailed, LoginFailed):
                return
            await asyncio.sleep(POLL_S)


def test_the_token_of_a_thief_ends_and_its_open_connection_is_closed(addresses: Addresses, tmp_path: Path) -> None:
    journal = tmp_path / "responses.jsonl"
    revoke = revoke_over_kafka(ClientConfig.from_properties(login("alice", addresses)))
    responder = Responder(Policy(frozenset({"stolen_token"}), 5), revoke, journal, lambda: NOW)

    async def stolen() -> str:
        async with TokenClient.from_config(login("alice", addresses)) as alice:
            made = await alice.create()
        async with by_token(made, addresses) as the_thief:
            with pytest.raises(TokenRequestNotAllowed):  # it is logged in, and a token may not do this
                await the_thief.describe()
            habits = company(tokens={made.token_id: "10.20.0.0/16"})
            (found,) = judge([thief(made.token_id)], habits, State())
            await asyncio.to_thread(responder.respond, [replace(found, owner="User:alice")])
            await until_it_is_thrown_out(the_thief)
        return made.token_id

    token_id = asyncio.run(stolen())
    assert [json.loads(line)["outcome"] for line in journal.read_text().splitlines()] == ["revoking", "revoked"]
    assert revoke(token_id, "User:alice", pytest.fail) is False  # no request is sent
