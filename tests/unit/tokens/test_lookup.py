import asyncio
import itertools
import time

import pytest

from kafka_dt.tokens import StoreUnavailable, lookup
from kafka_dt.tokens.lookup import CATCH_UP_PAUSE_S, MISS_LIFE_MS, READS_PER_SECOND, has_token_id_form
from tests.support.tokens.nodes import ALICE, HOUR, Cluster, Node

UNKNOWN = "abcdefghijklmnopqrst_A"


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
async def nodes(cluster: Cluster) -> tuple[Node, Node]:
    first, second = cluster.node(), cluster.node()
    await first.manager.start()
    await second.manager.start()
    return first, second


def guess(number: int) -> str:
    return f"{number:021d}A"


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("AAAAAAAAAAAAAAAAAAAAAA", True),
        ("-_09azAZ-_09azAZ-_09aw", True),
        ("", False),
        ("alice", False),
        ("AAAAAAAAAAAAAAAAAAAAA", False),
        ("AAAAAAAAAAAAAAAAAAAAAAA", False),
        ("AAAAAAAAAAAAAAAAAAAAAB", False),
        ("AAAAAAAAAAAAAAAAAAAA==", False),
        ("AAAAAAAAAA/AAAAAAAAAAA", False),
        ("AAAAAAAAAAAAAAAAAAAAAA\n", False),
        ("ÄAAAAAAAAAAAAAAAAAAAAA", False),
        ("\u0660AAAAAAAAAAAAAAAAAAAAA", False),
    ],
)
def test_the_form_of_a_token_id(text: str, form: bool) -> None:
    assert has_token_id_form(text) is form


async def test_a_token_made_on_another_node_is_found_by_the_very_next_lookup(nodes: tuple[Node, Node]) -> None:
    first, second = nodes
    for _ in range(100):
        created = await first.manager.create(ALICE, ALICE, (), -1)
        assert second.manager.find(created.token.token_id) is None
        assert await second.manager.lookup(created.token.token_id) == created
        assert second.manager.find(created.token.token_id) == created


async def test_a_token_that_is_known_is_not_read(nodes: tuple[Node, Node]) -> None:
    node = nodes[0]
    created = await node.manager.create(ALICE, ALICE, (), -1)
    assert await node.manager.lookup(created.token.token_id) == created
    assert node.store.reads == []


async def test_what_has_not_the_form_of_an_id_is_not_read(nodes: tuple[Node, Node]) -> None:
    for text in ("", "alice", "x" * 10_000, "../../config/users/adm"):
        assert await nodes[0].manager.lookup(text) is None
    assert (nodes[0].store.reads, nodes[0].store.catch_ups) == ([], 0)


async def test_a_token_with_an_odd_id_is_found_once_it_is_known(cluster: Cluster, nodes: tuple[Node, Node]) -> None:
    token = (await nodes[0].manager.create(ALICE, ALICE, (), HOUR)).token
    cluster.database.put(type(token)("odd", ALICE, ALICE, (), 0, 1, 1), 0)
    nodes[1].store.deliver()
    found = await nodes[1].manager.lookup("odd")
    assert found is not None
    assert found.token.token_id == "odd"


async def test_concurrent_lookups_of_one_id_share_a_read(nodes: tuple[Node, Node]) -> None:
    first, second = nodes
    created = await first.manager.create(ALICE, ALICE, (), -1)
    lookups = (second.manager.lookup(created.token.token_id) for _ in range(100))
    assert await asyncio.gather(*lookups) == [created] * 100
    assert second.store.reads == [created.token.token_id]


async def test_a_lookup_that_is_cancelled_does_not_take_the_others_along(nodes: tuple[Node, Node]) -> None:
    first, second = nodes
    created = await first.manager.create(ALICE, ALICE, (), -1)
    impatient, patient = (asyncio.create_task(second.manager.lookup(created.token.token_id)) for _ in range(2))
    await asyncio.sleep(0)
    impatient.cancel()
    assert await patient == created
    assert second.store.reads == [created.token.token_id]


