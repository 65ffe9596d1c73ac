"""When logins prepare: not before their clients have had some time with the challenge, and with one timer for all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from kafka_dt.server.connections.preparations import AFTER_S, Preparations


class Login:
    def __init__(self, prepare: Callable[[], None] = lambda: None) -> None:
        self.at_s: list[float] = []
        self._prepare = prepare

    def prepare(self) -> None:
        self.at_s.append(asyncio.get_running_loop().time())
        self._prepare()


async def test_each_login_prepares_once_and_not_before_its_time() -> None:
    loop, waiting = asyncio.get_running_loop(), Preparations()
    begun = {}
    for _ in range(20):
        login = Login()
        begun[login] = loop.time()
        waiting.begin(login)
        await asyncio.sleep(AFTER_S / 4)
    await asyncio.sleep(3 * AFTER_S)
    assert all(len(login.at_s) == 1 for login in begun)
    assert all(login.at_s[0] - at_s >= AFTER_S * 0.99 for login, at_s in begun.items())


async def test_a_login_whose_proof_is_here_prepares_nothing() -> None:
    waiting, logins = Preparations(), [Login(), Login()]
    for login in logins:
        waiting.begin(login)
    waiting.forget(logins[0])
    await asyncio.sleep(1.2 * AFTER_S)  # the timer has run once, and the next time is the other one's
    waiting.forget(logins[1])
    await asyncio.sleep(3 * AFTER_S)
    assert [login.at_s for login in logins] == [[], []]


async def test_any_number_of_logins_have_one_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, timers = asyncio.get_running_loop(), []
    monkeypatch.setattr(loop, "call_later", lambda *given: timers.append(given))
    waiting = Preparations()
    for _ in range(1_000):
        waiting.begin(Login())
    assert len(timers) == 1


async def test_an_error_of_one_login_keeps_no_other_from_its_preparation() -> None:
    def fail() -> None:
        raise ValueError("a defect")

    errors: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
    waiting, logins = Preparations(), [Login(), Login(fail), Login()]
    for login in logins:
        waiting.begin(login)
    await asyncio.sleep(4 * AFTER_S)
    assert [len(login.at_s) for login in logins] == [1, 1, 1]
    assert len(errors) == 1
