"""Whether Kafka's ACLs say anything about delegation tokens. What they say is not read in this version.

Source: kafka.zk.ZkData (`/kafka-acl/<resource type>`, `/kafka-acl-extended/prefixed/<resource type>`).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from kafka_dt.zookeeper.errors import NoNode

if TYPE_CHECKING:
    from kafka_dt.zookeeper.client import ZooKeeperClient

RESOURCE_TYPES: Final = ("User", "DelegationToken")
"""The resources whose ACLs decide about tokens of others (KIP-48, KIP-373)."""
STORES: Final = ("/kafka-acl", "/kafka-acl-extended/prefixed")


async def acls_present(client: ZooKeeperClient) -> bool:
    """Say whether there is any ACL about tokens.

    Raises:
        ZooKeeperError: ZooKeeper cannot be asked.
    """
    paths = [f"{store}/{kind}" for store in STORES for kind in RESOURCE_TYPES]
    return any(await asyncio.gather(*(_has_children(client, path) for path in paths)))


async def _has_children(client: ZooKeeperClient, path: str) -> bool:
    try:
        return bool(await client.children(path))
    except NoNode:
        return False
