import tempfile
from collections.abc import Iterator

import pytest

from kafka_dt.identity.revocation.board import FINAL, GONE, SLOTS, Board, Overtaken, Revocation, board_bytes

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
