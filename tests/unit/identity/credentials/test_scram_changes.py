"""The rules about changes of SCRAM users, on a store in memory."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_dt.identity.credentials.scram_changes import (
    CHANGES_AT_ONCE,
    MAX_ITERATIONS,
    ChangedTwice,
    Deletion,
    NoSuchCredential,
    ScramUserManager,
    UnacceptableCredential,
    UnknownMechanism,
    Upsertion,
)
from kafka_dt.tokens import StoreUnavailable
from kafka_dt_protocol.sasl import ScramMechanism, derive_credential
from tests.support.identity.scram_changes import SALT, MemoryScramUserStore, salted_password

SHA_256, SHA_512 = ScramMechanism.SHA_256, ScramMechanism.SHA_512


def added(user: str, mechanism: ScramMechanism | None = SHA_256, **changes: Any) -> Upsertion:
    salted = salted_password(mechanism or SHA_256, "secret")
    values = {"iterations": 4096, "salt": SALT, "salted_password": salted, **changes}
    return Upsertion(user, mechanism, **values)


@pytest.fixture
def store() -> MemoryScramUserStore:
    return MemoryScramUserStore()


@pytest.fixture
def manager(store: MemoryScramUserStore) -> ScramUserManager:
    return ScramUserManager(store)


@pytest.mark.parametrize("mechanism", ScramMechanism)
async def test_what_is_kept_is_what_the_password_would_give(
    store: MemoryScramUserStore, manager: ScramUserManager, mechanism: ScramMechanism
) -> None:
    outcomes = await manager.alter([], [added("alice", mechanism)])
    assert outcomes == {"alice": None}
    assert store.users["alice"][mechanism] == derive_credential(mechanism, "secret", SALT, 4096)


async def test_a_user_is_deleted_and_another_changed_in_one_request(
    store: MemoryScramUserStore, manager: ScramUserManager
) -> None:
    await manager.alter([], [added("alice"), added("alice", SHA_512), added("bob")])
    outcomes = await manager.alter([Deletion("alice", SHA_256), Deletion("bob", SHA_256)], [added("bob", SHA_512)])
    assert outcomes == {"alice": None, "bob": None}
    assert (set(store.users["alice"]), set(store.users["bob"])) == ({SHA_512}, {SHA_512})


@pytest.mark.parametrize(
    ("deletions", "upsertions", "expected"),
    [
        ([Deletion("", SHA_256)], [], UnacceptableCredential),
        ([], [added("")], UnacceptableCredential),
        ([], [added("..")], UnacceptableCredential),
        ([Deletion("u", None)], [], UnknownMechanism),
        ([], [added("u", None)], UnknownMechanism),
        ([], [added("u", iterations=4095)], UnacceptableCredential),
        ([], [added("u", iterations=-1)], UnacceptableCredential),
        ([], [added("u", iterations=MAX_ITERATIONS + 1)], UnacceptableCredential),
        ([], [added("u", salt=b"")], UnacceptableCredential),
        ([], [added("u", salted_password=b"")], UnacceptableCredential),
        ([], [added("u", SHA_512, salted_password=bytes(32))], UnacceptableCredential),
        ([], [added("u"), added("u")], ChangedTwice),
        ([Deletion("u", SHA_256), Deletion("u", SHA_256)], [], ChangedTwice),
        ([Deletion("u", SHA_256)], [added("u")], ChangedTwice),
        ([Deletion("u", None)], [added("u", iterations=1)], UnacceptableCredential),
        ([], [added("u", iterations=1), added("u", None)], UnknownMechanism),
        ([], [added("u", iterations=1), added("u", SHA_512)], UnacceptableCredential),
        ([Deletion("u", SHA_256)], [], NoSuchCredential),
        ([Deletion("u", SHA_256)], [added("u", SHA_512)], NoSuchCredential),
    ],
)
async def test_what_is_wrong_with_a_user_changes_nothing_of_it_and_spares_the_others(
    store: MemoryScramUserStore,
    manager: ScramUserManager,
    deletions: list[Deletion],
    upsertions: list[Upsertion],
    expected: type[Exception],
) -> None:
    outcomes = await manager.alter(deletions, [*upsertions, added("other")])
    (wrong,) = [user for user in outcomes if user != "other"]
    assert type(outcomes[wrong]) is expected
    assert outcomes["other"] is None
    assert list(store.users) == ["other"]


async def test_the_largest_and_the_smallest_count_of_iterations_are_fine(manager: ScramUserManager) -> None:
    outcomes = await manager.alter([], [added("a", iterations=4096), added("b", iterations=MAX_ITERATIONS)])
    assert outcomes == {"a": None, "b": None}


async def test_a_request_about_very_many_users_changes_all_of_them(
    store: MemoryScramUserStore, manager: ScramUserManager
) -> None:
    names = [f"user-{number}" for number in range(2 * CHANGES_AT_ONCE + 1)]
    outcomes = await manager.alter([], [added(name) for name in names])
    assert outcomes == dict.fromkeys(names)
    assert len(store.users) == len(names)


async def test_what_the_store_cannot_do_now_is_told_for_the_user(
    store: MemoryScramUserStore, manager: ScramUserManager
) -> None:
    store.unavailable = True
    outcomes = await manager.alter([], [added("alice"), added("", SHA_256)])
    assert isinstance(outcomes["alice"], StoreUnavailable)
    assert isinstance(outcomes[""], UnacceptableCredential)
    with pytest.raises(StoreUnavailable):
        await manager.describe([])


async def test_all_users_are_described_in_the_order_of_their_names(manager: ScramUserManager) -> None:
    await manager.alter([], [added("zoe"), added("alice", SHA_512), added("bob")])
    await manager.alter([Deletion("bob", SHA_256)], [])
    described = await manager.describe([])
    assert list(described) == ["alice", "zoe"]
    assert list(described["alice"]) == [SHA_512]  # type: ignore[arg-type]


async def test_users_who_are_asked_for_are_described_once_each(manager: ScramUserManager) -> None:
    await manager.alter([], [added("alice"), added("twice")])
    described = await manager.describe(["nobody", "alice", "twice", "twice", "", ""])
    assert list(described) == ["nobody", "alice", "twice", ""]
    kinds = {user: type(found) for user, found in described.items()}
    assert kinds == {"nobody": NoSuchCredential, "alice": dict, "twice": ChangedTwice, "": NoSuchCredential}


def test_a_salted_password_does_not_show() -> None:
    upsertion = Upsertion("alice", SHA_256, 4096, SALT, b"as good as the password")
    assert "password" not in repr(upsertion).replace("salted_password", "")
