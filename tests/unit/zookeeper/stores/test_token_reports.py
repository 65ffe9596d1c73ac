"""What a listener hears of tokens while threads are slow: no old state after a newer one, nothing of the deleted."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from kafka_dt.processes.node_memory import node_memory
from kafka_dt.tokens import Keyring, Principal, StoredToken, Token
from kafka_dt.zookeeper.connection.operations import Stat, Znode
from kafka_dt.zookeeper.sealing.derivations import MEMORY_BYTES, Derivations
from kafka_dt.zookeeper.sealing.sealed import seal
from kafka_dt.zookeeper.stores.token_reports import TokenReports
from kafka_dt.zookeeper.znodes.kafka import TokenZnode
from tests.support.zookeeper.token_codecs import CURRENT, FOREIGN, OLDER, HeldExecutor, codec_of

ALICE = Principal.user("alice")
TOKEN = Token("a-token", ALICE, ALICE, (), 1_700_000_000_000, 1_700_604_800_000, 1_700_086_400_000, CURRENT.id)
ID = TOKEN.token_id
RENEWED, AGAIN = TOKEN.expiring_at(1_700_200_000_000), TOKEN.expiring_at(1_700_300_000_000)


@dataclass
class Node:
    """Reports, with threads that work when they are told to."""

    keyring: Keyring = field(default_factory=lambda: Keyring(CURRENT, previous=[OLDER]))
    executor: HeldExecutor = field(default_factory=HeldExecutor)
    heard: list[Token | None] = field(default_factory=list)
    asked_for_keys: int = 0
    derivations: Derivations | None = None

    def __post_init__(self) -> None:
        self.reports = TokenReports(codec_of(self.keyring, executor=self.executor, derivations=self.derivations))
        self.reports.listener = self._hear
        self.reports.on_unknown_key = self._ask

    def _hear(self, token_id: str, stored: StoredToken | None) -> None:
        assert token_id == ID
        self.heard.append(None if stored is None else stored.token)

    def _ask(self) -> None:
        self.asked_for_keys += 1

    def begin(self, znode: Znode, **how: bool) -> asyncio.Future[StoredToken | None]:
        """Have a sealed znode opened."""
        opening = self.reports.read(ID, znode, **how)
        assert isinstance(opening, asyncio.Future)
        return opening

    async def open(self, znode: Znode, **how: bool) -> Token | None:
        """Have a sealed znode opened, and wait for the end of it."""
        opening = self.begin(znode, **how)
        await self.executor.given()
        self.executor.release()
        stored = await opening
        return None if stored is None else stored.token


def plain(token: Token, mzxid: int, version: int = 1) -> Znode:
    return Znode(TokenZnode.encode(token), stat(mzxid, version))


def sealed(token: Token, mzxid: int, version: int = 1) -> Znode:
    return Znode(seal(CURRENT, TokenZnode.encode(token), mzxid.to_bytes(16)), stat(mzxid, version))


def stat(mzxid: int, version: int) -> Stat:
    return Stat(
        created_zxid=1,
        modified_zxid=mzxid,
        created_ms=0,
        modified_ms=0,
        version=version,
        child_version=0,
        child_count=0,
        ephemeral_owner=0,
    )


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_plain_token_is_reported_at_once() -> None:
    node = Node()
    assert node.reports.read(ID, plain(TOKEN, 5, version=3)) == StoredToken(TOKEN, 3, 5)
    assert node.heard == [TOKEN]


async def test_a_sealed_token_is_reported_before_whoever_waits_goes_on() -> None:
    node = Node()
    opening = node.begin(sealed(TOKEN, 5, version=3))
    heard_before = []
    opening.add_done_callback(lambda _: heard_before.extend(node.heard))
    assert node.heard == []
    await node.executor.given()
    node.executor.release()
    assert await opening == StoredToken(TOKEN, 3, 5)
    assert heard_before == [TOKEN]


NEWER = [
    pytest.param(lambda reports: reports.tell(ID, None), None, id="deleted"),
    pytest.param(lambda reports: reports.listed([]), None, id="not in the list"),
    pytest.param(lambda reports: reports.tell(ID, StoredToken(RENEWED, 2, 6)), RENEWED, id="renewed here"),
    pytest.param(lambda reports: reports.read(ID, plain(RENEWED, 6)), RENEWED, id="read plain"),
    pytest.param(lambda reports: reports.read(ID, Znode(b"{", stat(6, 2))), None, id="not readable"),
]


@pytest.mark.parametrize("ended", [False, True], ids=["before the thread ends", "after the thread has ended"])
@pytest.mark.parametrize(("supersede", "newer"), NEWER)
async def test_what_comes_while_a_token_is_opened_is_the_last_that_is_heard(
    supersede: Callable[[TokenReports], object], newer: Token | None, *, ended: bool
) -> None:
    node = Node()
    opening = node.begin(sealed(TOKEN, 5))
    await node.executor.given()
    if ended:  # the result is on its way through the event loop
        node.executor.release()
        await asyncio.sleep(0)
    supersede(node.reports)
    node.executor.release()
    await settle()
    assert node.heard == [newer]
    stored = await opening
    assert (None if stored is None else stored.token) == newer


async def test_a_newer_sealed_state_takes_the_place_of_the_one_that_is_being_opened() -> None:
    node = Node()
    first = node.begin(sealed(TOKEN, 5))
    await node.executor.given()
    second = node.begin(sealed(RENEWED, 6))
    await node.executor.given(2)
    node.executor.release()
    assert await first == await second == StoredToken(RENEWED, 1, 6)
    assert node.heard == [RENEWED]


async def test_what_another_worker_has_opened_is_reported_at_once_in_the_place_of_what_is_being_opened() -> None:
    with node_memory(derivations=MEMORY_BYTES) as memory:
        shared = Derivations.shared(memory["derivations"])
        node, newer = Node(derivations=shared), sealed(RENEWED, 6)
        opening = node.begin(sealed(TOKEN, 5))
        await node.executor.given()
        await codec_of(derivations=shared).decode(ID, newer.data)
        assert node.reports.read(ID, newer) == StoredToken(RENEWED, 1, 6)
        node.executor.release()
        assert await opening == StoredToken(RENEWED, 1, 6)
        await settle()
        assert node.heard == [RENEWED]
        assert node.reports.read(ID, sealed(replace(TOKEN, token_id="another"), 6)) is None
        assert node.heard == [RENEWED, None]


async def test_a_state_that_is_read_twice_is_opened_once() -> None:
    node = Node()
    first, second = node.begin(sealed(TOKEN, 5)), node.begin(sealed(TOKEN, 5))
    await node.executor.given()
    node.executor.release()
    assert await first == await second == StoredToken(TOKEN, 1, 5)
    assert node.heard == [TOKEN]


async def test_a_token_that_is_listed_while_it_is_opened_is_reported() -> None:
    node = Node()
    opening = node.begin(sealed(TOKEN, 5))
    await node.executor.given()
    node.reports.listed([ID])
    node.executor.release()
    assert await opening == StoredToken(TOKEN, 1, 5)


async def test_who_waits_and_gives_up_does_not_stop_the_opening() -> None:
    node = Node()
    opening = node.begin(sealed(TOKEN, 5))
    waiting = asyncio.create_task(asyncio.wait_for(asyncio.shield(opening), 60))
    await node.executor.given()
    waiting.cancel()
    node.executor.release()
    assert await opening is not None
    assert node.heard == [TOKEN]


async def test_looking_at_everything_opens_only_what_has_changed() -> None:
    node = Node()
    assert await node.open(sealed(TOKEN, 5)) == TOKEN
    assert node.reports.read(ID, sealed(TOKEN, 5), if_changed=True) is None
    assert await node.open(sealed(RENEWED, 6), if_changed=True) == RENEWED
    assert node.heard == [TOKEN, RENEWED]


async def test_who_asks_for_a_token_gets_it_though_it_has_not_changed() -> None:
    node = Node()
    await node.open(sealed(TOKEN, 5))
    assert await node.open(sealed(TOKEN, 5)) == TOKEN


async def test_what_was_created_here_is_not_opened_and_what_came_in_its_place_is() -> None:
    node = Node()
    created, other = sealed(TOKEN, 5, version=0), sealed(RENEWED, 9, version=0)
    node.reports.tell(ID, StoredToken(TOKEN, 0, 0), written=created.data)
    assert node.reports.read(ID, created, if_changed=True) is None
    assert await node.open(other, if_changed=True) == RENEWED
    assert node.heard == [TOKEN, RENEWED]


async def test_what_was_renewed_here_is_not_opened() -> None:
    node = Node()
    node.reports.tell(ID, StoredToken(RENEWED, 1, 6))
    assert node.reports.read(ID, sealed(RENEWED, 6), if_changed=True) is None


UNREADABLE = {
    "its MAC fits none of the secret keys": Znode(seal(FOREIGN, TokenZnode.encode(TOKEN), bytes(16)), stat(5, 1)),
    f"the key {FOREIGN.id} that made it is none of the secret keys": sealed(replace(TOKEN, key_id=FOREIGN.id), 5),
    "it names another token": sealed(replace(TOKEN, token_id="another"), 5),
    "version 2 of sealed bytes is not known": Znode(b"RFRFAg==", stat(5, 1)),
    "not JSON": Znode(seal(CURRENT, b"{", bytes(16)), stat(5, 1)),
}


@pytest.mark.parametrize("reason", UNREADABLE)
async def test_what_cannot_be_read_is_kept_apart_and_logged_once(reason: str, caplog: pytest.LogCaptureFixture) -> None:
    node = Node()
    for ring in ([OLDER], []):
        node.keyring.replace(CURRENT, ring)
        assert await node.open(UNREADABLE[reason]) is None
    assert node.reports.unreadable == {ID: reason}
    assert node.heard == [None, None]
    assert [(each.levelno, each.getMessage()) for each in caplog.records] == [
        (logging.ERROR, f"the delegation token {TokenZnode.path(ID)} is not readable: {reason}")
    ]
    assert node.asked_for_keys == ("none of the secret keys" in reason)


async def test_what_cannot_be_read_is_not_opened_again_before_it_is_written_again() -> None:
    node = Node()
    unreadable = Znode(seal(FOREIGN, b"{}", bytes(16)), stat(5, 1))
    await node.open(unreadable)
    assert node.reports.read(ID, unreadable) is None
    assert node.reports.read(ID, unreadable, if_changed=True) is None
    assert await node.open(sealed(TOKEN, 6)) == TOKEN
    assert node.reports.unreadable == {}


@pytest.mark.parametrize("if_changed", [True, False], ids=["a look at everything", "a login"])
async def test_what_another_ring_may_open_is_opened_by_whoever_reads_it_next(*, if_changed: bool) -> None:
    node = Node()
    token = replace(TOKEN, key_id=FOREIGN.id)
    unreadable = Znode(seal(FOREIGN, TokenZnode.encode(token), bytes(16)), stat(5, 1))
    await node.open(unreadable)
    assert not node.reports.untried
    node.keyring.replace(CURRENT, [OLDER, FOREIGN])
    assert node.reports.untried == {ID}
    assert await node.open(unreadable, if_changed=if_changed) == token
    assert not node.reports.untried
    assert node.reports.unreadable == {}


async def test_what_is_gone_need_not_be_tried_with_another_ring() -> None:
    node = Node()
    node.reports.read(ID, Znode(b"{", stat(5, 1)))
    node.keyring.replace(CURRENT)
    node.reports.listed([])
    assert not node.reports.untried


@pytest.mark.parametrize("gone", [True, False])
async def test_what_cannot_be_read_is_forgotten_when_it_is_gone(*, gone: bool) -> None:
    node = Node()
    node.reports.read(ID, Znode(b"{", stat(5, 1)))
    node.reports.listed([] if gone else [ID])
    assert node.reports.unreadable == ({} if gone else {ID: "not JSON"})


async def test_a_token_that_was_served_and_cannot_be_read_any_more_is_gone() -> None:
    node = Node()
    await node.open(sealed(TOKEN, 5))
    assert await node.open(replace(UNREADABLE["not JSON"], stat=stat(6, 2))) is None
    assert node.heard == [TOKEN, None]


async def test_tokens_of_a_key_that_leaves_the_ring_are_kept_apart_until_it_is_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    node = Node()
    old = replace(TOKEN, key_id=OLDER.id)
    await node.open(sealed(old, 5))
    node.keyring.replace(CURRENT)
    assert node.heard == [old, None]
    assert node.reports.unreadable == {ID: f"the key {OLDER.id} has left the ring"}
    assert caplog.messages == ["Delegation tokens that are not served, because their keys have left the ring: 1"]
    assert not node.reports.untried
    node.keyring.replace(CURRENT, [OLDER])
    assert await node.open(sealed(old, 5)) == old
    assert node.reports.unreadable == {}


@pytest.mark.parametrize("is_sealed", [True, False], ids=["sealed", "plain"])
async def test_what_was_created_here_is_no_error_when_its_key_has_left(
    caplog: pytest.LogCaptureFixture, *, is_sealed: bool
) -> None:
    node = Node()
    old = replace(TOKEN, key_id=OLDER.id)
    znode = sealed(old, 5, version=0) if is_sealed else plain(old, 5, version=0)
    node.reports.tell(ID, StoredToken(old, 0, 0), written=znode.data)
    node.keyring.replace(CURRENT)
    assert node.reports.read(ID, znode, if_changed=True) is None
    assert [each.levelno for each in caplog.records] == [logging.WARNING]


async def test_a_token_that_a_broker_has_renewed_is_of_the_key_that_made_it() -> None:
    node = Node()
    old = replace(TOKEN, key_id=OLDER.id)
    renewed = replace(RENEWED, key_id=None)
    await node.open(sealed(old, 5))
    node.reports.read(ID, plain(renewed, 6))
    node.keyring.replace(CURRENT)
    assert node.heard == [old, renewed, None]
    node.keyring.replace(CURRENT, [OLDER])
    node.reports.read(ID, plain(renewed, 6))
    assert node.heard == [old, renewed, None, renewed]


async def test_tokens_of_other_keys_and_of_unknown_ones_stay_when_a_key_leaves_the_ring() -> None:
    for token in (TOKEN, replace(TOKEN, key_id=None)):
        node = Node()
        await node.open(sealed(token, 5))
        node.keyring.replace(CURRENT)
        assert node.heard == [token]


async def test_what_goes_wrong_without_being_foreseen_reaches_whoever_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node()
    monkeypatch.setattr("kafka_dt.zookeeper.sealing.token_codec._open", lambda *_: 1 / 0)
    opening = node.begin(sealed(TOKEN, 5))
    await node.executor.given()
    node.executor.release()
    with pytest.raises(ZeroDivisionError):
        await opening
    monkeypatch.undo()
    assert await node.open(sealed(TOKEN, 5)) == TOKEN


async def test_after_the_end_nothing_is_heard() -> None:
    node = Node()
    opening = node.begin(sealed(TOKEN, 5))
    await node.executor.given()
    node.reports.close()
    node.executor.release()
    await settle()
    assert opening.cancelled()
    assert node.heard == []