async def test_an_id_that_was_not_there_is_asked_for_again_after_a_while(
    cluster: Cluster, nodes: tuple[Node, Node]
) -> None:
    node = nodes[0]
    for advance_ms, reads in ((0, 1), (0, 1), (MISS_LIFE_MS - 1, 1), (1, 2), (MISS_LIFE_MS, 3)):
        cluster.clock.now_ms += advance_ms
        assert await node.manager.lookup(UNKNOWN) is None
        assert len(node.store.reads) == reads


async def test_a_clock_that_is_set_back_keeps_no_miss_alive(cluster: Cluster, nodes: tuple[Node, Node]) -> None:
    node = nodes[0]
    await node.manager.lookup(UNKNOWN)
    cluster.clock.now_ms -= HOUR
    await node.manager.lookup(UNKNOWN)
    assert len(node.store.reads) == 2


async def test_a_miss_does_not_hide_a_token_that_is_reported(nodes: tuple[Node, Node]) -> None:
    first, second = nodes
    created = await first.manager.create(ALICE, ALICE, (), -1)
    token_id = created.token.token_id
    await first.manager.expire(ALICE, created.hmac, -1)
    assert await second.manager.lookup(token_id) is None
    second.store.database.put(created.token, 0)
    second.store.deliver()
    assert await second.manager.lookup(token_id) == created


async def test_a_flood_of_guesses_costs_the_store_a_bounded_number_of_reads(
    cluster: Cluster, nodes: tuple[Node, Node]
) -> None:
    first, second = nodes
    created = await first.manager.create(ALICE, ALICE, (), -1)
    cluster.clock.now_ms += 1_000
    flood = [second.manager.lookup(guess(number)) for number in range(3 * READS_PER_SECOND)]

    *guessed, good = await asyncio.gather(*flood, second.manager.lookup(created.token.token_id))

    assert set(guessed) == {None}
    assert good == created, "a good token is found also in a flood"
    assert len(second.store.reads) == READS_PER_SECOND <= 100
    assert second.store.catch_ups <= 2

    cluster.clock.now_ms += 1_000
    await second.manager.lookup(UNKNOWN)
    assert second.store.reads[-1] == UNKNOWN


async def test_a_flood_that_goes_on_costs_the_store_a_bounded_number_of_catch_ups(nodes: tuple[Node, Node]) -> None:
    first, second = nodes
    numbers = itertools.count()
    begun, turns = time.monotonic(), 10

    async def guess_on() -> None:
        while second.store.catch_ups < turns:
            assert await second.manager.lookup(guess(next(numbers))) is None

    async with asyncio.TaskGroup() as guessers:
        for _ in range(2 * READS_PER_SECOND):
            guessers.create_task(guess_on())
        created = await first.manager.create(ALICE, ALICE, (), -1)
        assert await second.manager.lookup(created.token.token_id) == created

    assert time.monotonic() - begun >= (turns - 1) * CATCH_UP_PAUSE_S
    assert len(second.store.reads) == READS_PER_SECOND, "the test's clock stood still"


async def test_the_memory_of_misses_is_bounded(
    cluster: Cluster, nodes: tuple[Node, Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 2 * READS_PER_SECOND  # some are read one by one, the others together
    monkeypatch.setattr(lookup, "MAX_MISSES", most)
    node = nodes[0]
    await node.manager.lookup(UNKNOWN)
    cluster.clock.now_ms += MISS_LIFE_MS - 1
    await asyncio.gather(*(node.manager.lookup(guess(number)) for number in range(most)))
    read_through = node.manager._read_through
    assert len(read_through._misses) == most
    assert UNKNOWN not in read_through._misses
    assert not read_through._under_way


async def test_an_unknown_id_cannot_be_judged_while_cut_off(nodes: tuple[Node, Node]) -> None:
    node = nodes[0]
    node.store.connected = False
    results = await asyncio.gather(*(node.manager.lookup(UNKNOWN) for _ in range(3)), return_exceptions=True)
    assert {type(result) for result in results} == {StoreUnavailable}
    node.store.connected = True
    assert await node.manager.lookup(UNKNOWN) is None
