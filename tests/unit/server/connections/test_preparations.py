"""When logins prepare: not before their clients have had some time with the challenge, and with one timer for all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kafka_dt.server.connections.preparations import AFTER_S, Preparations


class Login:
    def __init__(self, prepare: Callable[[], None] = lambda: None) -> None:
        self.prepared = 0
        self._prepare = prepare

    def prepare(self) -> None:
        self.prepared += 1
        self._prepare()


class Timers:
    """The loop's timers, which go off when the test says so: a busy machine lets the real ones go off late."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.set: list[tuple[float, Callable[..., object], tuple[Any, ...]]] = []
        monkeypatch.setattr(
            asyncio.get_running_loop(),
            "call_later",
            lambda delay_s, callback, *given: self.set.append((delay_s, callback, given)),
        )

    async def go_off(self) -> None:
        """Let the timers that are set go off, and what they call be done."""
        due, self.set = self.set, []
        for _, callback, given in due:
            callback(*given)
        await asyncio.sleep(0)


@pytest.fixture
async def timers(monkeypatch: pytest.MonkeyPatch) -> Timers:
    return Timers(monkeypatch)


async def test_a_login_prepares_once_at_the_second_timer_after_it_began(timers: Timers) -> None:
    waiting, first, later = Preparations(), Login(), Login()
    waiting.begin(first)
    await timers.go_off()
    assert first.prepared == 0, "the first timer may have been set long before the login began"
    waiting.begin(later)
    await timers.go_off()
    assert (first.prepared, later.prepared) == (1, 0)
    await timers.go_off()
    await timers.go_off()
    assert (first.prepared, later.prepared) == (1, 1)
    assert not timers.set


async def test_a_timer_is_as_long_as_a_client_has_with_its_challenge(timers: Timers) -> None:
    Preparations().begin(Login())
    assert [delay_s for delay_s, _, _ in timers.set] == [AFTER_S]


async def test_a_login_whose_proof_is_here_prepares_nothing(timers: Timers) -> None:
    waiting, logins = Preparations(), [Login(), Login()]
    for login in logins:
        waiting.begin(login)
    waiting.forget(logins[0])
    await timers.go_off()  # the next time is the other one's
    waiting.forget(logins[1])
    while timers.set:
        await timers.go_off()
    assert [login.prepared for login in logins] == [0, 0]


async def test_any_number_of_logins_have_one_timer(timers: Timers) -> None:
    waiting = Preparations()
    for _ in range(1_000):
        waiting.begin(Login())
    assert len(timers.set) == 1


async def test_an_error_of_one_login_keeps_no_other_from_its_preparation(timers: Timers) -> None:
    def fail() -> None:
        raise ValueError("a defect")

    errors: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
    waiting, logins = Preparations(), [Login(), Login(fail), Login()]
    for login in logins:
        waiting.begin(login)
    while timers.set:
        await timers.go_off()
    assert [login.prepared for login in logins] == [1, 1, 1]
    assert len(errors) == 1
