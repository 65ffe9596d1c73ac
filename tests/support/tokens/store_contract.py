"""The contracts of stores of tokens, as tests: subclass one in a test module and say how two nodes are made.

`TokenStoreContract` is what every store keeps, whether it compares and sets or decides itself;
`VersionedStoreContract` is what a store keeps that can compare and set.

class TestMyStore(TokenStoreContract):
    @pytest.fixture
    async def places(self, clock): yield first_place, second_place     # on one new, empty store, and loaded
"""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import secrets
import time
from dataclasses import dataclass, field

import pytest

from kafka_dt.tokens import (
    DelegationToken,
    Expiry,
    NewToken,
    Principal,
    Renewal,
    StoredToken,
    Token,
    TokenCache,
    TokenChanges,
    TokenExpired,
    TokenNotFound,
    TokenOwnerMismatch,
    TokenSource,
    VersionConflict,
    VersionedStore,
)
from tests.support.tokens.nodes import ALICE, BOB, CAROL, DAY, HOUR, MALLORY, START, Clock


@dataclass
class Heard:
    """A listener that remembers the newest state of each token, and refuses to go back."""

    states: dict[str, StoredToken | None] = field(default_factory=dict)

    def __call__(self, token_id: str, stored: StoredToken | None) -> None:
        before = self.states.get(token_id)
        if before is not None and stored is not None and stored.revision:
            assert stored.revision >= (before.revision or 0), "an older state was reported after a newer one"
        self.states[token_id] = stored

    def token(self, token_id: str) -> Token | None:
        stored = self.states.get(token_id)
        return None if stored is None else stored.token


@dataclass
class HearingNode:
    store: VersionedStore
    heard: Heard


def new_token(**changes: object) -> Token:
    """A token with a new id; everything else may be named."""
    token = Token(
        token_id=base64.urlsafe_b64encode(secrets.token_bytes(16)).rstrip(b"=").decode(),
        owner=Principal.user("alice"),
        requester=Principal.user("admin"),
        renewers=(Principal.user("bob"), Principal.user("carol, *~")),
        issue_timestamp_ms=1_700_000_000_000,
        max_timestamp_ms=1_700_000_900_000,
        expiry_timestamp_ms=1_700_000_100_000,
    )
    return dataclasses.replace(token, **changes)  # type: ignore[arg-type]


