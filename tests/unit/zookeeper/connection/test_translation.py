"""ZooKeeper's multiRead: the bytes of a request and of an answer, written by hand from its Java sources."""

from __future__ import annotations

import struct

import pytest
from kazoo.exceptions import NoNodeError

from kafka_dt.zookeeper.connection.operations import Stat, Znode
from kafka_dt.zookeeper.connection.translation import ReadMany, znodes_of
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
