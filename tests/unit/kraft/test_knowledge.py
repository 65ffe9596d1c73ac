"""What is known never goes back, whatever a broker describes and whatever this worker changes meanwhile."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import count

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, rule

from kafka_dt.kraft import knowledge as knowledge_module
from kafka_dt.kraft.knowledge import Knowledge
from kafka_dt.kraft.news.message import Revocation
from kafka_dt.tokens import StoredToken, Token, TokenCache
from tests.support.tokens.store_contract import new_token

TOKEN = new_token()

Tokens = dict[str, StoredToken]


def stored(token_id: str, number: int) -> StoredToken:
    """The state of a token that is made by the change of that number."""
    return StoredToken(replace(TOKEN, token_id=token_id, expiry_timestamp_ms=number), hmac=token_id.encode())


class Cluster(RuleBasedStateMachine):
    """A cluster, one broker whose image is behind, and what a worker knows.

    The log has what there was after each change. The expiry of each state of a token is the number of its change.
    """

    changes = Bundle("changes")

    def __init__(self) -> None:
        super().__init__()
        self.cache = TokenCache(None)
        self.clock = 0.0
        self.knowledge = Knowledge(self.cache, lambda: self.clock)
        self.knowledge.on_change(self.hear)
        self.numbers = count(1)
        self.log: list[Tokens] = [{}]
        self.dead: set[str] = set()
        self.image = 0
        self.taken: Tokens = {}

    def take(self, asked_s: float | None = None) -> None:
        tokens = self.log[self.image]
        fresh = [token_id for token_id, state in tokens.items() if self.taken.get(token_id) != state]
        asyncio.run(self.knowledge.take(tokens, fresh, asked_s))
        self.taken = tokens

    def hear(self, token_id: str, state: StoredToken | None) -> None:
        if state is None:
            if self.cache.get(token_id) is not None:
                self.dead.add(token_id)
        else:
            held = self.cache.get(token_id)
            assert token_id not in self.dead, "a token came back"
            assert held is None or held.token.expiry_timestamp_ms <= state.token.expiry_timestamp_ms, "it went back"
        self.cache.apply(token_id, state)

    def change(self, token_id: str, number: int | None) -> StoredToken | None:
        tokens = dict(self.log[-1])
        if number is None:
            tokens.pop(token_id, None)
        else:
            tokens[token_id] = stored(token_id, number)
        self.log.append(tokens)
        return tokens.get(token_id)

    @initialize()
    def begin(self) -> None:
        self.prove()

    @rule(target=changes)
    def another_node_makes_a_token(self) -> str:
        token_id = new_token().token_id
        self.change(token_id, next(self.numbers))
        return token_id

    @rule(target=changes)
    def this_worker_makes_a_token(self) -> str:
        token_id = new_token().token_id
        self.clock += 1
        self.knowledge.changed(token_id, self.change(token_id, next(self.numbers)))
        return token_id

    @rule(token_id=changes)
    def another_node_renews(self, token_id: str) -> None:
        if token_id in self.log[-1]:
            self.change(token_id, next(self.numbers))

    @rule(token_id=changes)
    def this_worker_renews(self, token_id: str) -> None:
        if token_id in self.log[-1] and self.cache.get(token_id) is not None:
            self.clock += 1
            self.knowledge.changed(token_id, self.change(token_id, next(self.numbers)))

    @rule(token_id=changes)
    def another_node_deletes(self, token_id: str) -> None:
        self.change(token_id, None)

    @rule(token_id=changes)
    def another_node_deletes_and_tells(self, token_id: str) -> None:
        self.clock += 1
        self.change(token_id, None)
        self.knowledge.heard(Revocation.of(token_id, token_id.encode(), None))
        assert self.cache.get(token_id) is None

    @rule(token_id=changes, end_ms=st.none() | st.integers(1, 9))
    def a_stranger_makes_up_a_message(self, token_id: str, end_ms: int | None) -> None:
        self.clock += 1
        before = self.cache.get(token_id)
        self.knowledge.heard(Revocation.of(token_id, b"a guess", end_ms))
        assert self.cache.get(token_id) == before

    @rule()
    def messages_are_missed(self) -> None:
        self.knowledge.missed()
        assert self.knowledge.unproved

    @rule(token_id=changes)
    def this_worker_deletes(self, token_id: str) -> None:
        self.clock += 1
        self.knowledge.changed(token_id, self.change(token_id, None))

    @rule(share=st.floats(0, 1))
    def look(self, share: float) -> None:
        self.image += round(share * (len(self.log) - 1 - self.image))
        self.take()

    @rule()
    def prove(self) -> None:
        self.clock += 1
        self.image = len(self.log) - 1
        self.take(asked_s=self.clock)
        known = {token_id: self.cache.get(token_id) for token_id in self.cache.copied_ids()}
        assert {token_id: held and held.token for token_id, held in known.items()} == {
            token_id: state.token for token_id, state in self.log[-1].items()
        }
        assert not self.knowledge.unproved


Cluster.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestKnowledge = Cluster.TestCase


async def test_another_hmac_of_a_token_shows_that_the_servers_have_different_keys(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cache = TokenCache(None)
    known = Knowledge(cache, lambda: 0.0)
    known.on_change(cache.apply)
    of_controller = StoredToken(TOKEN, hmac=b"of the controller's key")
    await known.take({TOKEN.token_id: of_controller}, [TOKEN.token_id])
    renewed = replace(of_controller, token=TOKEN.expiring_at(TOKEN.expiry_timestamp_ms + 1))
    await known.take({TOKEN.token_id: renewed}, [TOKEN.token_id])
    assert not caplog.records
    of_broker = replace(renewed, hmac=b"of the broker's key")
    await known.take({TOKEN.token_id: of_broker}, [TOKEN.token_id])
    await known.take({TOKEN.token_id: of_broker}, [TOKEN.token_id])
    (said,) = caplog.messages
    assert TOKEN.token_id in said
    assert "set the same delegation.token.secret.key on all its brokers and controllers" in said


async def test_a_change_during_an_answer_hides_its_token_from_the_rest_of_it() -> None:
    cache = TokenCache(None)
    knowledge = Knowledge(cache, lambda: 5.0)
    knowledge.on_change(cache.apply)
    made = [new_token() for _ in range(1_500)]
    tokens = {each.token_id: StoredToken(each, hmac=each.token_id.encode()) for each in made}
    last = list(tokens)[-1]
    taking = asyncio.create_task(knowledge.take(tokens, tokens, asked_s=4.0))
    await asyncio.sleep(0)
    shortened = StoredToken(made[-1].expiring_at(1), hmac=b"hmac")
    knowledge.changed(last, shortened)
    await taking
    assert known(cache, last) == shortened.token
    assert knowledge.unproved
    await knowledge.take(tokens, (), asked_s=6.0)
    assert known(cache, last) == made[-1]
    assert not knowledge.unproved


class Deletion:
    """What a worker knows after it has deleted a token that the cluster had; every look at its clock is a second."""

    def __init__(self) -> None:
        self.cache = TokenCache(None)
        self.seconds = count()
        self.knowledge = Knowledge(self.cache, lambda: next(self.seconds))
        self.returned: list[StoredToken] = []
        self.knowledge.on_change(self.cache.apply)
        self.knowledge.on_return(self.returned.append)
        self.tokens = {TOKEN.token_id: StoredToken(TOKEN, hmac=b"hmac")}

    @classmethod
    async def made(cls) -> Deletion:
        self = cls()
        await self.prove(self.tokens)
        self.knowledge.changed(TOKEN.token_id, None)
        return self

    async def prove(self, tokens: Tokens) -> None:
        """Let a broker describe tokens that was asked now."""
        await self.knowledge.take(tokens, tokens, asked_s=next(self.seconds))


async def test_a_token_that_was_deleted_here_stays_hidden_until_a_proof_shows_that_it_has_gone() -> None:
    deletion = await Deletion.made()
    await deletion.knowledge.take(deletion.tokens, ())
    assert deletion.returned == [], "the broker may not have heard of the deletion"
    for times in (1, 2):
        await deletion.prove(deletion.tokens)
        assert deletion.returned == list(deletion.tokens.values()) * times
        assert deletion.cache.get(TOKEN.token_id) is None
    await deletion.prove({})
    assert not deletion.knowledge.unproved


async def test_a_token_that_was_deleted_here_does_not_return_after_it_had_gone() -> None:
    """A controller may be behind its brokers, and decide on a renewal when a proof has shown the deletion already."""
    deletion = await Deletion.made()
    await deletion.prove({})
    assert not deletion.knowledge.unproved
    await deletion.knowledge.take(deletion.tokens, deletion.tokens)
    assert deletion.cache.get(TOKEN.token_id) is None
    assert deletion.returned == list(deletion.tokens.values())
    assert deletion.knowledge.unproved, "a proof tells whether it has gone again"


async def test_only_so_many_deletions_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_dt.kraft.knowledge.REMEMBERED_DELETIONS", 2)
    cache = TokenCache(None)
    seconds = count()
    knowledge = Knowledge(cache, lambda: next(seconds))
    knowledge.on_change(cache.apply)
    made = [new_token() for _ in range(3)]
    for each in made:
        knowledge.changed(each.token_id, None)
    await knowledge.take({}, (), asked_s=next(seconds))
    tokens = {each.token_id: StoredToken(each, hmac=each.token_id.encode()) for each in made}
    await knowledge.take(tokens, tokens)
    assert list(cache.copied_ids()) == [made[0].token_id]


def known(cache: TokenCache, token_id: str) -> Token | None:
    held = cache.get(token_id)
    return None if held is None else held.token


HMAC = bytes(64)
TOKENS = {TOKEN.token_id: StoredToken(TOKEN, hmac=HMAC)}
"""What the cluster has."""


@pytest.fixture
def seconds() -> count[int]:
    return count()


@pytest.fixture
def knowledge(cache: TokenCache, seconds: count[int]) -> Knowledge:
    """A worker that has not heard of TOKEN."""
    knowledge = Knowledge(cache, lambda: next(seconds))
    knowledge.on_change(cache.apply)
    return knowledge


@pytest.fixture
async def known_token(knowledge: Knowledge, seconds: count[int]) -> Knowledge:
    """A worker that has heard of TOKEN, by a proof."""
    await knowledge.take(TOKENS, TOKENS, asked_s=next(seconds))
    return knowledge


async def test_a_message_shortens_a_token_until_an_answer_is_newer(
    known_token: Knowledge, cache: TokenCache, seconds: count[int]
) -> None:
    known_token.heard(Revocation.of(TOKEN.token_id, HMAC, TOKEN.end_timestamp_ms - 5))
    shortened = TOKEN.expiring_at(TOKEN.end_timestamp_ms - 5)
    assert known(cache, TOKEN.token_id) == shortened
    await known_token.take(TOKENS, TOKENS)
    assert known(cache, TOKEN.token_id) == shortened, "the broker may not have heard of it"
    await known_token.take(TOKENS, (), asked_s=next(seconds))
    assert known(cache, TOKEN.token_id) == TOKEN, "it was renewed since"


async def test_a_message_that_is_repeated_does_not_end_a_token_again_that_was_renewed_since(
    known_token: Knowledge, cache: TokenCache, seconds: count[int]
) -> None:
    """A writer of the topic can repeat the records of others, who have ended the token before."""
    sooner, soonest = (Revocation.of(TOKEN.token_id, HMAC, TOKEN.end_timestamp_ms - ms) for ms in (5, 9))
    known_token.heard(sooner)
    await known_token.take(TOKENS, (), asked_s=next(seconds))
    known_token.heard(sooner)
    assert known(cache, TOKEN.token_id) == TOKEN
    assert not known_token.unproved
    known_token.heard(soonest)
    assert known(cache, TOKEN.token_id) == TOKEN.expiring_at(TOKEN.end_timestamp_ms - 9)


async def test_a_message_never_prolongs_a_token(known_token: Knowledge, cache: TokenCache) -> None:
    known_token.heard(Revocation.of(TOKEN.token_id, HMAC, TOKEN.end_timestamp_ms + 5))
    assert known(cache, TOKEN.token_id) == TOKEN
    assert not known_token.unproved


async def test_a_message_without_the_proof_of_the_token_changes_nothing(
    known_token: Knowledge, cache: TokenCache
) -> None:
    known_token.heard(Revocation.of(TOKEN.token_id, b"a guess", None))
    assert known(cache, TOKEN.token_id) == TOKEN
    assert not known_token.unproved


async def test_a_token_that_is_not_known_yet_is_hidden_until_an_answer_is_newer_than_the_message(
    knowledge: Knowledge, cache: TokenCache, seconds: count[int]
) -> None:
    asked_s = next(seconds)
    knowledge.heard(Revocation.of(TOKEN.token_id, HMAC, None))
    await knowledge.take(TOKENS, TOKENS, asked_s)
    assert cache.get(TOKEN.token_id) is None
    await knowledge.take(TOKENS, (), asked_s=next(seconds))
    assert known(cache, TOKEN.token_id) == TOKEN, "a renewal has brought it back"


async def test_messages_that_do_not_prove_to_know_a_token_hide_it_from_no_worker(
    knowledge: Knowledge, cache: TokenCache, seconds: count[int]
) -> None:
    """A writer of the topic who has the id of a token, and repeats what it makes up, keeps no login from succeeding."""
    asked_s = next(seconds)
    for guess in (b"a guess", b"another guess"):
        knowledge.heard(Revocation.of(TOKEN.token_id, guess, None))
        knowledge.heard(Revocation.of(TOKEN.token_id, guess, TOKEN.issue_timestamp_ms))
    await knowledge.take(TOKENS, TOKENS, asked_s)
    assert known(cache, TOKEN.token_id) == TOKEN


async def test_made_up_messages_do_not_take_the_place_of_a_true_one(knowledge: Knowledge, cache: TokenCache) -> None:
    knowledge.heard(Revocation.of(TOKEN.token_id, b"a guess", None))
    knowledge.heard(Revocation.of(TOKEN.token_id, HMAC, TOKEN.end_timestamp_ms - 5))
    knowledge.heard(Revocation.of(TOKEN.token_id, b"another guess", TOKEN.issue_timestamp_ms))
    await knowledge.take(TOKENS, TOKENS)
    assert known(cache, TOKEN.token_id) == TOKEN.expiring_at(TOKEN.end_timestamp_ms - 5)


async def test_of_the_messages_about_an_unknown_token_those_go_that_an_answer_is_newer_than(
    knowledge: Knowledge, cache: TokenCache, seconds: count[int]
) -> None:
    knowledge.heard(Revocation.of(TOKEN.token_id, HMAC, None))
    asked_s = next(seconds)
    knowledge.heard(Revocation.of(TOKEN.token_id, HMAC, TOKEN.end_timestamp_ms - 5))
    await knowledge.take(TOKENS, TOKENS, asked_s)
    assert known(cache, TOKEN.token_id) == TOKEN.expiring_at(TOKEN.end_timestamp_ms - 5)
    await knowledge.take(TOKENS, (), asked_s=next(seconds))
    assert known(cache, TOKEN.token_id) == TOKEN
    assert not knowledge.unproved


async def test_a_token_that_is_not_known_yet_is_listed_with_the_end_that_a_message_tells(
    knowledge: Knowledge, cache: TokenCache, seconds: count[int]
) -> None:
    """A describe whose proof began before the message must show the token: only its end is not known for certain."""
    asked_s = next(seconds)
    end_ms = TOKEN.end_timestamp_ms - 5
    knowledge.heard(Revocation.of(TOKEN.token_id, HMAC, end_ms))
    await knowledge.take(TOKENS, TOKENS, asked_s)
    assert known(cache, TOKEN.token_id) == TOKEN.expiring_at(end_ms)
    await knowledge.take(TOKENS, (), asked_s=next(seconds))
    assert known(cache, TOKEN.token_id) == TOKEN, "it was renewed since"


async def test_a_message_that_is_heard_twice_does_not_bring_back_what_a_later_one_has_deleted(
    knowledge: Knowledge, cache: TokenCache
) -> None:
    """Every replica of the topic is read, one of them later than the other."""
    shortened = Revocation.of(TOKEN.token_id, HMAC, TOKEN.end_timestamp_ms - 5)
    knowledge.heard(shortened)
    await knowledge.take(TOKENS, TOKENS)
    knowledge.heard(Revocation.of(TOKEN.token_id, HMAC, None))
    knowledge.heard(shortened)
    await knowledge.take(TOKENS, TOKENS)
    assert cache.get(TOKEN.token_id) is None


async def test_the_earliest_end_that_messages_tell_of_an_unknown_token_holds(
    knowledge: Knowledge, cache: TokenCache
) -> None:
    for sooner_ms in (5, 9, 7):
        knowledge.heard(Revocation.of(TOKEN.token_id, HMAC, TOKEN.end_timestamp_ms - sooner_ms))
    await knowledge.take(TOKENS, TOKENS)
    assert known(cache, TOKEN.token_id) == TOKEN.expiring_at(TOKEN.end_timestamp_ms - 9)
    knowledge.heard(Revocation.of(TOKEN.token_id, HMAC, None))
    await knowledge.take(TOKENS, TOKENS)
    assert cache.get(TOKEN.token_id) is None


async def test_what_this_worker_has_told_itself_is_no_news(known_token: Knowledge, seconds: count[int]) -> None:
    known_token.changed(TOKEN.token_id, None)
    await known_token.take({}, (), asked_s=next(seconds))
    known_token.heard(Revocation.of(TOKEN.token_id, HMAC, None))
    assert not known_token.unproved


async def test_messages_about_unknown_tokens_take_no_more_than_some_memory(
    knowledge: Knowledge, cache: TokenCache, seconds: count[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(knowledge_module, "REMEMBERED_DELETIONS", 3)
    made = [new_token() for _ in range(5)]
    for each in made:
        for _ in range(2):  # from two replicas
            knowledge.heard(Revocation.of(each.token_id, each.token_id.encode(), None))
    tokens = {each.token_id: StoredToken(each, hmac=each.token_id.encode()) for each in made}
    await knowledge.take(tokens, tokens)
    assert set(cache.copied_ids()) == {each.token_id for each in made[3:]}
    await knowledge.take(tokens, (), asked_s=next(seconds))
    knowledge.heard(Revocation.of(TOKEN.token_id, HMAC, None))
    await knowledge.take(TOKENS, TOKENS)
    assert cache.get(TOKEN.token_id) is None, "there is room again"


async def test_missed_messages_are_made_good_by_a_proof_that_began_later(
    known_token: Knowledge, seconds: count[int]
) -> None:
    asked_s = next(seconds)
    known_token.missed()
    await known_token.take({}, (), asked_s)
    assert known_token.unproved
    await known_token.take({}, (), asked_s=next(seconds))
    assert not known_token.unproved