class VersionedStoreContract:
    @pytest.fixture
    async def stores(self) -> tuple[VersionedStore, VersionedStore]:
        raise NotImplementedError("the subclass makes the stores")

    @pytest.fixture
    async def nodes(self, stores: tuple[VersionedStore, VersionedStore]) -> tuple[HearingNode, HearingNode]:
        first, second = (HearingNode(store, Heard()) for store in stores)
        for node in (first, second):
            node.store.on_change(node.heard)
            await node.store.load()
        return first, second

    async def test_load_reports_what_was_stored_before(self, stores: tuple[VersionedStore, VersionedStore]) -> None:
        first, second = stores
        heard = Heard()
        first.on_change(Heard())
        second.on_change(heard)
        await first.load()
        tokens = [new_token() for _ in range(20)]
        for token in tokens:
            await first.create(token)

        await second.load()

        assert {token.token_id: heard.token(token.token_id) for token in tokens} == {
            token.token_id: token for token in tokens
        }

    async def test_every_field_survives_the_store(self, nodes: tuple[HearingNode, HearingNode]) -> None:
        first, second = nodes
        token = new_token(
            owner=Principal("Group", "ops team:ä*~%20"), renewers=(Principal.user(""), Principal.user("")) * 2
        )
        await first.store.create(token)

        stored = await second.store.read(token.token_id)

        assert stored is not None
        assert stored.token == token

    async def test_a_change_has_been_reported_on_its_node_when_it_returns(
        self, nodes: tuple[HearingNode, HearingNode]
    ) -> None:
        node = nodes[0]
        token = new_token()

        created = await node.store.create(token)
        assert node.heard.token(token.token_id) == token == created.token

        renewed = token.expiring_at(token.expiry_timestamp_ms + 5)
        updated = await node.store.update(renewed, created.version)
        assert node.heard.token(token.token_id) == renewed == updated.token
        assert updated.version != created.version

        await node.store.delete(token.token_id, updated.version)
        assert node.heard.states[token.token_id] is None

    async def test_a_read_sees_what_another_node_has_acknowledged(self, nodes: tuple[HearingNode, HearingNode]) -> None:
        first, second = nodes
        for _ in range(20):
            token = new_token()
            created = await first.store.create(token)
            read = await second.store.read(token.token_id)
            assert read is not None
            assert (read.token, read.version) == (token, created.version)
            assert second.heard.token(token.token_id) == token

    async def test_a_read_of_nothing_reports_nothing(self, nodes: tuple[HearingNode, HearingNode]) -> None:
        node = nodes[0]
        token_id = new_token().token_id
        assert await node.store.read(token_id) is None
        assert node.heard.token(token_id) is None

    async def test_catch_up_reports_what_another_node_has_acknowledged(
        self, nodes: tuple[HearingNode, HearingNode]
    ) -> None:
        first, second = nodes
        deleted, kept = new_token(), new_token()
        created = await first.store.create(deleted)
        await first.store.create(kept)
        await second.store.catch_up()
        assert second.heard.token(deleted.token_id) == deleted
        assert second.heard.token(kept.token_id) == kept

        await first.store.delete(deleted.token_id, created.version)
        await second.store.catch_up()
        assert second.heard.states[deleted.token_id] is None

    async def test_where_all_is_readable_nothing_is_read_again(self, nodes: tuple[HearingNode, HearingNode]) -> None:
        first, second = nodes
        await first.store.create(new_token())
        await second.store.catch_up()
        heard = dict(second.heard.states)

        await second.store.reread_unreadable()

        assert second.heard.states == heard

    async def test_a_create_does_not_overwrite(self, nodes: tuple[HearingNode, HearingNode]) -> None:
        first, second = nodes
        token = new_token()
        await first.store.create(token)

        with pytest.raises(VersionConflict):
            await second.store.create(dataclasses.replace(token, owner=Principal.user("mallory")))

        assert _token(await second.store.read(token.token_id)) == token

    async def test_a_write_at_an_old_version_changes_nothing(self, nodes: tuple[HearingNode, HearingNode]) -> None:
        first, second = nodes
        token = new_token()
        created = await first.store.create(token)
        renewed = token.expiring_at(token.expiry_timestamp_ms + 1)
        await first.store.update(renewed, created.version)

        with pytest.raises(VersionConflict):
            await second.store.update(token.expiring_at(0), created.version)
        with pytest.raises(VersionConflict):
            await second.store.delete(token.token_id, created.version)

        assert _token(await second.store.read(token.token_id)) == renewed

    async def test_a_deletion_at_any_version_deletes_what_is_there(
        self, nodes: tuple[HearingNode, HearingNode]
    ) -> None:
        first, second = nodes
        token = new_token()
        created = await first.store.create(token)
        await first.store.update(token.expiring_at(token.expiry_timestamp_ms + 1), created.version)
        await second.store.delete(token.token_id, None)

        assert second.heard.states[token.token_id] is None
        assert await first.store.read(token.token_id) is None
        with pytest.raises(TokenNotFound):
            await first.store.delete(token.token_id, None)

    async def test_a_deleted_token_stays_deleted(self, nodes: tuple[HearingNode, HearingNode]) -> None:
        first, second = nodes
        token = new_token()
        created = await first.store.create(token)
        await second.store.read(token.token_id)
        await first.store.delete(token.token_id, created.version)

        with pytest.raises(TokenNotFound):
            await second.store.update(token.expiring_at(0), created.version)
        assert second.heard.states[token.token_id] is None
        with pytest.raises(TokenNotFound):
            await second.store.delete(token.token_id, created.version)

        assert await second.store.read(token.token_id) is None

    async def test_of_concurrent_writes_at_one_version_one_succeeds(
        self, nodes: tuple[HearingNode, HearingNode]
    ) -> None:
        token = new_token()
        created = await nodes[0].store.create(token)
        writes = [
            node.store.update(token.expiring_at(token.issue_timestamp_ms + number), created.version)
            for number, node in enumerate(nodes * 5)
        ]

        results = await asyncio.gather(*writes, return_exceptions=True)

        conflicts = [result for result in results if isinstance(result, VersionConflict)]
        assert len(conflicts) == len(writes) - 1


