"""Changes go in one request or each by itself, at a rate, and news of them no faster than brokers hear."""

from __future__ import annotations

import time
from typing import cast

import pytest

from kafka_dt.bulk.writes import (
    DELETIONS_A_SECOND,
    WHOLE,
    WITHOUT_BROKERS,
    WRITES_A_SECOND,
    News,
    Portion,
    Writes,
    WriteTurns,
    ZnodeChange,
    handed_over_changes,
    news_of_changes,
)
from kafka_dt.zookeeper.connection.client import ZooKeeperClient
from kafka_dt.zookeeper.connection.operations import Delete, Operation, SetData
from kafka_dt.zookeeper.errors import MultiFailed, NoNode, RequestTooLarge, VersionMismatch, ZooKeeperRefusal
from kafka_dt.zookeeper.stores.change_purger import ChangePurger
from kafka_dt.zookeeper.znodes.kafka import TokenChangeZnode, TokenZnode
from tests.support.zookeeper.znodes_in_memory import ZnodesInMemory

NAMES = ["a", "b", "c"]


class Purger:
    def __init__(self) -> None:
        self.paths: list[str] = []

    def add(self, path: str) -> None:
        self.paths.append(path)


def written(names: list[str] = NAMES, data: bytes = b"new", version: int = 0) -> list[ZnodeChange]:
    return [ZnodeChange(name, SetData(TokenZnode.path(name), data, version)) for name in names]


def writes(client: ZnodesInMemory, news: News | None = None) -> Writes:
    return Writes(cast("ZooKeeperClient", client), news)


def news_for(purger: Purger, *, beside_brokers: bool = False, runs: int = 1) -> News:
    return News(cast("ChangePurger", purger), beside_brokers=beside_brokers, runs=runs)


def znodes() -> ZnodesInMemory:
    return ZnodesInMemory(dict.fromkeys(NAMES, b"old"))


async def test_all_go_in_one_request() -> None:
    client = znodes()
    assert await writes(client).carry_out(written()) == [None] * 3
    assert client.multis == [3]


async def test_one_conflict_is_of_that_one_alone() -> None:
    client, purger = znodes(), Purger()
    client.change("b", b"renewed")
    results = await writes(client, news_for(purger)).carry_out(written())
    assert [type(each) for each in results] == [type(None), VersionMismatch, type(None)]
    assert [client.data(name) for name in NAMES] == [b"new", b"renewed", b"new"]
    assert client.announced == ["a", "c"]
    assert len(purger.paths) == 2


async def test_what_is_too_large_together_goes_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    client = znodes()
    carry_out = client._carry_out

    def limited(operations: list[Operation]) -> object:
        if len(operations) > 1 or "b" in operations[0].path[-1]:
            raise RequestTooLarge(2, 1)
        return carry_out(operations)

    monkeypatch.setattr(client, "_carry_out", limited)
    results = await writes(client).carry_out(written())
    assert [type(each) for each in results] == [type(None), RequestTooLarge, type(None)]


async def test_a_missing_parent_of_the_news_is_not_taken_for_a_token_that_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = znodes()

    def no_parent(_: object) -> object:
        raise MultiFailed(1, NoNode(TokenChangeZnode.PARENT))

    monkeypatch.setattr(client, "_carry_out", no_parent)
    results = await writes(client, news_for(Purger())).carry_out(written())
    assert [type(each) for each in results] == [ZooKeeperRefusal] * 3


async def test_brokers_are_given_time() -> None:
    writing = writes(znodes(), news_for(Purger(), beside_brokers=True))
    deletions = [ZnodeChange(name, Delete(TokenZnode.path(name), 1)) for name in NAMES]
    begun = time.monotonic()
    await writing.carry_out(written())
    await writing.carry_out(deletions)
    await writing.carry_out([])
    assert time.monotonic() - begun >= 3 / WRITES_A_SECOND + 3 / DELETIONS_A_SECOND


