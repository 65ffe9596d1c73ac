"""Revocations that the workers of a node share: the board, and what a worker believes by it."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import pytest

from kafka_dt.identity import revocation
from kafka_dt.identity.revocation import (
    FINAL,
    GONE,
    SLOTS,
    Board,
    Overtaken,
    Revocation,
    Revocations,
    board_bytes,
)
from kafka_dt.tokens import CachedToken, DelegationToken, Principal, StoreUnavailable, Token

TOKEN_ID = "qe9NVyTyRGKwPVvXpmXvyQ"
WORKERS = 3


@pytest.fixture
def boards() -> Iterator[list[Board]]:
    with tempfile.TemporaryFile() as file:
        file.truncate(board_bytes(WORKERS))
        yield [Board.shared(file.fileno(), number) for number in range(WORKERS)]


def some_id(number: int) -> str:
    return f"{number:021d}A"


def test_what_one_worker_posts_the_others_read_in_order(boards: list[Board]) -> None:
    boards[1].post(TOKEN_ID)
    boards[1].post(some_id(1), 500, 7)
    boards[2].post(some_id(2))
    assert boards[0].heads() == [0, 2, 1]
    assert boards[0].read(1, 0, 2) == [Revocation(TOKEN_ID, GONE, FINAL), Revocation(some_id(1), 500, 7)]
    assert boards[0].read(1, 1, 2) == [Revocation(some_id(1), 500, 7)]
    assert boards[0].read(2, 0, 1) == [Revocation(some_id(2), GONE, FINAL)]


@pytest.mark.parametrize("number", range(WORKERS))
def test_each_ring_holds_all_its_slots_and_touches_no_other(boards: list[Board], number: int) -> None:
    for each in range(SLOTS + 10):
        boards[number].post(some_id(each))
    heads = boards[0].heads()
    assert heads.pop(number) == SLOTS + 10
    assert heads == [0, 0]
    last = boards[0].read(number, 10, SLOTS + 10)
    assert [each.token_id for each in last] == [some_id(each) for each in range(10, SLOTS + 10)]


@pytest.mark.parametrize("begin", [0, 9])
def test_a_reader_that_was_overtaken_learns_it(boards: list[Board], begin: int) -> None:
    for each in range(SLOTS + 10):
        boards[1].post(some_id(each))
    with pytest.raises(Overtaken):
        boards[0].read(1, begin, SLOTS + 10)
    with pytest.raises(Overtaken):  # by what was posted since it looked how much there is
        boards[0].read(1, begin, 20)


@pytest.mark.parametrize("byte", [0, 8, 16, 30, 46])
def test_a_slot_that_is_not_wholly_there_is_not_read(byte: int) -> None:
    memory = bytearray(board_bytes(1))
    board = Board(memory, 0)
    board.post(some_id(1))
    board.post(some_id(2))
    second_slot = 8 + 56
    memory[second_slot + byte] ^= 1
    assert board.read(0, 0, 2) == [Revocation(some_id(1), GONE, FINAL)]


@pytest.mark.parametrize("token_id", ["", "no token id", "\udc80" * 22, "ü" * 22, TOKEN_ID + "A"])
def test_what_cannot_log_in_is_not_posted(boards: list[Board], token_id: str) -> None:
    boards[0].post(token_id)
    assert boards[0].heads() == [0, 0, 0]


def test_a_worker_that_is_replaced_goes_on_where_its_predecessor_was(boards: list[Board]) -> None:
    boards[1].post(some_id(1))
    memory = boards[1]._memory
    Board(memory.obj, 1).post(some_id(2))  # type: ignore[arg-type]
    assert [each.token_id for each in boards[0].read(1, 0, 2)] == [some_id(1), some_id(2)]


TOKEN = Token(
    token_id="qe9NVyTyRGKwPVvXpmXvyQ",
    owner=Principal.user("alice"),
    requester=Principal.user("alice"),
    renewers=(),
    issue_timestamp_ms=0,
    max_timestamp_ms=1000,
    expiry_timestamp_ms=500,
)
ID = TOKEN.token_id
OTHER = replace(TOKEN, token_id="AAAAAAAAAAAAAAAAAAAAAA")
FIRST = 5
"""The revision of the tokens as all know them."""


def held(token: Token, revision: int | None = FIRST) -> CachedToken:
    return CachedToken(DelegationToken(token, b"hmac"), version=0, revision=revision, keyed=True)


@dataclass
class Worker:
    """A worker that knows both tokens."""

    board: Board
    tokens: dict[str, CachedToken] = field(
        default_factory=lambda: {each.token_id: held(each) for each in (TOKEN, OTHER)}
    )
    ended: list[tuple[str, int]] = field(default_factory=list)
    asked: int = 0
    silent: bool = False
    cut_off: bool = False
    still_asked: tuple[str, ...] = ()
    """The tokens of a store that can be asked though another one cannot."""

    def __post_init__(self) -> None:
        self.revocations = Revocations(
            self.board, self._prove, self.tokens.get, lambda token_id, end_ms: self.ended.append((token_id, end_ms))
        )

    async def _prove(self, token_id: str | None) -> None:
        self.asked += 1
        if self.silent:
            await asyncio.Event().wait()
        if self.cut_off and token_id not in self.still_asked:
            raise StoreUnavailable("cut off")

    def learns(self, before: Token | None, after: Token | None) -> None:
        """Hear of a change as the cache tells it, which knows it already."""
        known = self.tokens.pop(ID, None)
        if after is not None:
            revision = known.revision if known else FIRST - 1
            self.tokens[ID] = held(after, None if revision is None else revision + 1)
        self.revocations.token_changed(ID, before, after)

    @property
    def believes(self) -> bool:
        return self.revocations.heard_about(ID)


@pytest.fixture
def workers() -> list[Worker]:
    memory = bytearray(board_bytes(3))
    return [Worker(Board(memory, number)) for number in range(3)]


async def test_a_token_that_one_worker_saw_ending_is_suspected_for_the_others_until_they_have_heard_all(
    workers: list[Worker],
) -> None:
    workers[1].learns(TOKEN, None)
    assert [worker.believes for worker in workers] == [False, True, False]
    await workers[0].revocations.hear()
    assert [worker.believes for worker in workers] == [True, True, False]
    assert all(worker.revocations.heard_about(OTHER.token_id) for worker in workers)


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
    workers: list[Worker], before: Token | None, after: Token | None, counts: bool
) -> None:
    workers[1].learns(before, after)
    assert workers[0].believes is not counts


@pytest.mark.parametrize(("after", "end_ms"), [(None, GONE), (TOKEN.expiring_at(400), 400)])
def test_the_sessions_of_the_token_end_without_asking_the_store(
    workers: list[Worker], after: Token | None, end_ms: int
) -> None:
    workers[1].learns(TOKEN, after)
    workers[0].revocations.look()
    workers[0].revocations.look()
    assert workers[0].ended == [(ID, end_ms)]
    assert workers[0].asked == 0


def test_what_a_worker_has_heard_from_the_store_itself_is_not_suspected(workers: list[Worker]) -> None:
    shortened = TOKEN.expiring_at(400)
    workers[0].tokens[ID] = held(shortened, FIRST + 1)
    workers[1].learns(TOKEN, shortened)
    assert workers[0].believes
    assert workers[0].ended == []


def test_a_token_that_is_known_to_be_renewed_since_keeps_its_sessions(workers: list[Worker]) -> None:
    workers[1].learns(TOKEN, TOKEN.expiring_at(400))
    workers[0].tokens[ID] = held(TOKEN.expiring_at(900), FIRST + 2)
    assert workers[0].believes
    assert workers[0].ended == []


@pytest.mark.parametrize("after", [None, TOKEN.expiring_at(400)], ids=["deleted", "shortened"])
async def test_where_the_store_numbers_nothing_each_revocation_is_suspected_until_all_is_heard(
    workers: list[Worker], after: Token | None
) -> None:
    for worker in workers:
        worker.tokens[ID] = held(TOKEN, None)
    workers[1].learns(TOKEN, after)
    workers[0].tokens[ID] = held(after or TOKEN, None)
    assert not workers[0].believes
    assert await workers[0].revocations.hear()
    assert workers[0].believes


def test_a_token_that_is_not_known_yet_is_suspected(workers: list[Worker]) -> None:
    """It may be about to be read as it was before."""
    del workers[0].tokens[ID]
    workers[1].learns(TOKEN, None)
    assert not workers[0].believes


async def test_what_is_posted_while_the_news_are_heard_has_to_be_heard_again(workers: list[Worker]) -> None:
    for _ in range(2):
        workers[1].learns(TOKEN, None)
        workers[0].silent = True
        hearing = asyncio.ensure_future(workers[0].revocations.hear())
        await asyncio.sleep(0)
        workers[1].learns(TOKEN, None)
        workers[0].revocations.look()
        hearing.cancel()
    workers[0].silent = False
    original = workers[0]._prove

    async def overtaken(token_id: str | None) -> None:
        workers[1].learns(TOKEN, None)
        await original(token_id)

    workers[0].revocations._prove = overtaken
    assert await workers[0].revocations.hear()
    assert not workers[0].believes


def happens_after_the_first_proof(worker: Worker, what: Callable[[], None]) -> None:
    """Let something happen when a worker has proved its knowledge once, before it goes on."""
    original = worker._prove

    async def overtaken(token_id: str | None) -> None:
        await original(token_id)
        if worker.asked == 1:
            what()

    worker.revocations._prove = overtaken


@pytest.mark.parametrize("seen", [True, False], ids=["seen by a look meanwhile", "not seen yet"])
async def test_a_login_hears_of_a_revocation_that_is_posted_while_it_hears_the_news(
    workers: list[Worker], *, seen: bool
) -> None:
    workers[1].learns(TOKEN, TOKEN.expiring_at(400))

    def deleted() -> None:
        workers[1].learns(TOKEN, None)
        if seen:
            workers[0].revocations.look()

    happens_after_the_first_proof(workers[0], deleted)
    assert await workers[0].revocations.hear(ID)
    assert workers[0].asked == 2
    assert workers[0].believes


async def test_a_login_hears_the_news_again_if_meanwhile_more_is_posted_than_the_board_holds(
    workers: list[Worker],
) -> None:
    workers[1].learns(TOKEN, TOKEN.expiring_at(400))

    def deleted_with_many() -> None:
        workers[1].learns(TOKEN, None)
        for _ in range(SLOTS):
            workers[1].learns(OTHER, None)

    happens_after_the_first_proof(workers[0], deleted_with_many)
    assert await workers[0].revocations.hear(ID)
    assert workers[0].asked == 2


@pytest.mark.parametrize("silent", [True, False], ids=["no answer", "an error"])
async def test_what_cannot_be_heard_is_not_taken_as_heard(
    workers: list[Worker], monkeypatch: pytest.MonkeyPatch, silent: bool
) -> None:
    monkeypatch.setattr(revocation, "HEAR_SECONDS", 0.01)
    workers[0].silent, workers[0].cut_off = silent, not silent
    workers[1].learns(TOKEN, None)
    assert not await workers[0].revocations.hear()
    assert not workers[0].believes


async def test_after_more_revocations_than_the_board_holds_every_token_is_suspected(workers: list[Worker]) -> None:
    for _ in range(SLOTS + 1):
        workers[1].learns(TOKEN, None)
    assert not workers[0].revocations.heard_about(OTHER.token_id)
    assert await workers[0].revocations.hear()
    assert workers[0].revocations.heard_about(OTHER.token_id)
    assert workers[0].believes


async def test_while_a_revocation_cannot_be_seen_wholly_every_token_is_suspected() -> None:
    memory = bytearray(board_bytes(2))
    reader, writer = Worker(Board(memory, 0)), Worker(Board(memory, 1))
    writer.learns(TOKEN, None)
    byte = memory.index(ID.encode())
    memory[byte] ^= 1
    assert not reader.revocations.heard_about(OTHER.token_id)
    assert await reader.revocations.hear(OTHER.token_id), "the store has told what was posted before"
    memory[byte] ^= 1
    assert reader.revocations.heard_about(OTHER.token_id)
    assert not reader.believes


async def test_keeping_up_asks_only_when_a_token_is_suspected(workers: list[Worker]) -> None:
    reader = workers[0]
    await reader.revocations.keep_up()
    assert reader.asked == 0
    workers[1].learns(TOKEN, None)
    await reader.revocations.keep_up()
    assert reader.believes
    await reader.revocations.keep_up()
    assert reader.asked == 1


async def test_of_two_stores_the_one_that_has_the_token_is_enough_for_its_login(workers: list[Worker]) -> None:
    shortened, other = replace(TOKEN, expiry_timestamp_ms=TOKEN.expiry_timestamp_ms - 1), OTHER.token_id
    workers[1].learns(TOKEN, shortened)
    workers[1].board.post(other)
    workers[0].cut_off, workers[0].still_asked = True, (ID,)
    assert await workers[0].revocations.hear(ID)
    assert workers[0].believes
    assert not await workers[0].revocations.hear(other)
    await workers[0].revocations.keep_up()
    assert not workers[0].revocations.heard_about(other), "nothing is known of the other store"
