from __future__ import annotations

import base64
import os
import subprocess
import sys

from benchmarks.credentials import derive
from benchmarks.processes import ProcessTree
from benchmarks.tokens import EVERYBODY_ELSE, OWNERS, owners_of, password_of, token_ids
from kafka_dt_protocol.sasl import ScramMechanism
from kafka_dt_protocol.sasl.scram import derive_keys


def test_ids_are_those_of_kafka_and_always_the_same() -> None:
    ids = token_ids(3)
    assert ids == token_ids(3)
    assert len(set(ids)) == 3
    assert all(len(base64.urlsafe_b64decode(f"{token_id}==")) == 16 for token_id in ids)


def test_owners_have_as_many_tokens_as_they_are_said_to() -> None:
    owners = owners_of(100_000)
    assert len(owners) == 100_000
    assert {owner: owners.count(owner) for owner in OWNERS} == OWNERS


def test_few_tokens_are_mostly_of_everybody_else() -> None:
    assert owners_of(1_000).count(EVERYBODY_ELSE) >= 500


def test_keys_of_a_client_are_those_of_scram() -> None:
    token_id, salt = token_ids(1)[0], b"some salt"
    line = derive("sha256", token_id, base64.b64encode(salt).decode(), "4096")
    keys = derive_keys(ScramMechanism.SHA_256, password_of(token_id), salt, 4096)
    fields = line.rstrip("\n").split("\t")
    assert fields[0] == token_id
    assert [base64.b64decode(field) for field in fields[3:]] == [keys.client_key, keys.server_key]


def test_a_process_tree_has_its_children() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert {os.getpid(), child.pid} <= set(ProcessTree(os.getpid()).pids())
        child.communicate(b"\n")


def test_a_process_that_works_uses_cpu_time_and_memory() -> None:
    tree = ProcessTree(os.getpid())
    before = tree.cpu_seconds()
    while tree.cpu_seconds() == before:
        sum(range(10_000))
    memory = tree.memory()
    assert 0 < memory.pss_mib <= memory.rss_mib
