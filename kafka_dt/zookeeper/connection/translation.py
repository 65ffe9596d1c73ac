"""Turn kazoo's exceptions and results into this package's; no other module sees kazoo's.

Source: org.apache.zookeeper.KeeperException.Code, kafka.zk.ZkData.defaultAcls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kazoo import exceptions as kazoo_errors
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from kafka_dt.zookeeper.connection.operations import Check, Create, Delete, Operation, SetData, Stat, Znode
from kafka_dt.zookeeper.errors import (
    AccessDenied,
    MultiFailed,
    NodeExists,
    NoNode,
    VersionMismatch,
    ZooKeeperConnectionLost,
    ZooKeeperError,
    ZooKeeperRefusal,
)
from kafka_dt.zookeeper.znodes.kafka import is_sensitive

if TYPE_CHECKING:
    from collections.abc import Sequence

_TYPES: dict[type[BaseException], type[ZooKeeperError]] = {
    kazoo_errors.NoNodeError: NoNode,
    kazoo_errors.NodeExistsError: NodeExists,
    kazoo_errors.BadVersionError: VersionMismatch,
    kazoo_errors.NoAuthError: AccessDenied,
    kazoo_errors.InvalidACLError: AccessDenied,
    kazoo_errors.AuthFailedError: AccessDenied,
}
CONNECTION_ERRORS = (
    kazoo_errors.ConnectionLoss,
    kazoo_errors.SessionExpiredError,  # and its subclass ConnectionClosedError
    kazoo_errors.SessionMovedError,
)
"""After these the outcome of a request is unknown."""
# In a refused multi these stand for the operations that are not to blame.
_INNOCENT = (kazoo_errors.RolledBackError, kazoo_errors.RuntimeInconsistency)


def error_of(exception: BaseException, subject: str) -> ZooKeeperError:
    """Return our error for one of kazoo's, with the cause chained.

    Args:
        exception: what kazoo reported.
        subject: the path, for the text.
    """
    if isinstance(exception, ZooKeeperError):
        return exception
    name = type(exception).__name__
    error: ZooKeeperError
    if isinstance(exception, CONNECTION_ERRORS):
        error = ZooKeeperConnectionLost(f"the connection to ZooKeeper was lost ({name})", sent=True)
    else:
        error = _TYPES.get(type(exception), ZooKeeperRefusal)(f"{subject}: {name}")
    error.__cause__ = exception
    return error


def multi_error(operations: Sequence[Operation], results: Sequence[object]) -> MultiFailed | None:
    """Return why a multi was refused, None if it was carried out.

    Args:
        operations: what was asked for.
        results: what kazoo made of the answer: a result or an exception for each.
    """
    for index, (operation, result) in enumerate(zip(operations, results, strict=True)):
        if isinstance(result, Exception) and not isinstance(result, _INNOCENT):
            return MultiFailed(index, error_of(result, operation.path))
    return None


def multi_results(results: Sequence[Any]) -> list[str | Stat | None]:
    """Return the result of each operation of a multi: the path created, the new state, or None for others."""
    return [result if isinstance(result, str) else None if result is True else stat_of(result) for result in results]


def add_to(transaction: Any, operation: Operation, path: str, *, secure: bool) -> None:
    """Add an operation to a kazoo transaction.

    Args:
        transaction: kazoo's TransactionRequest.
        operation: what to add.
        path: the operation's path with the chroot.
        secure: whether new znodes get an ACL.
    """
    match operation:
        case Create():
            acl = acl_of(operation.path, secure=secure)
            transaction.create(
                path, operation.data, acl=acl, ephemeral=operation.ephemeral, sequence=operation.sequence
            )
        case SetData():
            transaction.set_data(path, operation.data, operation.version)
        case Delete():
            transaction.delete(path, operation.version)
        case Check():
            transaction.check(path, operation.version)


def stat_of(stat: Any) -> Stat:
    """Return our Stat for a kazoo ZnodeStat."""
    return Stat(
        created_zxid=stat.czxid,
        modified_zxid=stat.mzxid,
        created_ms=stat.ctime,
        modified_ms=stat.mtime,
        version=stat.version,
        child_version=stat.cversion,
        child_count=stat.numChildren,
        ephemeral_owner=stat.ephemeralOwner,
    )


def znode_of(result: tuple[bytes | None, Any]) -> Znode:
    """Return our Znode for the answer to a kazoo get; a znode without data has empty data."""
    data, stat = result
    return Znode(data or b"", stat_of(stat))


def acl_of(path: str, *, secure: bool) -> list[Any]:
    """Return the ACL that a broker gives a new znode.

    Args:
        path: relative to the chroot.
        secure: `zookeeper.set.acl`; False = everybody may do everything.
    """
    if not secure:
        return list(OPEN_ACL_UNSAFE)
    if is_sensitive(path):
        return list(CREATOR_ALL_ACL)
    return [*CREATOR_ALL_ACL, *READ_ACL_UNSAFE]
