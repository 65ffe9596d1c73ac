import asyncio
import mmap
import tempfile
from collections.abc import Iterator

import pytest

from kafka_dt.security import revocations
from kafka_dt.security.revocations import Revocations, SharedBoard
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
        file.truncate(mmap.PAGESIZE)
        yield file.fileno()


async def nothing() -> None:
    pass


async def test_what_one_worker_counts_the_others_have_to_hear(descriptor: int) -> None:
    workers = [Revocations(SharedBoard(descriptor, number), nothing) for number in range(3)]
    workers[1].token_changed(TOKEN.token_id, TOKEN, None)
    assert not any(worker.all_heard for worker in workers)
    await workers[0].hear()
    assert [worker.all_heard for worker in workers] == [True, False, False]


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
    worker = Revocations(SharedBoard(descriptor, 0), nothing)
    worker.token_changed(TOKEN.token_id, before, after)
    assert worker.all_heard is not counts


async def test_what_is_counted_while_the_news_are_heard_has_to_be_heard_again(descriptor: int) -> None:
    board = SharedBoard(descriptor, 0)

    async def overtaken() -> None:
        board.count()

    worker = Revocations(board, overtaken)
    assert await worker.hear()
    assert not worker.all_heard


@pytest.mark.parametrize("silent", [True, False], ids=["no answer", "an error"])
async def test_what_cannot_be_heard_is_not_taken_as_heard(
    descriptor: int, monkeypatch: pytest.MonkeyPatch, silent: bool
) -> None:
    monkeypatch.setattr(revocations, "HEAR_SECONDS", 0.01)

    async def cut_off() -> None:
        if silent:
            await asyncio.Event().wait()
        raise StoreUnavailable("cut off")

    worker = Revocations(SharedBoard(descriptor, 0), cut_off)
    worker.token_changed(TOKEN.token_id, TOKEN, None)
    assert not await worker.hear()
    assert not worker.all_heard
