"""Turn kazoo's exceptions and results into this package's; no other module sees kazoo's.

kazoo does not offer ZooKeeper's `multiRead`: `read_many` reads 64 znodes for a fraction of what 64 requests cost, here
and in the server. They are not of one moment, and each has its own outcome. Servers have it from 3.6 on; an older one
refuses it as unimplemented and closes the connection.

kazoo has a `multi`, but it normalises each path and builds each part of the request by itself, which took a tenth of
the CPU time of a change. `write_many` writes the same bytes from our operations.

Source: org.apache.zookeeper.KeeperException.Code, kafka.zk.ZkData.defaultAcls; org.apache.zookeeper.ZooDefs.OpCode
(multi, multiRead), org.apache.zookeeper.MultiOperationRecord, org.apache.zookeeper.MultiResponse.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from struct import Struct
from typing import TYPE_CHECKING, Any, ClassVar, Final

from kazoo import exceptions as kazoo_errors
from kazoo.exceptions import EXCEPTIONS
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from kafka_dt.zookeeper.connection.operations import Check, Create, Delete, Operation, SetData, Stat, Znode
from kafka_dt.zookeeper.connection.settings import SASL_LOGIN
from kafka_dt.zookeeper.errors import (
    AccessDenied,
    DeniedByAcl,
    LoginRefused,
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

    from kafka_dt.zookeeper.connection.handler import Answer

_TYPES: dict[type[BaseException], type[ZooKeeperError]] = {
    kazoo_errors.NoNodeError: NoNode,
    kazoo_errors.NodeExistsError: NodeExists,
    kazoo_errors.BadVersionError: VersionMismatch,
    kazoo_errors.NoAuthError: DeniedByAcl,
    kazoo_errors.InvalidACLError: AccessDenied,
    kazoo_errors.AuthFailedError: AccessDenied,
}
CONNECTION_ERRORS = (
    kazoo_errors.ConnectionLoss,
    kazoo_errors.SessionExpiredError,  # and its subclass ConnectionClosedError
    kazoo_errors.SessionMovedError,
    RuntimeError,  # kazoo got the answer to a later request first: a server that loses its leader may leave one out
)
"""After these the outcome of a request is unknown."""
# In a refused multi these stand for the operations that are not to blame.
_INNOCENT = (kazoo_errors.RolledBackError, kazoo_errors.RuntimeInconsistency)
_CREATE: Final = 1
_DELETE: Final = 2
_GET_DATA: Final = 4
_SET_DATA: Final = 5
_CHECK: Final = 13
_EPHEMERAL: Final = 1
_SEQUENCE: Final = 2
_ERROR: Final = -1
_HEADER: Final = Struct("!i?i")
"""Type, whether it is the last one, error."""
_INT: Final = Struct("!i")
_END: Final = _HEADER.pack(-1, True, -1)
_STAT: Final = Struct("!qqqqiiiqiiq")
_OPEN: Final = tuple(OPEN_ACL_UNSAFE)
_CREATORS: Final = tuple(CREATOR_ALL_ACL)
_READABLE: Final = (*CREATOR_ALL_ACL, *READ_ACL_UNSAFE)


def error_of(exception: BaseException, subject: str) -> ZooKeeperError:
    """Return our error for one of kazoo's, with the cause chained; `subject` is the path, for the text."""
    if isinstance(exception, ZooKeeperError):
        return exception
    name = type(exception).__name__
    error: ZooKeeperError
    if isinstance(exception, CONNECTION_ERRORS):
        error = ZooKeeperConnectionLost(f"the connection to ZooKeeper was lost ({name})", sent=True)
    elif isinstance(exception, kazoo_errors.SessionClosedRequireSaslError):
        error = LoginRefused(SASL_LOGIN, "it is not set, and ZooKeeper serves only clients that log in by SASL")
    else:
        error = _TYPES.get(type(exception), ZooKeeperRefusal)(f"{subject}: {name}")
    error.__cause__ = exception
    return error


def multi_error(operations: Sequence[Operation], results: Sequence[object]) -> MultiFailed | None:
    """Return why a multi was refused, None if it was carried out; there is a result or kazoo's error for each."""
    for index, (operation, result) in enumerate(zip(operations, results, strict=True)):
        if isinstance(result, Exception) and not isinstance(result, _INNOCENT):
            return MultiFailed(index, error_of(result, operation.path))
    return None


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
    """Return the ACL that a broker gives a new znode; `secure` is `zookeeper.set.acl`."""
    return list(_acl_of(path, secure=secure))


def _acl_of(path: str, *, secure: bool) -> tuple[Any, ...]:
    if not secure:
        return _OPEN
    return _CREATORS if is_sensitive(path) else _READABLE


