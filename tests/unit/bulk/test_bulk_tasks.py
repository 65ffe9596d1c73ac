"""What each task decides about one znode."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from kafka_dt.bulk.decisions import Fail, Leave, Remove, Task, Write
from kafka_dt.bulk.tasks import NOT_READABLE, STILL_LIVE, Expire, ExpireOfKey, Reseal, Seal, TokenFilter, Unseal, Verify
from kafka_dt.tokens import SecretKey
from kafka_dt.zookeeper.sealing.sealed import is_sealed, open_sealed
from tests.support.zookeeper.sealable import DAY_MS, FOREIGN_KEY, NEW_KEY, NOW_MS, OLD_KEY, RING, plain, sealed, token
from tests.support.zookeeper.token_codecs import derivations_counted

TOKEN = token()
AS_A_BROKER_WRITES = plain(replace(TOKEN, key_id=None)).replace(b'"version":3', b'"version":3 , "more":[1]')


def decided(task: Task, data: bytes) -> object:
    (decision,) = task([(TOKEN.token_id, data)])
    return decision


def _of_key(key: SecretKey, now_ms: int = NOW_MS, *, live: bool = False, nameless: bool = False) -> ExpireOfKey:
    return ExpireOfKey(RING, key.id, lambda: now_ms, live=live, nameless=nameless)


def opened(decision: object) -> tuple[bytes, object]:
    assert isinstance(decision, Write)
    found = open_sealed(RING.keys, decision.data)
    return found.plaintext, found.key


@pytest.mark.parametrize("data", [AS_A_BROKER_WRITES, plain(TOKEN)])
def test_seal_keeps_the_json_as_it_is(data: bytes) -> None:
    assert opened(decided(Seal(RING, os.urandom), data)) == (data, NEW_KEY)


def test_seal_seals_again_what_an_older_key_sealed_and_leaves_what_the_current_one_did() -> None:
    assert opened(decided(Seal(RING, os.urandom), sealed(TOKEN, OLD_KEY))) == (plain(TOKEN), NEW_KEY)
    assert decided(Seal(RING, os.urandom), sealed(TOKEN)) == Leave()


def test_each_sealing_has_a_salt_of_its_own() -> None:
    salts = iter([b"a" * 16, b"b" * 16])
    task = Seal(RING, lambda _: next(salts))
    assert decided(task, plain(TOKEN)) != decided(task, plain(TOKEN))


def test_reseal_touches_what_that_key_sealed_and_nothing_else() -> None:
    task = Reseal(RING, os.urandom, OLD_KEY.id)
    assert opened(decided(task, sealed(TOKEN, OLD_KEY))) == (plain(TOKEN), NEW_KEY)
    assert decided(task, sealed(TOKEN)) == decided(task, plain(TOKEN)) == Leave()


def test_what_is_sealed_with_the_current_key_is_not_sealed_again_with_it() -> None:
    assert decided(Reseal(RING, os.urandom, NEW_KEY.id), sealed(TOKEN)) == Leave()


def test_reseal_of_no_certain_key_touches_what_any_older_one_sealed() -> None:
    task = Reseal(RING, os.urandom)
    assert opened(decided(task, sealed(TOKEN, OLD_KEY))) == (plain(TOKEN), NEW_KEY)
    assert decided(task, sealed(TOKEN)) == decided(task, plain(TOKEN)) == Leave()


def test_unseal_gives_back_what_was_sealed_and_leaves_what_is_plain() -> None:
    assert decided(Unseal(RING), sealed(TOKEN, OLD_KEY)) == Write(plain(TOKEN))
    assert decided(Unseal(RING), AS_A_BROKER_WRITES) == Leave()


def test_only_what_others_must_learn_of_is_announced() -> None:
    announced: list[Task] = [Unseal(RING), Expire(RING, TokenFilter()), _of_key(NEW_KEY)]
    silent: list[Task] = [Seal(RING, os.urandom), Reseal(RING, os.urandom, OLD_KEY.id), Verify(RING)]
    assert [task.announces for task in (*announced, *silent)] == [True] * 3 + [False] * 3


UNREADABLE = [
    (sealed(TOKEN, FOREIGN_KEY), "MAC"),
    (sealed(TOKEN)[:-8], "cut off"),
    (b"RFRFAg==", "version"),
    (b"{", "JSON"),
    (b"", "JSON"),
    (plain(token(1)), "another token"),
    (sealed(token(1)), "another token"),
    (plain(replace(TOKEN, key_id=FOREIGN_KEY.id)), "none of the secret keys"),
]


@pytest.mark.parametrize(
    "task",
    [
        Seal(RING, os.urandom),
        Unseal(RING),
        Verify(RING),
        Expire(RING, TokenFilter()),
        _of_key(OLD_KEY, live=True, nameless=True),
    ],
    ids=lambda task: type(task).__name__,
)
@pytest.mark.parametrize(("data", "reason"), UNREADABLE)
def test_what_a_node_would_not_serve_is_left_alone(task: Task, data: bytes, reason: str) -> None:
    decision = decided(task, data)
    assert isinstance(decision, Fail)
    assert reason in decision.reason


@pytest.mark.parametrize(
    ("fields", "odd"),
    [
        ({}, ""),
        ({"expiry_timestamp_ms": NOW_MS}, ""),
        ({"expiry_timestamp_ms": NOW_MS + 7 * DAY_MS}, ""),
        ({"expiry_timestamp_ms": NOW_MS - 1}, "the expiry is before the issue"),
        ({"expiry_timestamp_ms": NOW_MS + 8 * DAY_MS}, "the expiry is beyond the maximum"),
        ({"max_timestamp_ms": NOW_MS - 1}, "the maximum is before the issue"),
        ({"issue_timestamp_ms": -1}, "it was issued before 1970"),
    ],
)
def test_verify_says_which_times_no_broker_would_make(fields: dict[str, int], odd: str) -> None:
    for data in (plain(replace(TOKEN, **fields)), sealed(replace(TOKEN, **fields))):  # type: ignore[arg-type]
        assert decided(Verify(RING), data) == (Fail(f"odd times: {odd}") if odd else Leave())


FILTERS = [
    (TokenFilter(), True),
    (TokenFilter(owners=frozenset({"User:alice"})), True),
    (TokenFilter(owners=frozenset({"User:bob", "User:alice"})), True),
    (TokenFilter(owners=frozenset({"User:bob"})), False),
    (TokenFilter(owners=frozenset({"Group:alice"})), False),
    (TokenFilter(renewers=frozenset({"User:yarn"})), True),
    (TokenFilter(renewers=frozenset({"User:alice"})), False),
    (TokenFilter(issued_before_ms=NOW_MS + 1), True),
    (TokenFilter(issued_before_ms=NOW_MS), False),
    (TokenFilter(frozenset({"User:alice"}), frozenset({"User:yarn"}), NOW_MS + 1), True),
    (TokenFilter(frozenset({"User:alice"}), frozenset({"User:x"}), NOW_MS + 1), False),
]


@pytest.mark.parametrize(("selected", "goes"), FILTERS)
def test_expire_removes_what_the_filter_selects(selected: TokenFilter, goes: bool) -> None:
    data = sealed(token(renewers=("hive", "yarn")))
    assert decided(Expire(RING, selected), data) == (Remove("User:alice", guarded=False) if goes else Leave())


@pytest.mark.parametrize(("data", "reason"), UNREADABLE)
def test_expire_removes_what_a_node_would_not_serve_where_that_is_meant(data: bytes, reason: str) -> None:
    assert decided(Expire(RING, None, unreadable=True), data) == Remove(NOT_READABLE), reason
    assert decided(Expire(RING, None, unreadable=True), sealed(TOKEN)) == Leave()
    assert decided(Expire(RING, TokenFilter(), unreadable=True), sealed(TOKEN)) == Remove("User:alice", guarded=False)


def test_without_a_key_only_plain_tokens_that_name_no_key_are_readable() -> None:
    nameless = plain(replace(TOKEN, key_id=None))
    for data in (sealed(TOKEN), plain(TOKEN)):
        assert decided(Expire(None, TokenFilter(), unreadable=True), data) == Remove(NOT_READABLE)
    assert decided(Expire(None, TokenFilter(), unreadable=True), nameless) == Remove("User:alice", guarded=False)


def test_only_an_empty_filter_selects_all() -> None:
    assert [selected.selects_all for selected, _ in FILTERS] == [True] + [False] * (len(FILTERS) - 1)


def test_tokens_end_by_the_key_that_made_them() -> None:
    of_old, of_nobody = plain(replace(TOKEN, key_id=OLD_KEY.id)), plain(replace(TOKEN, key_id=None))
    assert decided(_of_key(OLD_KEY, live=True), of_old) == Remove(guarded=False)
    assert decided(_of_key(NEW_KEY, live=True, nameless=True), of_old) == Leave()
    assert decided(_of_key(OLD_KEY, live=True), of_nobody) == Leave()
    assert decided(_of_key(OLD_KEY, nameless=True), of_nobody) == Remove(guarded=False)


def test_unless_live_ones_are_meant_what_has_expired_when_it_is_looked_at_ends() -> None:
    expiry_ms = TOKEN.expiry_timestamp_ms
    assert decided(_of_key(NEW_KEY, expiry_ms), plain(TOKEN)) == Fail(STILL_LIVE)
    assert decided(_of_key(NEW_KEY, expiry_ms + 1), plain(TOKEN)) == Remove()


def test_each_znode_of_a_batch_is_decided_about_by_itself() -> None:
    contents = [plain(TOKEN), sealed(TOKEN), b"{", sealed(TOKEN, OLD_KEY), b"RFRF?", b"RFRFAQ==", plain(TOKEN)]
    decisions = Seal(RING, os.urandom)([(TOKEN.token_id, data) for data in contents])
    assert [type(each) for each in decisions] == [Write, Leave, Fail, Write, Fail, Fail, Write]
    assert [opened(decisions[index]) for index in (0, 3, 6)] == [(plain(TOKEN), NEW_KEY)] * 3


def test_the_key_that_opened_the_last_znode_is_tried_first(monkeypatch: pytest.MonkeyPatch) -> None:
    derivations = derivations_counted(monkeypatch)
    verify, old = Verify(RING), sealed(TOKEN, OLD_KEY)
    for costs in ([NEW_KEY, OLD_KEY], [OLD_KEY], [OLD_KEY]):
        derivations.clear()
        assert decided(verify, old) == Leave()
        assert derivations == costs
    derivations.clear()
    assert decided(verify, sealed(TOKEN)) == Leave()
    assert derivations[-1] == NEW_KEY


def test_a_decision_to_seal_is_sealed() -> None:
    decision = decided(Seal(RING, os.urandom), plain(TOKEN))
    assert isinstance(decision, Write)
    assert is_sealed(decision.data)
