"""The secret that SCRAM salts are made with: read, or made by the node that is first.

It is of the cluster and no secret key, so that salts stay as they are when keys change. Whoever can read it here can
read the credentials of users as well.

Source: DESIGN.md, "No oracle".
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from kafka_dt.zookeeper.errors import NodeExists, NoNode
from kafka_dt.zookeeper.znodes.own import PARENT, SaltSecretZnode

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_dt.zookeeper.connection.client import ZooKeeperClient


async def read_or_create_salt_secret(client: ZooKeeperClient, random_bytes: Callable[[int], bytes]) -> bytes:
    """Return the secret.

    Args:
        client: a started client.
        random_bytes: makes that many random bytes.

    Raises:
        ZooKeeperError: it can be neither read nor made.
    """
    try:
        return SaltSecretZnode.decode((await client.get(SaltSecretZnode.PATH)).data)
    except NoNode:
        await client.ensure_path(PARENT)
    with suppress(NodeExists):  # somebody else was quicker: theirs counts
        await client.create(SaltSecretZnode.PATH, SaltSecretZnode.encode(random_bytes(SaltSecretZnode.SECRET_BYTES)))
    return SaltSecretZnode.decode((await client.get(SaltSecretZnode.PATH)).data)
