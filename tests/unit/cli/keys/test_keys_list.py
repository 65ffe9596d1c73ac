"""What `kafka-dt keys list` makes of what it finds."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from kafka_dt.bulk import Census
from kafka_dt.cli.keys.files import HeldKeys
from kafka_dt.cli.keys.listing import Found
from kafka_dt.cli.tables import console
from kafka_dt.config import SecretKeys
from kafka_dt.stores import WorkerState
from kafka_dt.tokens import Keyring, SecretKey

NEXT, NOW, OLD = (SecretKey(text * 40) for text in "xno")
STRANGE = "0123456789abcdef"
GOOD = WorkerState("one", 11, 0, 1001, NOW.id, (NOW.id, NEXT.id, OLD.id), True, "0.1")
LATE = replace(GOOD, host="two", keys=(NOW.id, OLD.id))
KEYLESS = WorkerState("three", 33, 0, 1001, None, (), False, "0.1")
TOKENS = Census(
    live_by_key={NOW.id: 1234, OLD.id: 5, None: 2},
    sealed_by_key={NOW.id: 1200},
    plain=41,
    unreadable={"a": "not JSON", "b": "not JSON"},
    unknown_keys={STRANGE: 3},
)


def found(tokens: Census, *nodes: WorkerState) -> Found:
    held = HeldKeys.of(SecretKeys("n" * 40, ("x" * 40, "x" * 40, "n" * 40, "o" * 40)))
    return Found(held, Keyring(held.current, previous=held.previous), tokens, nodes)


def shown(what: Found) -> list[str]:
    output = io.StringIO()
    what.show(Console(file=output, width=140, highlight=False))
    return [line.rstrip() for line in output.getvalue().splitlines()]


def test_people_see_each_key_each_node_and_what_should_not_be_so() -> None:
    assert shown(found(TOKENS, GOOD, LATE, KEYLESS)) == [
        "KEY               ROLE      LIVE TOKENS  SEALED WITH IT",
        f"{NOW.id}  current         1,234           1,200",
        f"{NEXT.id}  next                0               0",
        f"{OLD.id}  previous            5               0",
        "NODE   BROKER ID  WORKER  PID  CURRENT KEY       OTHER KEYS                          SEALS  VERSION",
        f"one         1001       0   11  {NOW.id}  {NEXT.id}, {OLD.id}  yes    0.1",
        f"two         1001       0   11  {NOW.id}  {OLD.id}                    yes    0.1",
        "three       1001       0   33  -                 -                                   no     0.1",
        "Plain in ZooKeeper, not sealed: 41 tokens",
        "Without a key id, and so of any of the keys: 2 live tokens",
        f"The key {STRANGE} is not in these settings: 3 tokens cannot be used without it",
        "Not readable: 2 tokens, not JSON",
        "Other keys than these settings have: two (worker 0, pid 11)",
    ]


def test_nothing_is_cut_off_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    output = io.StringIO()
    found(TOKENS, replace(GOOD, host="h" * 200)).show(console(output))
    (line,) = (line for line in output.getvalue().splitlines() if line.startswith("h"))
    assert f"{NOW.id}  {NEXT.id}, {OLD.id}  yes" in line
    assert line.startswith("h" * 200 + " ")


def test_what_nodes_and_znodes_say_is_shown_as_it_is() -> None:
    output = io.StringIO()
    tokens = replace(TOKENS, unknown_keys={"[bold]:key:": 1}, unreadable={"a": "\x1b[31m not JSON"})
    found(tokens, replace(LATE, host="[red]:key:", version="\x1b[31m")).show(console(output))
    lines = output.getvalue()
    assert "[red]:key:  " in lines
    assert "The key [bold]:key: is not in" in lines
    assert "Not readable: 1 token, \\x1b[31m not JSON" in lines
    assert "Other keys than these settings have: [red]:key: (worker" in lines
    assert "\x1b" not in lines


def test_where_all_is_well_nothing_is_remarked() -> None:
    lines = shown(found(Census({NOW.id: 1}, {NOW.id: 1}, 0, {})))
    assert lines[4:] == ["No live nodes"]


def test_programs_get_the_same() -> None:
    fields = json.loads(json.dumps(found(TOKENS, GOOD, LATE, KEYLESS).fields()))
    assert fields["keys"][0] == {"keyId": NOW.id, "role": "current", "liveTokens": 1234, "sealedTokens": 1200}
    assert [key["role"] for key in fields["keys"]] == ["current", "next", "previous"]
    assert fields["liveTokensWithoutKeyId"] == 2
    assert fields["plainTokens"] == 41
    assert fields["unknownKeys"] == [{"keyId": STRANGE, "tokens": 3}]
    assert fields["unreadableTokens"] == [{"reason": "not JSON", "count": 2}]
    assert [node["lags"] for node in fields["nodes"]] == [False, True, False]
    assert fields["nodes"][1] == {
        "host": "two",
        "pid": 11,
        "worker": 0,
        "brokerId": 1001,
        "currentKey": NOW.id,
        "keys": [NOW.id, OLD.id],
        "seals": True,
        "version": "0.1",
        "lags": True,
    }
