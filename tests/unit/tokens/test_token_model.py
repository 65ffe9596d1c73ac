"""Two nodes against a model of one sentence a rule: any changes, on any node, with news as late as it likes.

The model is one dictionary, as if there were no caches and no nodes. What a node answers must be what the model
answers, although the node may not have heard of the last changes. The one liberty: a stranger who asks a node that has
not heard of a token's end may be told that it is not theirs instead of that it is gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, TypeVar

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from kafka_dt.tokens import (
    DelegationToken,
    Principal,
    Token,
    TokenError,
    TokenExpired,
    TokenNotFound,
    TokenOwnerMismatch,
)
from tests.support.tokens.nodes import ALICE, BOB, CAROL, DAY, HOUR, SECRET_KEY, Cluster, everything, nothing_more

Result = TypeVar("Result")

PRINCIPALS = st.sampled_from([ALICE, BOB, CAROL])
NODES = st.integers(0, 1)
PERIODS = st.sampled_from([-1, 0, 1, HOUR, 2 * DAY, 30 * DAY, 2**63 - 1])


class TokenModel(RuleBasedStateMachine):
    created = Bundle("created")
    deleted = Bundle("deleted")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.cluster = Cluster()
        self.nodes = [self.cluster.node(), self.cluster.node()]
        for node in self.nodes:
            self.run(node.manager.start())
        self.model: dict[str, Token] = {}

    def run(self, request: Coroutine[Any, Any, Result]) -> Result:
        return self.loop.run_until_complete(request)

    def outcome(self, request: Coroutine[Any, Any, Result]) -> Result | type[TokenError]:
        try:
            return self.run(request)
        except TokenError as refusal:
            return type(refusal)

    @property
    def now_ms(self) -> int:
        return self.cluster.clock.now_ms

    @rule(
        target=created,
        node=NODES,
        owner=PRINCIPALS,
        renewers=st.lists(PRINCIPALS, max_size=2),
        lifetime_ms=st.sampled_from([-1, 1, HOUR, 3 * DAY, 30 * DAY]),
    )
    def create(self, node: int, owner: Principal, renewers: list[Principal], lifetime_ms: int) -> DelegationToken:
        made = self.run(self.nodes[node].manager.create(owner, CAROL, renewers, lifetime_ms))
        end = self.now_ms + (min(lifetime_ms, 7 * DAY) if lifetime_ms > 0 else 7 * DAY)
        self.model[made.token.token_id] = Token(
            made.token.token_id,
            owner,
            CAROL,
            tuple(renewers),
            self.now_ms,
            end,
            min(end, self.now_ms + DAY),
            SECRET_KEY.id,
        )
        return made

    @rule(node=NODES, made=created, requester=PRINCIPALS, period_ms=PERIODS)
    def renew(self, node: int, made: DelegationToken, requester: Principal, period_ms: int) -> None:
        answer = self.outcome(self.nodes[node].manager.renew(requester, made.hmac, period_ms))
        self.check(made, requester, answer, DAY if period_ms < 0 else period_ms)

    @rule(node=NODES, made=created, requester=PRINCIPALS, period_ms=PERIODS.filter(lambda period_ms: period_ms >= 0))
    def expire(self, node: int, made: DelegationToken, requester: Principal, period_ms: int) -> None:
        answer = self.outcome(self.nodes[node].manager.expire(requester, made.hmac, period_ms))
        self.check(made, requester, answer, period_ms)

    @rule(target=deleted, node=NODES, made=consumes(created))
    def delete(self, node: int, made: DelegationToken) -> Any:
        token = self.model.pop(made.token.token_id, None)
        answer = self.outcome(self.nodes[node].manager.expire(made.token.owner, made.hmac, -1))
        assert answer == (TokenNotFound if token is None else self.now_ms)
        assert self.nodes[node].manager.find(made.token.token_id) is None
        return made if token else multiple()

    @rule(node=NODES, made=deleted, requester=PRINCIPALS, period_ms=PERIODS)
    def touch_deleted(self, node: int, made: DelegationToken, requester: Principal, period_ms: int) -> None:
        self.check(made, requester, self.outcome(self.nodes[node].manager.renew(requester, made.hmac, period_ms)), 0)

    @rule(advance_ms=st.sampled_from([1, HOUR, DAY, 4 * DAY]))
    def pass_time(self, advance_ms: int) -> None:
        self.cluster.clock.now_ms += advance_ms

    @rule(node=NODES)
    def hear_news(self, node: int) -> None:
        self.nodes[node].store.deliver()
        known = {each.token.token_id: each.token for each in self.nodes[node].cache.concerning(None)}
        assert known == self.model

    @rule(node=NODES)
    def purge(self, node: int) -> None:
        self.nodes[node].store.deliver()
        expired = {token_id for token_id, token in self.model.items() if token.is_expired(self.now_ms)}
        assert self.run(self.nodes[node].manager.remove_expired()) == len(expired)
        for token_id in expired:
            del self.model[token_id]

    @rule(node=NODES, made=created | deleted)
    def look_up(self, node: int, made: DelegationToken) -> None:
        found = self.run(self.nodes[node].manager.lookup(made.token.token_id))
        if made.token.token_id in self.model:
            assert found is not None
            assert found.hmac == made.hmac

    @rule(node=NODES, requester=PRINCIPALS, owners=st.none() | st.lists(PRINCIPALS, max_size=2), acls=st.booleans())
    def describe(self, node: int, requester: Principal, owners: list[Principal] | None, acls: bool) -> None:
        visible = nothing_more if acls else everything
        described = self.run(self.nodes[node].describe(requester, owners, visible))
        assert {each.token.token_id: each.token for each in described} == {
            token_id: token
            for token_id, token in self.model.items()
            if (owners is None or any(token.concerns(owner) for owner in owners))
            and (not acls or token.concerns(requester))
        }

    @invariant()
    def the_store_is_the_model(self) -> None:
        assert {token_id: each.token for token_id, each in self.cluster.database.tokens.items()} == self.model

    @invariant()
    def every_index_holds_what_the_cache_holds(self) -> None:
        for node in self.nodes:
            everyone = node.cache.concerning(None)
            for principal in (ALICE, BOB, CAROL):
                concerned = [each for each in everyone if each.token.concerns(principal)]
                assert sorted(map(_id, node.cache.concerning([principal]))) == sorted(map(_id, concerned))
            assert all(node.cache.by_hmac(each.hmac) == each for each in everyone)
            assert len(node.cache._token_ids) == len(everyone)

    def check(
        self, made: DelegationToken, requester: Principal, answer: int | type[TokenError], period_ms: int
    ) -> None:
        """Compare the answer to a change with the model's, and apply it to the model."""
        token = self.model.get(made.token.token_id)
        if token is None:
            stranger = not made.token.may_renew(requester)
            assert answer is TokenNotFound or (stranger and answer is TokenOwnerMismatch)
        elif not token.may_renew(requester):
            assert answer is TokenOwnerMismatch
        elif token.is_expired(self.now_ms):
            assert answer is TokenExpired
        else:
            expected = min(token.max_timestamp_ms, self.now_ms + period_ms)
            assert answer == expected
            self.model[token.token_id] = replace(token, expiry_timestamp_ms=expected)

    def teardown(self) -> None:
        self.loop.close()


def _id(delegation: DelegationToken) -> str:
    return delegation.token.token_id


TokenModel.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestTokenModel = TokenModel.TestCase
