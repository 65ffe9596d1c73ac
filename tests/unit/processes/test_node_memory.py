"""The memory that the workers of a node share."""

from __future__ import annotations

import mmap
import os
import stat

import pytest

from kafka_dt.processes.node_memory import node_memory


def test_each_name_has_a_file_of_its_size_that_is_on_no_disk() -> None:
    with node_memory(board=4096, turn=0) as memory:
        found = {name: os.fstat(descriptor) for name, descriptor in memory.items()}
        assert {name: each.st_size for name, each in found.items()} == {"board": 4096, "turn": 0}
        assert all(stat.S_ISREG(each.st_mode) and each.st_nlink == 0 for each in found.values())


def test_what_is_written_in_one_place_is_read_in_another() -> None:
    with (
        node_memory(board=4096) as memory,
        mmap.mmap(memory["board"], 0) as here,
        mmap.mmap(memory["board"], 0) as there,
    ):
        assert here[:] == bytes(4096)
        here[7] = 1
        assert there[7] == 1


def test_the_files_are_closed_at_the_end() -> None:
    with node_memory(board=4096) as memory:
        descriptor = memory["board"]
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
