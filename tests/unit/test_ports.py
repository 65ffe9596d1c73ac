"""Ports that tests are given: no two tests get the same one, whatever process they run in."""

from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import suppress
from itertools import chain

from tests.support.docs.documents import ROOT
from tests.support.processes.ports import free_ports

ASK = """
from tests.support.processes.ports import free_ports
print(*(free_ports(3) for _ in range(20)), flush=True)
input()
"""


def given(firsts: list[int]) -> set[int]:
    return set(chain.from_iterable(range(first, first + 3) for first in firsts))


def test_no_port_is_given_twice_by_any_two_processes() -> None:
    ours = [free_ports(3) for _ in range(20)]
    assert len(given(ours)) == 60
    command = [sys.executable, "-c", ASK]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        theirs = [int(word) for word in other.stdout.readline().split()]
        other.communicate("\n")
    assert len(given(theirs)) == 60
    assert not given(ours) & given(theirs)


def test_a_port_that_is_taken_is_left_out() -> None:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        port = free_ports(1) + 1
        with suppress(OSError):  # then another process has taken it
            taken.bind(("127.0.0.1", port))
            taken.listen()
        first = free_ports(2)
        assert port not in {first, first + 1}
