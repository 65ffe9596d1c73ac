"""ZooKeeper's multiRead and multi: the bytes of requests and answers, by its Java sources, and by kazoo."""

from __future__ import annotations

import struct

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from kazoo.protocol.serialization import Transaction

from kafka_dt.zookeeper.connection.operations import Check, Create, Delete, Operation, SetData, Stat, Znode
from kafka_dt.zookeeper.connection.translation import ReadMany, WriteMany, acl_of, multi_error, znodes_of
from kafka_dt.zookeeper.errors import NoNode

GET_DATA, ERROR = struct.pack("!i?i", 4, False, 0), struct.pack("!i?i", -1, False, -101)
END = struct.pack("!i?i", -1, True, -1)
STAT = struct.pack("!qqqqiiiqiiq", 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21)
READ = Stat(
    created_zxid=11,
    modified_zxid=12,
    created_ms=13,
    modified_ms=14,
    version=15,
    child_version=16,
    child_count=20,
    ephemeral_owner=18,
)


def test_a_request_holds_each_path_and_an_end() -> None:
    request_header = struct.pack("!i?i", 4, False, -1)
    assert ReadMany(["/a", "/\u00e9"]).serialize() == (
        request_header + b"\0\0\0\2/a\0" + request_header + b"\0\0\0\3/\xc3\xa9\0" + END
    )


def test_an_answer_has_a_znode_or_an_error_for_each() -> None:
    answer = GET_DATA + b"\0\0\0\3abc" + STAT + ERROR + b"\xff\xff\xff\x9b" + GET_DATA + b"\xff\xff\xff\xff" + STAT
    found = ReadMany.deserialize(b"before" + answer + END, 6)
    assert isinstance(found[1], NoNodeError)
    first, missing, empty = znodes_of(["/a", "/b", "/c"], found)
    assert first == Znode(b"abc", READ)
    assert isinstance(missing, NoNode)
    assert "/b" in str(missing)
    assert empty == Znode(b"", READ)


def test_an_answer_that_is_cut_off_is_refused() -> None:
    answer = GET_DATA + b"\0\0\0\3abc" + STAT
    with pytest.raises(struct.error):
        ReadMany.deserialize(answer, 0)


OPERATIONS: tuple[Operation, ...] = (
    Create("/tokens/one", b"data"),
    Create("/changes/change_", b"", sequence=True),
    Create("/brokers/ids/1", b"\0", ephemeral=True),
    Create("/delegation_token/tokens/one", b"secret"),
    SetData("/tokens/\u00e9", b"new", 3),
    Delete("/tokens/one", 7),
    Check("/tokens/one"),
)


@pytest.mark.parametrize("secure", [False, True])
def test_a_multi_has_the_bytes_that_kazoo_writes(*, secure: bool) -> None:
    kazoo = KazooClient()
    transaction = kazoo.transaction()
    for each in OPERATIONS:
        match each:
            case Create():
                acl = acl_of(each.path, secure=secure)
                transaction.create(f"/chroot{each.path}", each.data, acl, each.ephemeral, each.sequence)
            case SetData():
                transaction.set_data(f"/chroot{each.path}", each.data, each.version)
            case Delete():
                transaction.delete(f"/chroot{each.path}", each.version)
            case Check():
                transaction.check(f"/chroot{each.path}", each.version)
    paths = [f"/chroot{each.path}" for each in OPERATIONS]
    assert WriteMany(OPERATIONS, paths, secure).serialize() == bytes(Transaction(transaction.operations).serialize())


def test_the_answer_to_a_multi_has_a_result_for_each_operation() -> None:
    created = struct.pack("!i?i", 1, False, 0) + b"\0\0\0\3/\xc3\xa9"
    deleted, stored = struct.pack("!i?i", 2, False, 0), struct.pack("!i?i", 5, False, 0) + STAT
    checked = struct.pack("!i?i", 13, False, 0)
    found = WriteMany.deserialize(b"before" + created + deleted + stored + checked + END, 6)
    assert found == ["/\u00e9", None, READ, None]


def test_a_refused_multi_names_the_operation_that_is_to_blame() -> None:
    innocent, missing = ERROR + struct.pack("!i", 0), ERROR + struct.pack("!i", -101)
    found = WriteMany.deserialize(innocent + missing + END, 0)
    refused = multi_error([Check("/a"), Check("/b")], found)
    assert refused is not None
    assert refused.index == 1
    assert isinstance(refused.cause, NoNode)


def test_what_a_multi_writes_is_in_no_repr() -> None:
    assert "secret" not in repr(WriteMany(OPERATIONS, [each.path for each in OPERATIONS], secure=False))
