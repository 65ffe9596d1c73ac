"""The handlers of the token APIs on a node in memory."""

from __future__ import annotations

import time
from collections.abc import Callable

from kafka_dt.identity.acls.authorizer import Authorizer
from kafka_dt.server.handlers import ServedApi
from kafka_dt.server.handlers.described import DescribedTokens
from kafka_dt.server.handlers.tokens import TokenHandlers
from tests.support.token_nodes import Node


def token_handlers(
    node: Node, authorizer: Authorizer, clock: Callable[[], float] = time.monotonic
) -> tuple[ServedApi, ...]:
    """Join the parts as a worker does."""
    described = DescribedTokens(node.cache.get)
    node.cache.on_change(described.token_changed)
    return TokenHandlers(node.manager, authorizer, described, clock).served()
