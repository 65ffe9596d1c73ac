"""A line of JSON is one object with the fields of ECS, whatever a client has put into it."""

from __future__ import annotations

import json
import logging
import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_dt.log import event, of_peer
from kafka_dt.log.cutting import CUT, LONGEST_VALUE, LONGEST_WORDS, TRACEBACK_LINES
from kafka_dt.log.ecs import EcsFormatter

LONG = "x" * 300_000


def line(
    message: str, *arguments: object, guarded: bool = True, error: BaseException | None = None, **more: Any
) -> str:
    info = (type(error), error, error.__traceback__) if error else None
    record = logging.LogRecord("kafka_dt.server", logging.WARNING, "path", 1, message, arguments, info)
    record.created = 1_795_000_000.25
    record.__dict__.update(more)
    return EcsFormatter("worker 0", guarded=guarded).format(record)


def fields(message: str, *arguments: object, **more: Any) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(line(message, *arguments, **more))
    return parsed


def test_the_fields_that_every_program_asks_for_come_first() -> None:
    found = fields("Denied: %s", "bob")
    assert list(found)[:4] == ["@timestamp", "log.level", "message", "ecs.version"]
    assert found["@timestamp"] == "2026-11-18T11:06:40.250Z"
    assert (found["log.level"], found["message"], found["log.logger"]) == ("warning", "Denied: bob", "kafka_dt.server")
    assert (found["service.name"], found["process.pid"], found["process.name"]) == ("kafka-dt", os.getpid(), "worker 0")


def test_an_event_has_fields_of_its_own_and_none_that_are_not_known() -> None:
    about = event("login", failed=True, host="192.0.2.7", user="bob", reason="wrong password", mechanism="PLAIN")
    found = fields("Closing", **about)
    assert {
        name: value for name, value in found.items() if name.startswith(("event", "client", "user", "kafka_dt"))
    } == {
        "event.action": "login",
        "event.outcome": "failure",
        "event.reason": "wrong password",
        "client.ip": "192.0.2.7",
        "user.name": "bob",
        "kafka_dt.mechanism": "PLAIN",
    }


def test_an_event_that_can_only_happen_has_no_outcome() -> None:
    assert "event.outcome" not in fields("Stopped", **event("stopped"))
    assert fields("Login", **event("login", failed=False))["event.outcome"] == "success"


def test_a_client_without_an_address_has_none_in_the_line() -> None:
    assert "client.ip" not in fields("Closing", **of_peer(""))


@given(st.text())
def test_whatever_a_client_calls_itself_the_line_is_one_and_its_field_is_exact(name: str) -> None:
    written = line("Denied: %r", name, guarded=False, **event("authorize", host="192.0.2.7", user=name))
    assert written.isascii()
    assert written.isprintable()
    assert json.loads(written).get("user.name", "") == name


def test_the_message_has_no_control_characters_for_programs_that_show_it() -> None:
    assert fields("of %s", "bob\n\x1b[2J\u202e")["message"] == "of bob\\n\\x1b[2J\\u202e"


def test_what_may_be_foreign_is_cut() -> None:
    found = fields("%s", LONG, **event("login", user=LONG))
    assert found["message"] == "x" * (LONGEST_VALUE - 1) + CUT
    assert found["user.name"] == "x" * (LONGEST_WORDS - 1) + CUT


def test_a_process_that_serves_no_clients_cuts_nothing() -> None:
    found = fields("%s", LONG, guarded=False, error=ValueError(LONG), **event("x", user=LONG))
    assert {len(found[name]) for name in ("message", "user.name", "error.message")} == {len(LONG)}


@pytest.mark.parametrize("error", [ValueError("why"), ValueError("\n".join(map(str, range(1000))) + LONG)])
def test_an_error_has_its_type_its_message_and_its_traceback(error: Exception) -> None:
    found = fields("it failed", error=error)
    assert found["error.type"] == "ValueError"
    assert str(error).startswith(found["error.message"].removesuffix(CUT))
    assert len(found["error.message"]) <= LONGEST_WORDS
    assert found["error.stack_trace"].count("\n") <= TRACEBACK_LINES + 1
    assert "ValueError: why" in found["error.stack_trace"] or found["error.stack_trace"].startswith(CUT)


def test_a_line_that_stands_for_others_says_for_how_many() -> None:
    found = fields("Denied", held_back=1200)
    assert found["kafka_dt.held_back"] == 1200
    assert found["message"] == "Denied ... and 1,200 more in 60 s"