async def test_several_runs_leave_brokers_time_for_all_of_them() -> None:
    writing = writes(znodes(), news_for(Purger(), beside_brokers=True, runs=3))
    begun = time.monotonic()
    await writing.carry_out(written())
    assert time.monotonic() - begun >= 3 * 3 / WRITES_A_SECOND - 0.001


@pytest.mark.parametrize("announced", [True, False])
async def test_a_rate_is_kept_from_the_first_change_on(announced: bool) -> None:
    news = news_for(Purger()) if announced else None
    writing = Writes(cast("ZooKeeperClient", znodes()), news, changes_a_second=50)
    begun = time.monotonic()
    await writing.carry_out(written())
    assert time.monotonic() - begun >= 3 / 50 - 0.001
    await writing.carry_out(written(version=1))
    assert time.monotonic() - begun >= 6 / 50 - 0.001


async def test_without_brokers_nobody_is_waited_for() -> None:
    news = news_for(Purger())
    await writes(znodes(), news).carry_out(written())
    assert news._turns.next_s == 0


@pytest.mark.parametrize("brokers", [[], ["1"]])
async def test_whether_brokers_live_is_looked_up(monkeypatch: pytest.MonkeyPatch, brokers: list[str]) -> None:
    client = znodes()

    async def children(path: str) -> list[str]:
        assert path == "/brokers/ids"
        return brokers

    monkeypatch.setattr(client, "children", children)
    async with news_of_changes(cast("ZooKeeperClient", client), lambda: 0) as news:
        assert news._beside_brokers is bool(brokers)


def without_brokers(monkeypatch: pytest.MonkeyPatch, *names: str) -> ZnodesInMemory:
    client = znodes() if not names else ZnodesInMemory(dict.fromkeys(names, b"old"))

    async def children(_: str) -> list[str]:
        return []

    monkeypatch.setattr(client, "children", children)
    return client


async def test_what_a_run_leaves_is_handed_over_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    client, handed = without_brokers(monkeypatch), list[str]()
    portion = Portion(runs=2, hand_over=handed.extend)
    async with news_of_changes(cast("ZooKeeperClient", client), lambda: 0, portion) as news:
        await writes(client, news).carry_out(written())
        assert handed == []
    assert handed == [f"{TokenChangeZnode.PREFIX}{number:010d}" for number in (1, 2, 3)]


async def test_runs_share_how_many_change_znodes_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    client = cast("ZooKeeperClient", without_brokers(monkeypatch))
    kept = []
    for portion in (Portion(), Portion(runs=4), Portion(runs=4, hand_over=list[str]().extend)):
        async with news_of_changes(client, lambda: 0, portion) as news:
            kept.append(news._purger._limits.max_own)
    async with handed_over_changes(client, lambda: 0) as purger:
        kept.append(purger._limits.max_own)
    most = WITHOUT_BROKERS.max_own
    assert kept == [most, most // 4, most // 8, most // 2]


async def test_every_turn_comes_after_what_it_costs() -> None:
    turns, begun_s = WriteTurns(), time.monotonic()
    for number in range(1, 4):
        await turns.take(0.05)
        assert time.monotonic() - begun_s >= 0.05 * number - 0.001


async def test_time_in_which_nobody_asked_is_not_made_up_for() -> None:
    turns = WriteTurns()
    turns.next_s = time.monotonic() - 100
    begun_s = time.monotonic()
    await turns.take(0.05)
    assert time.monotonic() - begun_s >= 0.049


@pytest.mark.parametrize(
    ("portion", "rate", "batch"),
    [
        (WHOLE, None, 64),
        (Portion(runs=4), None, 64),
        (Portion(changes_a_second=1_000), 1_000, 64),
        (Portion(runs=4, changes_a_second=100), 25, 25),
        (Portion(runs=40, changes_a_second=10), 0.25, 1),
    ],
)
def test_runs_share_a_rate_and_change_no_more_together_than_a_seconds_worth(
    portion: Portion, rate: float | None, batch: int
) -> None:
    assert (portion.own_changes_a_second, portion.batch(64)) == (rate, batch)
