"""The engine on znodes in memory: what becomes of each, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
import time
import tracemalloc
from collections.abc import Callable, Iterable, Sequence
from typing import cast

import pytest

from kafka_dt.bulk.decisions import Decision, Fail, Found, Leave, Remove, Result, Summary, Write, ZnodeResult
from kafka_dt.bulk.engine import ALWAYS_CHANGED, UNREACHABLE, BulkLimits, process, token_ids
from kafka_dt.bulk.writes import WHOLE, Portion
from kafka_dt.zookeeper.connection.client import ZooKeeperClient
from kafka_dt.zookeeper.errors import ZooKeeperConnectionLost
from tests.support.processes.waiting import on_this_machine
from tests.support.zookeeper.znodes_in_memory import ZnodesInMemory

LIMITS = BulkLimits(batch=4, lanes=2, attempts=4, reconnect_s=0.2)
NAMES = [f"t{number}" for number in range(10)]


class Upper:
    """Writes upper case; leaves what is, refuses digits, removes what asks for it."""

    def __init__(self, *, announces: bool = False) -> None:
        self.announces = announces

    def __call__(self, found: Sequence[Found]) -> list[Decision]:
        return [self._decided(token_id, data) for token_id, data in found]

    def _decided(self, token_id: str, data: bytes) -> Decision:
        if data.isdigit():
            return Fail("digits")
        if data == b"remove":
            return Remove(token_id)
        if data == b"remove anyway":
            return Remove(token_id, guarded=False)
        return Leave("left") if data.isupper() else Write(data.upper(), "written")


async def run(
    client: ZnodesInMemory,
    names: Iterable[str] = NAMES,
    *,
    task: Upper | None = None,
    dry_run: bool = False,
    stop: asyncio.Event | None = None,
    heard: Callable[[Result], None] = lambda _: None,
    portion: Portion = WHOLE,
) -> Summary:
    summary = Summary()

    def report(results: object) -> None:
        batch = cast("list[Result]", results)
        summary.add(batch)
        for result in batch:
            heard(result)

    await process(
        cast("ZooKeeperClient", client),
        names,
        task or Upper(),
        report=report,
        now_ms=lambda: 0,
        dry_run=dry_run,
        stop=stop,
        limits=LIMITS,
        portion=portion,
    )
    return summary


def client_with(*contents: bytes, **options: bool) -> ZnodesInMemory:
    return ZnodesInMemory(dict(zip(NAMES, contents, strict=False)), **options)


def lower(count: int = len(NAMES)) -> ZnodesInMemory:
    return client_with(*[b"abc"] * count)


async def test_each_znode_is_decided_about_by_itself() -> None:
    client = client_with(b"abc", b"ABC", b"123", b"456", b"remove", b"abc")
    results: dict[str, Result] = {}
    summary = await run(client, heard=lambda result: results.update({result.token_id: result}))
    assert summary.counts == {
        ZnodeResult.CHANGED: 3,
        ZnodeResult.UNCHANGED: 1,
        ZnodeResult.FAILED: 2,
        ZnodeResult.GONE: 4,
    }
    assert {reason: found.token_ids for reason, found in summary.failures.items()} == {
        "digits": ["t2", "t3"],
    }
    assert [client.data(name) for name in ("t0", "t1", "t2", "t3", "t5")] == [
        b"ABC", b"ABC", b"123", b"456", b"ABC",
    ]  # fmt: skip
    assert "t4" not in await token_ids(cast("ZooKeeperClient", client))
    assert [results[name].note for name in ("t0", "t1", "t4")] == ["written", "left", "t4"]


async def test_a_batch_is_one_read_and_one_write() -> None:
    client = lower(8)
    await run(client, NAMES[:8])
    assert client.reads == 2
    assert client.multis == [4, 4]


async def test_changes_and_their_news_go_together() -> None:
    client = lower(4)
    await run(client, NAMES[:4], task=Upper(announces=True))
    assert client.announced == NAMES[:4]
    assert client.multis == [8]


async def test_what_changes_nothing_announces_nothing() -> None:
    client = client_with(b"ABC", b"123")
    await run(client, NAMES[:2], task=Upper(announces=True))
    assert client.announced == []


async def test_a_conflict_holds_up_nobody_else_and_the_change_of_others_survives() -> None:
    client = lower(4)
    client.before_write = lambda: client.change("t1", b"renewed")
    summary = await run(client, NAMES[:4], task=Upper(announces=True))
    assert summary.counts == {ZnodeResult.CHANGED: 4}
    assert [client.data(name) for name in NAMES[:4]] == [b"ABC", b"RENEWED", b"ABC", b"ABC"]
    # The batch together, then each by itself, then the one that was read again.
    assert client.multis == [8, 2, 2, 2, 2, 2]
    assert sorted(client.announced) == NAMES[:4]


async def test_what_was_made_so_by_others_meanwhile_is_unchanged() -> None:
    client = lower(4)
    client.before_write = lambda: client.change("t1", b"ABC")
    assert (await run(client, NAMES[:4])).counts == {ZnodeResult.CHANGED: 3, ZnodeResult.UNCHANGED: 1}


async def test_what_vanishes_between_reading_and_writing_is_gone() -> None:
    client = lower(4)
    client.before_write = lambda: client.remove("t2")
    assert (await run(client, NAMES[:4])).counts == {ZnodeResult.CHANGED: 3, ZnodeResult.GONE: 1}


async def test_what_others_change_each_time_is_given_up() -> None:
    client = lower(2)

    def again() -> None:
        client.change("t0", b"again")
        client.before_write = again

    client.before_write = again
    summary = await run(client, NAMES[:2])
    assert summary.failures[ALWAYS_CHANGED].token_ids == ["t0"]
    assert summary.counts[ZnodeResult.CHANGED] == 1


async def test_what_is_removed_in_any_version_goes_while_others_change_it() -> None:
    client = client_with(b"remove anyway", b"remove")

    def both_change() -> None:
        client.change("t0", b"again")
        client.change("t1", b"REMOVE")

    client.before_write = both_change
    assert (await run(client, NAMES[:2])).counts == {ZnodeResult.CHANGED: 1, ZnodeResult.UNCHANGED: 1}
    assert await token_ids(cast("ZooKeeperClient", client)) == ["t1"]


@pytest.mark.parametrize("carried_out", [True, False])
async def test_a_lost_answer_is_found_out_by_reading(*, carried_out: bool) -> None:
    client = client_with(b"abc", b"remove", b"ABC", b"abc")
    client.lose_next(carried_out=carried_out)
    summary = await run(client, NAMES[:4], task=Upper(announces=True))
    assert summary.counts == {ZnodeResult.CHANGED: 3, ZnodeResult.UNCHANGED: 1}
    assert [client.data(name) for name in ("t0", "t2", "t3")] == [b"ABC"] * 3
    assert sorted(client.announced) == ["t0", "t1", "t3"]


async def test_the_next_connection_is_waited_for() -> None:
    client = lower()
    client.before_write = lambda: setattr(client, "connected", False)
    client.lose_next(carried_out=True)
    asyncio.get_running_loop().call_later(0.05, setattr, client, "connected", True)
    assert (await run(client)).counts == {ZnodeResult.CHANGED: 10}


async def test_a_connection_that_does_not_come_back_ends_the_run() -> None:
    client = lower()
    client.connected = False
    with pytest.raises(ZooKeeperConnectionLost, match="not been reached again"):
        await run(client)


async def test_a_znode_over_which_the_connection_breaks_each_time_is_given_up() -> None:
    client = lower(1)
    for _ in range(LIMITS.attempts):
        client.lose_next(carried_out=False)
    assert (await run(client, NAMES[:1])).failures[UNREACHABLE].count == 1


async def test_stop_ends_after_the_batches_under_way() -> None:
    client, stop = lower(), asyncio.Event()
    client.before_write = stop.set
    summary = await run(client, stop=stop)
    assert 0 < summary.total < 10
    assert sum(client.data(name) == b"ABC" for name in NAMES) == summary.total
    # Run again, it does the rest.
    assert (await run(client)).counts == {ZnodeResult.CHANGED: 10 - summary.total, ZnodeResult.UNCHANGED: summary.total}


async def test_stop_does_not_wait_for_a_connection() -> None:
    client, stop = lower(), asyncio.Event()
    client.connected = False
    asyncio.get_running_loop().call_later(0.05, stop.set)
    assert (await run(client, stop=stop)).total == 0


async def test_a_dry_run_writes_nothing() -> None:
    client = client_with(b"abc", b"remove", b"ABC", b"123")
    summary = await run(client, NAMES[:4], task=Upper(announces=True), dry_run=True)
    assert summary.counts == {ZnodeResult.CHANGED: 2, ZnodeResult.UNCHANGED: 1, ZnodeResult.FAILED: 1}
    assert (client.multis, client.announced, client.data("t0")) == ([], [], b"abc")


async def test_the_version_that_was_read_is_told() -> None:
    client = client_with(b"ABC", b"123", b"abc")
    client.change("t0", b"ABC")
    versions: dict[str, int | None] = {}
    await run(client, NAMES[:4], heard=lambda result: versions.update({result.token_id: result.version}))
    assert versions == {"t0": 1, "t1": 0, "t2": 0, "t3": None}


async def test_a_rate_is_kept_and_a_request_has_no_more_than_a_seconds_worth() -> None:
    client, begun_s = lower(4), time.monotonic()
    summary = await run(client, NAMES[:4], portion=Portion(runs=10, changes_a_second=30))
    assert summary.counts == {ZnodeResult.CHANGED: 4}
    assert time.monotonic() - begun_s >= 4 / 3 - 0.01
    assert max(client.multis) == 3


async def test_no_rate_holds_up_who_changes_nothing() -> None:
    client, begun_s = lower(), time.monotonic()
    await run(client, dry_run=True, portion=Portion(changes_a_second=0.1))
    await run(client_with(*[b"ABC"] * len(NAMES)), portion=Portion(changes_a_second=0.1))
    assert time.monotonic() - begun_s < on_this_machine(5)


async def test_an_older_server_is_read_one_by_one() -> None:
    client = client_with(b"ABC", *[b"abc"] * (len(NAMES) - 1), old_server=True)
    # It hangs up over the first try: a lost read is no change.
    assert (await run(client)).counts == {ZnodeResult.CHANGED: 9, ZnodeResult.UNCHANGED: 1}
    assert client.reads == 10


async def test_an_error_in_a_task_is_not_taken_for_a_result() -> None:
    class Broken(Upper):
        def __call__(self, found: Sequence[Found]) -> list[Decision]:
            raise ZeroDivisionError(found)

    with pytest.raises(ExceptionGroup) as raised:
        await run(lower(), task=Broken())
    assert raised.value.subgroup(ZeroDivisionError)


async def test_where_no_token_was_ever_made_there_are_none() -> None:
    assert await token_ids(cast("ZooKeeperClient", ZnodesInMemory({}))) == []


async def test_nothing_is_kept_of_what_is_done() -> None:
    few, many = await peak_bytes(2_000), await peak_bytes(8_000)
    assert many - few < 100 * 6_000, "more than the names grows with their number"


async def peak_bytes(count: int) -> int:
    """The most memory that a run over so many znodes takes beyond the znodes themselves."""
    client = ZnodesInMemory({f"token-{number:017d}": b"A" * 300 for number in range(count)})
    tracemalloc.start()
    try:
        names = await token_ids(cast("ZooKeeperClient", client))
        assert (await run(client, names)).total == count
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