@dataclass(frozen=True, slots=True)
class ReadMany:
    """The request, as kazoo's connection takes it."""

    paths: Sequence[str]
    """With the chroot."""

    type: ClassVar[int] = 22

    def serialize(self) -> bytes:
        """Write it."""
        parts: list[bytes] = []
        for path in self.paths:
            parts += (_header(_GET_DATA), _buffer(path.encode()), b"\0")  # without a watch
        parts.append(_END)
        return b"".join(parts)

    @classmethod
    def deserialize(cls, buffer: bytes, offset: int) -> list[Znode | BaseException]:
        """Read the answer: for each path its znode, or kazoo's error."""
        found: list[Znode | BaseException] = []
        while True:
            kind, done, _ = _HEADER.unpack_from(buffer, offset)
            offset += _HEADER.size
            if done:
                return found
            (number,) = _INT.unpack_from(buffer, offset)
            offset += _INT.size
            if kind == _ERROR:
                found.append(EXCEPTIONS[number]())
                continue
            length = max(number, 0)  # -1: no data
            data = bytes(buffer[offset : offset + length])
            offset += length
            found.append(Znode(data, _stat_from(_STAT.unpack_from(buffer, offset))))
            offset += _STAT.size


def read_many(kazoo: Any, paths: Sequence[str]) -> Answer:
    """Hand the request to a KazooClient; the paths are with the chroot."""
    answer: Answer = kazoo.handler.async_result()
    kazoo._call(ReadMany(paths), answer)  # noqa: SLF001 - the way of all of kazoo's own requests
    return answer


def znodes_of(paths: Sequence[str], found: Sequence[Znode | BaseException]) -> list[Znode | ZooKeeperError]:
    """Return the answer with our errors in place of kazoo's."""
    return [
        error_of(each, path) if isinstance(each, BaseException) else each
        for path, each in zip(paths, found, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class WriteMany:
    """The request of a multi, as kazoo's connection takes it."""

    operations: Sequence[Operation] = field(repr=False)
    paths: Sequence[str]
    """Those of the operations, with the chroot."""
    secure: bool
    """As `acl_of` has it."""

    type: ClassVar[int] = 14

    def serialize(self) -> bytes:
        """Write it."""
        parts: list[bytes] = []
        for operation, path in zip(self.operations, self.paths, strict=True):
            match operation:
                case Create(path=relative, data=data):
                    flags = _EPHEMERAL * operation.ephemeral | _SEQUENCE * operation.sequence
                    acl = _written_acl(_acl_of(relative, secure=self.secure))
                    parts += (_header(_CREATE), _buffer(path.encode()), _buffer(data), acl, _INT.pack(flags))
                case SetData(data=data, version=version):
                    parts += (_header(_SET_DATA), _buffer(path.encode()), _buffer(data), _INT.pack(version))
                case Delete(version=version):
                    parts += (_header(_DELETE), _buffer(path.encode()), _INT.pack(version))
                case Check(version=version):
                    parts += (_header(_CHECK), _buffer(path.encode()), _INT.pack(version))
        parts.append(_END)
        return b"".join(parts)

    @classmethod
    def deserialize(cls, buffer: bytes, offset: int) -> list[str | Stat | BaseException | None]:
        """Read the answer: for each operation the path it created, the new Stat of what it set, None, or an error."""
        results: list[str | Stat | BaseException | None] = []
        while True:
            kind, done, _ = _HEADER.unpack_from(buffer, offset)
            offset += _HEADER.size
            if done:
                return results
            if kind == _SET_DATA:
                results.append(_stat_from(_STAT.unpack_from(buffer, offset)))
                offset += _STAT.size
            elif kind in {_CREATE, _ERROR}:
                (number,) = _INT.unpack_from(buffer, offset)
                offset += _INT.size
                if kind == _ERROR:
                    results.append(EXCEPTIONS[number]())
                    continue
                results.append(bytes(buffer[offset : offset + number]).decode())
                offset += number
            else:
                results.append(None)


def write_many(kazoo: Any, operations: Sequence[Operation], paths: Sequence[str], *, secure: bool) -> Answer:
    """Hand a multi to a KazooClient; the paths are those of the operations, with the chroot."""
    answer: Answer = kazoo.handler.async_result()
    kazoo._call(WriteMany(operations, paths, secure), answer)  # noqa: SLF001 - the way of all of kazoo's own requests
    return answer


def _header(kind: int) -> bytes:
    return _HEADER.pack(kind, False, -1)


def _buffer(data: bytes) -> bytes:
    return _INT.pack(len(data)) + data


@cache
def _written_acl(acl: tuple[Any, ...]) -> bytes:
    """Write the ACL of a new znode, of which there are three."""
    parts = [_INT.pack(len(acl))]
    for each in acl:
        id_bytes = _buffer(each.id.id.encode()) if each.id.id else _INT.pack(-1)  # as kazoo writes no text
        parts += (_INT.pack(each.perms), _buffer(each.id.scheme.encode()), id_bytes)
    return b"".join(parts)


def _stat_from(values: tuple[int, ...]) -> Stat:
    czxid, mzxid, ctime, mtime, version, cversion, _aversion, owner, _length, children, _pzxid = values
    return Stat(czxid, mzxid, ctime, mtime, version, cversion, children, owner)
