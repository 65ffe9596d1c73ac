"""Logins that must all succeed while nodes restart, by clients that know both nodes."""

from __future__ import annotations

import asyncio
import random

from kafka_dt.client import (
    ClientConfig,
    Credentials,
    DelegationToken,
    SecurityProtocol,
    TokenClient,
    TokenClientError,
    parse_addresses,
)
from tests.interop.kraft.fault_load import Nodes
from tests.support.nodes.node import SHA_256, SHA_512


class Logins:
    """Logins that must all succeed, by clients that know both nodes.

    Args:
        nodes: where they log in.
    """

    def __init__(self, nodes: Nodes) -> None:
        self.count = 0
        self.failures: list[str] = []
        self.tokens: list[DelegationToken] = []
        self._nodes = nodes

    async def create(self) -> None:
        """Create tokens, each of which logs in at once, for ever; a create that is refused is tried again."""
        while True:
            try:
                async with self._nodes[len(self.tokens) % 2].client("alice") as client:
                    token = await client.create()
            except TokenClientError:
                await asyncio.sleep(0.1)
                continue
            self.tokens.append(token)
            await self._log_in(token)
            await asyncio.sleep(0.2)

    async def log_in(self) -> None:
        """Log in by one of the tokens after the other, for ever."""
        while True:
            await asyncio.sleep(0.02)
            if self.tokens:
                await self._log_in(random.choice(self.tokens))  # noqa: S311

    async def _log_in(self, token: DelegationToken) -> None:
        addresses = random.sample([node.sasl for node in self._nodes], 2)
        try:
            async with by_token(",".join(addresses), token):
                self.count += 1
        except TokenClientError as error:
            self.failures.append(str(error))


async def logs_in(address: str, token: DelegationToken) -> None:
    async with by_token(address, token):
        pass


def by_token(addresses: str, token: DelegationToken) -> TokenClient:
    """A client that logs in with a token and `tokenauth=true`."""
    mechanism = random.choice((SHA_256, SHA_512))  # noqa: S311
    return TokenClient(
        ClientConfig(
            bootstrap_servers=parse_addresses(addresses),
            security_protocol=SecurityProtocol.SASL_PLAINTEXT,
            credentials=Credentials(mechanism, token.token_id, token.hmac_base64, token_auth=True),
        )
    )
