"""The cluster's id: read, or made by whoever is first.

Source: kafka.zk.KafkaZkClient.createOrGetClusterId, kafka.utils.CoreUtils.generateUuidAsBase64.
"""

from __future__ import annotations

import base64
import contextlib
import uuid
from typing import TYPE_CHECKING

from kafka_dt.zookeeper.errors import NodeExists, NoNode
from kafka_dt.zookeeper.znodes.kafka import ClusterIdZnode

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_dt.zookeeper.connection.client import ZooKeeperClient

UUID_BYTES = 16


async def read_or_create_cluster_id(client: ZooKeeperClient, random_bytes: Callable[[int], bytes]) -> str:
    """Return the id of the cluster.

    Args:
        client: a started client.
        random_bytes: makes that many random bytes.

    Returns:
        The id; one that is made here is a random UUID as 22 characters of base64url.

    Raises:
        ZooKeeperError: it can be neither read nor made.
    """
    try:
        return ClusterIdZnode.decode((await client.get(ClusterIdZnode.PATH)).data)
    except NoNode:
        await client.ensure_path(ClusterIdZnode.PARENT)
    with contextlib.suppress(NodeExists):  # somebody else was quicker: theirs counts
        await client.create(ClusterIdZnode.PATH, ClusterIdZnode.encode(_new_id(random_bytes)))
    return ClusterIdZnode.decode((await client.get(ClusterIdZnode.PATH)).data)


def _new_id(random_bytes: Callable[[int], bytes]) -> str:
    identifier = uuid.UUID(bytes=random_bytes(UUID_BYTES), version=4)
    return base64.urlsafe_b64encode(identifier.bytes).decode("ascii").rstrip("=")
