"""What kafka-dt writes for itself."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_dt.stores import WorkerState
from kafka_dt.zookeeper.errors import InvalidZnode
from kafka_dt.zookeeper.znodes.kafka import is_sensitive
from kafka_dt.zookeeper.znodes.own import History, HistoryZnode, SaltSecretZnode, WorkerZnode

STATE = WorkerState("host-1", 4711, 1, 1001, "0011223344556677", ("0011223344556677", "8899aabbccddeeff"), True, "0.1")
KEYLESS = WorkerState("host-1", 4711, 1, 1001, None, (), False, "0.1")


@pytest.mark.parametrize("state", [STATE, KEYLESS])
def test_a_nodes_state_survives(state: WorkerState) -> None:
    assert WorkerZnode.decode(WorkerZnode.encode(state)) == state


def test_a_salt_secret_survives() -> None:
    secret = bytes(range(32))
    assert SaltSecretZnode.decode(SaltSecretZnode.encode(secret)) == secret


@pytest.mark.parametrize("history", [History(), History(doubted=True), History(accepted=("0a", "0b"))])
def test_what_is_said_about_the_history_survives(history: History) -> None:
    assert HistoryZnode.decode(HistoryZnode.encode(history)) == history


def test_a_history_without_a_list_of_acceptances_has_none() -> None:
    assert HistoryZnode.decode(b'{"version":1,"doubted":true}') == History(doubted=True)


def test_only_the_last_acceptance_can_be_a_new_one() -> None:
    assert not History().accepts_more_than(())
    assert History(accepted=("0a", "0b")).accepts_more_than({"0a"})
    assert not History(accepted=("0a",)).accepts_more_than({"0a", "0b"})


@pytest.mark.parametrize("path", [WorkerZnode.path("1"), SaltSecretZnode.PATH])
def test_all_of_it_is_for_our_eyes_only(path: str) -> None:
    assert is_sensitive(path)


@pytest.mark.parametrize("decode", [WorkerZnode.decode, HistoryZnode.decode, SaltSecretZnode.decode])
@given(data=st.binary() | st.dictionaries(st.text(), st.integers() | st.text()).map(lambda d: json.dumps(d).encode()))
def test_anything_else_is_refused(decode: object, data: bytes) -> None:
    assert callable(decode)
    with pytest.raises(InvalidZnode):
        decode(data)


@pytest.mark.parametrize("change", [{"version": 2}, {"secret": "AAAA"}, {"secret": "ä"}, {"secret": "A"}])
def test_a_secret_of_another_form_is_refused(change: dict[str, object]) -> None:
    document = json.loads(SaltSecretZnode.encode(bytes(32))) | change
    with pytest.raises(InvalidZnode):
        SaltSecretZnode.decode(json.dumps(document).encode())


@pytest.mark.parametrize("change", [{"version": 2}, {"doubted": 1}, {"accepted": "0a"}, {"accepted": [1]}])
def test_a_history_of_another_form_is_refused(change: dict[str, object]) -> None:
    document = json.loads(HistoryZnode.encode(History())) | change
    with pytest.raises(InvalidZnode):
        HistoryZnode.decode(json.dumps(document).encode())


@pytest.mark.parametrize("change", [{"version": 2}, {"host": 1}, {"keys": "a"}, {"currentKey": 5}, {"pid": "5"}])
def test_a_node_of_another_form_is_refused(change: dict[str, object]) -> None:
    document = json.loads(WorkerZnode.encode(STATE)) | change
    with pytest.raises(InvalidZnode):
        WorkerZnode.decode(json.dumps(document).encode())
