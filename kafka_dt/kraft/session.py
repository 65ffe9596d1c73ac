"""Sessions of a gateway with the cluster behind it, in which it asks about tokens, and its own principal there.

    asking = session(upstream.config.with_patience(PATIENCE_MS), upstream.servers, patience_s=PATIENCE_MS / 1000)
    connection = await asking.ready()
    gateway_principal(upstream.config)      # User:gateway

Source: docs/decisions/0025-the-clusters-own-tokens.md.
"""

from __future__ import annotations

import random
import secrets
import time
from typing import TYPE_CHECKING, Final

from kafka_dt.client.session import ClientSession
from kafka_dt.tokens import ANONYMOUS, Principal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kafka_dt.client import Address, ClientConfig

PATIENCE_MS: Final = 5_000
"""How long a broker may take to answer a request for reading."""


def session(
    config: ClientConfig,
    servers: Callable[[], Sequence[Address]] | None = None,
    *,
    patience_s: float | None = None,
) -> ClientSession:
    """Make what connects to one of the bootstrap servers, in random order: workers share them.

    Args:
        config: the login.
        servers: gives the bootstrap servers; None takes those of the config.
        patience_s: how long a server may take until the login is done, before the next one is tried.
    """

    def mixed() -> Sequence[Address]:
        present = servers() if servers is not None else config.bootstrap_servers
        return random.sample(present, len(present))

    return ClientSession(
        config,
        servers=mixed,
        monotonic=time.monotonic,
        random_bytes=secrets.token_bytes,
        jitter=random.random,
        patience_s=patience_s,
    )


def gateway_principal(config: ClientConfig) -> Principal:
    """Return the gateway's own principal in the cluster."""
    return Principal.user(config.login.username) if config.login else ANONYMOUS
