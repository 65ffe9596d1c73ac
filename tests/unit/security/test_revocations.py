import asyncio
import tempfile
from collections.abc import Iterator

import pytest

from kafka_dt.security import revocations
from kafka_dt.security.revocations import COUNTERS, Board, Revocations, board_bytes
from kafka_dt.tokens import Principal, StoreUnavailable, Token

TOKEN = Token(
    token_id="qe9NVyTyRGKwPVvXpmXvyQ",
    owner=Principal.user("alice"),
    requester=Principal.user("alice"),
    renewers=(),
    issue_timestamp_ms=0,
    max_timestamp_ms=1000,
    expiry_timestamp_ms=500,
)


@pytest.fixture
def descriptor() -> Iterator[int]:
    with tempfile.TemporaryFile() as file:
        file.truncate(board_bytes(3))
        yield file.fileno()


async def nothing() -> None:
    pass


async def test_what_one_worker_counts_the_others_have_to_hear(descriptor: int) -> None:
    workers = [Revocations(Board.shared(descriptor, number), nothing) for number in range(3)]
    workers[1].token_changed(TOKEN.token_id, TOKEN, None)
    assert not any(worker.heard_about(TOKEN.token_id) for worker in workers)
    await workers[0].hear()
    assert [worker.heard_about(TOKEN.token_id) for worker in workers] == [True, False, False]


@pytest.mark.parametrize(
    ("before", "after", "counts"),
    [
        (TOKEN, None, True),
        (TOKEN, TOKEN.expiring_at(400), True),
        (TOKEN, TOKEN.expiring_at(600), False),
        (None, TOKEN, False),
        (None, None, False),
    ],
    ids=["deleted", "shortened", "renewed", "created", "never there"],
)
def test_only_a_change_that_ends_a_token_sooner_counts(
    descriptor: int, before: Token | None, after: Token | None, counts: bool
) -> None:
    worker = Revocations(Board.shared(descriptor, 0), nothing)
    worker.token_changed(TOKEN.token_id, before, after)
    assert worker.heard_about(TOKEN.token_id) is not counts


async def test_what_is_counted_while_the_news_are_heard_has_to_be_heard_again(descriptor: int) -> None:
    board = Board.shared(descriptor, 0)

    async def overtaken() -> None:
        board.count(TOKEN.token_id)

    worker = Revocations(board, overtaken)
    assert await worker.hear()
    assert not worker.heard_about(TOKEN.token_id)


@pytest.mark.parametrize("silent", [True, False], ids=["no answer", "an error"])
async def test_what_cannot_be_heard_is_not_taken_as_heard(
    descriptor: int, monkeypatch: pytest.MonkeyPatch, silent: bool
) -> None:
    monkeypatch.setattr(revocations, "HEAR_SECONDS", 0.01)

    async def cut_off() -> None:
        if silent:
            await asyncio.Event().wait()
        raise StoreUnavailable("cut off")

    worker = Revocations(Board.shared(descriptor, 0), cut_off)
    worker.token_changed(TOKEN.token_id, TOKEN, None)
    assert not await worker.hear()
    assert not worker.heard_about(TOKEN.token_id)


async def test_other_tokens_are_not_in_doubt(descriptor: int) -> None:
    workers = [Revocations(Board.shared(descriptor, number), nothing) for number in range(3)]
    workers[0].token_changed(TOKEN.token_id, TOKEN, None)
    others = [f"token {number}" for number in range(1000)]
    assert sum(not worker.heard_about(other) for worker in workers for other in others) <= len(workers)


@pytest.mark.parametrize("number", range(3))
def test_every_worker_has_all_its_counters(descriptor: int, number: int) -> None:
    board, reader = Board.shared(descriptor, number), Board.shared(descriptor, 0)
    for each in range(4 * COUNTERS):
        board.count(str(each))
    assert reader.about("0")[number] > 0
    assert [count for worker, count in enumerate(reader.about("0")) if worker != number] == [0, 0]


def test_a_counter_begins_anew_after_its_last_number() -> None:
    memory = bytearray(b"\xff" * board_bytes(1))
    board = Board(memory, 0)
    board.count(TOKEN.token_id)
    assert board.about(TOKEN.token_id) == [0]


async def test_keeping_up_asks_only_when_something_was_counted(descriptor: int) -> None:
    asked = []

    async def ask() -> None:
        asked.append(1)

    worker, other = Revocations(Board.shared(descriptor, 0), ask), Board.shared(descriptor, 1)
    await worker.keep_up()
    assert asked == []
    other.count(TOKEN.token_id)
    await worker.keep_up()
    assert worker.heard_about(TOKEN.token_id)
    await worker.keep_up()
    assert asked == [1]