def _token(stored: StoredToken | None) -> Token | None:
    return None if stored is None else stored.token


@dataclass
class Place:
    """A node's face of a store, and what the node knows."""

    source: TokenSource
    changes: TokenChanges
    cache: TokenCache

    async def create(self, max_lifetime_ms: int = -1) -> DelegationToken:
        return await self.changes.create(NewToken(ALICE, CAROL, (BOB, BOB), max_lifetime_ms))

    async def renew(self, token: DelegationToken, period_ms: int, requester: Principal = ALICE) -> int:
        return await self.changes.change(token.token.token_id, token.hmac, Renewal(requester, period_ms, DAY))

    async def expire(self, token: DelegationToken, period_ms: int = -1, requester: Principal = ALICE) -> int:
        return await self.changes.change(token.token.token_id, token.hmac, Expiry(requester, period_ms))

    def expiry_ms(self, token: DelegationToken) -> int | None:
        known = self.cache.get(token.token.token_id)
        return None if known is None else known.token.expiry_timestamp_ms


class TokenStoreContract:
    requester = CAROL
    """The requester of each token, as the store knows it."""

    @pytest.fixture
    def clock(self) -> Clock:
        return Clock()

    def after(self, period_ms: int, clock: Clock) -> object:
        """Equal the instant that is a period from now, as exactly as the store's clock is known."""
        return clock.now_ms + period_ms

    @pytest.fixture
    async def places(self, clock: Clock) -> tuple[Place, Place]:
        raise NotImplementedError("the subclass makes the places")

    async def test_a_created_token_has_what_was_asked_for_and_is_known_when_create_returns(
        self, places: tuple[Place, Place], clock: Clock
    ) -> None:
        place = places[0]
        created = await place.create(2 * DAY)
        token = created.token
        assert (token.owner, token.requester, token.renewers) == (ALICE, self.requester, (BOB, BOB))
        assert token.issue_timestamp_ms == self.after(0, clock)
        assert token.expiry_timestamp_ms == self.after(DAY, clock)
        assert token.max_timestamp_ms == token.issue_timestamp_ms + 2 * DAY
        assert len(created.hmac) in place.changes.hmac_sizes
        assert place.cache.by_hmac(created.hmac) == place.cache.get(token.token_id) == created

    async def test_no_two_tokens_are_alike(self, places: tuple[Place, Place]) -> None:
        made = await asyncio.gather(*(place.create() for place in places for _ in range(10)))
        assert len({each.token.token_id for each in made}) == len({each.hmac for each in made}) == len(made)

    async def test_another_node_reads_a_token_with_its_hmac(self, places: tuple[Place, Place]) -> None:
        first, second = places
        created = await first.create()
        read = await second.source.read(created.token.token_id)
        assert read is not None
        assert read.token == created.token
        assert second.cache.get(created.token.token_id) == created

    async def test_what_is_not_there_is_read_as_nothing(self, places: tuple[Place, Place]) -> None:
        assert await places[0].source.read(new_token().token_id) is None

    async def test_a_change_is_known_when_it_returns_and_elsewhere_after_a_catch_up(
        self, places: tuple[Place, Place], clock: Clock
    ) -> None:
        first, second = places
        created = await first.create()
        await second.source.catch_up()
        assert second.cache.get(created.token.token_id) == created

        renewed_ms = await second.renew(created, HOUR, BOB)
        assert renewed_ms == second.expiry_ms(created) == self.after(HOUR, clock)
        await first.source.catch_up()
        assert first.expiry_ms(created) == renewed_ms

        expiry_ms = await first.expire(created, 2 * HOUR)
        assert expiry_ms == first.expiry_ms(created) == self.after(2 * HOUR, clock)
        await second.source.catch_up()
        assert second.expiry_ms(created) == expiry_ms

        assert await second.expire(created) == self.after(0, clock)
        assert second.cache.get(created.token.token_id) is None
        await first.source.catch_up()
        assert first.cache.get(created.token.token_id) is None

    async def test_a_renewal_is_clamped_and_takes_the_default(self, places: tuple[Place, Place], clock: Clock) -> None:
        created = await places[0].create(2 * DAY)
        assert await places[0].renew(created, 30 * DAY) == self.after(2 * DAY, clock)
        assert await places[0].renew(created, -1) == self.after(DAY, clock)

    async def test_a_refused_change_changes_nothing(self, places: tuple[Place, Place]) -> None:
        first, second = places
        created = await first.create()
        for request in (first.renew(created, HOUR, MALLORY), first.expire(created, -1, MALLORY)):
            with pytest.raises(TokenOwnerMismatch):
                await request
        await second.source.catch_up()
        assert first.cache.get(created.token.token_id) == second.cache.get(created.token.token_id) == created

    async def test_the_audit_hears_which_token_is_meant_also_if_the_change_is_refused(
        self, places: tuple[Place, Place]
    ) -> None:
        created = await places[0].create()
        heard: list[Token] = []
        refused = Expiry(MALLORY, -1, on_token=heard.append)
        with pytest.raises(TokenOwnerMismatch):
            await places[0].changes.change(created.token.token_id, created.hmac, refused)
        assert heard == [created.token]

    async def test_another_hmac_changes_nothing(self, places: tuple[Place, Place]) -> None:
        place = places[0]
        created = await place.create()
        with pytest.raises(TokenNotFound):
            await place.changes.change(created.token.token_id, bytes(max(place.changes.hmac_sizes)), Expiry(ALICE, -1))
        assert place.cache.get(created.token.token_id) == created

    async def test_a_change_is_decided_on_what_is_there_now(self, places: tuple[Place, Place], clock: Clock) -> None:
        first, second = places
        shortened, lengthened = await first.create(), await first.create()
        await second.source.catch_up()
        await first.expire(shortened, HOUR)
        await first.renew(lengthened, 3 * DAY)
        clock.now_ms += 2 * DAY
        with pytest.raises(TokenExpired):
            await second.renew(shortened, HOUR)
        assert await second.renew(lengthened, HOUR) == START + 2 * DAY + HOUR

    async def test_no_change_brings_a_deleted_token_back(self, places: tuple[Place, Place]) -> None:
        first, second = places
        created = await first.create()
        await second.source.catch_up()
        await first.expire(created)
        for request in (second.renew(created, HOUR), second.expire(created, HOUR), second.expire(created)):
            with pytest.raises(TokenNotFound):
                await request
        assert second.cache.get(created.token.token_id) is None
        assert await first.source.read(created.token.token_id) is None

    async def test_concurrent_changes_on_two_nodes_all_happen(self, places: tuple[Place, Place], clock: Clock) -> None:
        created = await places[0].create()
        await places[1].source.catch_up()

        async def renew(place: Place, period_ms: int) -> int:
            expiry_timestamp_ms = await place.renew(created, period_ms)
            # Compared at once: a store may take half a second for each renewal of a token.
            assert expiry_timestamp_ms == self.after(period_ms, clock)
            return expiry_timestamp_ms

        made = await asyncio.gather(*(renew(place, hours * HOUR) for place in places for hours in range(1, 7)))
        for place in places:
            await place.source.catch_up()
        assert places[0].expiry_ms(created) == places[1].expiry_ms(created)
        assert places[0].expiry_ms(created) in made

    async def test_what_has_expired_is_removed_once_and_nothing_else(
        self, places: tuple[Place, Place], clock: Clock
    ) -> None:
        first, second = places
        expired, renewed, live = await first.create(HOUR), await first.create(), await first.create()
        await second.source.catch_up()
        await first.renew(renewed, 3 * DAY)
        clock.now_ms += 2 * DAY
        removed = await asyncio.gather(
            *(place.changes.remove(expired.token.token_id, clock.now_ms) for place in places)
        )
        assert sorted(removed, key=bool) == [None, expired.token]
        assert await second.changes.remove(renewed.token.token_id, clock.now_ms) is None
        assert await first.changes.remove(live.token.token_id, START + HOUR) is None
        await second.source.catch_up()
        assert second.cache.get(expired.token.token_id) is None
        assert second.expiry_ms(renewed) == START + 3 * DAY

    async def test_a_proof_says_how_old_at_most_what_is_known_is(self, places: tuple[Place, Place]) -> None:
        begun = time.monotonic()
        await places[0].source.prove()
        staleness_ms = places[0].source.staleness_ms()
        assert 0 <= staleness_ms <= (time.monotonic() - begun) * 1000
